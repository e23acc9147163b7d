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
    double *row; /* sums of a block */
    qs_exact *sum;
    float *channel_extremes; /* extremes of each channel */
    float *extremes;         /* the least value of each sample, then the greatest */
    size_t row_capacity, extreme_capacity;
    int code;
} qs_watch_part;

typedef struct watching {
    qs_watch *w;
    const qs_watched *t;
    qs_record *r;
    const qs_reads *reads;
    size_t block;         /* positions, or channels where a channel's values lie together */
    size_t units, slices; /* pieces of work in a sample */
} watching;

/* ---- one unit ---- */

/* The first part adds to the record itself. */
static qsim_observer *observer_of(const watching *g, const qs_watch_part *p) {
    return p == g->w->parts ? g->r->observer : p->observer;
}

static qs_exact *sums_of(const watching *g, const qs_watch_part *p) {
    return p == g->w->parts ? g->r->means.sum : p->sum;
}

static float *channel_extremes_of(const watching *g, const qs_watch_part *p) {
    return p == g->w->parts ? g->r->means.extreme : p->channel_extremes;
}

/* Adds values of a sample, with these extremes, to the observer. */
static int observe_values(const watching *g, qs_watch_part *p, size_t sample, const float *x,
                          size_t n, float low, float high) {
    float *least = p->extremes + sample, *greatest = least + g->t->samples;
    *least = low < *least ? low : *least;
    *greatest = high > *greatest ? high : *greatest;
    return qs_observer_add(observer_of(g, p), p->tally, g->reads, x, n, low, high);
}

/* Reads positions [first, first + count) of a sample whose channels are contiguous. */
static int watch_rows(const watching *g, qs_watch_part *p, size_t sample, size_t first,
                      size_t count) {
    const size_t channels = g->t->channels;
    const size_t step = channels < CHUNK ? CHUNK / channels : 1;
    const float *x = g->t->x + (sample * g->t->outer + first) * channels;
    int code = QSIM_OK;
    for (size_t c = 0; g->t->means && c < channels; c++)
        p->row[c] = 0;
    for (size_t i = 0; i < count && !code; i += step) {
        const size_t rows = count - i < step ? count - i : step;
        const float *from = x + i * channels;
        float low, high;
        const bool finite =
            g->t->means
                ? g->reads->rows(from, rows, channels, p->row, channel_extremes_of(g, p), &low,
                                 &high, &p->tally->waiting)
                : g->reads->extremes(from, rows * channels, &low, &high, &p->tally->waiting);
        code =
            finite ? observe_values(g, p, sample, from, rows * channels, low, high) : QSIM_E_VALUE;
    }
    if (g->t->means && g->r->means.alone)
        memcpy(g->r->means.block, p->row, channels * sizeof(*p->row));
    for (size_t c = 0; g->t->means && !g->r->means.alone && !code && c < channels; c++)
        qs_exact_add(&sums_of(g, p)[c], p->row[c]);
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
    float *under = channel_extremes_of(g, p) + k->first, *over = under + g->t->channels;
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
        float low, high;
        if (!find_extremes(g, p, &k, &low, &high))
            return QSIM_E_VALUE;
        code = observe_values(g, p, sample, k.x, n, low, high);
        qs_read_planes(k.x, planes, k.n, sums_of(g, p) + first);
    }
    return code;
}

static int watch_unit(const watching *g, qs_watch_part *p, size_t sample, size_t unit) {
    const qs_watched *t = g->t;
    const size_t across = t->inner == 1 ? t->outer : t->channels;
    const size_t each = (across + g->block - 1) / g->block; /* units in `across` */
    const size_t first = unit % each * g->block;
    const size_t count = across - first < g->block ? across - first : g->block;
    return t->inner == 1 ? watch_rows(g, p, sample, first, count)
                         : watch_planes(g, p, sample, unit / each, first, count);
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
    if (g->t->means && p != g->w->parts)
        qs_extremes_reset(p->channel_extremes, g->t->channels);
    for (size_t u = qs_slice_begin(all, g->slices, i); u < end && !p->code; u++)
        p->code = watch_unit(g, p, u / g->units, u % g->units);
    qs_observer_flush(observer_of(g, p), p->tally);
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
    if (p->row_capacity < channels) {
        qs_free(ctx, p->row);
        qs_free(ctx, p->sum);
        qs_free(ctx, p->channel_extremes);
        p->channel_extremes = qs_alloc(ctx, 2 * channels, sizeof(*p->channel_extremes));
        p->row = qs_calloc(ctx, channels, sizeof(*p->row));
        p->sum = qs_calloc(ctx, channels, sizeof(*p->sum));
        p->row_capacity = p->row && p->sum && p->channel_extremes ? channels : 0;
    }
    return p->extreme_capacity && p->row_capacity >= channels ? QSIM_OK : QSIM_E_NOMEM;
}

/* Merges the statistics of one part into the record. */
static int collect(const watching *g, qs_watch_part *p) {
    int code = QSIM_OK;
    if (p != g->w->parts) {
        code = p->code ? p->code : qsim_observer_merge(g->r->observer, p->observer);
        qs_observer_reset(p->observer);
    }
    const size_t channels = g->t->means && p != g->w->parts ? g->t->channels : 0;
    qs_exact_merge(g->r->means.sum, p->sum, channels);
    if (channels > 0)
        memset(p->sum, 0, channels * sizeof(*p->sum));
    qs_extremes_merge(g->r->means.extreme, p->channel_extremes, channels);
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
    const size_t across = t->inner == 1 ? t->outer : t->channels;
    g->units = (across + g->block - 1) / g->block * (t->inner == 1 ? 1 : t->outer);
    g->slices = qs_slice_count(g->w->ctx, g->units * t->samples, qs_real(elements) * VALUE_NS);
    if (g->slices > g->w->part_count)
        g->slices = g->w->part_count;
    if (elements <= FEW)
        g->slices = 1;
    if (g->slices == 1)
        qs_observer_form(g->r->observer, t->repeats ? SIZE_MAX : elements);
}

/* Takes the sums of the only block as they are. */
static int take_block(qsim_ctx *ctx, qs_means *m) {
    assert(!m->alone && m->positions == 0); /* a batch makes a tensor once */
    if (!m->block)
        m->block = qs_alloc(ctx, m->channels + 1, sizeof(*m->block));
    m->alone = m->block != NULL;
    return m->alone ? QSIM_OK : QSIM_E_NOMEM;
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
    if (!code && t->means && !t->repeats && t->inner == 1 && g.units * t->samples == 1)
        code = take_block(w->ctx, &r->means);
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
        qs_free(w->ctx, p->sum);
        qs_free(w->ctx, p->channel_extremes);
        qs_free(w->ctx, p->extremes);
    }
    qs_free(w->ctx, w->parts);
}
