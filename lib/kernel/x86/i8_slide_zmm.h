/* SPDX-License-Identifier: MIT */
/*
 * Depthwise without scratch in 512-bit vectors, part of i8_depthwise_avx512vnni.c. A step is one
 * pixel of two rows, 64 channels. 3 x 3 at stride 1 or 2: columns of the image stay in registers
 * from one pixel to the next. Kernels of 4 to 7 rows: every pixel interleaves its columns anew,
 * which costs less beside the dot products than the way through scratch does.
 */
#ifndef QK_I8_SLIDE_ZMM_H
#define QK_I8_SLIDE_ZMM_H

#include "kernel/x86/i8_window.h"
#include "kernel/x86/i8_zmm.h"

/* A column of the image, interleaved for both rows of output; for stride 1 `b` is not used. */
typedef struct column {
    __m512i a0, a1, a2, a3, b0, b1, b2, b3;
} column;

typedef struct slides {
    const uint8_t *row[8];
    const uint8_t *zeros;
    int32_t ranges;
    ptrdiff_t across, apart; /* from column to column, from range to range */
    int64_t inside, wd;      /* columns before `inside` lie in the image for all ranges */
    int64_t q;               /* columns of the image in a range */
} slides;

INLINE column slide_interleave(const __m512i *t, bool by_two) {
    const __m512i lo01 = _mm512_unpacklo_epi8(t[0], t[1]), hi01 = _mm512_unpackhi_epi8(t[0], t[1]);
    const __m512i lo23 = _mm512_unpacklo_epi8(t[2], t[3]), hi23 = _mm512_unpackhi_epi8(t[2], t[3]);
    column c = {.a0 = _mm512_unpacklo_epi16(lo01, lo23),
                .a1 = _mm512_unpackhi_epi16(lo01, lo23),
                .a2 = _mm512_unpacklo_epi16(hi01, hi23),
                .a3 = _mm512_unpackhi_epi16(hi01, hi23)};
    if (by_two) {
        const __m512i lo4 = _mm512_unpacklo_epi8(t[4], t[4]);
        const __m512i hi4 = _mm512_unpackhi_epi8(t[4], t[4]);
        c.b0 = _mm512_unpacklo_epi16(lo23, lo4);
        c.b1 = _mm512_unpackhi_epi16(lo23, lo4);
        c.b2 = _mm512_unpacklo_epi16(hi23, hi4);
        c.b3 = _mm512_unpackhi_epi16(hi23, hi4);
    }
    return c;
}

/* Row i of a column that lies outside for some of the ranges; no call, which would spill sums. */
INLINE __m512i edge_row(const slides *s, int64_t x, int32_t i, int32_t ranges) {
    const uint8_t *from[4];
    for (int32_t r = 0; r < ranges; r++, x += s->q)
        from[r] = x >= 0 && x < s->wd ? s->row[i] + x * s->across : s->zeros;
    return load_ranges(from, ranges);
}

/* Four ranges are code enough for a call; only kernels without sums at that point have them. */
TARGET __attribute__((noinline)) static void edge_of_4(const slides *s, int64_t x, __m512i *t) {
    for (int32_t i = 0; i < 8; i++) {
        t[i] = edge_row(s, x, i, 4);
        __asm__("" : "+r"(i)); /* not unrolled */
    }
}

/* The first rows of a column. */
INLINE void load_rows(const slides *s, int64_t x, int32_t rows, int32_t ranges, __m512i *t) {
    const bool inside = x >= 0 && x<s->inside, many = ranges> 1;
    const ptrdiff_t at = x * s->across;
    if (ranges == 4 && !inside)
        edge_of_4(s, x, t);
    for (int32_t i = 0; i < rows && ranges == 2 && !inside; i++)
        t[i] = edge_row(s, x, i, ranges);
    for (int32_t i = 0; i < rows && many && inside; i++) {
        const uint8_t *first = s->row[i] + at;
        const uint8_t *from[4] = {first, first + s->apart, first + 2 * s->apart,
                                  first + 3 * s->apart};
        t[i] = load_ranges(from, ranges);
    }
    for (int32_t i = 0; i < rows && !many; i++)
        t[i] = _mm512_loadu_si512(inside ? s->row[i] + at : s->zeros);
}

