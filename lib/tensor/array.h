/* SPDX-License-Identifier: MIT */
/* Functions that the parsers of array files share. */
#ifndef QS_ARRAY_H
#define QS_ARRAY_H

#include "base/base.h"

#include <qsim/data.h>

static inline bool qs_big_endian(void) {
    const uint16_t one = 1;
    uint8_t low;
    memcpy(&low, &one, 1);
    return low == 0;
}

/* Bytes of one element, 0 for types under 8 bits, strings and unknown ones. */
static inline size_t qs_element_size(int32_t dtype) {
    return (size_t)qsim_dtype_bits(dtype) / 8;
}

/*
 * Completes an array whose dtype, rank, dims and offset are set: computes elements and bytes and
 * checks that the file holds exactly these. `what` names the format in messages.
 */
int qs_array_finish(qsim_array *array, uint64_t file_size, const char *what, qsim_error *error);

#endif
