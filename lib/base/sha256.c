/* SPDX-License-Identifier: MIT */
/* SHA-256 as FIPS 180-4 defines it, through the CPU's own instructions where it has them. */
#include "base/base.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2).
 */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

/*
 * Each round moves the eight variables by one place. Here the names move instead: after eight
 * rounds they are back, and compilers keep all of them in registers.
 */
static inline void eight_rounds(uint32_t s[8], const uint32_t *w, const uint32_t *k) {
#define AT(place) s[((place)-i) & 7]
    for (int i = 0; i < 8; i++) {
        uint32_t e = AT(4), a = AT(0);
        uint32_t t1 = AT(7) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
                      (AT(6) ^ (e & (AT(5) ^ AT(6)))) + k[i] + w[i];
        uint32_t t2 =
            (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & AT(1)) | (AT(2) & (a | AT(1))));
        AT(3) += t1;
        AT(7) = t1 + t2;
    }
#undef AT
}

static void compress_c(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < 64; i += 8)
        eight_rounds(s, w + i, K + i);
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

#if defined(__x86_64__)
static int cpu_has_sha(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29) != 0;
}

/* The CPU's instructions keep the variables as a, b, e, f and c, d, g, h. */
__attribute__((target("sha,ssse3,sse4.1"))) static void compress_sha(uint32_t state[8],
                                                                     const uint8_t *block) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    low = _mm_shuffle_epi32(low, 0xb1);
    high = _mm_shuffle_epi32(high, 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4] = {abef, abef, abef, abef}; /* set before they are used */
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const __m128i *words = (const __m128i *)(const void *)(block + 16 * (i & 3));
        const __m128i last = w[(i + 3) & 3];
        if (i < 4)
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(words), swap);
        else
            w[i & 3] =
                _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                                   _mm_alignr_epi8(last, w[(i + 2) & 3], 4)),
                                     last);
        __m128i wk =
            _mm_add_epi32(w[i & 3], _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
    }
    abef = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
    cdgh = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
    _mm_storeu_si128((__m128i *)(void *)state, _mm_blend_epi16(abef, cdgh, 0xf0));
    _mm_storeu_si128((__m128i *)(void *)(state + 4), _mm_alignr_epi8(cdgh, abef, 8));
}
#else
static int cpu_has_sha(void) {
    return 0;
}
#define compress_sha compress_c
#endif

static void compress(qs_sha256 *h, const uint8_t *block) {
    if (h->fast)
        compress_sha(h->state, block);
    else
        compress_c(h->state, block);
}

void qs_sha256_init(qs_sha256 *h) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, start, sizeof(start));
    h->length = 0;
    h->fast = cpu_has_sha();
}

void qs_sha256_add(qs_sha256 *h, const void *data, size_t size) {
    const uint8_t *p = data;
    size_t used = (size_t)(h->length % 64);
    h->length += size;
    while (size > 0) {
        if (used == 0 && size >= 64) {
            compress(h, p);
            p += 64;
            size -= 64;
            continue;
        }
        size_t n = 64 - used < size ? 64 - used : size;
        memcpy(h->block + used, p, n);
        used += n;
        p += n;
        size -= n;
        if (used == 64) {
            compress(h, h->block);
            used = 0;
        }
    }
}

void qs_sha256_hex(qs_sha256 *h, char hex[65]) {
    static const char digits[] = "0123456789abcdef";
    static const uint8_t end[64] = {0x80};
    uint64_t bits = h->length * 8;
    size_t used = (size_t)(h->length % 64);
    uint8_t tail[8];
    qs_sha256_add(h, end, used < 56 ? 56 - used : 120 - used);
    for (int i = 0; i < 8; i++)
        tail[i] = (uint8_t)(bits >> (56 - 8 * i));
    qs_sha256_add(h, tail, 8);
    for (int i = 0; i < 64; i++)
        hex[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}
