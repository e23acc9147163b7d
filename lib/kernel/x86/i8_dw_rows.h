/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8 on the image itself, x86: functions of its kernels that load
 * rows of the image and store results. A template for vectors of 128 * W_LANES
 * bits; before including it, define TARGET, INLINE, epilogue_of, scale, pack_words (i8_zmm.h,
 * i8_requant_avx2.h) and
 *
 *   W_LANES           4 (AVX-512) or 2 (AVX2, AVX-VNNI)
 *   W_GROUP           rows of the image in a dword: 4 bytes or 2 words
 *
 * The kernels stand in i8_dw_any.h (any size) and in i8_dw3x3_avx512.h, i8_dw5x5_avx512.h,
 * i8_dw_rows_avx2.h and i8_dw_rows_avxvnni.h (the usual sizes); i8_dw_window.h is included last.
 */
#ifndef QK_I8_DW_ROWS_H
#define QK_I8_DW_ROWS_H

#include "kernel/x86/i8_dw_split.h"

#if W_LANES == 4
#define W(f)   _mm512_##f
#define W_ZERO _mm512_setzero_si512()
typedef __m512i w_vec;
INLINE w_vec w_load(const void *p) {
    return _mm512_loadu_si512(p);
}
INLINE void w_store(void *p, w_vec v) {
    _mm512_storeu_si512(p, v);
}
/* Stores the first n bytes. */
INLINE void w_store_n(uint8_t *p, w_vec v, int32_t n) {
    _mm512_mask_storeu_epi8(p, ~(__mmask64)0 >> (64 - n), v);
}
#else
#define W(f)   _mm256_##f
#define W_ZERO _mm256_setzero_si256()
typedef __m256i w_vec;
INLINE w_vec w_load(const void *p) {
    return _mm256_loadu_si256(p);
}
INLINE void w_store(void *p, w_vec v) {
    _mm256_storeu_si256((__m256i *)p, v);
}
/* Copies 1 to 16 bytes, in overlapping halves. */
INLINE void copy_bytes(uint8_t *to, const uint8_t *from, int32_t n) {
    if (n >= 8) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else {
        to[0] = from[0];
        to[n / 2] = from[n / 2];
        to[n - 1] = from[n - 1];
    }
}
/* Stores the first n > 16 bytes; fewer are stored by store_ranges. */
INLINE void w_store_n(uint8_t *p, w_vec v, int32_t n) {
    uint8_t all[32];
    w_store(all, v);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(v));
    memcpy(p + n - 16, all + n - 16, 16);
}
#endif

enum {
    W_BYTES = 16 * W_LANES, /* bytes of a vector; channels of a block */
    W_DWORDS = 4 * W_LANES,
    W_ALL = 4 * W_BYTES, /* bytes of a block's weights for one dword of each channel */
};

/* Keeps a vector in its register: gcc otherwise moves sums through memory. */
#if W_LANES == 4
#define W_KEEP(a) __asm__("" : "+v"(a));
#else
#define W_KEEP(a) __asm__("" : "+x"(a));
#endif

/* ---- loading and storing ---- */

INLINE __m128i load_16(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

INLINE __m256i load_2x16(const uint8_t *p, const uint8_t *q) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_16(p)), load_16(q), 1);
}

