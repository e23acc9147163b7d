/* SPDX-License-Identifier: MIT */
/* The driver of depthwise convolution on the image itself (i8_dw_split.h). */
#include <assert.h>

#include "kernel/table.h"
#include "kernel/x86/i8_dw_split.h"

#ifdef QK_YMM
#define MOST_PAIRS 4

typedef struct plan {
    const qk_window_u8s8 *d;
    const dw_kernels *kernels;
    const struct epilogue *e;
    int32_t groups; /* dwords of one column of the kernel */
    int32_t stored; /* dwords of one column of the image */
    int32_t second; /* the first of them that the second row of output reads */
    bool shared;    /* rows of output share dwords: moved weights */
    size_t set_bytes, block_bytes;
    ptrdiff_t row_bytes; /* bytes of a row of the image */
    dw_outside *outside;
} plan;

/* A range of channels with one kind of block. */
typedef struct part {
    int32_t begin, end; /* channels */
    int32_t each;       /* channels of a range of columns in a vector */
    int32_t ranges;
    int32_t q;     /* columns of output in a range */
    int32_t pairs; /* pairs of rows of output at once */
    dw_fn run;
    dw_job o;
} part;

/* Whether blocks have two sets of weights. */
static bool has_sets(const plan *p) {
    return p->d->split && p->kernels->group == 4;
}

static plan plan_of(const qk_window_u8s8 *d, const dw_kernels *kernels, const struct epilogue *e) {
    plan p = {.d = d, .kernels = kernels, .e = e};
    const int32_t group = kernels->group;
    int32_t both = (d->kh + d->stride_h + group - 1) / group, sets;
    p.groups = p.stored = (d->kh + group - 1) / group;
    sets = (both == p.groups ? 2 : 1) * (has_sets(&p) ? 2 : 1);
    p.shared = both == p.groups && d->dilation_h == 1;
    if (!p.shared) {
        bool step = d->dilation_h == 1 && d->stride_h % group == 0 && d->stride_h < d->kh;
        p.second = step ? d->stride_h / group : p.groups;
        p.stored = p.groups + p.second;
    }
    p.set_bytes = (size_t)(d->kw * p.groups) * 4 * (size_t)kernels->bytes;
    p.block_bytes = (size_t)sets * p.set_bytes;
    p.row_bytes = (ptrdiff_t)d->wd * d->channels;
    return p;
}

/* Columns of the image that n neighbouring columns of output read. */
static int64_t columns_of(const qk_window_u8s8 *d, int32_t n) {
    return (int64_t)(n - 1) * d->stride_w + (int64_t)(d->kw - 1) * d->dilation_w + 1;
}

/* ---- blocks of channels ---- */

static bool any_weight(const int8_t *w, size_t bytes) {
    uint64_t any = 0, eight;
    for (size_t i = 0; i < bytes; i += 8) {
        memcpy(&eight, w + i, 8);
        any |= eight;
    }
    return any != 0;
}

/* Bytes of a result. */
static int32_t element_of(const qk_window_u8s8 *d) {
    return d->o.scale ? 4 : 1;
}

/* A pair of rows of output; without a second one both have the same address. */
typedef struct row_pair {
    dw_rows s;
    uint8_t *first, *second;
} row_pair;

/* Addresses of rows of which some are outside the image. Those after `rows_read` rows are not used.
 */
QS_COLD static void edge_rows(const plan *p, int64_t at, int32_t rows_read, int32_t c, dw_rows *s) {
    const qk_window_u8s8 *d = p->d;
    for (int32_t k = 0; k < 8; k++, at += k < rows_read ? d->dilation_h : 0)
        s->row[k] = (uint64_t)at < (uint64_t)d->h ? d->image + at * p->row_bytes + c : d->zeros + c;
}

