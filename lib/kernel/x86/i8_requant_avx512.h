/* SPDX-License-Identifier: MIT */
/*
 * INT8 products, AVX-512 VNNI: requantization and stores of a tile's sums, for panels of 64, 32,
 * 24, 16 and 8 columns. The kind of epilogue is a constant in hot loops, so the usual kinds have no
 * branches.
 */
#ifndef QK_I8_REQUANT_AVX512_H
#define QK_I8_REQUANT_AVX512_H

#include "kernel/x86/i8_zmm.h"

typedef enum kind {
    KIND_SHORT, /* u8, whole tiles, results that fit 16 bits (qk_out_i8) also with the zero point */
    KIND_PLAIN, /* u8, whole tiles */
    KIND_FLOAT, /* floats, whole tiles (AMX) */
    KIND_ANY    /* int32, floats, a clamp, or incomplete tiles */
} kind;

struct gatherer;

/*
 * Products whose sums are so short that a panel's weights stay in registers
 * (i8_gemm_smallk_avx512vnni.c). Returns the number of rows computed, from row 0 on: 0 for longer
 * sums.
 */
int32_t qk_gemm_resident_avx512vnni(const qk_gemm_u8s8 *g, const sink *s, kind how,
                                    struct gatherer *ahead);

INLINE __m512i scaled(__m512i acc, __m512 m, const sink *s, kind how) {
    if (how == KIND_ANY)
        return scale(acc, m, &s->e);
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_cvtepi32_ps(acc), m));
}

/* Adds the zero point to two vectors of 16-bit numbers and packs them to bytes. */
INLINE __m512i joined(__m512i ab, __m512i cd, const sink *s, kind how) {
    if (how == KIND_SHORT) { /* saturation would take the port of the products */
        ab = _mm512_add_epi16(ab, s->e.zp);
        cd = _mm512_add_epi16(cd, s->e.zp);
    } else {
        ab = _mm512_adds_epi16(ab, s->e.zp);
        cd = _mm512_adds_epi16(cd, s->e.zp);
    }
    __m512i y = _mm512_packus_epi16(ab, cd);
    if (__builtin_expect(s->e.limits, false)) /* else a cycle of the products' port is lost */
        y = _mm512_min_epu8(_mm512_max_epu8(y, s->e.lo), s->e.hi);
    return y;
}

INLINE __m512i bytes_of(__m512i a, __m512i b, __m512i c, __m512i d, const sink *s, kind how) {
    return joined(_mm512_packs_epi32(a, b), _mm512_packs_epi32(c, d), s, how);
}

/* Converts four vectors of sums, with their multipliers, to bytes; packs work within lanes. */
#define TO_BYTES(y, s, how, a, ma, b, mb, c, mc, d, md)                                            \
    __m512i y = joined(_mm512_packs_epi32(scaled(a, ma, s, how), scaled(b, mb, s, how)),           \
                       _mm512_packs_epi32(scaled(c, mc, s, how), scaled(d, md, s, how)), s, how);

INLINE bool has_row(const sink *s, int32_t r, kind how) {
    return how != KIND_ANY || r < s->rows;
}

/* ---- 64 columns: one row ---- */

INLINE void store_u8_64(const sink *s, int32_t r, __m512i y) {
    if (s->cols == 64)
        _mm512_storeu_si512(s->out + r * s->stride, y);
    else
        _mm512_mask_storeu_epi8(s->out + r * s->stride, s->mask, y);
}

INLINE void finish_64(const sink *s, kind how, int32_t r, __m512i a, __m512i b, __m512i c,
                      __m512i d) {
    if (how == KIND_ANY) {
        finish_4(s, r, a, b, c, d);
        return;
    }
    const float *m = s->mult;
    TO_BYTES(y, s, how, a, _mm512_loadu_ps(m), b, _mm512_loadu_ps(m + 16), c,
             _mm512_loadu_ps(m + 32), d, _mm512_loadu_ps(m + 48))
    store_u8_64(s, r, y);
}

/* ---- 32 columns: two rows ---- */

