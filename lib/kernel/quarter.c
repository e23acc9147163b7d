/* SPDX-License-Identifier: MIT */
/* The remainder of an angle by pi / 2, exact for every double (Payne and Hanek, 1983). */
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
