/* SPDX-License-Identifier: MIT */
/*
 * The library's own elementary functions: additions, multiplications, divisions and bit moves in a
 * written order, so that the bits are the same on every CPU, compiler and C library, and loops over
 * them vectorize. Within 2 units in the last place of the exact value.
 */
#ifndef QK_ELEMENTARY_H
#define QK_ELEMENTARY_H

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

#endif
