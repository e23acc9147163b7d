/* SPDX-License-Identifier: MIT */
#include "ptq/no_memory.h"

int qs_no_memory_in(const char *what, int code, qsim_error *error) {
    return code == QSIM_E_NOMEM ? qs_fail(error, code, "%s: out of memory", what) : code;
}
