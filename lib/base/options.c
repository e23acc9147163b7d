/* SPDX-License-Identifier: MIT */
/* Option and info structs of other versions, shorter or longer than this library's. */
#include "base/base.h"

/*
 * No struct of any version is this large: an unset struct_size is reported before bytes beyond the
 * caller's struct are read or cleared.
 */
#define LARGEST_STRUCT 1024

int qs_options(void *own, size_t own_size, const void *options, qsim_error *error) {
    memset(own, 0, own_size);
    if (!options)
        return QSIM_OK;
    size_t theirs;
    memcpy(&theirs, options, sizeof(theirs));
    if (theirs < sizeof(theirs) || theirs > LARGEST_STRUCT)
        return qs_fail(error, QSIM_E_ARGUMENT, "options: struct_size is %zu; set it to sizeof",
                       theirs);
    const unsigned char *bytes = options;
    for (size_t i = own_size; i < theirs; i++)
        if (bytes[i])
            return qs_fail(error, QSIM_E_VERSION,
                           "options: byte %zu is set, which this version (%s) does not know", i,
                           qsim_version_string());
    memcpy(own, options, theirs < own_size ? theirs : own_size);
    return QSIM_OK;
}

int qs_give(void *theirs, const void *ours, size_t our_size) {
    size_t size;
    if (!theirs)
        return QSIM_E_ARGUMENT;
    memcpy(&size, theirs, sizeof(size));
    if (size < sizeof(size) || size > LARGEST_STRUCT)
        return QSIM_E_ARGUMENT;
    size_t common = size < our_size ? size : our_size;
    memcpy((char *)theirs + sizeof(size), (const char *)ours + sizeof(size), common - sizeof(size));
    memset((char *)theirs + common, 0, size - common);
    return QSIM_OK;
}
