/* SPDX-License-Identifier: MIT */
#include "ptq/no_memory.h"

static const char quantizing[] = "quantization: out of memory";

int qs_no_memory(qsim_error *error) {
    return qs_fail(error, QSIM_E_NOMEM, "%s", quantizing);
}

int qs_no_memory_in(const char *what, int code, qsim_error *error) {
    if (code == QSIM_E_NOMEM && error && strcmp(error->message, quantizing) == 0) {
        qs_error_clear(error);
        (void)qs_fail(error, code, "%s: out of memory", what);
    }
    return code;
}
