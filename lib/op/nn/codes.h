/* SPDX-License-Identifier: MIT */
/* Reads codes of 2, 4 or 8 bits; the first is in the lowest bits of a byte. */
#ifndef QS_CODES_H
#define QS_CODES_H

#include "base/base.h"

static inline int32_t qs_code_at(const uint8_t *data, int64_t bits, int64_t index) {
    const uint64_t at = (uint64_t)(index * bits);
    return data[at / 8] >> at % 8 & ((1 << bits) - 1);
}

#endif