INLINE column slide_column(const slides *s, int64_t x, bool by_two, int32_t ranges) {
    __m512i t[8];
    load_rows(s, x, by_two ? 5 : 4, ranges, t);
    return slide_interleave(t, by_two);
}

/* Both rows of output, with the weights of one column at w and v. */
#define SLIDE_DOT(i, c, w, v)                                                                      \
    a##i = _mm512_dpbusd_epi32(a##i, (c).a##i, _mm512_loadu_si512((w) + 64 * i));                  \
    W_KEEP(a##i)                                                                                   \
    if (!single) {                                                                                 \
        b##i = _mm512_dpbusd_epi32(b##i, by_two ? (c).b##i : (c).a##i,                             \
                                   _mm512_loadu_si512((v) + 64 * i));                              \
        W_KEEP(b##i)                                                                               \
    }
#define SLIDE_DOTS(c, w, v)                                                                        \
    SLIDE_DOT(0, c, w, v)                                                                          \
    SLIDE_DOT(1, c, w, v)                                                                          \
    SLIDE_DOT(2, c, w, v)                                                                          \
    SLIDE_DOT(3, c, w, v)

/* What a pair of rows needs besides its columns. */
typedef struct slide_out {
    const int8_t *w, *v; /* of both rows */
    ptrdiff_t more;      /* from there to the second set, or 0 */
    const int32_t *bias;
    const float *mult;
    uint8_t *first, *second;
    int32_t n, wo;   /* columns of output in a range, of all */
    int32_t whole;   /* columns that all ranges have */
    ptrdiff_t pixel; /* bytes */
    int32_t cols;
    bool limits;
    int32_t stride, dilation, kw; /* along the width */
} slide_out;

INLINE void slide_store(const slide_out *o, uint8_t *to, __m512i y, int32_t x, const epilogue *e,
                        int32_t ranges) {
    if (o->limits)
        y = _mm512_min_epu8(_mm512_max_epu8(y, e->lo), e->hi);
    if (ranges == 1 && o->cols == 64)
        _mm512_storeu_si512(to, y);
    else if (ranges == 1)
        _mm512_mask_storeu_epi8(to, mask64(o->cols), y);
    else
        store_ranges(to, y, (ptrdiff_t)o->n * o->pixel, 64 / ranges, o->cols,
                     x < o->whole ? ranges : (o->wo - 1 - x) / o->n + 1);
}

/* Where there is no second row, the first one comes last. */
#define SLIDE_FINISH                                                                               \
    const __m512 m0 = _mm512_loadu_ps(o->mult), m1 = _mm512_loadu_ps(o->mult + 16);                \
    const __m512 m2 = _mm512_loadu_ps(o->mult + 32), m3 = _mm512_loadu_ps(o->mult + 48);           \
    if (!single)                                                                                   \
        slide_store(o, second,                                                                     \
                    _mm512_packus_epi16(narrow(scale(b0, m0, &e), scale(b1, m1, &e), &e),          \
                                        narrow(scale(b2, m2, &e), scale(b3, m3, &e), &e)),         \
                    x, &e, ranges);                                                                \
    slide_store(o, first,                                                                          \
                _mm512_packus_epi16(narrow(scale(a0, m0, &e), scale(a1, m1, &e), &e),              \
                                    narrow(scale(a2, m2, &e), scale(a3, m3, &e), &e)),             \
                x, &e, ranges);

INLINE void slide_rows(const slides *s, const slide_out *given, int64_t at, const epilogue *usual,
                       bool by_two, int32_t ranges, bool split, bool single) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy; /* no store changes it */
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more;
    /* A load a cycle is the limit: what fits stays in registers. */
    __m512i bias0 = _mm512_loadu_si512(o->bias), bias1 = _mm512_loadu_si512(o->bias + 16);
    __m512i bias2 = _mm512_loadu_si512(o->bias + 32), bias3 = _mm512_loadu_si512(o->bias + 48);
    W_KEEP(bias0)
    W_KEEP(bias1)
    W_KEEP(bias2) W_KEEP(bias3) column c0 = slide_column(s, at, by_two, ranges), c1, c2;
    if (!by_two)
        c1 = slide_column(s, at + 1, false, ranges);
    at += by_two ? 1 : 2;
    for (int32_t x = 0; x < o->n; x++, at++) {
        __m512i a0 = bias0, a1 = bias1, a2 = bias2, a3 = bias3;
        __m512i b0 = bias0, b1 = bias1, b2 = bias2, b3 = bias3;
        SLIDE_DOTS(c0, w, v)
        if (split) {
            SLIDE_DOTS(c0, w + more, v + more)
        }
        if (by_two)
            c1 = slide_column(s, at++, true, ranges);
        SLIDE_DOTS(c1, w + 256, v + 256)
        if (split) {
            SLIDE_DOTS(c1, w + more + 256, v + more + 256)
        }
        c2 = slide_column(s, at, by_two, ranges);
        SLIDE_DOTS(c2, w + 512, v + 512)
        if (split) {
            SLIDE_DOTS(c2, w + more + 512, v + more + 512)
        }
        SLIDE_FINISH
        first += o->pixel;
        second += o->pixel;
        c0 = by_two ? c2 : c1;
        c1 = c2;
    }
}

