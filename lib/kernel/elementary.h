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
 * e^x = 2^n e^r with |r| <= ln(2) / 2; e^r by its Taylor series to r^7 (the next term is below
 * 5.3e-9). 2^n is applied as two factors, so that overflow and denormals come by themselves.
 */
static inline float qk_exp(float x) {
    x = x > 90.0f ? 90.0f : x; /* a NaN passes both */
    x = x < -110.0f ? -110.0f : x;
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
    float a = qk_from_bits(qk_bits(x) & 0x7fffffffu);
    float z = x * x;
    float p = 0.002295841f;
    p = p * z + -0.00834698044f;
    p = p * z + 0.0217699613f;
    p = p * z + -0.0539594069f;
    p = p * z + 0.133333042f;
    p = p * z + -0.333333343f;
    float small = x + x * z * p;
    float large = 1.0f - 2.0f / (qk_exp(2.0f * a) + 1.0f);
    large = qk_from_bits(qk_bits(large) | (qk_bits(x) & 0x80000000u));
    return a < 0.625f ? small : large;
}

static inline float qk_sigmoid(float x) {
    return 1.0f / (1.0f + qk_exp(-x));
}

#endif
