/* SPDX-License-Identifier: MIT */
/* The loops of quantizing and dequantizing with one scale. */
#ifndef QS_AFFINE_LOOPS_H
#define QS_AFFINE_LOOPS_H

#include "quant/affine.h"

/*
 * Loops that compilers vectorize: a division, two selects that become maxps and minps (NaN becomes
 * the lower bound), rounding by addition. The bounds are exact, since |zero point| is at most 2^20.
 */
#define QS_QUANTIZE(result, name, type, low, high)                                                 \
    result name(const float *x, size_t n, float scale, int32_t zero_point, type *y) {              \
        float lo = (float)((low)-zero_point), hi = (float)((high)-zero_point);                     \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            float v = qs_minf(qs_maxf(x[i] / scale, lo), hi);                                      \
            y[i] = (type)(qs_round_even(v) + zero_point);                                          \
        }                                                                                          \
    }

#define QS_DEQUANTIZE(result, name, type)                                                          \
    result name(const type *x, size_t n, float scale, int32_t zero_point, float *y) {              \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = (float)((int32_t)x[i] - zero_point) * scale;                                    \
    }

#endif
