/* SPDX-License-Identifier: MIT */
/*
 * The second half of i8_dw_split.h: how rows and columns of the image are
 * loaded, and the way through blocks of channels. i8_dw3x3_avx512.h, i8_dw_rows_avx2.h and
 * i8_dw_rows_avxvnni.h hold the kernels.
 */
#ifndef QK_I8_SLIDE_H
#define QK_I8_SLIDE_H

#include "kernel/x86/i8_dw_split.h"

#define SLIDE_PAIRS 4

struct slides {
    const uint8_t *row[8], *zeros;
    /* In bytes: from column to column, of a row, of a range's columns. */
    ptrdiff_t across;
    size_t end;
    ptrdiff_t q;
};

/* Rows of a column. By name: gcc leaves arrays whose elements are kept in memory. */
typedef struct strips {
    w_vec t0, t1, t2, t3, t4, t5, t6, t7;
} strips;

/* A row of a column, loaded once and not again as an operand. */
INLINE w_vec load_row(const slides *s, const uint8_t *row, ptrdiff_t at, int32_t ranges) {
    const uint8_t *const from[4] = {row + at, row + (at + s->q), row + (at + 2 * s->q),
                                    row + (at + 3 * s->q)};
    w_vec t = ranges == 1 ? w_load(row + at) : load_ranges(from, ranges);
    W_KEEP(t)
    return t;
}

/* The same where some or all ranges are outside. */
INLINE w_vec edge_row(const slides *s, const uint8_t *row, ptrdiff_t at, int32_t ranges) {
    const uint8_t *from[4];
    for (int32_t r = 0; r < ranges; r++, at += s->q)
        from[r] = (size_t)at < s->end ? row + at : s->zeros;
    w_vec t = ranges == 1 ? w_load(s->zeros) : load_ranges(from, ranges);
    W_KEEP(t)
    return t;
}