INLINE void store_i32_2(const sink *s, int32_t r, __m512i a, __m512i b) {
    if (r >= s->rows)
        return;
    __m512i t = _mm512_shuffle_i32x4(a, b, 0x44);
    store_i32(s, r, 0, _mm512_shuffle_i32x4(t, t, 0xd8));
    t = _mm512_shuffle_i32x4(a, b, 0xee);
    store_i32(s, r, 1, _mm512_shuffle_i32x4(t, t, 0xd8));
}

INLINE void store_u8_32(const sink *s, kind how, int32_t r, __m256i y) {
    if (s->cols == 32 && has_row(s, r, how))
        _mm256_storeu_si256((void *)(s->out + r * s->stride), y);
    else if (has_row(s, r, how))
        _mm256_mask_storeu_epi8(s->out + r * s->stride, (__mmask32)s->mask, y);
}

/* Stores two rows of 32 bytes from a packed vector, which has their lanes in turn. */
INLINE void store_u8_32_2(const sink *s, kind how, int32_t r, __m512i y) {
    y = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), y);
    if (how != KIND_ANY && s->stride == 32 && s->cols == 32) {
        _mm512_storeu_si512(s->out + 32 * r, y);
        return;
    }
    store_u8_32(s, how, r, _mm512_castsi512_si256(y));
    store_u8_32(s, how, r + 1, _mm512_extracti64x4_epi64(y, 1));
}

INLINE void finish_32(const sink *s, kind how, int32_t r, __m512i a0, __m512i b0, __m512i a1,
                      __m512i b1) {
    if (how == KIND_ANY && !s->mult) {
        if (s->scale) {
            FLOATS(a0, 0);
            FLOATS(b0, 1);
            FLOATS(a1, 0);
            FLOATS(b1, 1);
        }
        store_i32_2(s, r, a0, b0);
        store_i32_2(s, r + 1, a1, b1);
        return;
    }
    const __m512 m0 = _mm512_loadu_ps(s->mult), m1 = _mm512_loadu_ps(s->mult + 16);
    TO_BYTES(y, s, how, a0, m0, b0, m1, a1, m0, b1, m1)
    store_u8_32_2(s, how, r, y);
}

/* ---- 16 columns: four rows ---- */

INLINE void store_u8_16(const sink *s, kind how, int32_t r, __m128i y) {
    if (has_row(s, r, how))
        _mm_mask_storeu_epi8(s->out + r * s->stride, (__mmask16)s->mask, y);
}

/* Stores four rows of 16 bytes from a packed vector, which has their dwords in turn. */
INLINE void store_u8_16_4(const sink *s, kind how, int32_t r, __m512i y) {
    y = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), y);
    if (s->stride == 16 && s->cols == 16 && has_row(s, r + 3, how)) {
        _mm512_storeu_si512(s->out + 16 * r, y);
        return;
    }
    store_u8_16(s, how, r, _mm512_castsi512_si128(y));
    store_u8_16(s, how, r + 1, _mm512_extracti32x4_epi32(y, 1));
    store_u8_16(s, how, r + 2, _mm512_extracti32x4_epi32(y, 2));
    store_u8_16(s, how, r + 3, _mm512_extracti32x4_epi32(y, 3));
}

INLINE void finish_16(const sink *s, kind how, int32_t r, __m512i a, __m512i b, __m512i c,
                      __m512i d) {
    if (how == KIND_ANY && !s->mult) {
        if (s->scale) {
            FLOATS(a, 0);
            FLOATS(b, 0);
            FLOATS(c, 0);
            FLOATS(d, 0);
        }
        for (int32_t i = 0; i < 4; i++)
            if (r + i < s->rows)
                store_i32(s, r + i, 0, i == 0 ? a : i == 1 ? b : i == 2 ? c : d);
        return;
    }
    const __m512 m = _mm512_loadu_ps(s->mult);
    TO_BYTES(y, s, how, a, m, b, m, c, m, d, m)
    store_u8_16_4(s, how, r, y);
}

/* ---- 8 columns: eight rows ---- */

/* Stores 8 columns from j on as int32 or floats; column j is at position j. */
INLINE void store_row_8(const sink *s, int32_t r, int32_t j, __m256i v) {
    if (s->scale) {
        const __m256 scale = _mm256_loadu_ps(s->scale + j), add = _mm256_loadu_ps(s->add + j);
        v = _mm512_castsi512_si256(as_floats(s, _mm512_castsi256_si512(v),
                                             _mm512_castps256_ps512(scale),
                                             _mm512_castps256_ps512(add)));
    }
    _mm256_mask_storeu_epi32(s->out + r * s->stride + 4 * j, (__mmask8)(s->mask >> j), v);
}

