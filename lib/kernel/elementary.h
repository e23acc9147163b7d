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

/* Always inlined, so that fmaf is an instruction where the caller has FMA3; else it is a call. */
#ifdef __GNUC__
#define QK_INLINE __attribute__((always_inline)) static inline
#else
#define QK_INLINE static inline
#endif

QK_INLINE float qk_abs(float x) {
    return qk_from_bits(qk_bits(x) & 0x7fffffffu);
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

#define QK_F                float
#define QK_CURVE            QK_INLINE
#define QK_NAME(name)       qk_##name
#define QK_K(c)             (c)
#define QK_FMA(a, b, c)     fmaf(a, b, c)
#define QK_MIN(a, b)        ((a) < (b) ? (a) : (b))
#define QK_MAX(a, b)        ((a) > (b) ? (a) : (b))
#define QK_ABS(x)           qk_abs(x)
#define QK_SCALE(p, k)      qk_scale_exp(p, k)
#define QK_JOIN(x, b, s, l) qk_join(x, b, s, l)
#include "kernel/elementary_curves.h"
#undef QK_F
#undef QK_CURVE
#undef QK_NAME
#undef QK_K
#undef QK_FMA
#undef QK_MIN
#undef QK_MAX
#undef QK_ABS
#undef QK_SCALE
#undef QK_JOIN

/* log x = e log 2 + 2 artanh((m - 1) / (m + 1)), where x = 2^e m, m in [sqrt(1/2), sqrt(2)). */
static inline double qk_log64(double x) {
    uint64_t u;
    int64_t e = 0;
    if (!(x > 0))
        return x < 0 || x != x ? (double)NAN : -(double)INFINITY;
    if (x > 1.7976931348623157e308)
        return x;
    if (x < 2.2250738585072014e-308) {
        x *= 18014398509481984.0; /* 2^54 */
        e = -54;
    }
    memcpy(&u, &x, sizeof(u));
    e += (int64_t)((u + 0x95f619980c433ull) >> 52) - 1023; /* rounds up from sqrt(2) on */
    u -= (uint64_t)((int64_t)((u + 0x95f619980c433ull) >> 52) - 1023) << 52;
    memcpy(&x, &u, sizeof(x));
    double s = (x - 1) / (x + 1), z = s * s, p = 0;
    for (int i = 21; i > 0; i -= 2)
        p = p * z + 2.0 / i;
    return (double)e * 0.693147180369123816490 + (s * p + (double)e * 1.90821492927058770002e-10);
}

/* e^x by its Taylor series around multiples of log 2. */
static inline double qk_exp64(double x) {
    if (x != x)
        return x;
    if (x > 709.8)
        return (double)INFINITY;
    if (x < -745.2)
        return 0;
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    double whole = x * 1.4426950408889634 + shift - shift;
    double r = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10, p = 1;
    for (int i = 14; i > 0; i--)
        p = p * (r / i) + 1;
    int64_t n = (int64_t)whole, half = n >> 1;
    uint64_t a = (uint64_t)(half + 1023) << 52, b = (uint64_t)(n - half + 1023) << 52;
    double fa, fb;
    memcpy(&fa, &a, sizeof(fa));
    memcpy(&fb, &b, sizeof(fb));
    return p * fa * fb;
}

/* x^y with C99's special cases; within some 1e-14 of the result where |y log x| is large. */
static inline double qk_pow64(double x, double y) {
    const double most = 9007199254740992.0; /* 2^53: doubles are even from here on */
    if (y == 0 || x == 1)
        return 1;
    if (x != x || y != y)
        return (double)NAN;
    double a = x < 0 ? -x : x, b = y < 0 ? -y : y;
    bool whole = b >= most || (double)(int64_t)b == b;
    bool odd = b < most && whole && ((int64_t)b & 1);
    uint64_t u;
    memcpy(&u, &x, sizeof(u));
    bool negative = u >> 63;
    if (a == 1 && b > 1.7976931348623157e308)
        return 1;
    if (x < 0 && !whole && a <= 1.7976931348623157e308)
        return (double)NAN;
    double r;
    if (b <= 1024 && whole) { /* exact where the result is */
        r = 1;
        for (int64_t n = (int64_t)b; n; n >>= 1, a *= a)
            r = n & 1 ? r * a : r;
        r = y < 0 ? 1 / r : r;
    } else {
        r = qk_exp64(y * qk_log64(a));
    }
    return negative && odd ? -r : r;
}

#endif