/* The column that begins `at` bytes after a row's beginning. */
INLINE strips load_rows(const slides *s, ptrdiff_t at, int32_t count, int32_t ranges) {
    const bool inside = (size_t)at < s->end && (size_t)(at + (ranges - 1) * s->q) < s->end;
    strips t;
#define SLIDE_ROW(i)                                                                               \
    t.t##i = i >= count ? W_ZERO                                                                   \
             : inside   ? load_row(s, s->row[i], at, ranges)                                       \
                        : edge_row(s, s->row[i], at, ranges)
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

/* The usual branches are named: gcc else jumps for each of them. */
INLINE void slide_store(const slide_out *o, uint8_t *to, w_vec y, int32_t x, const epilogue *e,
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
/* Sums as floats, which go in one range. */
INLINE void slide_floats(const slide_out *o, uint8_t *to, const epilogue *e, w_vec a0, w_vec a1,
                         w_vec a2, w_vec a3) {
    const sink s = {to, 0, NULL, NULL, o->cols, 1, *e, o->scale, o->add};
    store_words(&s, as_floats(&s, a0, 0), as_floats(&s, a1, 8), as_floats(&s, a2, 16),
                as_floats(&s, a3, 24));
}
#endif

/* One row of output of a 3 x 3 window, to `to`. */
typedef void (*slide_row_fn)(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e,
                             uint8_t *to, bool by_two, int32_t ranges, bool floats);

/* Both rows of output, where there are two, for kernels that make one at a time. */
INLINE void rows_of_three(slide_row_fn run, const slides *s, const slide_out *given, ptrdiff_t at,
                          const epilogue *usual, bool by_two, int32_t ranges, bool floats) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out o = *given; /* no store changes it */
    for (int32_t row = 0; row < 1 + (o.second != o.first); row++) {
        slides l = *s;
        for (int32_t k = 0; k < 3; k++)
            l.row[k] = s->row[k + (by_two ? 2 : 1) * row];
        run(&l, &o, at, &e, row > 0 ? o.second : o.first, by_two, ranges, floats);
    }
}

/* Defined by the including file. */
static slide_fn slide_for(const plan *p, int32_t ranges, bool more, bool single);
/* Does this one want one row of output at a time? */
static bool one_by_one(const plan *p, slide_fn run);

/* A pair of rows, or a single one. */
typedef struct slide_pair {
    slides s;
    uint8_t *first, *second;
    bool single;
    slide_fn run;
} slide_pair;

/* Rows some of which are outside. Those after the last one are not used. */
QS_COLD static void edge_rows(const plan *p, int64_t at, int32_t looks, int32_t c, slides *s) {
    const qk_window_u8s8 *d = p->d;
    for (int32_t k = 0; k < 8; k++, at += k < looks ? d->dilation_h : 0)
        s->row[k] = (uint64_t)at < (uint64_t)d->h ? d->image + at * p->row_bytes + c : d->zeros + c;
}

/* Soon done, and with few instructions: rows are short. */
INLINE void pair_at(const plan *p, const slide_out *o, int32_t y, int32_t c, slide_pair *q) {
    const qk_window_u8s8 *d = p->d;
    const int32_t looks = o->rows == 1 ? d->kh : d->kh + d->stride_h;
    const int64_t top = d->top + (int64_t)y * d->stride_h;
    const int64_t bottom = top + (int64_t)(looks - 1) * d->dilation_h;
    q->single = y + 1 == d->rows;
    if (__builtin_expect(top >= 0 && bottom < d->h, true)) {
        const ptrdiff_t apart = d->dilation_h * p->row_bytes;
        const uint8_t *row = d->image + top * p->row_bytes + c;
        for (int32_t k = 0; k < 8; k++, row += k < looks ? apart : 0)
            q->s.row[k] = row;
    } else {
        edge_rows(p, top, looks, c, &q->s);
    }
    q->s.zeros = d->zeros;
    q->s.across = d->channels;
    q->s.end = (size_t)p->row_bytes;
    const ptrdiff_t line = d->wo * o->pixel;
    q->first = (uint8_t *)d->out + y * line + c * element_of(d);
    q->second = q->first + (q->single || o->rows == 1 ? 0 : line);
}

/*
 * Blocks of channels, a few pairs of rows each: so both weights and rows stay in the first cache.
 * From c on to the end of the last part.
 */
TARGET static void slide_blocks(const plan *p, part *t, const part *last, int32_t y, int32_t pairs,
                                int32_t c, int32_t end) {
    const qk_window_u8s8 *d = p->d;
    slide_pair q[SLIDE_PAIRS];
    const int32_t step = W_BYTES * element_of(d);
    for (int32_t i = 0; i < pairs; i++)
        pair_at(p, &t->o, y + t->o.rows * i, c, &q[i]);
    const int8_t *w = d->w + (size_t)(c / W_BYTES) * p->block_bytes;
    for (;; t++, end = t->end) {
        slide_out *o = &t->o;
        for (int32_t i = 0; i < pairs; i++) {
            q[i].s.q = (ptrdiff_t)t->q * d->stride_w * d->channels;
            q[i].run = q[i].single ? t->run_single : t->run;
        }
        for (; c < end; c += W_BYTES, w += p->block_bytes) {
            o->w = w;
            o->v = w + o->moved;
            o->bias = d->o.bias + c;
            o->mult = d->o.mult ? d->o.mult + c : NULL;
            o->scale = d->o.scale ? d->o.scale + c : NULL;
            o->add = d->o.scale ? d->o.add + c : NULL;
            o->cols = d->channels - c < t->each ? d->channels - c : t->each;
            for (int32_t i = 0; i < pairs; i++) {
                o->first = q[i].first;
                o->second = q[i].second;
                q[i].run(&q[i].s, o, (ptrdiff_t)d->left * d->channels, &p->e);
                for (int32_t k = 0; k < 8; k++)
                    q[i].s.row[k] += W_BYTES;
                q[i].first += step;
                q[i].second += step;
            }
        }
        if (t == last)
            break;
    }
}

/* For blocks with second sets of weights, or without. */
static void choose_slide(const plan *p, part *t, bool more) {
    t->o.more = more ? (ptrdiff_t)p->set_bytes : 0;
    t->run = slide_for(p, t->ranges, more, false);
    t->run_single = slide_for(p, t->ranges, more, true);
    const bool one = one_by_one(p, t->run);
    t->o.rows = one ? 1 : 2;
    t->o.stored = one ? p->groups : p->stored;
    t->o.behind = one ? p->groups : p->second;
}

static bool has_sets(const plan *p) {
    return p->d->split && W_GROUP == 4;
}

QS_COLD static void start_slide(const plan *p, part *t) {
    const qk_window_u8s8 *d = p->d;
    t->o = (slide_out){.n = t->q,
                       .wo = d->wo,
                       .whole = d->wo - (t->ranges - 1) * t->q,
                       .pixel = (ptrdiff_t)element_of(d) * d->channels,
                       .limits = d->o.lo > 0 || d->o.hi < 255,
                       .stride = d->stride_w,
                       .dilation = d->dilation_w,
                       .kw = d->kw,
                       .groups = p->groups};
    if (p->shared)
        t->o.moved = (has_sets(p) ? 2 : 1) * (ptrdiff_t)p->set_bytes;
    choose_slide(p, t, false);
}

/* All parts, or one where they or their blocks differ in what they take at once. */
static void slide(const plan *p, part *t, const part *last, int32_t y, int32_t pairs) {
    const bool sets = has_sets(p);
    const int32_t step = sets ? W_BYTES : t->end - t->begin;
    for (int32_t c = t->begin; c < t->end; c += step) {
        if (sets) {
            const int8_t *w = p->d->w + (size_t)(c / W_BYTES) * p->block_bytes;
            choose_slide(p, t, any_weight(w + p->set_bytes, p->set_bytes));
        }
        const int32_t left = p->d->rows - y, rows = 2 * pairs < left ? 2 * pairs : left;
        const int32_t count = t->o.rows == 1 ? rows : pairs;
        for (int32_t i = 0; i < count; i += SLIDE_PAIRS)
            slide_blocks(p, t, last, y + t->o.rows * i,
                         count - i < SLIDE_PAIRS ? count - i : SLIDE_PAIRS, c, c + step);
    }
}

#endif
