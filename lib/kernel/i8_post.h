/* SPDX-License-Identifier: MIT */
/*
 * The general epilogue of one row, in plain C: every instruction set's file compiles it for itself.
 * Formula: op/int8/conv_i8.h, qs_conv_i8_post.
 */
#ifndef QK_I8_POST_H
#define QK_I8_POST_H

#include "kernel/i8.h"
#include "quant/requantize.h"

__attribute__((always_inline)) static inline void qk_post_row(const qk_post_row_i8 *p) {
    const int32_t *restrict acc = p->acc, *restrict colsum = p->colsum, *restrict w_zp = p->w_zp;
    const float *restrict mult = p->mult;
    uint8_t *restrict out = p->out;
    const uint32_t zp = p->row_zp, rest = p->rest;
    const int32_t lo = p->o.lo, hi = p->o.hi, y_zp = p->o.zp;
    for (int32_t i = 0; i < p->n; i++) {
        uint32_t sum = (uint32_t)acc[i] - zp * (uint32_t)colsum[i] - (uint32_t)w_zp[i] * rest;
        out[i] = (uint8_t)qs_requantize((int32_t)sum, mult[i], lo, hi, y_zp);
    }
}

#endif
