/* SPDX-License-Identifier: MIT */
#include "ptq/no_memory.h"

int qs_no_memory(qsim_error *error) {
    return qs_fail(error, QSIM_E_NOMEM, "quantization: out of memory");
}
