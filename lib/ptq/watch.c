/* SPDX-License-Identifier: MIT */
/*
 * Records the statistics of a tensor in one read, while it is in the cache. Within blocks of at
 * most BLOCK positions, which do not depend on threads or batches, sums are made in double in the
 * order of positions; sums of blocks are exact.
 */
#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "ptq/record.h"

#define BLOCK QS_READ_BLOCK /* positions */
/* Values that are read twice while they are in the cache: for the histogram and for sums. */
#define CHUNK QS_PART
/* Values that one thread reads sooner than several merge what they have read. */
#define FEW 16384
/* Nanoseconds that one thread takes for a value. */
#define VALUE_NS 0.8

typedef struct qs_watch_part {
    qsim_observer *observer;
    qs_tally *tally;
    double *row;     /* sums of a block */
    qs_means means;  /* with memory for the channels of all tensors so far */
    float *extremes; /* the least value of each sample, then the greatest */
    size_t extreme_capacity;
    int code;
} qs_watch_part;

typedef struct watching {
    qs_watch *w;
    const qs_watched *t;
    qs_record *r;
    const qs_reads *reads;
    size_t block;         /* positions, or channels where a channel's values lie together */
    size_t across, each;  /* their number, and the number of blocks in it */
    size_t units, slices; /* pieces of work in a sample */
} watching;

/* ---- one unit ---- */

/* The first part adds to the record itself. */
static qsim_observer *observer_of(const watching *g, const qs_watch_part *p) {
    return p == g->w->parts ? g->r->observer : p->observer;
}

static qs_means *means_of(const watching *g, qs_watch_part *p) {
    return p == g->w->parts ? &g->r->means : &p->means;
}

/* Adds values of a sample to its extremes and to the observer. */
static int observe_values(const watching *g, qs_watch_part *p, size_t sample, const qs_values *v) {
    float *least = p->extremes + sample, *greatest = least + g->t->samples;
    *least = v->min < *least ? v->min : *least;
    *greatest = v->max > *greatest ? v->max : *greatest;
    return g->t->counted ? qs_observer_add(observer_of(g, p), p->tally, g->reads, v) : QSIM_OK;
}

/*
 * Reads some rows, or values of no channels if `row` is NULL, with the bins of their values if that
 * needs no second read.
 */
static bool read_rows(const watching *g, qs_watch_part *p, double *row, size_t rows, qs_values *v) {
    qs_row_read r = {.x = v->x,
                     .rows = rows,
                     .channels = g->t->channels,
                     .sum = row,
                     .extreme = row ? means_of(g, p)->extreme : NULL};
    if (g->t->counted)
        r.at = qs_observer_place(observer_of(g, p), p->tally, v->count, &r.inverse);
    const bool finite = g->reads->rows(&r, &p->tally->waiting);
    v->min = r.min;
    v->max = r.max;
    v->found = r.found;
    return finite;
}

/* Reads positions [first, first + count) of a sample whose channels are contiguous. */
static int watch_rows(const watching *g, qs_watch_part *p, size_t sample, size_t first,
                      size_t count) {
    const size_t channels = g->t->channels;
    const size_t step = channels < CHUNK ? CHUNK / channels : 1;
    const float *x = g->t->x + (sample * g->t->outer + first) * channels;
    qs_means *m = means_of(g, p);
    double *row = !g->t->means ? NULL : m->alone ? m->recent : p->row;
    int code = QSIM_OK;
    if (row)
        memset(row, 0, channels * sizeof(*row));
    for (size_t i = 0; i < count && !code; i += step) {
        const size_t rows = count - i < step ? count - i : step;
        qs_values v = {.x = x + i * channels, .count = rows * channels, .found = QS_NOT_FOUND};
        code = read_rows(g, p, row, rows, &v) ? observe_values(g, p, sample, &v) : QSIM_E_VALUE;
    }
    if (row && !m->alone && !code)
        m->aside &= qs_exact_add_each(m->sum, m->recent, row, channels, g->reads->add_sums);
    return code;
}

/* Values of `planes` channels from channel `first` on, n of each. */
typedef struct plane_chunk {
    const float *x;
    size_t first, planes, n;
} plane_chunk;

