/* SPDX-License-Identifier: MIT */
/*
 * The library's own elementary functions: additions, multiplications, divisions and bit moves in a
 * written order, so that the bits are the same on every CPU, compiler and C library, and loops over
 * them vectorize. Within 2 units in the last place of the exact value.
 */
#ifndef QK_ELEMENTARY_H
#define QK_ELEMENTARY_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

/*
 * x brought into [-110, 90]; a NaN stays one. In integers, because compilers turn two float selects
 * into branches: magnitudes compare like their bits, and a shifted sign is a mask.
 */
static inline float qk_clamp_exp(float x) {
    const int32_t high = 0x42b40000, low = 0x42dc0000, infinity = 0x7f800000;
    uint32_t b = qk_bits(x), sign = b & 0x80000000u;
    int32_t m = (int32_t)(b & 0x7fffffffu);
    int32_t limit = high + (((int32_t)b >> 31) & (low - high));
    uint32_t over = (uint32_t)((limit - m) >> 31) & ~(uint32_t)((infinity - m) >> 31);
    return qk_from_bits((b & ~over) | (((uint32_t)limit | sign) & over));
}

/*
 * e^x = 2^n e^r with |r| <= ln(2) / 2; e^r by its Taylor series to r^7 (the next term is below
 * 5.3e-9). 2^n is applied as two factors, so that overflow and denormals come by themselves.
 */
static inline float qk_exp(float x) {
    x = qk_clamp_exp(x);
    const float shift = 12582912.0f; /* 1.5 * 2^23: rounds to an integer in the low bits */
    float k = x * 1.44269504f + shift;
    int32_t n = (int32_t)(qk_bits(k) - qk_bits(shift));
    float whole = k - shift;
    /* ln(2) in two parts; the first has 15 bits, so that its product is exact */
    float r = (x - whole * 0.693145752f) - whole * 1.42860682e-6f;
    float p = 1.98412698e-4f;
    p = p * r + 1.38888889e-3f;
    p = p * r + 8.33333333e-3f;
    p = p * r + 4.16666667e-2f;
    p = p * r + 1.66666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    int32_t half = n >> 1;
    float a = qk_from_bits((uint32_t)(half + 127) << 23);
    float b = qk_from_bits((uint32_t)(n - half + 127) << 23);
    return p * a * b;
}

/*
 * tanh: below 0.625 x + x^3 P(x^2), with P fitted on Chebyshev nodes (relative error 6.4e-10);
 * above, 1 - 2 / (e^2|x| + 1).
 */
static inline float qk_tanh(float x) {
    uint32_t sign = qk_bits(x) & 0x80000000u, magnitude = qk_bits(x) ^ sign;
    float a = qk_from_bits(magnitude);
    float z = x * x;
    float p = 0.002295841f;
    p = p * z + -0.00834698044f;
    p = p * z + 0.0217699613f;
    p = p * z + -0.0539594069f;
    p = p * z + 0.133333042f;
    p = p * z + -0.333333343f;
    float small = x + x * z * p;
    float large = 1.0f - 2.0f / (qk_exp(2.0f * a) + 1.0f);
    uint32_t below = (uint32_t)((int32_t)(magnitude - 0x3f200000u) >> 31); /* of 0.625 */
    return qk_from_bits((qk_bits(small) & below) | ((qk_bits(large) | sign) & ~below));
}

static inline float qk_sigmoid(float x) {
    return 1.0f / (1.0f + qk_exp(-x));
}

/* A NaN stays. */
static inline float qk_hardswish(float x) {
    float v = x * (1.0f / 6.0f) + 0.5f;
    v = v < 0.0f ? 0.0f : v;
    v = v > 1.0f ? 1.0f : v;
    return x * v;
}

static inline float qk_silu(float x) {
    return x * qk_sigmoid(x);
}

/*
 * erf: below 0.92 x + x P(x^2); above, 1 - e^-Q(|x|) with Q fitted to -log(1 - erf) on [0.92, 4],
 * beyond which the float is 1. P to 5e-10, Q to 1.5e-9 of the result.
 */
static inline float qk_erf(float x) {
    uint32_t sign = qk_bits(x) & 0x80000000u, magnitude = qk_bits(x) ^ sign;
    uint32_t over = (uint32_t)((int32_t)(0x40800000u - magnitude) >> 31) & /* of 4, but no NaN */
                    ~(uint32_t)((int32_t)(0x7f800000u - magnitude) >> 31);
    float a = qk_from_bits((magnitude & ~over) | (0x40800000u & over));
    float z = x * x;
    float p = 8.32748701e-5f;
    p = p * z + -8.13321560e-4f;
    p = p * z + 5.20026077e-3f;
    p = p * z + -2.68591195e-2f;
    p = p * z + 1.12836912e-1f;
    p = p * z + -3.76126349e-1f;
    p = p * z + 1.28379166e-1f;
    float small = x + x * p;
    float q = -1.9494677e-4f;
    q = q * a + 3.0336925e-3f;
    q = q * a + -2.2189777e-2f;
    q = q * a + 1.0385638e-1f;
    q = q * a + 6.3726574e-1f;
    q = q * a + 1.1276274f;
    q = q * a + 2.0700849e-4f;
    float large = 1.0f - qk_exp(-q);
    uint32_t below = (uint32_t)((int32_t)(magnitude - 0x3f6b851fu) >> 31); /* of 0.92 */
    return qk_from_bits((qk_bits(small) & below) | ((qk_bits(large) | sign) & ~below));
}

/* x times the normal distribution's integral up to x. */
static inline float qk_gelu(float x) {
    return x * 0.5f * (1.0f + qk_erf(x * 0.707106781f));
}

/* The same with the integral's usual approximation by tanh. */
static inline float qk_gelu_tanh(float x) {
    float inner = 0.797884561f * (x + 0.044715f * (x * x * x));
    return x * 0.5f * (1.0f + qk_tanh(inner));
}

/* log x, by that of the mantissa in [sqrt(1/2), sqrt(2)) as 2 artanh(s), s = (m - 1) / (m + 1). */
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

/* x^y as C99's pow has it; some 1e-14 of the result where |y log x| is large. */
static inline double qk_pow64(double x, double y) {
    const double most = 9007199254740992.0; /* 2^53: even from here on */
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
    if (b <= 1024 && whole) { /* exact wherever the result is */
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
