/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8 in 512-bit vectors (AVX-512 VNNI), part of
 * i8_depthwise_avx512vnni.c. A step is one pixel of two rows of output, with 64 channels, or with
 * 32 channels of two ranges of columns. 3 x 3 at stride 1 or 2: columns of the image stay in
 * registers from pixel to pixel. The table of kernels, dw_choices, stands at the end.
 */
#ifndef QK_I8_DW3X3_AVX512_H
#define QK_I8_DW3X3_AVX512_H

#include "kernel/x86/i8_dw_any.h"
#include "kernel/x86/i8_zmm.h"

/* Four rows of a column of the image, interleaved. */
typedef struct column {
    __m512i d0, d1, d2, d3;
} column;

INLINE column interleave(__m512i t0, __m512i t1, __m512i t2, __m512i t3) {
    const __m512i lo01 = _mm512_unpacklo_epi8(t0, t1), hi01 = _mm512_unpackhi_epi8(t0, t1);
    const __m512i lo23 = _mm512_unpacklo_epi8(t2, t3), hi23 = _mm512_unpackhi_epi8(t2, t3);
    return (column){.d0 = _mm512_unpacklo_epi16(lo01, lo23),
                    .d1 = _mm512_unpackhi_epi16(lo01, lo23),
                    .d2 = _mm512_unpacklo_epi16(hi01, hi23),
                    .d3 = _mm512_unpackhi_epi16(hi01, hi23)};
}

#define SUM_DOT(sum, x, w)                                                                         \
    sum = _mm512_dpbusd_epi32(sum, x, w);                                                          \
    W_KEEP(sum)