#if W_LANES == 4
INLINE __m256i load_32(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
#endif

/* Loads the channels of all ranges side by side. */
INLINE w_vec load_ranges(const uint8_t *const *from, int32_t ranges) {
#if W_LANES == 4
    /* Masked broadcasts would be half as fast. */
    if (ranges == 2)
        return _mm512_inserti64x4(_mm512_castsi256_si512(load_32(from[0])), load_32(from[1]), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(load_2x16(from[0], from[1])),
                              load_2x16(from[2], from[3]), 1);
#else
    (void)ranges;
    return load_2x16(from[0], from[1]);
#endif
}

#if W_LANES == 4
/* Plain stores are faster than masked ones. */
INLINE void store_half(uint8_t *to, __m256i v, int32_t cols) {
    if (__builtin_expect(cols == 32, true))
        _mm256_storeu_si256((__m256i *)(void *)to, v);
    else
        _mm256_mask_storeu_epi8(to, 0xffffffff >> (32 - cols), v);
}

INLINE void store_quarter(uint8_t *to, __m128i v, int32_t cols) {
    if (__builtin_expect(cols == 16, true))
        _mm_storeu_si128((__m128i *)(void *)to, v);
    else
        _mm_mask_storeu_epi8(to, (__mmask16)(0xffff >> (16 - cols)), v);
}
#endif

/* Stores the first n ranges of a vector: `cols` of `each` bytes, `apart` from each other. */
INLINE void store_ranges(uint8_t *to, w_vec v, ptrdiff_t apart, int32_t each, int32_t cols,
                         int32_t n) {
#if W_LANES == 4
    if (each == 32)
        store_half(to, _mm512_castsi512_si256(v), cols);
    else
        store_quarter(to, _mm512_castsi512_si128(v), cols);
    if (each == 32 && n > 1)
        store_half(to + apart, _mm512_extracti64x4_epi64(v, 1), cols);
    else if (n > 1)
        store_quarter(to + apart, _mm512_extracti32x4_epi32(v, 1), cols);
    if (each == 16 && n > 2)
        store_quarter(to + 2 * apart, _mm512_extracti32x4_epi32(v, 2), cols);
    if (each == 16 && n > 3)
        store_quarter(to + 3 * apart, _mm512_extracti32x4_epi32(v, 3), cols);
#else
    (void)each;
    if (__builtin_expect(cols == 16, true)) {
        _mm_storeu_si128((__m128i *)(void *)to, _mm256_castsi256_si128(v));
        if (__builtin_expect(n > 1, true))
            _mm_storeu_si128((__m128i *)(void *)(to + apart), _mm256_extracti128_si256(v, 1));
        return;
    }
    uint8_t all[W_BYTES];
    w_store(all, v);
    for (int32_t r = 0; r < n; r++)
        copy_bytes(to + r * apart, all + 16 * r, cols);
#endif
}

/* Rows of a column. Named fields: gcc leaves arrays under W_KEEP in memory. */
typedef struct dw_taps {
    w_vec t0, t1, t2, t3, t4, t5, t6, t7;
} dw_taps;

/* A column of the image, or of what stands for it. */
typedef struct dw_column {
    const uint8_t *const *row;
    ptrdiff_t at, q; /* bytes from the beginning of a row, and from range to range */
} dw_column;

/* Copies the rows of a column of which some ranges are outside of the image. */
TARGET QS_NOINLINE static void copy_column(const dw_rows *s, ptrdiff_t at, ptrdiff_t each) {
    uint8_t *to = s->outside->bytes[0];
    for (ptrdiff_t i = 0; i < W_BYTES; i += each, at += s->q) {
        const bool inside = (size_t)at < s->end;
#pragma GCC unroll 1
        for (int32_t k = 0; k < 8; k++)
            memcpy(to + i + k * DW_STORED, inside ? s->row[k] + at : s->zeros, W_BYTES / 2);
    }
}

/* The column that begins `at` bytes after a row's beginning. */
INLINE dw_column column_of(const dw_rows *s, ptrdiff_t at, int32_t ranges) {
    if (__builtin_expect((size_t)at < s->end && (size_t)(at + (ranges - 1) * s->q) < s->end, true))
        return (dw_column){s->row, at, s->q};
    if (ranges == 1)
        return (dw_column){s->outside->zeros, 0, 0};
    copy_column(s, at, W_BYTES / ranges);
    return (dw_column){s->outside->some, 0, W_BYTES / ranges};
}

/* Loads a row of a column once; gcc would load it again as an operand. */
INLINE w_vec load_row(const dw_column *c, int32_t k, int32_t ranges) {
    const uint8_t *p = c->row[k] + c->at;
    const uint8_t *const from[4] = {p, p + c->q, p + 2 * c->q, p + 3 * c->q};
    w_vec t = ranges == 1 ? w_load(p) : load_ranges(from, ranges);
    W_KEEP(t)
    return t;
}

/* Loads `count` rows of the column that begins `at` bytes after a row's beginning. */
INLINE dw_taps load_rows(const dw_rows *s, ptrdiff_t at, int32_t count, int32_t ranges) {
    const dw_column c = column_of(s, at, ranges);
    dw_taps t;
#define DW_ROW(i) t.t##i = i >= count ? W_ZERO : load_row(&c, i, ranges)
    DW_ROW(0);
    DW_ROW(1);
    DW_ROW(2);
    DW_ROW(3);
    DW_ROW(4);
    DW_ROW(5);
    DW_ROW(6);
    DW_ROW(7);
#undef DW_ROW
    return t;
}

/* The usual branches are marked: gcc else jumps for each of them. */
INLINE void dw_store(const dw_job *o, uint8_t *to, w_vec y, int32_t x, const epilogue *e,
                     int32_t ranges) {
    if (o->limits)
        y = W(min_epu8)(W(max_epu8)(y, e->lo), e->hi);
    if (ranges == 1 && __builtin_expect(o->cols == W_BYTES, true))
        w_store(to, y);
    else if (ranges == 1)
        w_store_n(to, y, o->cols);
    else
        store_ranges(to, y, (ptrdiff_t)o->n * o->pixel, W_BYTES / ranges, o->cols,
                     __builtin_expect(x < o->whole, true) ? ranges
                     : ranges == 2                        ? 1
                                                          : (o->wo - 1 - x) / o->n + 1);
}

#if W_LANES == 2
/* Stores sums as floats, which have one range of columns. */
INLINE void dw_store_floats(const dw_job *o, uint8_t *to, const epilogue *e, w_vec a0, w_vec a1,
                            w_vec a2, w_vec a3) {
    const sink s = {to, 0, NULL, NULL, o->cols, 1, *e, o->scale, o->add};
    store_dwords(&s, as_floats(&s, a0, 0), as_floats(&s, a1, 8), as_floats(&s, a2, 16),
                 as_floats(&s, a3, 24));
}
#endif

/* Computes one row of output of a 3 x 3 window into `to`. */
typedef void (*dw_row_fn)(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e,
                          uint8_t *to, bool by_two, int32_t ranges, bool floats);

/* Runs a kernel for one row of output on both rows, where there are two. */
INLINE void each_row(dw_row_fn run, const dw_rows *s, const dw_job *given, ptrdiff_t at,
                     const epilogue *usual, bool by_two, int32_t ranges, bool floats) {
    epilogue e = *usual;
    e.clamp = false;
    const dw_job o = *given; /* a copy: stores cannot alias it */
    for (int32_t row = 0; row < 1 + (o.second != o.first); row++) {
        dw_rows l = *s;
        for (int32_t k = 0; k < 3; k++)
            l.row[k] = s->row[k + (by_two ? 2 : 1) * row];
        run(&l, &o, at, &e, row > 0 ? o.second : o.first, by_two, ranges, floats);
    }
}

#endif
