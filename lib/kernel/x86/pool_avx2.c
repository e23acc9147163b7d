/* SPDX-License-Identifier: MIT */
/* Pooling of u8: 32 channels at once. */
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

TARGET QS_RARE static void store_bytes(uint8_t *p, __m128i v, size_t n) {
    uint64_t rest = (uint64_t)_mm_cvtsi128_si64(v);
    for (; n > 0; n--, rest >>= 8)
        *p++ = (uint8_t)rest;
}

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
    if (n & 7)
        store_bytes(p, low, n & 7);
}

#include "kernel/pool_tile.h"

#define AS_IT_IS(v, count) (v)
POOL(max_u8, uint8_t, _mm256_setzero_si256(), _mm256_max_epu8, AS_IT_IS)

void qk_max_u8_avx2(const qk_pool *p) {
    max_u8(p);
}

/*
 * Sums of LANES channels, as unpacks leave them: of 16 bytes in a lane, v[0] has the sums of the
 * first four, v[1] of the next, and so on.
 */
typedef struct sums {
    __m256i v[4];
} sums;

typedef struct average {
    __m256 m, lo, hi;
    __m256i bias, zero;
} average;

INLINE __m256i words(const uint8_t *x) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)x));
}

/* Sums of 16 bits are taken over into those of 32 before they can overflow. */
INLINE void take_over(sums *s, __m256i *a, __m256i *b) {
    const __m256i none = _mm256_setzero_si256();
    s->v[0] = _mm256_add_epi32(s->v[0], _mm256_unpacklo_epi16(*a, none));
    s->v[1] = _mm256_add_epi32(s->v[1], _mm256_unpackhi_epi16(*a, none));
    s->v[2] = _mm256_add_epi32(s->v[2], _mm256_unpacklo_epi16(*b, none));
    s->v[3] = _mm256_add_epi32(s->v[3], _mm256_unpackhi_epi16(*b, none));
    *a = *b = none;
}

#define TAP(x)                                                                                     \
    a = _mm256_add_epi16(a, words(x));                                                             \
    if (wide)                                                                                      \
        b = _mm256_add_epi16(b, words((x) + LANES / 2));

/* `wide`: more than half of the channels are there. */
INLINE sums sum_u8(const qk_pool *p, const uint8_t *line, size_t count, __m256i bias, bool wide) {
    const ptrdiff_t step = (ptrdiff_t)(p->dw * p->channels);
    __m256i a = _mm256_setzero_si256(), b = a;
    sums s = {{bias, bias, bias, bias}};
    size_t taps = 0, rows = p->kh;
    if (p->row_step == (ptrdiff_t)count * step) { /* the whole width: as one row */
        count *= rows;
        rows = 1;
    }
    for (; rows > 0; rows--, line += p->row_step) {
        const uint8_t *v = line;
        for (size_t left = count, n; left > 0; left -= n) {
            n = left < QK_POOL_WORD_TAPS ? left : QK_POOL_WORD_TAPS;
            if (taps + n > QK_POOL_WORD_TAPS) {
                take_over(&s, &a, &b);
                taps = 0;
            }
            taps += n;
            size_t kx = n;
            for (; kx >= 2; kx -= 2, v += 2 * step) {
                TAP(v)
                TAP(v + step)
            }
            if (kx) {
                TAP(v)
                v += step;
            }
        }
    }
    take_over(&s, &a, &b);
    return s;
}

/* Of each lane's two halves, the first ones come first. */
INLINE __m256i in_order(__m256i v) {
    return _mm256_permute4x64_epi64(v, 0xd8);
}

INLINE __m256i rounded(__m256i sum, const average *t) {
    const __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), t->m);
    return _mm256_add_epi32(_mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, t->lo), t->hi)),
                            t->zero);
}

INLINE __m256i averages(const qk_pool *p, const uint8_t *line, size_t count, const average *t,
                        bool wide) {
    const sums s = sum_u8(p, line, count, t->bias, wide);
    const __m256i low = _mm256_packs_epi32(rounded(s.v[0], t), rounded(s.v[1], t));
    if (!wide)
        return in_order(_mm256_packus_epi16(low, low));
    const __m256i high = _mm256_packs_epi32(rounded(s.v[2], t), rounded(s.v[3], t));
    return in_order(_mm256_packus_epi16(low, high));
}

TARGET void qk_average_u8_avx2(const qk_pool *p) {
    const ptrdiff_t channels = (ptrdiff_t)p->channels;
    average t = {.lo = _mm256_set1_ps((float)(p->lo - p->y_zero)),
                 .hi = _mm256_set1_ps((float)(p->hi - p->y_zero)),
                 .zero = _mm256_set1_epi32(p->y_zero)};
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const uint8_t *const line = (const uint8_t *)p->x + w.first * channels;
        t.m = _mm256_set1_ps(qk_average_multiplier(p, &w));
        t.bias = _mm256_set1_epi32(-p->x_zero * (int32_t)(p->kh * w.count));
        for (ptrdiff_t j = 0; j < channels; j += LANES) {
            const size_t last = (size_t)(channels - j);
            const __m256i bytes = last > LANES / 2 ? averages(p, line + j, w.count, &t, true)
                                                   : averages(p, line + j, w.count, &t, false);
            STORE_FIRST(y + j, bytes, last < LANES ? last : LANES);
        }
    }
}
#endif