/* Loads, one per cycle, are the limit: biases and multipliers stay in registers. */
#define DW_KEEP(i)                                                                                 \
    __m512i bias##i = _mm512_loadu_si512(o->bias + 16 * i);                                        \
    W_KEEP(bias##i)                                                                                \
    __m512 m##i = _mm512_loadu_ps(o->mult + 16 * i);                                               \
    W_KEEP(m##i)
#define DW_KEPT DW_KEEP(0) DW_KEEP(1) DW_KEEP(2) DW_KEEP(3)

/* ---- stride 1: both rows of output read the same dwords, each with its own weights ---- */

INLINE column column_at(const dw_rows *s, ptrdiff_t at, int32_t ranges) {
    const dw_taps t = load_rows(s, at, 4, ranges);
    return interleave(t.t0, t.t1, t.t2, t.t3);
}

/* Adds a quarter of a column's channels to the sums of both rows of output. */
#define DW_BOTH(i, c, at)                                                                          \
    SUM_DOT(a##i, (c).d##i, _mm512_loadu_si512(w + (at) + 64 * i))                                 \
    SUM_DOT(b##i, (c).d##i, _mm512_loadu_si512(v + (at) + 64 * i))
#define DW_THREE(i, j, c0, c1, c2, at)                                                             \
    DW_BOTH(i, c0, at)                                                                             \
    DW_BOTH(j, c0, at)                                                                             \
    DW_BOTH(i, c1, (at) + 256)                                                                     \
    DW_BOTH(j, c1, (at) + 256)                                                                     \
    DW_BOTH(i, c2, (at) + 512)                                                                     \
    DW_BOTH(j, c2, (at) + 512)

/*
 * Words of half of the channels, in a##i and b##i: the other half's products run beside the
 * conversion of these.
 */
#define DW_WORDS(i, j, c0, c1, c2)                                                                 \
    __m512i a##i = bias##i, a##j = bias##j, b##i = bias##i, b##j = bias##j;                        \
    DW_THREE(i, j, c0, c1, c2, 0)                                                                  \
    if (more) {                                                                                    \
        DW_THREE(i, j, c0, c1, c2, more)                                                           \
    }                                                                                              \
    a##i = pack_words(scale(a##i, m##i, &e), scale(a##j, m##j, &e), &e);                           \
    W_KEEP(a##i)                                                                                   \
    b##i = pack_words(scale(b##i, m##i, &e), scale(b##j, m##j, &e), &e);                           \
    W_KEEP(b##i)

INLINE void rows_by_one(const dw_rows *s, const dw_job *given, ptrdiff_t at, const epilogue *usual,
                        int32_t ranges) {
    epilogue e = *usual;
    e.clamp = false;
    const dw_job copy = *given, *o = &copy; /* a copy: stores cannot alias it */
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    DW_KEPT
    column c0 = column_at(s, at, ranges), c1 = column_at(s, at + step, ranges), c2, ahead;
    at += 2 * step;
    /* Ranges take longer to load, so they are loaded half a step ahead. */
    if (ranges > 1)
        ahead = column_at(s, at, ranges);
    for (int32_t x = 0; x < o->n; x++) {
        c2 = ranges > 1 ? ahead : column_at(s, at, ranges);
        at += step;
        DW_WORDS(0, 1, c0, c1, c2)
        if (ranges > 1)
            ahead = column_at(s, at, ranges);
        DW_WORDS(2, 3, c0, c1, c2)
        dw_store(o, second, _mm512_packus_epi16(b0, b2), x, &e, ranges);
        dw_store(o, first, _mm512_packus_epi16(a0, a2), x, &e, ranges);
        first += o->pixel;
        second += o->pixel;
        c0 = c1;
        c1 = c2;
    }
}

/* ---- stride 2: both rows of output use the same weights, each on its own dwords ---- */

typedef struct both_columns {
    column a, b;
} both_columns;

INLINE both_columns both_columns_at(const dw_rows *s, ptrdiff_t at, int32_t ranges) {
    const dw_taps t = load_rows(s, at, 5, ranges);
    return (both_columns){interleave(t.t0, t.t1, t.t2, t.t3), interleave(t.t2, t.t3, t.t4, t.t4)};
}

#define EACH_DOT(i, c, w)                                                                          \
    {                                                                                              \
        __m512i weights = _mm512_loadu_si512((w) + 64 * i);                                        \
        W_KEEP(weights)                                                                            \
        SUM_DOT(a##i, (c).a.d##i, weights)                                                         \
        SUM_DOT(b##i, (c).b.d##i, weights)                                                         \
    }
#define EACH_SET(c, w) EACH_DOT(0, c, w) EACH_DOT(1, c, w) EACH_DOT(2, c, w) EACH_DOT(3, c, w)
#define EACH_SETS(c, w)                                                                            \
    EACH_SET(c, w)                                                                                 \
    if (more) {                                                                                    \
        EACH_SET(c, (w) + more)                                                                    \
    }
#define DW_SUMS                                                                                    \
    __m512i a0 = bias0, a1 = bias1, a2 = bias2, a3 = bias3;                                        \
    __m512i b0 = bias0, b1 = bias1, b2 = bias2, b3 = bias3;
/* The first row is stored last: without a second row both have the same address. */
#define DW_FINISH                                                                                  \
    dw_store(o, second,                                                                            \
             _mm512_packus_epi16(pack_words(scale(b0, m0, &e), scale(b1, m1, &e), &e),             \
                                 pack_words(scale(b2, m2, &e), scale(b3, m3, &e), &e)),            \
             x, &e, ranges);                                                                       \
    dw_store(o, first,                                                                             \
             _mm512_packus_epi16(pack_words(scale(a0, m0, &e), scale(a1, m1, &e), &e),             \
                                 pack_words(scale(a2, m2, &e), scale(a3, m3, &e), &e)),            \
             x, &e, ranges);

INLINE void rows_by_two(const dw_rows *s, const dw_job *given, ptrdiff_t at, const epilogue *usual,
                        int32_t ranges) {
    epilogue e = *usual;
    e.clamp = false;
    const dw_job copy = *given, *o = &copy;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w;
    const ptrdiff_t more = o->more, step = s->across;
    DW_KEPT
    both_columns c = both_columns_at(s, at, ranges);
    for (int32_t x = 0; x < o->n; x++) {
        DW_SUMS
        EACH_SETS(c, w)
        c = both_columns_at(s, at += step, ranges);
        EACH_SETS(c, w + 256)
        c = both_columns_at(s, at += step, ranges);
        EACH_SETS(c, w + 512)
        DW_FINISH
        first += o->pixel;
        second += o->pixel;
    }
}

#include "kernel/x86/i8_dw3x3_c16_avx512.h"
#include "kernel/x86/i8_dw3x3_f32out_avx512.h"
#include "kernel/x86/i8_dw5x5_avx512.h"

#define KERNEL(NAME, ROWS, RANGES)                                                                 \
    TARGET static void NAME(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {  \
        ROWS(s, o, at, e, RANGES);                                                                 \
    }
KERNEL(dw3_s1, rows_by_one, 1)
KERNEL(dw3_s2, rows_by_two, 1)
KERNEL(dw3_s1_2, rows_by_one, 2)
KERNEL(dw3_s2_2, rows_by_two, 2)

static const dw_choice dw_choices[] = {
    {3, 1, 1, DW_FLOATS, 0, f32out_s1},         {3, 2, 1, DW_FLOATS, 0, f32out_s2},
    {3, 1, 1, 0, DW_DILATED, dw3_s1},           {3, 2, 1, 0, DW_DILATED, dw3_s2},
    {3, 1, 2, 0, DW_DILATED, dw3_s1_2},         {3, 2, 2, 0, DW_DILATED, dw3_s2_2},
    {3, 1, 4, 0, DW_DILATED | DW_SETS, c16_s1}, {3, 2, 4, 0, DW_DILATED | DW_SETS, c16_s2},
    {5, 1, 1, 0, DW_DILATED | DW_SETS, dw5_s1}, DW_ANY_SIZE,
};

#endif
