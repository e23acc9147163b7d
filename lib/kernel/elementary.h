/* SPDX-License-Identifier: MIT */
/*
 * The library's own elementary functions: additions, multiplications, fused or not, divisions and
 * bit moves in a written order, so that the bits are the same on every CPU, compiler and C library.
 * exp is within 0.9 units in the last place of the exact value, erf within 1.1, tanh 1.4, sigmoid
 * 2.5 (0 at times where it is below 2^-126); silu, hardswish and gelu within 1.5e-7 of x.
 */
#ifndef QK_ELEMENTARY_H
#define QK_ELEMENTARY_H

#include <math.h>

#include "base/base.h" /* no contraction to FMA */

static inline uint32_t qk_bits(float v) {
    uint32_t u;
    memcpy(&u, &v, sizeof(u));
    return u;
}

static inline float qk_from_bits(uint32_t u) {
    float v;
    memcpy(&v, &u, sizeof(v));
    return v;
}

/* fmaf is an instruction where the caller has FMA3; else, as in c/ew_c.c on x86, a call. */
#define QK_INLINE QS_INLINE

QK_INLINE float qk_abs(float x) {
    return qk_from_bits(qk_bits(x) & 0x7fffffffu);
}

QK_INLINE float qk_flip(float v, uint32_t bits) {
    return qk_from_bits(qk_bits(v) ^ bits);
}

/*
 * p * 2^n, where the lowest bits of k are n + 254; in two factors, so that overflow and denormals
 * need no case of their own.
 */
QK_INLINE float qk_scale_exp(float p, float k) {
    const uint32_t n = qk_bits(k);
    return p * qk_from_bits(n >> 1 << 23) * qk_from_bits((n - (n >> 1)) << 23);
}

QK_INLINE float qk_join(float x, float bound, float small, float large) {
    return qk_abs(x) < bound ? small : qk_from_bits(qk_bits(large) | (qk_bits(x) & 0x80000000u));
}

QK_INLINE float qk_one_where(bool far, float x) {
    return far ? qk_from_bits((qk_bits(x) & 0x80000000u) | 0x3f800000u) : x;
}

/* c - a * b. A NaN of a stays as it is, as in vectors; -a would be another one. */
QK_INLINE float qk_fnma(float a, float b, float c) {
    return isnan(a) ? a + a : fmaf(-a, b, c);
}

#define QK_F                         float
#define QK_CURVE                     QK_INLINE
#define QK_NAME(name)                qk_##name
#define QK_K(c)                      (c)
#define QK_FMA(a, b, c)              fmaf(a, b, c)
#define QK_FNMA(a, b, c)             qk_fnma(a, b, c)
#define QK_MIN(a, b)                 ((a) < (b) ? (a) : (b))
#define QK_MAX(a, b)                 ((a) > (b) ? (a) : (b))
#define QK_ABS(x)                    qk_abs(x)
#define QK_SCALE(p, k)               qk_scale_exp(p, k)
#define QK_JOIN(x, b, s, l)          qk_join(x, b, s, l)
#define QK_FAR                       bool
#define QK_REACHES(x, b)             (qk_abs(x) >= (b))
#define QK_ONE_WHERE(far, x)         qk_one_where(far, x)
#define QK_SCALE_WHERE(far, p, k, s) ((far) ? qk_scale_exp(p, k) : (s))
#include "kernel/elementary_curves.h"
#undef QK_F
#undef QK_CURVE
#undef QK_NAME
#undef QK_K
#undef QK_FMA
#undef QK_FNMA
#undef QK_MIN
#undef QK_MAX
#undef QK_ABS
#undef QK_SCALE
#undef QK_JOIN
#undef QK_FAR
#undef QK_REACHES
#undef QK_ONE_WHERE
#undef QK_SCALE_WHERE

/*
 * Functions of doubles, not inlined (elementary64.c). x^y has C99's special cases and is within
 * some 1e-14 of the result where |y log x| is large.
 */
double qk_log64(double x);
double qk_exp64(double x);
double qk_pow64(double x, double y);

#endif
