/* SPDX-License-Identifier: MIT */
/*
 * INT8 kernels, AVX2 and AVX-VNNI: requantization of int32 sums to bytes or floats and their
 * stores, for tiles of 16 columns; declarations of the functions in i8_ymm.c. Before including it,
 * define TARGET.
 */
#ifndef QK_I8_REQUANT_AVX2_H
#define QK_I8_REQUANT_AVX2_H

#include <immintrin.h>

#include "kernel/i8.h"

#define INLINE TARGET static inline __attribute__((always_inline))

INLINE __m256i load(const void *p) {
    return _mm256_loadu_si256(p);
}

INLINE __m128i load_half(const void *p) {
    return _mm_loadu_si128(p);
}

INLINE __m256i broadcast(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, 4);
    return _mm256_set1_epi32(dword);
}

/* ---- requantization ---- */

typedef struct epilogue {
    __m256i zp, lo, hi;
    __m256 low, high;
    bool clamp;
    bool limits; /* lo and hi are not 0 and 255 */
} epilogue;

typedef struct sink {
    uint8_t *out;
    ptrdiff_t stride;
    const float *mult;
    const int32_t *init; /* row_init of the tile's rows, or NULL */
    int32_t cols, rows;
    epilogue e;
    const float *scale, *add; /* those of qk_out_i8 */
} sink;

INLINE epilogue epilogue_of(const qk_out_i8 *o) {
    return (epilogue){_mm256_set1_epi16((short)o->zp),
                      _mm256_set1_epi8((char)o->lo),
                      _mm256_set1_epi8((char)o->hi),
                      _mm256_set1_ps(o->scale ? o->low : (float)(o->lo - o->zp)),
                      _mm256_set1_ps(o->scale ? o->high : (float)(o->hi - o->zp)),
                      o->clamp,
                      o->lo > 0 || o->hi < 255};
}

INLINE __m256i scale(__m256i acc, __m256 m, const epilogue *e) {
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), m);
    if (e->clamp)
        v = _mm256_min_ps(_mm256_max_ps(v, e->low), e->high);
    return _mm256_cvtps_epi32(v);
}

INLINE __m256i pack_words(__m256i a, __m256i b, const epilogue *e) {
    return _mm256_adds_epi16(_mm256_packs_epi32(a, b), e->zp);
}

INLINE __m256i pack_bytes(__m256i a, __m256i b, const epilogue *e) {
    __m256i y = _mm256_packus_epi16(a, b);
    if (__builtin_expect(e->limits, false))
        y = _mm256_min_epu8(_mm256_max_epu8(y, e->lo), e->hi);
    return y;
}

/* Stores the first n of 16 bytes. */
INLINE void store_first(uint8_t *out, __m128i y, int32_t n) {
    if (n >= 16) {
        _mm_storeu_si128((__m128i *)(void *)out, y);
        return;
    }
    if (n & 8) {
        _mm_storel_epi64((__m128i *)(void *)out, y);
        y = _mm_unpackhi_epi64(y, y);
        out += 8;
    }
    uint64_t left = (uint64_t)_mm_cvtsi128_si64(y);
    if (n & 4) {
        memcpy(out, &left, 4);
        left >>= 32;
        out += 4;
    }
    for (n &= 3; n > 0; n--, left >>= 8)
        *out++ = (uint8_t)left;
}

INLINE void store_i32(uint8_t *out, __m256i a, __m256i b, int32_t n) {
    const __m256i first = _mm256_permute2x128_si256(a, b, 0x20);
    const __m256i last = _mm256_permute2x128_si256(a, b, 0x31);
    if (__builtin_expect(n == 16, true)) {
        _mm256_storeu_si256((__m256i *)(void *)out, first);
        _mm256_storeu_si256((__m256i *)(void *)(out + 32), last);
        return;
    }
    const __m256i row[2] = {first, last};
    memcpy(out, row, 4 * (size_t)n);
}

