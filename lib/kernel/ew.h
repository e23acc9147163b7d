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
    qk_ew_f32_fn exp, sigmoid, tanh;
    /* y = exp(x - shift) */
    void (*exp_shifted)(const float *x, float shift, float *y, size_t n);
} qk_ew;

extern const qk_ew qk_ew_c;
extern const qk_ew qk_ew_avx2;
extern const qk_ew qk_ew_avx512;

#endif
