/* SPDX-License-Identifier: MIT */
/* Pooling of u8: 32 channels at once for the maximum, 8 for averages. */
#include "kernel/x86/pool_x86.h"

#if QK_X86
#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))

#define VEC   __m256i
#define LANES 32

#define LOAD(p)              _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define STORE_FIRST(p, v, n) store_first(p, v, n)
#define PICK_INDEX           __m256i
#define PICK_MOST            2
#define PICK_LOAD(i)         LOAD(i)
#define PICK(v, i)           _mm256_permutevar8x32_epi32(v, i)

TARGET static inline void store_first(uint8_t *p, __m256i v, size_t n) {
    __m128i low = _mm256_castsi256_si128(v);
    if (n == 32) {
        _mm256_storeu_si256((__m256i *)(void *)p, v);
        return;
    }
    if (n & 16) {
        _mm_storeu_si128((__m128i *)(void *)p, low);
        low = _mm256_extracti128_si256(v, 1);
        p += 16;
    }
    if (n & 8) {
        _mm_storel_epi64((__m128i *)(void *)p, low);
        low = _mm_unpackhi_epi64(low, low);
        p += 8;
    }
    uint64_t rest = (uint64_t)_mm_cvtsi128_si64(low);
    for (n &= 7; n > 0; n--, rest >>= 8)
        *p++ = (uint8_t)rest;
}

#include "kernel/pool_tile.h"

#define AS_IT_IS(v, count) (v)
POOL(max_u8, uint8_t, _mm256_setzero_si256(), _mm256_max_epu8, AS_IT_IS)

void qk_max_u8_avx2(const qk_pool *p) {
    max_u8(p);
}

/* Sums of 16 channels. */
typedef struct sums {
    __m256i v[2];
} sums;

TARGET static __m256i sum_dwords(const qk_pool *p, const uint8_t *line, size_t count,
                                 ptrdiff_t step) {
    __m256i sum = _mm256_setzero_si256();
    for (size_t ky = 0; ky < p->kh; ky++, line += p->row_step) {
        const uint8_t *v = line;
        for (size_t kx = 0; kx < count; kx++, v += step) {
            const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)v);
            sum = _mm256_add_epi32(sum, _mm256_cvtepu8_epi32(bytes));
        }
    }
    return sum;
}

TARGET static sums sum_u8(const qk_pool *p, const uint8_t *line, size_t count, ptrdiff_t step) {
    if (p->kh * count > QK_POOL_WORD_TAPS)
        return (sums){{sum_dwords(p, line, count, step), sum_dwords(p, line + 8, count, step)}};
    __m256i sum = _mm256_setzero_si256();
    for (size_t ky = 0; ky < p->kh; ky++, line += p->row_step) {
        const uint8_t *v = line;
        for (size_t kx = 0; kx < count; kx++, v += step) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)v);
            sum = _mm256_add_epi16(sum, _mm256_cvtepu8_epi16(bytes));
        }
    }
    return (sums){{_mm256_cvtepu16_epi32(_mm256_castsi256_si128(sum)),
                   _mm256_cvtepu16_epi32(_mm256_extracti128_si256(sum, 1))}};
}

/* The low bytes of eight dwords in 0…255. */
TARGET static uint64_t low_bytes(__m256i v) {
    const __m256i words = _mm256_packus_epi32(v, v);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const uint32_t low = (uint32_t)_mm256_extract_epi32(bytes, 0);
    const uint32_t high = (uint32_t)_mm256_extract_epi32(bytes, 4);
    return (uint64_t)high << 32 | low;
}

TARGET void qk_average_u8_avx2(const qk_pool *p) {
    const uint8_t *const x = p->x;
    const ptrdiff_t channels = (ptrdiff_t)p->channels, step = (ptrdiff_t)p->dw * channels;
    const __m256 lo = _mm256_set1_ps((float)(p->lo - p->y_zero));
    const __m256 hi = _mm256_set1_ps((float)(p->hi - p->y_zero));
    const __m256i zero = _mm256_set1_epi32(p->y_zero);
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const __m256 m = _mm256_set1_ps(qk_average_multiplier(p, &w));
        const __m256i bias = _mm256_set1_epi32(-p->x_zero * (int32_t)(p->kh * w.count));
        sums s = {{zero, zero}};
        for (ptrdiff_t j = 0; j < channels; j += 8) {
            if (j % 16 == 0)
                s = sum_u8(p, x + w.first * channels + j, w.count, step);
            const __m256i sum = _mm256_add_epi32(s.v[j / 8 % 2], bias);
            __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), m);
            v = _mm256_min_ps(_mm256_max_ps(v, lo), hi);
            const uint64_t out = low_bytes(_mm256_add_epi32(_mm256_cvtps_epi32(v), zero));
            const size_t last = (size_t)(channels - j);
            memcpy(y + j, &out, last < 8 ? last : 8);
        }
    }
}
#endif
