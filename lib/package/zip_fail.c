/* SPDX-License-Identifier: MIT */
/* Translates libzip's errors. */
#include "package/archive.h"

#include <zip.h>

/* If libzip fails without a reason an allocation has failed. */
int qs_zip_fail(zip_error_t *e, int code, const char *where, const char *what, qsim_error *error) {
    const int reason = zip_error_code_zip(e);
    if (reason == ZIP_ER_MEMORY || reason == ZIP_ER_OK)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", where);
    return qs_fail(error, code, "%s: %s: %s", where, what, zip_error_strerror(e));
}
