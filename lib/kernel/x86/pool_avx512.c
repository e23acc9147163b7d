/* SPDX-License-Identifier: MIT */
/* Pooling of u8: 64 channels at once. */
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

/*
 * Sums of LANES channels, as unpacks leave them: of 16 bytes in a lane, v[0] has the sums of the
 * first four, v[1] of the next, and so on.
 */
typedef struct sums {
    __m512i v[4];
} sums;

typedef struct average {
    __m512 m, lo, hi;
    __m512i bias, zero;
} average;

INLINE __m512i words(const uint8_t *x) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)x));
}

/* Sums of 16 bits are taken over into those of 32 before they can overflow. */
INLINE void take_over(sums *s, __m512i *a, __m512i *b) {
    const __m512i none = _mm512_setzero_si512();
    s->v[0] = _mm512_add_epi32(s->v[0], _mm512_unpacklo_epi16(*a, none));
    s->v[1] = _mm512_add_epi32(s->v[1], _mm512_unpackhi_epi16(*a, none));
    s->v[2] = _mm512_add_epi32(s->v[2], _mm512_unpacklo_epi16(*b, none));
    s->v[3] = _mm512_add_epi32(s->v[3], _mm512_unpackhi_epi16(*b, none));
    *a = *b = none;
}

#define TAP(x)                                                                                     \
    a = _mm512_add_epi16(a, words(x));                                                             \
    if (wide)                                                                                      \
        b = _mm512_add_epi16(b, words((x) + LANES / 2));

/* `wide`: more than half of the channels are there. */
INLINE sums sum_u8(const qk_pool *p, const uint8_t *line, size_t count, __m512i bias, bool wide) {
    const ptrdiff_t step = (ptrdiff_t)(p->dw * p->channels);
    __m512i a = _mm512_setzero_si512(), b = a;
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
INLINE __m512i in_order(__m512i v) {
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v);
}

INLINE __m512i rounded(__m512i sum, const average *t) {
    const __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), t->m);
    return _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, t->lo), t->hi)),
                            t->zero);
}

INLINE __m512i averages(const qk_pool *p, const uint8_t *line, size_t count, const average *t,
                        bool wide) {
    const sums s = sum_u8(p, line, count, t->bias, wide);
    const __m512i low = _mm512_packs_epi32(rounded(s.v[0], t), rounded(s.v[1], t));
    if (!wide)
        return in_order(_mm512_packus_epi16(low, low));
    const __m512i high = _mm512_packs_epi32(rounded(s.v[2], t), rounded(s.v[3], t));
    return in_order(_mm512_packus_epi16(low, high));
}

TARGET void qk_average_u8_avx512(const qk_pool *p) {
    const ptrdiff_t channels = (ptrdiff_t)p->channels;
    average t = {.lo = _mm512_set1_ps((float)(p->lo - p->y_zero)),
                 .hi = _mm512_set1_ps((float)(p->hi - p->y_zero)),
                 .zero = _mm512_set1_epi32(p->y_zero)};
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const uint8_t *const line = (const uint8_t *)p->x + w.first * channels;
        t.m = _mm512_set1_ps(qk_average_multiplier(p, &w));
        t.bias = _mm512_set1_epi32(-p->x_zero * (int32_t)(p->kh * w.count));
        for (ptrdiff_t j = 0; j < channels; j += LANES) {
            const size_t last = (size_t)(channels - j);
            const __m512i bytes = last > LANES / 2 ? averages(p, line + j, w.count, &t, true)
                                                   : averages(p, line + j, w.count, &t, false);
            STORE_FIRST(y + j, bytes, last < LANES ? last : LANES);
        }
    }
}
#endif
