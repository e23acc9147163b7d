/* SPDX-License-Identifier: MIT */
/* Logarithm, exponential and power of doubles, and the remainder of an angle by pi / 2. */
#include "kernel/elementary64.h"

#define WORDS 6 /* 32-bit words of the product: 2 bits of quadrant, 190 of fraction */

/* The first 1280 bits of 2 / pi. */
static const uint32_t two_over_pi[40] = {
    0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu,
    0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
    0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu,
    0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u,
    0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u,
    0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du};

/* 32 bits of 2 / pi from bit `at` on; bits before the binary point are 0. */
static uint32_t bits_at(int at) {
    const int word = (at + 64) / 32 - 2, shift = (at + 64) % 32;
    const uint64_t high = word >= 0 ? two_over_pi[word] : 0;
    const uint64_t low = word >= -1 ? two_over_pi[word + 1] : 0;
    return (uint32_t)((high << 32 | low) >> (32 - shift));
}

/* p = (m * bits of 2 / pi from `at` on) mod 2^192, its most significant word first. */
static void multiply(uint64_t m, int at, uint32_t *p) {
    const uint64_t low = m & 0xffffffffu, high = m >> 32;
    uint64_t carry = 0, above = 0;
    for (int i = WORDS - 1; i >= 0; i--) {
        const uint64_t w = bits_at(at + 32 * i), a = w * low;
        uint64_t sum = (a & 0xffffffffu) + (above & 0xffffffffu) + carry;
        p[i] = (uint32_t)sum;
        carry = (sum >> 32) + (a >> 32) + (above >> 32);
        above = w * high;
    }
}

/* Exact for every double (Payne and Hanek, 1983). */
double qk_quarter64(double x, unsigned *quadrant) {
    uint64_t u;
    uint32_t p[WORDS], flip;
    x = fabs(x);
    *quadrant = 0;
    if (x < 0.785)
        return x;
    if (!(x <= 1.7976931348623157e308))
        return (double)NAN;
    memcpy(&u, &x, sizeof(u));
    const int exponent = (int)(u >> 52) - 1075;
    multiply((u & 0xfffffffffffffu) | 1ull << 52, exponent - 2, p);
    *quadrant = p[0] >> 30;
    flip = p[0] >> 29 & 1 ? 0xffffffffu : 0; /* over 1/2: the distance to the next multiple */
    *quadrant = (*quadrant + (flip & 1)) & 3;
    p[0] = (p[0] ^ flip) & 0x3fffffffu;
    double r = 0;
    for (int i = WORDS - 2; i > 0; i--)
        r = (r + (double)(p[i] ^ flip)) * 0x1p-32;
    r = (r + (double)p[0]) * 0x1p-30 * QK_HALF_PI;
    return flip ? -r : r;
}

/* log x = e log 2 + 2 artanh((m - 1) / (m + 1)), where x = 2^e m, m in [sqrt(1/2), sqrt(2)). */
double qk_log64(double x) {
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
#pragma GCC unroll 11 /* quotients of constants */
    for (int i = 21; i > 0; i -= 2)
        p = p * z + 2.0 / i;
    return (double)e * 0.693147180369123816490 + (s * p + (double)e * 1.90821492927058770002e-10);
}

/* 1 / 14!, 1 / 13!, ... 1 / 1!: the time of a quotient for each term was that of all else. */
static const double inverse_factorials[14] = {1.1470745597729725e-11,
                                              1.6059043836821613e-10,
                                              2.08767569878681e-09,
                                              2.505210838544172e-08,
                                              2.755731922398589e-07,
                                              2.7557319223985893e-06,
                                              2.48015873015873e-05,
                                              0.0001984126984126984,
                                              0.001388888888888889,
                                              0.008333333333333333,
                                              0.041666666666666664,
                                              0.16666666666666666,
                                              0.5,
                                              1.0};

/* e^x by its Taylor series around multiples of log 2. */
double qk_exp64(double x) {
    if (x != x)
        return x;
    if (x > 709.8)
        return (double)INFINITY;
    if (x < -745.2)
        return 0;
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    double whole = x * 1.4426950408889634 + shift - shift;
    double r = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10, p = 0;
    for (int i = 0; i < 14; i++)
        p = (p + inverse_factorials[i]) * r;
    p += 1;
    int64_t n = (int64_t)whole, half = n >> 1;
    uint64_t a = (uint64_t)(half + 1023) << 52, b = (uint64_t)(n - half + 1023) << 52;
    double fa, fb;
    memcpy(&fa, &a, sizeof(fa));
    memcpy(&fb, &b, sizeof(fb));
    return p * fa * fb;
}

double qk_pow64(double x, double y) {
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
