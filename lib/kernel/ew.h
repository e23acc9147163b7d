/* SPDX-License-Identifier: MIT */
/* Element-wise kernels. Every instruction set compiles the same loops (ew_loops.h). */
#ifndef QK_EW_H
#define QK_EW_H

#include "base/base.h"

/*
 * c = round_half_even(clamp(v, lo, hi)) + zc on uint8, with
 *   add: v = ma (a - za) + mb (b - zb)      mul: v = ((a - za) (b - zb)) ma
 * A byte of an int8 operand is its uint8 twin ^ 0x80, which flip_* says. Strides are 0 or 1.
 */
typedef struct qk_ew_u8 {
    float ma, mb;
    int32_t za, zb, zc;
    float lo, hi; /* minus zc */
    uint8_t flip_a, flip_b, flip_c;
} qk_ew_u8;

typedef void (*qk_ew_u8_fn)(const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *c,
                            size_t n, const qk_ew_u8 *w);
typedef void (*qk_ew_f32_fn)(const float *x, float *y, size_t n);

typedef struct qk_ew {
    qk_ew_u8_fn add_u8, mul_u8;
    qk_ew_f32_fn exp, sigmoid, tanh, erf, gelu, gelu_tanh;
    /* y = exp(x - shift) */
    void (*exp_shifted)(const float *x, float shift, float *y, size_t n);
    /* Greatest element; a NaN may be passed over. n >= 1. */
    float (*greatest)(const float *x, size_t n);
    /* y = x / d; x and y may be the same. */
    void (*divide)(const float *x, float d, float *y, size_t n);
    /* Trees over 16 lanes (lane = i mod 16, then 8-4-2-1): sums of x, of (x - shift)^2. */
    float (*sum)(const float *x, float unused, size_t n);
    float (*sum_squares)(const float *x, float shift, size_t n);
    /* y = (x - shift) * factor * scale + bias; scale and bias are lists, bias may be NULL. */
    void (*normalize)(const float *x, float shift, float factor, const float *scale,
                      const float *bias, float *y, size_t n);
} qk_ew;

extern const qk_ew qk_ew_c;
extern const qk_ew qk_ew_avx2;
extern const qk_ew qk_ew_avx512;

#endif
