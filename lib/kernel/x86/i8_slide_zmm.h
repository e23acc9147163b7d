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

#define SLIDE_PAIRS 4

/* A column of the image, interleaved for both rows of output; for stride 1 `b` is not used. */
typedef struct column {
    __m512i a0, a1, a2, a3, b0, b1, b2, b3;
} column;

typedef struct slides {
    const uint8_t *row[8], *zeros;
    /* In bytes: from column to column, of a row, of a range's columns. */
    ptrdiff_t across;
    size_t end;
    ptrdiff_t q;
} slides;

/* Rows of a column. By name: gcc leaves arrays whose elements are kept in memory. */
typedef struct strips {
    __m512i t0, t1, t2, t3, t4, t5, t6, t7;
} strips;

INLINE column slide_interleave(__m512i t0, __m512i t1, __m512i t2, __m512i t3) {
    const __m512i lo01 = _mm512_unpacklo_epi8(t0, t1), hi01 = _mm512_unpackhi_epi8(t0, t1);
    const __m512i lo23 = _mm512_unpacklo_epi8(t2, t3), hi23 = _mm512_unpackhi_epi8(t2, t3);
    return (column){.a0 = _mm512_unpacklo_epi16(lo01, lo23),
                    .a1 = _mm512_unpackhi_epi16(lo01, lo23),
                    .a2 = _mm512_unpacklo_epi16(hi01, hi23),
                    .a3 = _mm512_unpackhi_epi16(hi01, hi23)};
}

/* Row i of a column, loaded once and not again as an operand. */
INLINE __m512i load_row(const slides *s, ptrdiff_t at, int32_t i, int32_t ranges) {
    const uint8_t *first = s->row[i] + at;
    const uint8_t *const from[4] = {first, first + s->q, first + 2 * s->q, first + 3 * s->q};
    __m512i t = ranges == 1 ? _mm512_loadu_si512(first) : load_ranges(from, ranges);
    W_KEEP(t)
    return t;
}

/* The same where some or all ranges are outside. */
INLINE __m512i edge_row(const slides *s, ptrdiff_t at, int32_t i, int32_t ranges) {
    const uint8_t *from[4];
    for (int32_t r = 0; r < ranges; r++, at += s->q)
        from[r] = (size_t)at < s->end ? s->row[i] + at : s->zeros;
    __m512i t = ranges == 1 ? _mm512_loadu_si512(s->zeros) : load_ranges(from, ranges);
    W_KEEP(t)
    return t;
}

