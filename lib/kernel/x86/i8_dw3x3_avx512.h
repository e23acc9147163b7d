/* SPDX-License-Identifier: MIT */
/*
 * Depthwise without scratch in 512-bit vectors, part of i8_depthwise_avx512vnni.c. A step is one
 * pixel of two rows, 64 channels. 3 x 3 at stride 1 or 2: columns of the image stay in registers
 * from one pixel to the next. Kernels of 4 to 7 rows: every pixel interleaves its columns anew,
 * which costs less beside the dot products than the way through scratch does.
 */
#ifndef QK_I8_SLIDE_ZMM_H
#define QK_I8_SLIDE_ZMM_H

#include "kernel/x86/i8_dw_any.h"
#include "kernel/x86/i8_zmm.h"

/* Four rows of a column of the image, interleaved. */
typedef struct column {
    __m512i d0, d1, d2, d3;
} column;

INLINE column slide_interleave(__m512i t0, __m512i t1, __m512i t2, __m512i t3) {
    const __m512i lo01 = _mm512_unpacklo_epi8(t0, t1), hi01 = _mm512_unpackhi_epi8(t0, t1);
    const __m512i lo23 = _mm512_unpacklo_epi8(t2, t3), hi23 = _mm512_unpackhi_epi8(t2, t3);
    return (column){.d0 = _mm512_unpacklo_epi16(lo01, lo23),
                    .d1 = _mm512_unpackhi_epi16(lo01, lo23),
                    .d2 = _mm512_unpacklo_epi16(hi01, hi23),
                    .d3 = _mm512_unpackhi_epi16(hi01, hi23)};
}

#define SLIDE_DOT(sum, x, w)                                                                       \
    sum = _mm512_dpbusd_epi32(sum, x, w);                                                          \
    W_KEEP(sum)
