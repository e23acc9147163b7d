/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8, AVX-512 VNNI: 3 x 3 at stride 1 or 2 of the last 16 channels
 * or fewer, part of i8_dw3x3_avx512.h. A vector holds four rows of one column: one permutation
 * interleaves them, and the weights stay in registers. A step is two pixels of two rows of output.
 */
#ifndef QK_I8_DW3X3_C16_AVX512_H
#define QK_I8_DW3X3_C16_AVX512_H

/* A column of the image, interleaved for the first (a) and the second (b) row of output. */
typedef struct column_16 {
    __m512i a, b;
} column_16;

/* The first lane of each of a block's four vectors: the block's first 16 channels, in order. */
INLINE __m512i first_lanes(const void *four) {
    const uint8_t *p = four;
    const uint8_t *const from[4] = {p, p + 64, p + 128, p + 192};
    return load_ranges(from, 4);
}

/* Byte order of the permutation: dword c gets channel c of four rows, two of each vector. */
INLINE __m512i order_16(void) {
    const __m512i quads = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_or_si512(_mm512_mullo_epi32(quads, _mm512_set1_epi32(0x01010101)),
                           _mm512_set1_epi32(0x50401000));
}

typedef struct rows_16 {
    const uint8_t *r0, *r1, *r2, *r3, *r4;
    size_t end; /* bytes of a row */
    __m512i outside, order;
} rows_16;

/* The column that begins `at` bytes from the beginning of its row. */
INLINE column_16 column_16_at(const rows_16 *s, ptrdiff_t at, bool by_two) {
    column_16 c = {s->outside, s->outside};
    if (__builtin_expect((size_t)at < s->end, true)) {
        const __m512i low = _mm512_castsi256_si512(load_2x16(s->r0 + at, s->r1 + at));
        const __m512i high = _mm512_castsi256_si512(load_2x16(s->r2 + at, s->r3 + at));
        c.a = c.b = _mm512_permutex2var_epi8(low, s->order, high);
        if (by_two)
            c.b = _mm512_permutex2var_epi8(high, s->order,
                                           _mm512_castsi128_si512(load_16(s->r4 + at)));
    }
    return c;
}

/* Stores pixel 0 and, if `both`, pixel 1 of both rows of output. */
INLINE void store_16(const dw_job *o, uint8_t *first, uint8_t *second, __m512i y, bool both) {
    store_quarter(second, _mm512_extracti32x4_epi32(y, 1), o->cols);
    if (both)
        store_quarter(second + o->pixel, _mm512_extracti32x4_epi32(y, 3), o->cols);
    store_quarter(first, _mm512_castsi512_si128(y), o->cols);
    if (both)
        store_quarter(first + o->pixel, _mm512_extracti32x4_epi32(y, 2), o->cols);
}

/* Loads the next column; without the barriers gcc keeps an address for each one. */
#define COLUMN_16(c)                                                                               \
    {                                                                                              \
        c = column_16_at(&columns, at, by_two);                                                    \
        W_KEEP(c.a)                                                                                \
        if (by_two) {                                                                              \
            W_KEEP(c.b)                                                                            \
        }                                                                                          \
        at += step;                                                                                \
        __asm__("" : "+r"(at));                                                                    \
    }
#define NEXT_16(c)                                                                                 \
    column_16 c;                                                                                   \
    COLUMN_16(c)
#define DOT_16(acc, x, w) acc = _mm512_dpbusd_epi32(acc, x, w);
#define DOTS_16(i, c0, c1, c2)                                                                     \
    __m512i a##i = bias, b##i = bias;                                                              \
    DOT_16(a##i, c0.a, w0)                                                                         \
    DOT_16(b##i, c0.b, v0)                                                                         \
    DOT_16(a##i, c1.a, w1)                                                                         \
    DOT_16(b##i, c1.b, v1) DOT_16(a##i, c2.a, w2) DOT_16(b##i, c2.b, v2)

INLINE void c16_rows(const dw_rows *s, const dw_job *given, ptrdiff_t at, const epilogue *usual,
                     bool by_two) {
    epilogue e = *usual;
    e.clamp = false;
    const dw_job copy = *given, *o = &copy; /* a copy: stores cannot alias it */
    const ptrdiff_t step = s->across;
    const int8_t *w = o->w, *v = o->v;
    const __m512i w0 = first_lanes(w), w1 = first_lanes(w + 256), w2 = first_lanes(w + 512);
    __m512i v0 = w0, v1 = w1, v2 = w2;
    if (!by_two)
        v0 = first_lanes(v), v1 = first_lanes(v + 256), v2 = first_lanes(v + 512);
    const __m512i bias = first_lanes(o->bias);
    const __m512 m = _mm512_castsi512_ps(first_lanes(o->mult));
    const __m512i rows = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const rows_16 columns = {s->row[0],
                             s->row[1],
                             s->row[2],
                             s->row[3],
                             s->row[4],
                             s->end,
                             _mm512_broadcast_i32x4(load_16(s->zeros)),
                             order_16()};
    uint8_t *first = o->first, *second = o->second;
    NEXT_16(c0)
    NEXT_16(c1)
    NEXT_16(c2)
    NEXT_16(c3)
    column_16 c4 = c3;
    if (by_two)
        COLUMN_16(c4)
    /* The next pixels' columns are loaded a step ahead: a step's products wait for no load. */
    for (int32_t x = 0; x < o->wo; x += 2) {
        DOTS_16(0, c0, c1, c2)
        NEXT_16(n1)
        column_16 n2 = n1, n3 = n1;
        if (by_two)
            COLUMN_16(n2)
        DOTS_16(1, (by_two ? c2 : c1), (by_two ? c3 : c2), (by_two ? c4 : c3))
        if (by_two)
            COLUMN_16(n3)
        NEXT_16(n4)
        __m512i y = _mm512_packus_epi16(pack_words(scale(a0, m, &e), scale(b0, m, &e), &e),
                                        pack_words(scale(a1, m, &e), scale(b1, m, &e), &e));
        if (o->limits)
            y = _mm512_min_epu8(_mm512_max_epu8(y, e.lo), e.hi);
        store_16(o, first, second, _mm512_permutexvar_epi32(rows, y), x + 1 < o->wo);
        first += 2 * o->pixel;
        second += 2 * o->pixel;
        c0 = by_two ? c4 : c2;
        c1 = by_two ? n1 : c3;
        c2 = by_two ? n2 : n1;
        c3 = by_two ? n3 : n4;
        c4 = n4;
    }
}

TARGET static void c16_s1(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    c16_rows(s, o, at, e, false);
}

TARGET static void c16_s2(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    c16_rows(s, o, at, e, true);
}

#endif