/* Sums as floats: acc * scale + add, clamped. */
INLINE __m256i as_floats(const sink *s, __m256i acc, int32_t column) {
    const __m256 scaled =
        _mm256_mul_ps(_mm256_cvtepi32_ps(acc), _mm256_loadu_ps(s->scale + column));
    const __m256 v = _mm256_add_ps(scaled, _mm256_loadu_ps(s->add + column));
    return _mm256_castps_si256(_mm256_min_ps(s->e.high, _mm256_max_ps(s->e.low, v)));
}

/* Two rows as bytes: each lane has eight columns of the first row, then those of the second. */
INLINE __m256i two_rows(const epilogue *e, const float *mult, __m256i a0, __m256i b0, __m256i a1,
                        __m256i b1) {
    const __m256 m = _mm256_loadu_ps(mult), n = _mm256_loadu_ps(mult + 8);
    return pack_bytes(pack_words(scale(a0, m, e), scale(b0, n, e), e),
                      pack_words(scale(a1, m, e), scale(b1, n, e), e), e);
}

/* Converts and stores rows r and r + 1 of 16 columns, or r alone where it is the last. */
INLINE void finish(const sink *s, int32_t r, __m256i a0, __m256i b0, __m256i a1, __m256i b1) {
    uint8_t *const out = s->out + r * s->stride, *const next = out + s->stride;
    const int32_t n = s->cols;
    const bool both = r + 1 < s->rows;
    if (!s->mult) {
        if (s->scale) {
            a0 = as_floats(s, a0, 0);
            b0 = as_floats(s, b0, 8);
            a1 = as_floats(s, a1, 0);
            b1 = as_floats(s, b1, 8);
        }
        store_i32(out, a0, b0, n);
        if (both)
            store_i32(next, a1, b1, n);
        return;
    }
    const __m256i y = _mm256_permute4x64_epi64(two_rows(&s->e, s->mult, a0, b0, a1, b1), 0xd8);
    store_first(out, _mm256_castsi256_si128(y), n);
    if (both)
        store_first(next, _mm256_extracti128_si256(y, 1), n);
}

/* Converts and stores results of any kind, from memory: one function for all tiles. */
void qk_finish_any_ymm(const sink *s, const __m256i (*sums)[2]);

/* Whether this is the usual case: u8 without a clamp, and 16 or 8 columns. */
INLINE bool is_plain(const sink *s) {
    return s->mult && !s->e.clamp && (s->cols & 7) == 0;
}

INLINE void finish_plain(const sink *s, const epilogue *e, int32_t r, __m256i a0, __m256i b0,
                         __m256i a1, __m256i b1) {
    const ptrdiff_t last = s->rows - 1;
    uint8_t *const out = s->out + (r < last ? r : last) * s->stride;
    uint8_t *const next = s->out + (r + 1 < last ? r + 1 : last) * s->stride;
    __m256i y = two_rows(e, s->mult, a0, b0, a1, b1);
    if (__builtin_expect(s->cols == 16, true)) {
        y = _mm256_permute4x64_epi64(y, 0xd8);
        _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(y));
        _mm_storeu_si128((__m128i *)(void *)next, _mm256_extracti128_si256(y, 1));
    } else {
        const __m128i both = _mm256_castsi256_si128(y);
        _mm_storel_epi64((__m128i *)(void *)out, both); /* stores of doubles would need alignment */
        _mm_storeh_pi((__m64 *)(void *)next, _mm_castsi128_ps(both));
    }
}

/* ---- kernels without products, shared by the tables ---- */

void qk_row_sums_u8_ymm(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out);
void qk_requantize_u8_ymm(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo, int32_t hi,
                          uint8_t *y);
void qk_gather_u8_ymm(const qk_gather_u8 *g);
void qk_post_row_ymm(const qk_post_row_i8 *p);

#endif