/* A load a cycle is the limit: what fits stays in registers. */
#define SLIDE_KEEP(i)                                                                              \
    __m512i bias##i = _mm512_loadu_si512(o->bias + 16 * i);                                        \
    W_KEEP(bias##i)                                                                                \
    __m512 m##i = _mm512_loadu_ps(o->mult + 16 * i);                                               \
    W_KEEP(m##i)
#define SLIDE_KEPT SLIDE_KEEP(0) SLIDE_KEEP(1) SLIDE_KEEP(2) SLIDE_KEEP(3)

/* ---- stride 1: both rows of output look at the same dwords, each with its own weights ---- */

INLINE column column_at(const slides *s, ptrdiff_t at, int32_t ranges) {
    const strips t = load_rows(s, at, 4, ranges);
    return slide_interleave(t.t0, t.t1, t.t2, t.t3);
}

/* A quarter of a column's channels. */
#define SLIDE_BOTH(i, c, at)                                                                       \
    SLIDE_DOT(a##i, (c).d##i, _mm512_loadu_si512(w + (at) + 64 * i))                               \
    if (!single) {                                                                                 \
        SLIDE_DOT(b##i, (c).d##i, _mm512_loadu_si512(v + (at) + 64 * i))                           \
    }
#define SLIDE_THREE(i, j, c0, c1, c2, at)                                                          \
    SLIDE_BOTH(i, c0, at)                                                                          \
    SLIDE_BOTH(j, c0, at)                                                                          \
    SLIDE_BOTH(i, c1, (at) + 256)                                                                  \
    SLIDE_BOTH(j, c1, (at) + 256)                                                                  \
    SLIDE_BOTH(i, c2, (at) + 512)                                                                  \
    SLIDE_BOTH(j, c2, (at) + 512)

/*
 * Words of half of the channels, in a##i and b##i: the other half's products go on beside what
 * becomes of these.
 */
#define SLIDE_WORDS(i, j, c0, c1, c2)                                                              \
    __m512i a##i = bias##i, a##j = bias##j, b##i = bias##i, b##j = bias##j;                        \
    SLIDE_THREE(i, j, c0, c1, c2, 0)                                                               \
    if (more) {                                                                                    \
        SLIDE_THREE(i, j, c0, c1, c2, more)                                                        \
    }                                                                                              \
    a##i = narrow(scale(a##i, m##i, &e), scale(a##j, m##j, &e), &e);                               \
    W_KEEP(a##i)                                                                                   \
    if (!single) {                                                                                 \
        b##i = narrow(scale(b##i, m##i, &e), scale(b##j, m##j, &e), &e);                           \
        W_KEEP(b##i)                                                                               \
    }

INLINE void rows_by_one(const slides *s, const slide_out *given, ptrdiff_t at,
                        const epilogue *usual, int32_t ranges, bool single) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy; /* no store changes it */
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    SLIDE_KEPT
    column c0 = column_at(s, at, ranges), c1 = column_at(s, at + step, ranges), c2, ahead;
    at += 2 * step;
    /* Ranges take longer to load: half a step ahead. */
    if (ranges > 1)
        ahead = column_at(s, at, ranges);
    for (int32_t x = 0; x < o->n; x++) {
        c2 = ranges > 1 ? ahead : column_at(s, at, ranges);
        at += step;
        SLIDE_WORDS(0, 1, c0, c1, c2)
        if (ranges > 1)
            ahead = column_at(s, at, ranges);
        SLIDE_WORDS(2, 3, c0, c1, c2)
        if (!single)
            slide_store(o, second, _mm512_packus_epi16(b0, b2), x, &e, ranges);
        slide_store(o, first, _mm512_packus_epi16(a0, a2), x, &e, ranges);
        first += o->pixel;
        second += o->pixel;
        c0 = c1;
        c1 = c2;
    }
}

/* ---- stride 2: both rows with the same weights, each on its own dwords ---- */

typedef struct both_columns {
    column a, b;
} both_columns;

INLINE both_columns both_columns_at(const slides *s, ptrdiff_t at, int32_t ranges) {
    const strips t = load_rows(s, at, 5, ranges);
    return (both_columns){slide_interleave(t.t0, t.t1, t.t2, t.t3),
                          slide_interleave(t.t2, t.t3, t.t4, t.t4)};
}

#define EACH_DOT(i, c, w)                                                                          \
    {                                                                                              \
        __m512i weights = _mm512_loadu_si512((w) + 64 * i);                                        \
        W_KEEP(weights)                                                                            \
        SLIDE_DOT(a##i, (c).a.d##i, weights)                                                       \
        if (!single) {                                                                             \
            SLIDE_DOT(b##i, (c).b.d##i, weights)                                                   \
        }                                                                                          \
    }
#define EACH_SET(c, w) EACH_DOT(0, c, w) EACH_DOT(1, c, w) EACH_DOT(2, c, w) EACH_DOT(3, c, w)
#define EACH_SETS(c, w)                                                                            \
    EACH_SET(c, w)                                                                                 \
    if (more) {                                                                                    \
        EACH_SET(c, (w) + more)                                                                    \
    }
#define SLIDE_SUMS                                                                                 \
    __m512i a0 = bias0, a1 = bias1, a2 = bias2, a3 = bias3;                                        \
    __m512i b0 = bias0, b1 = bias1, b2 = bias2, b3 = bias3;
/* Where there is no second row, the first one comes last. */
#define SLIDE_FINISH                                                                               \
    if (!single)                                                                                   \
        slide_store(o, second,                                                                     \
                    _mm512_packus_epi16(narrow(scale(b0, m0, &e), scale(b1, m1, &e), &e),          \
                                        narrow(scale(b2, m2, &e), scale(b3, m3, &e), &e)),         \
                    x, &e, ranges);                                                                \
    slide_store(o, first,                                                                          \
                _mm512_packus_epi16(narrow(scale(a0, m0, &e), scale(a1, m1, &e), &e),              \
                                    narrow(scale(a2, m2, &e), scale(a3, m3, &e), &e)),             \
                x, &e, ranges);

INLINE void rows_by_two(const slides *s, const slide_out *given, ptrdiff_t at,
                        const epilogue *usual, int32_t ranges, bool single) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w;
    const ptrdiff_t more = o->more, step = s->across;
    SLIDE_KEPT
    both_columns c = both_columns_at(s, at, ranges);
    for (int32_t x = 0; x < o->n; x++) {
        SLIDE_SUMS
        EACH_SETS(c, w)
        c = both_columns_at(s, at += step, ranges);
        EACH_SETS(c, w + 256)
        c = both_columns_at(s, at += step, ranges);
        EACH_SETS(c, w + 512)
        SLIDE_FINISH
        first += o->pixel;
        second += o->pixel;
    }
}

#define TALL_DOTS(c, at)                                                                           \
    SLIDE_BOTH(0, c, at) SLIDE_BOTH(1, c, at) SLIDE_BOTH(2, c, at) SLIDE_BOTH(3, c, at)

/* Kernels of two groups of rows: the first `count` rows of s are looked at. */
INLINE void tall_rows(const slides *s, const slide_out *given, ptrdiff_t at, const epilogue *usual,
                      int32_t count, int32_t ranges) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy;
    const bool single = false;
    uint8_t *first = o->first, *second = o->second;
    SLIDE_KEPT
    for (int32_t x = 0; x < o->n; x++, at += o->stride * s->across) {
        SLIDE_SUMS
        const int8_t *w = o->w, *v = o->v;
        for (int32_t i = 0; i < o->kw; i++, w += 512, v += 512) {
            const strips t = load_rows(s, at + i * o->dilation * s->across, count, ranges);
            column c = slide_interleave(t.t0, t.t1, t.t2, t.t3);
            TALL_DOTS(c, 0)
            c = slide_interleave(t.t4, t.t5, t.t6, t.t7);
            TALL_DOTS(c, 256)
        }
        SLIDE_FINISH
        first += o->pixel;
        second += o->pixel;
    }
}

#include "kernel/x86/i8_dw3x3_c16_avx512.h"
#include "kernel/x86/i8_dw3x3_f32out_avx512.h"
#include "kernel/x86/i8_dw5x5_avx512.h"
#include "kernel/x86/i8_dw3x3_c32_avx512.h"

#define SLIDE(NAME, ROWS, RANGES, SINGLE)                                                          \
    TARGET static void NAME(const slides *s, const slide_out *o, ptrdiff_t at,                     \
                            const epilogue *e) {                                                   \
        ROWS(s, o, at, e, RANGES, SINGLE);                                                         \
    }
SLIDE(slide_by_one, rows_by_one, 1, false)
SLIDE(slide_by_two, rows_by_two, 1, false)
SLIDE(slide_2_by_one, rows_by_one, 2, false)
SLIDE(slide_2_by_two, rows_by_two, 2, false)
SLIDE(single_by_one, rows_by_one, 1, true)
SLIDE(single_by_two, rows_by_two, 1, true)

#define TALL(NAME, ROWS, RANGES)                                                                   \
    TARGET static void NAME(const slides *s, const slide_out *o, ptrdiff_t at,                     \
                            const epilogue *e) {                                                   \
        tall_rows(s, o, at, e, ROWS, RANGES);                                                      \
    }
TALL(tall_7, 7, 1)
TALL(tall_8, 8, 1)
TALL(tall_2, 8, 2)
TALL(tall_4, 8, 4)

static slide_fn slide_for(const plan *p, int32_t ranges, bool more, bool single) {
    const qk_window_u8s8 *d = p->d;
    const bool by_two = d->stride_h == 2;
    if (d->o.scale)
        return by_two ? slide_floats_by_two : slide_floats_by_one;
    if (d->dilation_h != 1 || (more && p->groups > 1))
        return any_for(ranges);
    if (d->kh == 5 && d->kw == 5 && d->stride_h == 1 && d->stride_w == 1 && d->dilation_w == 1 &&
        ranges < 4)
        return ranges == 2 ? slide_2_5x5 : slide_5x5;
    if (p->shared && p->groups == 2)
        return ranges == 4               ? tall_4
               : ranges == 2             ? tall_2
               : d->kh + d->stride_h < 8 ? tall_7
                                         : tall_8;
    if (d->kh != 3 || d->kw != 3 || d->dilation_w != 1 || d->stride_h != d->stride_w ||
        d->stride_h > 2 || (more && ranges == 4))
        return any_for(ranges);
    if (ranges > 1 && ranges * d->channels == 64 && !by_two && !more)
        return ranges == 4 ? dense_4 : dense_2;
    if (ranges == 4)
        return by_two ? slide_16_by_two : slide_16_by_one;
    if (ranges == 2)
        return by_two ? slide_2_by_two : slide_2_by_one;
    if (single)
        return by_two ? single_by_two : single_by_one;
    return by_two ? slide_by_two : slide_by_one;
}

#endif