/* The column that begins `at` bytes behind a row's beginning. */
INLINE strips load_rows(const slides *s, ptrdiff_t at, int32_t count, int32_t ranges) {
    const bool inside = (size_t)at < s->end && (size_t)(at + (ranges - 1) * s->q) < s->end;
    strips t;
#define SLIDE_ROW(i)                                                                               \
    t.t##i = i >= count ? _mm512_setzero_si512()                                                   \
             : inside   ? load_row(s, at, i, ranges)                                               \
                        : edge_row(s, at, i, ranges)
    SLIDE_ROW(0);
    SLIDE_ROW(1);
    SLIDE_ROW(2);
    SLIDE_ROW(3);
    SLIDE_ROW(4);
    SLIDE_ROW(5);
    SLIDE_ROW(6);
    SLIDE_ROW(7);
#undef SLIDE_ROW
    return t;
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

INLINE void slide_rows(const slides *s, const slide_out *given, ptrdiff_t at, const epilogue *usual,
                       bool by_two, int32_t ranges, bool single) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given, *o = &copy; /* no store changes it */
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    /* A load a cycle is the limit: what fits stays in registers. */
    __m512i bias0 = _mm512_loadu_si512(o->bias), bias1 = _mm512_loadu_si512(o->bias + 16);
    __m512i bias2 = _mm512_loadu_si512(o->bias + 32), bias3 = _mm512_loadu_si512(o->bias + 48);
    W_KEEP(bias0)
    W_KEEP(bias1)
    W_KEEP(bias2) W_KEEP(bias3) column c0 = slide_column(s, at, by_two, ranges), c1, c2;
    if (!by_two)
        c1 = slide_column(s, at + step, false, ranges);
    at += by_two ? step : 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step) {
        __m512i a0 = bias0, a1 = bias1, a2 = bias2, a3 = bias3;
        __m512i b0 = bias0, b1 = bias1, b2 = bias2, b3 = bias3;
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
    for (int32_t x = 0; x < o->n; x++, at += o->stride * s->across) {
        __m512i a0 = _mm512_loadu_si512(o->bias), a1 = _mm512_loadu_si512(o->bias + 16);
        __m512i a2 = _mm512_loadu_si512(o->bias + 32), a3 = _mm512_loadu_si512(o->bias + 48);
        __m512i b0 = a0, b1 = a1, b2 = a2, b3 = a3;
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

typedef void (*slide_fn)(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e);

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

/* NULL: no such kernel. */
static slide_fn slide_for(const plan *p, int32_t ranges, bool more, bool single) {
    const qk_window_u8s8 *d = p->d;
    const bool by_two = d->stride_h == 2;
    if (!d->o.mult || d->o.clamp || d->dilation_h != 1 || (more && p->groups > 1))
        return NULL;
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
        return NULL;
    if (ranges == 4)
        return by_two ? slide_16_by_two : slide_16_by_one;
    if (ranges == 2)
        return by_two ? slide_2_by_two : slide_2_by_one;
    if (single)
        return by_two ? single_by_two : single_by_one;
    return by_two ? slide_by_two : slide_by_one;
}

/* A pair of rows, or a single one. */
typedef struct slide_pair {
    slides s;
    uint8_t *first, *second;
    slide_fn run;
} slide_pair;

INLINE slide_pair pair_at(const plan *p, const part *t, int32_t y, int32_t c, bool more) {
    const qk_window_u8s8 *d = p->d;
    const bool single = y + 1 == d->rows;
    const int32_t looks = d->kh + d->stride_h;
    slide_pair q = {.s = {.zeros = d->zeros,
                          .across = d->channels,
                          .end = (size_t)p->row_bytes,
                          .q = (ptrdiff_t)t->q * d->stride_w * d->channels},
                    .first = (uint8_t *)d->out + (ptrdiff_t)y * d->wo * d->channels + c,
                    .run = slide_for(p, t->ranges, more, single)};
    for (int32_t k = 0; k < 8; k++)
        q.s.row[k] = row_at(p, y, k < looks ? k : 0) + c;
    q.second = q.first + (single ? 0 : (ptrdiff_t)d->wo * d->channels);
    return q;
}

/* All blocks, a few pairs of rows each: so both weights and rows stay in the first cache. */
TARGET static void slide_blocks(const plan *p, const part *t, int32_t y, int32_t pairs, int32_t c,
                                int32_t end, slide_out o) {
    const qk_window_u8s8 *d = p->d;
    slide_pair q[SLIDE_PAIRS];
    for (int32_t i = 0; i < pairs; i++)
        q[i] = pair_at(p, t, y + 2 * i, c, o.more > 0);
    for (; c < end; c += 64) {
        o.cols = d->channels - c < t->each ? d->channels - c : t->each;
        for (int32_t i = 0; i < pairs; i++) {
            o.first = q[i].first;
            o.second = q[i].second;
            q[i].run(&q[i].s, &o, (ptrdiff_t)d->left * d->channels, &p->e);
            for (int32_t k = 0; k < 8; k++)
                q[i].s.row[k] += 64;
            q[i].first += 64;
            q[i].second += 64;
        }
        o.w += p->block_bytes;
        o.v += p->block_bytes;
        o.bias += 64;
        o.mult += 64;
    }
}

TARGET static int32_t slide(const plan *p, const part *t, int32_t y, int32_t pairs, int32_t c) {
    const qk_window_u8s8 *d = p->d;
    slide_out o = {.w = d->w + (size_t)(c / 64) * p->block_bytes,
                   .bias = d->o.bias + c,
                   .mult = d->o.mult + c,
                   .n = t->q,
                   .wo = d->wo,
                   .whole = d->wo - (t->ranges - 1) * t->q,
                   .pixel = d->channels,
                   .limits = d->o.lo > 0 || d->o.hi < 255,
                   .stride = d->stride_w,
                   .dilation = d->dilation_w,
                   .kw = d->kw};
    const ptrdiff_t sets = d->split ? 2 : 1, set = (ptrdiff_t)p->set_bytes;
    const int32_t end = d->split ? c + 64 : t->end; /* blocks with second sets are on their own */
    o.more = d->split && any_weight(o.w + set, p->set_bytes) ? set : 0;
    o.v = p->shared ? o.w + sets * set : o.w;
    if (!slide_for(p, t->ranges, o.more > 0, false))
        return 0;
    for (int32_t i = 0; i < pairs; i += SLIDE_PAIRS)
        slide_blocks(p, t, y + 2 * i, pairs - i < SLIDE_PAIRS ? pairs - i : SLIDE_PAIRS, c, end, o);
    return end - c;
}

#endif
