/* SPDX-License-Identifier: MIT */
/*
 * Depthwise without scratch in 512-bit vectors, part of i8_depthwise_avx512vnni.c. A step is one
 * pixel of two rows, 64 channels. 3 x 3 at stride 1 or 2: columns of the image stay in registers
 * from one pixel to the next. Kernels of 4 to 7 rows: every pixel interleaves its columns anew,
 * which costs less beside the dot products than the way through scratch does.
 */
#ifndef QK_I8_SLIDE_ZMM_H
#define QK_I8_SLIDE_ZMM_H

#include "kernel/x86/i8_slide_any.h"
#include "kernel/x86/i8_zmm.h"

/* A column of the image, interleaved for both rows of output; for stride 1 `b` is not used. */
typedef struct column {
    __m512i a0, a1, a2, a3, b0, b1, b2, b3;
} column;

INLINE column slide_interleave(__m512i t0, __m512i t1, __m512i t2, __m512i t3) {
    const __m512i lo01 = _mm512_unpacklo_epi8(t0, t1), hi01 = _mm512_unpackhi_epi8(t0, t1);
    const __m512i lo23 = _mm512_unpacklo_epi8(t2, t3), hi23 = _mm512_unpackhi_epi8(t2, t3);
    return (column){.a0 = _mm512_unpacklo_epi16(lo01, lo23),
                    .a1 = _mm512_unpackhi_epi16(lo01, lo23),
                    .a2 = _mm512_unpacklo_epi16(hi01, hi23),
                    .a3 = _mm512_unpackhi_epi16(hi01, hi23)};
}

INLINE column slide_column(const slides *s, ptrdiff_t at, bool by_two, int32_t ranges) {
    const strips t = load_rows(s, at, by_two ? 5 : 4, ranges);
    column c = slide_interleave(t.t0, t.t1, t.t2, t.t3);
    if (by_two) {
        const column d = slide_interleave(t.t2, t.t3, t.t4, t.t4);
        c.b0 = d.a0;
        c.b1 = d.a1;
        c.b2 = d.a2;
        c.b3 = d.a3;
    }
    return c;
}

/* Both rows of output, with the weights of one column at w and v; for stride 2 these are the same.
 */
#define SLIDE_DOT(i, c, w, v)                                                                      \
    {                                                                                              \
        __m512i first_w = _mm512_loadu_si512((w) + 64 * i);                                        \
        if (by_two)                                                                                \
            W_KEEP(first_w)                                                                        \
        a##i = _mm512_dpbusd_epi32(a##i, (c).a##i, first_w);                                       \
        W_KEEP(a##i)                                                                               \
        if (!single) {                                                                             \
            b##i = _mm512_dpbusd_epi32(b##i, by_two ? (c).b##i : (c).a##i,                         \
                                       by_two ? first_w : _mm512_loadu_si512((v) + 64 * i));       \
            W_KEEP(b##i)                                                                           \
        }                                                                                          \
    }
#define SLIDE_DOTS(c, w, v)                                                                        \
    SLIDE_DOT(0, c, w, v)                                                                          \
    SLIDE_DOT(1, c, w, v)                                                                          \
    SLIDE_DOT(2, c, w, v)                                                                          \
    SLIDE_DOT(3, c, w, v)

/* Both sets, of a column's weights `at` bytes from the first. */
#define SLIDE_SETS(c, at)                                                                          \
    SLIDE_DOTS(c, w + at, v + at)                                                                  \
    if (more) {                                                                                    \
        SLIDE_DOTS(c, w + at + more, v + at + more)                                                \
    }

/* A load a cycle is the limit: what fits stays in registers. */
#define SLIDE_KEEP(i)                                                                              \
    __m512i bias##i = _mm512_loadu_si512(o->bias + 16 * i);                                        \
    W_KEEP(bias##i)                                                                                \
    __m512 m##i = _mm512_loadu_ps(o->mult + 16 * i);                                               \
    W_KEEP(m##i)
#define SLIDE_KEPT SLIDE_KEEP(0) SLIDE_KEEP(1) SLIDE_KEEP(2) SLIDE_KEEP(3)
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

INLINE void slide_rows(const slides *s, const slide_out *given, ptrdiff_t at, const epilogue *usual,
                       bool by_two, int32_t ranges, bool single) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy; /* no store changes it */
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    SLIDE_KEPT
    column c0 = slide_column(s, at, by_two, ranges), c1, c2;
    if (!by_two)
        c1 = slide_column(s, at + step, false, ranges);
    at += by_two ? step : 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step) {
        SLIDE_SUMS
        SLIDE_SETS(c0, 0)
        if (by_two)
            c1 = slide_column(s, at, true, ranges), at += step;
        SLIDE_SETS(c1, 256)
        c2 = slide_column(s, at, by_two, ranges);
        SLIDE_SETS(c2, 512)
        SLIDE_FINISH
        first += o->pixel;
        second += o->pixel;
        c0 = by_two ? c2 : c1;
        c1 = c2;
    }
}

/* Kernels of two groups of rows: the first `count` rows of s are looked at. */
INLINE void tall_rows(const slides *s, const slide_out *given, ptrdiff_t at, const epilogue *usual,
                      int32_t count, int32_t ranges) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy;
    const bool by_two = false, single = false;
    uint8_t *first = o->first, *second = o->second;
    SLIDE_KEPT
    for (int32_t x = 0; x < o->n; x++, at += o->stride * s->across) {
        SLIDE_SUMS
        const int8_t *w = o->w, *v = o->v;
        for (int32_t i = 0; i < o->kw; i++, w += 512, v += 512) {
            const strips t = load_rows(s, at + i * o->dilation * s->across, count, ranges);
            column c = slide_interleave(t.t0, t.t1, t.t2, t.t3);
            SLIDE_DOTS(c, w, v)
            c = slide_interleave(t.t4, t.t5, t.t6, t.t7);
            SLIDE_DOTS(c, w + 256, v + 256)
        }
        SLIDE_FINISH
        first += o->pixel;
        second += o->pixel;
    }
}

#include "kernel/x86/i8_slide_16_zmm.h"
#include "kernel/x86/i8_slide_5x5_zmm.h"

#define SLIDE(NAME, BY_TWO, RANGES, SINGLE)                                                        \
    TARGET static void NAME(const slides *s, const slide_out *o, ptrdiff_t at,                     \
                            const epilogue *e) {                                                   \
        slide_rows(s, o, at, e, BY_TWO, RANGES, SINGLE);                                           \
    }
SLIDE(slide_by_one, false, 1, false)
SLIDE(slide_by_two, true, 1, false)
SLIDE(slide_2_by_one, false, 2, false)
SLIDE(slide_2_by_two, true, 2, false)
SLIDE(single_by_one, false, 1, true)
SLIDE(single_by_two, true, 1, true)

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
    if (!d->o.mult || d->o.clamp)
        return NULL;
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
    if (ranges == 4)
        return by_two ? slide_16_by_two : slide_16_by_one;
    if (ranges == 2)
        return by_two ? slide_2_by_two : slide_2_by_one;
    if (single)
        return by_two ? single_by_two : single_by_one;
    return by_two ? slide_by_two : slide_by_one;
}

#endif
