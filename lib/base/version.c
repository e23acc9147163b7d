/* SPDX-License-Identifier: MIT */
/* The library's version. */
#include "base/base.h"

#define TEXT(x)   #x
#define STRING(x) TEXT(x)

uint32_t qsim_version(void) {
    return QSIM_VERSION_MAJOR << 16 | QSIM_VERSION_MINOR << 8 | QSIM_VERSION_PATCH;
}

const char *qsim_version_string(void) {
    return STRING(QSIM_VERSION_MAJOR) "." STRING(QSIM_VERSION_MINOR) "." STRING(QSIM_VERSION_PATCH);
}