/* The extremes of a chunk, its channels' among them; false: not all values are finite. */
static bool find_extremes(const watching *g, qs_watch_part *p, const plane_chunk *k, float *low,
                          float *high) {
    float *under = means_of(g, p)->extreme + k->first, *over = under + g->t->channels;
    bool finite = true;
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t c = 0; c < k->planes; c++) {
        float least, most;
        finite &= g->reads->extremes(k->x + c * k->n, k->n, &least, &most, &p->tally->waiting);
        under[c] = least < under[c] ? least : under[c];
        over[c] = most > over[c] ? most : over[c];
        *low = least < *low ? least : *low;
        *high = most > *high ? most : *high;
    }
    return finite;
}

/*
 * Reads channels [first, first + count), each of `inner` contiguous positions, a chunk at a time:
 * several channels fit one chunk together, a single one may take several.
 */
static int watch_planes(const watching *g, qs_watch_part *p, size_t sample, size_t outer,
                        size_t first, size_t count) {
    const qs_watched *t = g->t;
    const float *x = t->x + ((sample * t->outer + outer) * t->channels + first) * t->inner;
    const size_t all = count * t->inner;
    int code = QSIM_OK;
    assert(count > 0);
    for (size_t i = 0; i < all && !code; i += CHUNK) {
        const size_t n = all - i < CHUNK ? all - i : CHUNK, planes = t->inner < n ? count : 1;
        const plane_chunk k = {x + i, first, planes, n / planes};
        qs_values v = {.x = k.x, .count = n, .found = QS_NOT_FOUND};
        if (!find_extremes(g, p, &k, &v.min, &v.max))
            return QSIM_E_VALUE;
        code = observe_values(g, p, sample, &v);
        qs_read_planes(k.x, planes, k.n, means_of(g, p)->sum + first);
    }
    return code;
}

static int watch_unit(const watching *g, qs_watch_part *p, size_t sample, size_t unit) {
    const qs_watched *t = g->t;
    const size_t outer = t->inner == 1 ? 0 : unit / g->each;
    const size_t first = (unit - outer * g->each) * g->block;
    const size_t count = g->across - first < g->block ? g->across - first : g->block;
    return t->inner == 1 ? watch_rows(g, p, sample, first, count)
                         : watch_planes(g, p, sample, outer, first, count);
}

static void watch_slice(void *arg, size_t i) {
    const watching *g = arg;
    qs_watch_part *p = &g->w->parts[i];
    const size_t all = g->units * g->t->samples, end = qs_slice_begin(all, g->slices, i + 1);
    p->code = QSIM_OK;
    for (size_t s = 0; s < g->t->samples; s++) {
        p->extremes[s] = INFINITY;
        p->extremes[g->t->samples + s] = -INFINITY;
    }
    if (g->t->means && p != g->w->parts) {
        qs_extremes_reset(p->means.extreme, g->t->channels);
        p->means.aside = g->t->inner == 1;
    }
    size_t u = qs_slice_begin(all, g->slices, i), sample = u / g->units;
    for (size_t unit = u % g->units; u < end && !p->code; u++) {
        p->code = watch_unit(g, p, sample, unit);
        unit = unit + 1 < g->units ? unit + 1 : 0;
        sample += unit == 0;
    }
    qs_observer_leave(observer_of(g, p), p->tally);
}

/* ---- all units ---- */

static int grow_scratch(const watching *g, qs_watch_part *p) {
    qsim_ctx *ctx = g->w->ctx;
    const size_t channels = g->t->means ? g->t->channels : 0;
    if (p->extreme_capacity < 2 * g->t->samples) {
        qs_free(ctx, p->extremes);
        p->extremes = qs_calloc(ctx, 2 * g->t->samples, sizeof(*p->extremes));
        p->extreme_capacity = p->extremes ? 2 * g->t->samples : 0;
    }
    if (p->means.channels < channels) {
        qs_free(ctx, p->row);
        qs_means_free(ctx, &p->means);
        p->means = (qs_means){0};
        p->row = qs_alloc(ctx, channels, sizeof(*p->row));
        if (!p->row || qs_means_reserve(ctx, &p->means, channels))
            p->means.channels = 0;
    }
    return p->extreme_capacity && p->means.channels >= channels ? QSIM_OK : QSIM_E_NOMEM;
}