/* Kernels of two groups of rows: the first `rows` of s are looked at. */
INLINE void tall_rows(const slides *s, const slide_out *given, int64_t at, const epilogue *usual,
                      int32_t rows, int32_t ranges) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy;
    const bool by_two = false, single = false;
    uint8_t *first = o->first, *second = o->second;
    for (int32_t x = 0; x < o->n; x++, at += o->stride) {
        __m512i a0 = _mm512_loadu_si512(o->bias), a1 = _mm512_loadu_si512(o->bias + 16);
        __m512i a2 = _mm512_loadu_si512(o->bias + 32), a3 = _mm512_loadu_si512(o->bias + 48);
        __m512i b0 = a0, b1 = a1, b2 = a2, b3 = a3;
        const int8_t *w = o->w, *v = o->v;
        for (int32_t i = 0; i < o->kw; i++, w += 512, v += 512) {
            __m512i t[8];
            load_rows(s, at + i * o->dilation, rows, ranges, t);
            if (rows < 8) /* zero weights */
                t[7] = t[rows - 1];
            if (rows < 7)
                t[6] = t[4];
            column c = slide_interleave(t, false);
            SLIDE_DOTS(c, w, v)
            c = slide_interleave(t + 4, false);
            SLIDE_DOTS(c, w + 256, v + 256)
        }
        SLIDE_FINISH
        first += o->pixel;
        second += o->pixel;
    }
}

#include "kernel/x86/i8_slide_16_zmm.h"

typedef void (*slide_fn)(const slides *s, const slide_out *o, int64_t at, const epilogue *e);

#define SLIDE(NAME, BY_TWO, RANGES, SPLIT, SINGLE)                                                 \
    TARGET static void NAME(const slides *s, const slide_out *o, int64_t at, const epilogue *e) {  \
        slide_rows(s, o, at, e, BY_TWO, RANGES, SPLIT, SINGLE);                                    \
    }
SLIDE(slide_by_one, false, 1, false, false)
SLIDE(slide_by_two, true, 1, false, false)
SLIDE(slide_2_by_one, false, 2, false, false)
SLIDE(slide_2_by_two, true, 2, false, false)
SLIDE(single_by_one, false, 1, false, true)
SLIDE(single_by_two, true, 1, false, true)
SLIDE(split_by_one, false, 1, true, false)
SLIDE(split_by_two, true, 1, true, false)
SLIDE(split_2_by_one, false, 2, true, false)
SLIDE(split_2_by_two, true, 2, true, false)

