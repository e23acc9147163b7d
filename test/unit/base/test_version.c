/* SPDX-License-Identifier: MIT */
/* The version's forms agree. */
#include "test.h"

#include <qsim/base.h>

int main(void) {
    char expected[32];
    snprintf(expected, sizeof(expected), "%d.%d.%d", QSIM_VERSION_MAJOR, QSIM_VERSION_MINOR,
             QSIM_VERSION_PATCH);
    CHECK_STR(qsim_version_string(), expected);
    CHECK_INT(qsim_version(),
              QSIM_VERSION_MAJOR << 16 | QSIM_VERSION_MINOR << 8 | QSIM_VERSION_PATCH);
    CHECK_STR(qsim_error_name(QSIM_E_SHAPE), "QSIM_E_SHAPE");
    CHECK_STR(qsim_error_name(QSIM_OK), "QSIM_OK");
    return test_done();
}
