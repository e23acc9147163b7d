/* SPDX-License-Identifier: MIT */
/*
 * The definition of requantization, from an int32 accumulator to 8 bits. Every kernel gives these
 * bits.
 *
 *     v = (float)acc * m;  clamp to [lo - zp, hi - zp];  round half to even;  + zp
 *
 * with m = (x_scale * w_scale) / y_scale, in float, left to right. `lo` and `hi` are the limits of
 * the output type, tightened by a fused ReLU or Clip. A NaN cannot occur: m is finite.
 */
#ifndef QS_REQUANTIZE_H
#define QS_REQUANTIZE_H

#include "base/base.h"

/*
 * Rounds half to even for |v| <= 2^22: adding 1.5 * 2^23 leaves no bits for a fraction, and the sum
 * is rounded as every IEEE 754 addition is. Unlike lrintf it vectorizes everywhere.
 */
static inline int32_t qs_round_even(float v) {
    float shifted = v + 12582912.0f;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof(bits));
    return bits - 0x4b400000;
}

/* Multiplier of one channel. */
static inline float qs_requantize_multiplier(float x_scale, float w_scale, float y_scale) {
    return (x_scale * w_scale) / y_scale;
}

/* The larger one; `b` when `a` is a NaN. As maxps: the compiler turns it into one instruction. */
static inline float qs_maxf(float a, float b) {
    return a > b ? a : b;
}
static inline float qs_minf(float a, float b) {
    return a < b ? a : b;
}

static inline int32_t qs_requantize(int32_t acc, float m, int32_t lo, int32_t hi, int32_t zp) {
    float v = (float)acc * m;
    v = qs_minf(qs_maxf(v, (float)(lo - zp)), (float)(hi - zp));
    return qs_round_even(v) + zp;
}

#endif