/* Merges the statistics of one part into the record. */
static int collect(const watching *g, qs_watch_part *p) {
    int code = QSIM_OK;
    if (p != g->w->parts) {
        code = p->code ? p->code : qs_observer_merge(g->r->observer, p->observer, g->reads);
        qs_observer_reset(p->observer);
    }
    const size_t channels = g->t->means && p != g->w->parts ? g->t->channels : 0;
    if (channels > 0) {
        qs_means_merge(&g->r->means, &p->means, channels, g->reads);
        qs_extremes_merge(g->r->means.extreme, p->means.extreme, channels);
        memset(p->means.sum, 0, channels * sizeof(*p->means.sum));
        memset(p->means.recent, 0, 2 * channels * sizeof(*p->means.recent));
    }
    float *all = g->w->parts->extremes;
    const size_t samples = g->t->samples;
    for (size_t s = 0; s < samples; s++) {
        all[s] = p->extremes[s] < all[s] ? p->extremes[s] : all[s];
        all[samples + s] = p->extremes[samples + s] > all[samples + s] ? p->extremes[samples + s]
                                                                       : all[samples + s];
    }
    return p->code ? p->code : code;
}

static void plan(watching *g, size_t elements) {
    const qs_watched *t = g->t;
    if (t->inner == 1)
        g->block = t->means ? BLOCK : 16384;
    else
        g->block = t->inner < CHUNK ? CHUNK / t->inner : 1;
    g->across = t->inner == 1 ? t->outer : t->channels;
    g->each = (g->across + g->block - 1) / g->block;
    g->units = g->each * (t->inner == 1 ? 1 : t->outer);
    g->slices = qs_slice_count(g->w->ctx, g->units * t->samples, qs_real(elements) * VALUE_NS);
    if (g->slices > g->w->part_count)
        g->slices = g->w->part_count;
    if (elements <= FEW)
        g->slices = 1;
    if (g->slices == 1 && !t->repeats)
        qs_observer_form(g->r->observer, elements);
}

int qs_watch_tensor(qs_watch *w, const qs_watched *t, qs_record *r) {
    watching g = {.w = w, .t = t, .r = r, .reads = &w->ctx->kernels->ew->reads};
    const size_t positions = t->samples * t->outer * t->inner;
    int code = QSIM_OK;
    if (positions * t->channels == 0)
        return QSIM_OK;
    if (t->means)
        code = qs_means_reserve(w->ctx, &r->means, t->channels);
    plan(&g, positions * t->channels);
    r->means.aside = (r->means.aside || r->means.positions == 0) && t->inner == 1;
    r->means.alone = !t->repeats && t->inner == 1 && g.units * t->samples == 1;
    for (size_t i = 0; i < g.slices && !code; i++)
        code = grow_scratch(&g, &w->parts[i]);
    if (code)
        return code;
    qs_parallel(w->ctx, g.slices, watch_slice, &g);
    for (size_t i = 0; i < g.slices; i++) {
        const int failed = collect(&g, &w->parts[i]);
        code = code ? code : failed;
    }
    for (size_t s = 0; s < t->samples && !code; s++) {
        qs_top_add(&r->high, w->parts->extremes[t->samples + s], (int64_t)s);
        qs_top_add(&r->low, -w->parts->extremes[s], (int64_t)s);
    }
    r->means.positions += t->means ? positions : 0;
    return code;
}

void qs_watch_end(qs_watch *w) {
    qs_count_waiting(w->parts->tally);
}

QS_COLD int qs_watch_create(qsim_ctx *ctx, int32_t bits, qs_watch *w) {
    *w = (qs_watch){.ctx = ctx, .bits = bits, .part_count = (size_t)ctx->threads};
    w->parts = qs_calloc(ctx, w->part_count, sizeof(*w->parts));
    int code = w->parts ? QSIM_OK : QSIM_E_NOMEM;
    for (size_t i = 0; i < w->part_count && !code; i++) {
        code = qs_observer_create(ctx, bits, &w->parts[i].observer, NULL);
        w->parts[i].tally = qs_calloc(ctx, 1, sizeof(qs_tally));
        if (!w->parts[i].tally)
            code = QSIM_E_NOMEM;
    }
    return code ? QSIM_E_NOMEM : QSIM_OK;
}

void qs_watch_free(qs_watch *w) {
    for (size_t i = 0; w->parts && i < w->part_count; i++) {
        qs_watch_part *p = &w->parts[i];
        qsim_observer_free(p->observer);
        qs_free(w->ctx, p->tally);
        qs_free(w->ctx, p->row);
        qs_means_free(w->ctx, &p->means);
        qs_free(w->ctx, p->extremes);
    }
    qs_free(w->ctx, w->parts);
}
