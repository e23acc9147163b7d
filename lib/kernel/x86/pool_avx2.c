/* SPDX-License-Identifier: MIT */
/* Pooling of u8: 32 channels at once for the maximum, 8 for averages. */
#include "kernel/x86/pool_x86.h"

#if QK_X86
#include <immintrin.h>

#include "kernel/pool_window.h"

#define TARGET __attribute__((target("avx2")))

TARGET void qk_max_u8_avx2(const qk_pool *p) {
    const uint8_t *const x = p->x;
    const ptrdiff_t channels = (ptrdiff_t)p->channels, step = (ptrdiff_t)p->dw * channels;
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += channels) {
        const qk_window w = qk_window_at(p, ox);
        for (ptrdiff_t j = 0; j < channels; j += 32) {
            const uint8_t *line = x + w.first * channels + j;
            __m256i m = _mm256_setzero_si256();
            for (size_t ky = 0; ky < p->kh; ky++, line += p->row_step) {
                const uint8_t *v = line;
                for (size_t kx = 0; kx < w.count; kx++, v += step)
                    m = _mm256_max_epu8(m, _mm256_loadu_si256((const __m256i *)(const void *)v));
            }
            uint8_t bytes[32];
            _mm256_storeu_si256((__m256i *)(void *)bytes, m);
            const size_t last = (size_t)(channels - j);
            memcpy(y + j, bytes, last < 32 ? last : 32);
        }
    }
}

TARGET static __m256i sum_u8(const qk_pool *p, const uint8_t *line, size_t count, ptrdiff_t step) {
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
    for (size_t ox = 0; ox < p->ow; ox++, y += channels) {
        const qk_window w = qk_window_at(p, ox);
        const __m256 m = _mm256_set1_ps(qk_average_multiplier(p, &w));
        const __m256i bias = _mm256_set1_epi32(-p->x_zero * (int32_t)(p->kh * w.count));
        for (ptrdiff_t j = 0; j < channels; j += 8) {
            const __m256i sum = sum_u8(p, x + w.first * channels + j, w.count, step);
            __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(sum, bias)), m);
            v = _mm256_min_ps(_mm256_max_ps(v, lo), hi);
            const uint64_t out = low_bytes(_mm256_add_epi32(_mm256_cvtps_epi32(v), zero));
            const size_t last = (size_t)(channels - j);
            memcpy(y + j, &out, last < 8 ? last : 8);
        }
    }
}
#endif