/* Stores rows of `width` adjacent bytes at the sink's stride. */
INLINE void scatter_rows(const sink *s, const uint8_t *bytes, int32_t width) {
    const __mmask32 mask = (__mmask32)s->mask;
    __asm__("" : "+r"(bytes) : : "memory"); /* else clang copies byte by byte */
    for (int32_t r = 0; r < s->rows; r++, bytes += width)
        _mm256_mask_storeu_epi8(s->out + r * s->stride, mask, _mm256_maskz_loadu_epi8(mask, bytes));
}

INLINE __m512i join(__m256i low, __m256i high) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE __m512 twice(const float *m) {
    const __m256 v = _mm256_loadu_ps(m);
    return _mm512_insertf32x8(_mm512_castps256_ps512(v), v, 1);
}

/* Converts and stores eight rows as bytes. Each vector has two rows: 0 and 1, 2 and 3, ... */
INLINE void finish_8(const sink *s, kind how, __m512i a, __m512i b, __m512i c, __m512i d) {
    uint8_t bytes[64];
    const __m512 m = twice(s->mult);
    TO_BYTES(y, s, how, a, m, b, m, c, m, d, m)
    y = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), y);
    if (s->stride == 8 && s->cols == 8 && has_row(s, 7, how)) {
        _mm512_storeu_si512(s->out, y);
        return;
    }
    _mm512_storeu_si512(bytes, y);
    scatter_rows(s, bytes, 8);
}

/* ---- 24 columns: eight rows, dense ---- */

/*
 * Stores four dense rows, from `first` (0 or 4) on: y16 has their columns 0 … 15, y8 the others of
 * all eight rows.
 */
INLINE void store_24(uint8_t *out, __m512i y16, __m512i y8, int32_t first) {
    const __m512i half = _mm512_set1_epi32(first / 2);
    /* from 16 on: dwords of y8, those of odd rows eight further */
    const __m512i at = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 24, 28, 2, 6, 10, 14);
    const __m512i then = _mm512_setr_epi32(17, 21, 3, 7, 11, 15, 25, 29, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m512i i0 = _mm512_mask_add_epi32(at, 0x0c30, at, half);
    const __m512i i1 = _mm512_mask_add_epi32(then, 0x00c3, then, half);
    _mm512_storeu_si512(out, _mm512_permutex2var_epi32(y16, i0, y8));
    _mm256_storeu_si256((void *)(out + 64),
                        _mm512_castsi512_si256(_mm512_permutex2var_epi32(y16, i1, y8)));
}

INLINE void store_u8_24(const sink *s, __m512i y0, __m512i y1, __m512i y8) {
    uint8_t bytes[192];
    const bool dense = s->stride == 24 && s->cols == 24 && s->rows == 8;
    uint8_t *out = dense ? s->out : bytes;
    store_24(out, y0, y8, 0);
    store_24(out + 96, y1, y8, 4);
    if (!dense)
        scatter_rows(s, bytes, 24);
}

INLINE void store_row_24(const sink *s, int32_t r, __m512i v, __m256i half) {
    if (s->scale)
        FLOATS(v, 0);
    store_i32(s, r, 0, v);
    store_row_8(s, r, 16, half);
}

/*
 * Converts and stores eight rows as bytes: the first 16 columns of each, and the other eight of two
 * rows per vector as in finish_8.
 */
INLINE void finish_24(const sink *s, kind how, __m512i a0, __m512i a1, __m512i a2, __m512i a3,
                      __m512i a4, __m512i a5, __m512i a6, __m512i a7, __m512i b, __m512i c,
                      __m512i d, __m512i e) {
    const __m512 m = _mm512_loadu_ps(s->mult), m8 = twice(s->mult + 16);
    TO_BYTES(y0, s, how, a0, m, a1, m, a2, m, a3, m)
    TO_BYTES(y1, s, how, a4, m, a5, m, a6, m, a7, m)
    TO_BYTES(y8, s, how, b, m8, c, m8, d, m8, e, m8)
    store_u8_24(s, y0, y1, y8);
}

#endif