/* Few instructions on purpose: rows are short. */
static inline void pair_at(const plan *p, const dw_job *o, int32_t y, int32_t c, row_pair *q) {
    const qk_window_u8s8 *d = p->d;
    const int32_t rows_read = o->rows == 1 ? d->kh : d->kh + d->stride_h;
    const int64_t top = d->top + (int64_t)y * d->stride_h;
    const int64_t bottom = top + (int64_t)(rows_read - 1) * d->dilation_h;
    if (__builtin_expect(top >= 0 && bottom < d->h, true)) {
        const ptrdiff_t apart = d->dilation_h * p->row_bytes;
        const uint8_t *row = d->image + top * p->row_bytes + c;
        for (int32_t k = 0; k < 8; k++, row += k < rows_read ? apart : 0)
            q->s.row[k] = row;
    } else {
        edge_rows(p, top, rows_read, c, &q->s);
    }
    q->s.zeros = d->zeros;
    q->s.outside = p->outside;
    q->s.across = d->channels;
    q->s.end = (size_t)p->row_bytes;
    const ptrdiff_t line = d->wo * o->pixel;
    q->first = (uint8_t *)d->out + y * line + c * element_of(d);
    q->second = q->first + (y + 1 == d->rows || o->rows == 1 ? 0 : line);
}

/* The weights of the block that begins at channel c. */
static const int8_t *weights_at(const plan *p, int32_t c) {
    return p->d->w + (size_t)(c / p->kernels->bytes) * p->block_bytes;
}

/*
 * Runs blocks of channels on a few pairs of rows each, so that weights and rows stay in the
 * first-level cache: from channel c to the end of part `last`.
 */
static void run_blocks(const plan *p, part *t, const part *last, int32_t y, int32_t pairs,
                       int32_t c, int32_t end) {
    const qk_window_u8s8 *d = p->d;
    row_pair q[MOST_PAIRS];
    const int32_t bytes = p->kernels->bytes, step = bytes * element_of(d);
    for (int32_t i = 0; i < pairs; i++)
        pair_at(p, &t->o, y + t->o.rows * i, c, &q[i]);
    const int8_t *w = weights_at(p, c);
    for (;; t++, end = t->end) {
        dw_job *o = &t->o;
        for (int32_t i = 0; i < pairs; i++)
            q[i].s.q = (ptrdiff_t)t->q * d->stride_w * d->channels;
        for (; c < end; c += bytes, w += p->block_bytes) {
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
                t->run(&q[i].s, o, (ptrdiff_t)d->left * d->channels, p->e);
                for (int32_t k = 0; k < 8; k++)
                    q[i].s.row[k] += bytes;
                q[i].first += step;
                q[i].second += step;
            }
        }
        if (t == last)
            break;
    }
}

/* The properties of a window that the table of kernels selects by. */
static uint32_t traits_of(const plan *p, bool more) {
    const qk_window_u8s8 *d = p->d;
    return (d->o.scale ? DW_FLOATS : 0u) | (more ? DW_SETS : 0u) |
           (d->dilation_h != 1 || d->dilation_w != 1 ? DW_DILATED : 0u);
}

static const dw_choice *find_choice(const plan *p, int32_t ranges, bool more) {
    const qk_window_u8s8 *d = p->d;
    const int32_t kernel = d->kh == d->kw ? d->kh : -1;
    const int32_t stride = d->stride_h == d->stride_w ? d->stride_h : -1;
    const uint32_t traits = traits_of(p, more);
    for (const dw_choice *c = p->kernels->choices;; c++)
        if ((c->kernel == 0 || c->kernel == kernel) && (c->stride == 0 || c->stride == stride) &&
            (c->ranges == 0 || c->ranges == ranges) && (c->needs & ~traits) == 0 &&
            (c->wants_not & traits) == 0)
            return c;
}

/*
 * Whether this kernel takes one row of output at a time. A kernel of any size does if two rows of
 * output share no groups of rows, or read more than 8 rows.
 */
static bool one_by_one(const plan *p, const dw_choice *c) {
    return c->kernel == 0 && !p->shared &&
           (p->second == p->groups || p->kernels->group * p->stored > 8);
}

