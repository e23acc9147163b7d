/* SPDX-License-Identifier: MIT */
/* Pooling of u8: 64 channels at once for the maximum, 16 for averages. */
#include "kernel/x86/pool_x86.h"

#if QK_X86
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

#define VEC   __m512i
#define LANES 64

#define LOAD(p)              _mm512_loadu_si512(p)
#define STORE_FIRST(p, v, n) _mm512_mask_storeu_epi8(p, ~(__mmask64)0 >> (64 - (n)), v)
#define PICK_INDEX           __m512i
#define PICK_MOST            5
#define PICK_LOAD(i)         _mm512_loadu_si512(i)
#define PICK(v, i)           _mm512_permutexvar_epi32(i, v)

#include "kernel/pool_tile.h"

#define AS_IT_IS(v, count) (v)
POOL(max_u8, uint8_t, _mm512_setzero_si512(), _mm512_max_epu8, AS_IT_IS)

void qk_max_u8_avx512(const qk_pool *p) {
    max_u8(p);
}

/* Sums of 32 channels. */
typedef struct sums {
    __m512i v[2];
} sums;

TARGET static __m512i sum_dwords(const qk_pool *p, const uint8_t *line, size_t count,
                                 ptrdiff_t step) {
    __m512i sum = _mm512_setzero_si512();
    for (size_t ky = 0; ky < p->kh; ky++, line += p->row_step) {
        const uint8_t *v = line;
        for (size_t kx = 0; kx < count; kx++, v += step) {
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)v);
            sum = _mm512_add_epi32(sum, _mm512_cvtepu8_epi32(bytes));
        }
    }
    return sum;
}

TARGET static sums sum_u8(const qk_pool *p, const uint8_t *line, size_t count, ptrdiff_t step) {
    if (p->kh * count > QK_POOL_WORD_TAPS)
        return (sums){{sum_dwords(p, line, count, step), sum_dwords(p, line + 16, count, step)}};
    __m512i sum = _mm512_setzero_si512();
    for (size_t ky = 0; ky < p->kh; ky++, line += p->row_step) {
        const uint8_t *v = line;
        for (size_t kx = 0; kx < count; kx++, v += step) {
            const __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)v);
            sum = _mm512_add_epi16(sum, _mm512_cvtepu8_epi16(bytes));
        }
    }
    return (sums){{_mm512_cvtepu16_epi32(_mm512_castsi512_si256(sum)),
                   _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(sum, 1))}};
}

TARGET void qk_average_u8_avx512(const qk_pool *p) {
    const uint8_t *const x = p->x;
    const size_t channels = p->channels;
    const ptrdiff_t step = (ptrdiff_t)(p->dw * channels);
    const __m512 lo = _mm512_set1_ps((float)(p->lo - p->y_zero));
    const __m512 hi = _mm512_set1_ps((float)(p->hi - p->y_zero));
    const __m512i zero = _mm512_set1_epi32(p->y_zero);
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const __m512 m = _mm512_set1_ps(qk_average_multiplier(p, &w));
        const __m512i bias = _mm512_set1_epi32(-p->x_zero * (int32_t)(p->kh * w.count));
        const uint8_t *const line = x + w.first * (ptrdiff_t)channels;
        sums s = {{zero, zero}};
        for (size_t j = 0; j < channels; j += 16) {
            if (j % 32 == 0)
                s = sum_u8(p, line + j, w.count, step);
            const __m512i sum = _mm512_add_epi32(s.v[j / 16 % 2], bias);
            __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), m);
            v = _mm512_min_ps(_mm512_max_ps(v, lo), hi);
            const size_t last = channels - j;
            const __mmask16 mask = (__mmask16)(last < 16 ? (1u << last) - 1u : 0xffffu);
            _mm512_mask_cvtepi32_storeu_epi8(y + j, mask,
                                             _mm512_add_epi32(_mm512_cvtps_epi32(v), zero));
        }
    }
}
#endif