#define TALL(NAME, ROWS, RANGES)                                                                   \
    TARGET static void NAME(const slides *s, const slide_out *o, int64_t at, const epilogue *e) {  \
        tall_rows(s, o, at, e, ROWS, RANGES);                                                      \
    }
TALL(tall_6, 6, 1)
TALL(tall_7, 7, 1)
TALL(tall_8, 8, 1)
TALL(tall_2, 8, 2)
TALL(tall_4, 8, 4)

/* NULL: no such kernel. */
static slide_fn slide_for(const plan *p, int32_t ranges) {
    static const slide_fn by_one[][3] = {{slide_by_one, slide_2_by_one, slide_16_by_one},
                                         {split_by_one, split_2_by_one, NULL}};
    static const slide_fn by_two[][3] = {{slide_by_two, slide_2_by_two, slide_16_by_two},
                                         {split_by_two, split_2_by_two, NULL}};
    const qk_window_u8s8 *d = p->d;
    int32_t rows = d->kh + d->stride_h;
    if (!d->o.mult || d->o.clamp || d->dilation_h != 1 || (d->split && p->groups > 1))
        return NULL;
    if (p->shared && p->groups == 2 && ranges > 1)
        return ranges == 2 ? tall_2 : tall_4;
    if (p->shared && p->groups == 2)
        return rows == 6 ? tall_6 : rows == 7 ? tall_7 : tall_8;
    if (d->kh != 3 || d->kw != 3 || d->dilation_w != 1 || d->stride_h != d->stride_w)
        return NULL;
    return d->stride_h == 1   ? by_one[d->split][ranges / 2]
           : d->stride_h == 2 ? by_two[d->split][ranges / 2]
                              : NULL;
}

TARGET static bool slide(const plan *p, const part *t, int32_t y, int32_t pairs, int32_t c) {
    const qk_window_u8s8 *d = p->d;
    slide_fn run = slide_for(p, t->ranges);
    if (!run)
        return false;
    slides s = {.zeros = d->zeros,
                .ranges = t->ranges,
                .across = d->channels,
                .apart = (ptrdiff_t)t->q * d->stride_w * d->channels,
                .wd = d->wd,
                .q = (int64_t)t->q * d->stride_w};
    s.inside = d->wd - (t->ranges - 1) * s.q;
    slide_out o = {.w = d->w + (size_t)(c / 64) * p->block_bytes,
                   .bias = d->o.bias + c,
                   .mult = d->o.mult + c,
                   .n = t->q,
                   .wo = d->wo,
                   .whole = d->wo - (t->ranges - 1) * t->q,
                   .pixel = d->channels,
                   .cols = d->channels - c < t->each ? d->channels - c : t->each,
                   .limits = d->o.lo > 0 || d->o.hi < 255,
                   .stride = d->stride_w,
                   .dilation = d->dilation_w,
                   .kw = d->kw};
    int32_t looks = d->kh + d->stride_h;
    o.more = d->split ? (ptrdiff_t)p->set_bytes : 0;
    o.v = p->shared ? o.w + p->set_bytes + o.more : o.w;
    for (int32_t i = 0; i < pairs; i++, y += 2) {
        for (int32_t k = 0; k < 8; k++)
            s.row[k] = row_at(p, y, k < looks ? k : 0) + c;
        o.first = (uint8_t *)d->out + (ptrdiff_t)y * d->wo * d->channels + c;
        o.second = o.first + (y + 1 < d->rows ? (ptrdiff_t)d->wo * d->channels : 0);
        if (y + 1 == d->rows && run == slide_by_one)
            run = single_by_one;
        if (y + 1 == d->rows && run == slide_by_two)
            run = single_by_two;
        run(&s, &o, d->left, &p->e);
    }
    return true;
}

#endif