/* Chooses the kernels for blocks with (`more`) or without a second set of weights. */
static void choose(const plan *p, part *t, bool more) {
    const dw_choice *c = find_choice(p, t->ranges, more);
    assert(c->kernel == 3 || !p->d->o.scale);
    t->o.more = more ? (ptrdiff_t)p->set_bytes : 0;
    t->run = c->run;
    const bool one = one_by_one(p, c);
    t->o.rows = one ? 1 : 2;
    t->o.stored = one ? p->groups : p->stored;
    t->o.second_group = one ? p->groups : p->second;
}

QS_COLD static void start_part(const plan *p, part *t) {
    const qk_window_u8s8 *d = p->d;
    t->o = (dw_job){.n = t->q,
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
    choose(p, t, false);
}

/* Runs parts t to last on pairs of rows; chooses block by block if there are two weight sets. */
static void run_pairs(const plan *p, part *t, const part *last, int32_t y, int32_t pairs) {
    const bool sets = has_sets(p);
    const int32_t step = sets ? p->kernels->bytes : t->end - t->begin;
    for (int32_t c = t->begin; c < t->end; c += step) {
        if (sets)
            choose(p, t, any_weight(weights_at(p, c) + p->set_bytes, p->set_bytes));
        const int32_t left = p->d->rows - y, rows = 2 * pairs < left ? 2 * pairs : left;
        const int32_t count = t->o.rows == 1 ? rows : pairs;
        for (int32_t i = 0; i < count; i += MOST_PAIRS)
            run_blocks(p, t, last, y + t->o.rows * i,
                       count - i < MOST_PAIRS ? count - i : MOST_PAIRS, c, c + step);
    }
}

static part part_of(const plan *p, int32_t begin, int32_t end, int32_t each) {
    part t = {.begin = begin, .end = end, .each = each, .ranges = p->kernels->bytes / each};
    t.q = (p->d->wo + t.ranges - 1) / t.ranges;
    start_part(p, &t);
    /* Pairs of rows whose blocks stay in the first-level cache. */
    const int64_t most = 64 / columns_of(p->d, t.q);
    t.pairs = most < 1 ? 1 : most > 4 ? 4 : (int32_t)most;
    return t;
}

/* Runs parts t to last on rows [begin, end) of output. */
static void run_parts(const plan *p, part *t, const part *last, int32_t begin, int32_t end) {
    for (int32_t y = begin; y < end; y += 2 * t->pairs) {
        const int32_t pairs = (end - y + 1) / 2;
        run_pairs(p, t, last, y, pairs < t->pairs ? pairs : t->pairs);
    }
}

void qk_window_split(const qk_window_u8s8 *d, const dw_kernels *kernels, const struct epilogue *e) {
    const int32_t bytes = kernels->bytes;
    dw_outside outside;
    plan p = plan_of(d, kernels, e);
    p.outside = &outside;
    for (int32_t k = 0; k < 8; k++) {
        outside.zeros[k] = d->zeros;
        outside.some[k] = outside.bytes[k];
    }
    int32_t rest = d->channels % bytes;
    int32_t each = rest == 0 ? bytes : rest <= 16 ? 16 : rest <= 32 ? 32 : bytes;
    if (d->o.scale) /* floats have one range */
        each = bytes;
    int32_t whole = each == bytes ? d->channels : d->channels - rest;
    part parts[2];
    int32_t count = 0;
    if (whole > 0)
        parts[count++] = part_of(&p, 0, whole, bytes);
    if (whole < d->channels)
        parts[count++] = part_of(&p, whole, d->channels, each);
    if (parts[0].o.rows == parts[count - 1].o.rows && !d->split) {
        run_parts(&p, parts, &parts[count - 1], 0, d->rows);
        return;
    }
    const int32_t band = 2 * parts[0].pairs;
    for (int32_t y = 0; y < d->rows; y += band)
        for (int32_t i = 0; i < count; i++)
            run_parts(&p, &parts[i], &parts[i], y, d->rows - y < band ? d->rows : y + band);
}
#endif
