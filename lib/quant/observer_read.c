/* SPDX-License-Identifier: MIT */
/* Reads the values of observers, and adds observers: the loops over values and bins. */
#include <assert.h>
#include <math.h>

#include "quant/observer.h"
#include "quant/observer_loops.h"

bool qs_find_extremes(const float *x, size_t n, float *min, float *max) {
    return qs_extremes(x, n, min, max);
}

bool qs_all_finite(const float *x, size_t n) {
    float min, max;
    return n == 0 || qs_find_extremes(x, n, &min, &max);
}

/* ---- one read ---- */

/*
 * The inverse of a bin's width w, if x / w is exact in float too: not if bins are wider than 1,
 * when the least values would underflow, or narrower than a float can invert.
 */
static bool invert(int32_t exponent, float *inverse) {
    const uint32_t word = (uint32_t)(127 - exponent) << 23; /* of 2^-exponent */
    memcpy(inverse, &word, sizeof(word));
    return exponent <= 0 && exponent >= -126;
}

static size_t find_bins(const qs_reads *reads, const float *x, size_t n, int32_t exponent,
                        uint16_t *at, qs_waiting *w) {
    float inverse;
    if (invert(exponent, &inverse))
        return reads->bins(x, n, inverse, at, w);
    for (size_t i = 0; i < n; i++)
        at[i] = (uint16_t)(QS_SIDE + qs_histogram_index(x[i], exponent));
    return n;
}

uint16_t *qs_observer_place(const qsim_observer *o, qs_tally *t, size_t count, float *inverse) {
    if (!o->bins || count > QS_PART || !invert(o->exponent, inverse))
        return NULL;
    return t->at[t->turn ^ 1];
}

static void count_all(qs_waiting *all) {
    qs_waiting w = *all;
    while (w.left >= 4)
        qs_count_some(&w, 1);
    for (; w.left > 0; w.left--)
        w.count[*w.at++]++;
    *all = w;
}

void qs_count_waiting(qs_tally *t) {
    count_all(&t->waiting);
}

static __attribute__((noinline)) void add_narrow(uint64_t *restrict into,
                                                 const uint16_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        into[i] += from[i];
}

/* into[i] += from[i]; from[i] = 0. */
static __attribute__((noinline)) void take_wide(uint64_t *restrict into, uint16_t *restrict from,
                                                size_t n) {
    for (size_t i = 0; i < n; i++) {
        into[i] += from[i];
        from[i] = 0;
    }
}

void qs_observer_leave(qsim_observer *o, qs_tally *t) {
    if (o->form != QS_TALLY) {
        qs_observer_flush(o, t);
    } else {
        o->zeros += t->zeros;
        t->zeros = 0;
    }
}

/* Takes the zeros out of a table and a tally. */
static uint64_t take_zeros(uint16_t *count, qs_tally *t) {
    const uint64_t zeros = t->zeros + qs_table_zeros(count);
    memset(count + 2 * QS_SIDE, 0, QS_ZEROS * sizeof(*count));
    t->zeros = 0;
    return zeros;
}

void qs_observer_flush(qsim_observer *o, qs_tally *t) {
    const size_t first = (size_t)(QS_SIDE - qs_observer_below(o));
    const size_t n = (size_t)(QS_SIDE + qs_observer_above(o)) - first;
    qs_count_waiting(t);
    if (o->form == QS_TALLY) {
        qs_observer_leave(o, t);
    } else if (o->most > 0) {
        o->bins[QS_SIDE] += take_zeros(t->count, t);
        take_wide(o->bins + first, t->count + first, n);
        o->most = 0;
    }
}

/* Moves the table of an observer to the tally, from which a flush adds it to wide counters. */
static void make_wide(qsim_observer *o, qs_tally *t) {
    qs_count_waiting(t);
    memcpy(t->count, o->bins, sizeof(t->count));
    memset(o->bins, 0, sizeof(t->count));
    o->form = QS_WIDE;
    o->bins[QS_SIDE] = o->zeros;
    o->zeros = 0;
}

/*
 * Empties the table that is counted in, unless it is the observer's and no counter is half full.
 * The tally's has nothing then.
 */
static void make_room(qsim_observer *o, qs_tally *t, const qs_reads *reads) {
    if (o->form == QS_TALLY) {
        uint16_t *table = (uint16_t *)o->bins;
        qs_count_waiting(t);
        t->zeros = take_zeros(table, t);
        o->most = reads->add_table(table, t->count, 2 * QS_SIDE) + 1U;
        if (o->most <= UINT16_MAX / 2)
            return;
        make_wide(o, t);
    }
    qs_observer_flush(o, t);
}

/* Finds the bins of a part, and counts those of the previous part meanwhile. */
static void count_part(qsim_observer *o, qs_tally *t, const qs_reads *reads, const qs_values *v) {
    if (o->most > UINT16_MAX - QS_PART)
        make_room(o, t, reads);
    uint16_t *at = t->at[t->turn ^= 1];
    size_t found = v->found;
    if (found == QS_NOT_FOUND)
        found = find_bins(reads, v->x, v->count, o->exponent, at, &t->waiting);
    qs_count_waiting(t);
    t->zeros += v->count - found;
    t->waiting.at = at;
    t->waiting.left = found;
    t->waiting.count = o->form == QS_TALLY ? (uint16_t *)o->bins : t->count;
    o->most += (uint32_t)found + 1;
}

static void list_part(qsim_observer *o, qs_tally *t, const qs_reads *reads, const qs_values *v) {
    uint16_t *list = (uint16_t *)o->bins + o->listed;
    assert(o->listed + v->count <= QS_LISTED);
    size_t found = v->found;
    if (found == QS_NOT_FOUND)
        found = find_bins(reads, v->x, v->count, o->exponent, list, &t->waiting);
    else
        memcpy(list, t->at[t->turn ^ 1], found * sizeof(*list));
    o->listed += found;
}

int qs_observer_add(qsim_observer *o, qs_tally *t, const qs_reads *reads, const qs_values *v) {
    qs_values part = *v;
    if (o->count > UINT64_MAX - v->count)
        return QSIM_E_LIMIT;
    const float low = o->count > 0 && o->min < v->min ? o->min : v->min;
    const float high = o->count > 0 && o->max > v->max ? o->max : v->max;
    if (qs_histogram_exponent(low, high, o->bits) > o->exponent) {
        if (o->form == QS_TALLY && o->count > 0 && o->bins)
            make_wide(o, t);
        qs_observer_flush(o, t);
        part.found = QS_NOT_FOUND;
    }
    int code = qs_observer_include(o, v->min, v->max);
    o->count += code ? 0 : v->count;
    for (size_t i = 0; !code && o->bins && i < v->count; i += QS_PART) {
        part.x = v->x + i;
        part.count = v->count - i < QS_PART ? v->count - i : QS_PART;
        (o->form == QS_LIST ? list_part : count_part)(o, t, reads, &part);
    }
    return code;
}

/* ---- sums ---- */

#define ABREAST 4 /* sums at a time, since an addition waits for the one before it */

/* sum[i * step] gets the values of run i, of n values each, one after the other. */
static void add_runs(const float *x, size_t runs, size_t n, qs_exact *sum, size_t step) {
    for (size_t i = 0; i < runs; i += ABREAST) {
        const size_t last = runs - i < ABREAST ? runs - i - 1 : ABREAST - 1;
        const float *a = x + i * n, *b = a + (last > 0 ? n : 0), *c = a + (last > 1 ? 2 * n : 0),
                    *d = a + last * n;
        double part[ABREAST] = {0};
        for (size_t j = 0; last == 0 && j < n; j++)
            part[0] += (double)a[j];
        for (size_t j = 0; last > 0 && j < n; j++) {
            part[0] += (double)a[j];
            part[1] += (double)b[j];
            part[2] += (double)c[j];
            part[3] += (double)d[j];
        }
        for (size_t k = 0; k <= last; k++)
            qs_exact_add(&sum[(i + k) * step], part[k]);
    }
}

void qs_read_planes(const float *x, size_t planes, size_t n, qs_exact *sum) {
    const size_t whole = n / QS_READ_BLOCK, rest = n % QS_READ_BLOCK;
    if (whole == 0)
        add_runs(x, planes, n, sum, 1);
    for (size_t c = 0; whole > 0 && c < planes; c++) {
        add_runs(x + c * n, whole, QS_READ_BLOCK, &sum[c], 0);
        add_runs(x + c * n + whole * QS_READ_BLOCK, rest > 0, rest, &sum[c], 0);
    }
}

/* ---- sums of histograms ---- */

static void add_bins(uint64_t *restrict into, const uint64_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        into[i] += from[i];
}

/* Counts in the bins of `into` those of `from`, of the same width. */
static void add_counts(const qsim_observer *into, const qsim_observer *from) {
    const int32_t below = qs_observer_below(from), above = qs_observer_above(from);
    const size_t first = (size_t)(QS_SIDE - below), n = (size_t)(below + above);
    if (from->form == QS_NARROW)
        add_narrow(into->bins + first, (const uint16_t *)from->bins + first, n);
    else
        add_bins(into->bins + first, from->bins + first, n);
}

void qs_observer_settle(const qsim_observer *o) {
    qsim_observer *r = o->recent;
    if (!r || r->count == 0)
        return;
    r->min = o->min;
    r->max = o->max;
    r->exponent = o->exponent;
    add_counts(o, r);
    qs_observer_reset(r);
}

static void set_list_aside(const qsim_observer *into, const qsim_observer *from) {
    qsim_observer *r = into->recent;
    uint16_t *count = (uint16_t *)r->bins;
    const size_t n = from->listed;
    qs_waiting list = {(const uint16_t *)from->bins, n, count};
    if (r->most + n > UINT16_MAX)
        qs_observer_settle(into);
    count_all(&list);
    into->bins[QS_SIDE] += from->count - n;
    for (size_t i = 2 * QS_SIDE; i < QS_TABLE; i++) {
        into->bins[QS_SIDE] += count[i];
        count[i] = 0;
    }
    r->form = QS_NARROW;
    r->most += (uint32_t)n;
    r->count += n;
}

static void subtract(uint16_t *restrict from, const uint16_t *restrict x, size_t n) {
    for (size_t i = 0; i < n; i++)
        from[i] = (uint16_t)(from[i] - x[i]);
}

/*
 * Adds the table of `from` to the recent counters; but zeros, of which there are many after a ReLU,
 * to the others. If a counter may be full, takes the table back to add it to none.
 */
static void set_table_aside(const qsim_observer *into, const qsim_observer *from,
                            const qs_reads *reads) {
    qsim_observer *r = into->recent;
    const uint16_t *a = (const uint16_t *)from->bins;
    assert(reads); /* no observer of a caller of qsim_observer_merge has that form */
    const int32_t below = qs_observer_below(from);
    const size_t first = (size_t)(QS_SIDE - below), n = (size_t)(below + qs_observer_above(from));
    uint16_t *to = (uint16_t *)r->bins + first;
    const uint64_t zeros = from->zeros + qs_table_zeros(a);
    into->bins[QS_SIDE] += zeros;
    uint16_t most = reads->add_table(to, a + first, n);
    if (most == UINT16_MAX && r->count > 0) {
        subtract(to, a + first, n);
        qs_observer_settle(into);
        most = reads->add_table(to, a + first, n);
    }
    r->most = most > r->most ? most : r->most;
    r->form = QS_NARROW;
    r->count += from->count - zeros;
}

int qs_observer_merge(qsim_observer *into, const qsim_observer *from, const qs_reads *reads) {
    int code = qs_observer_reserve(into, from);
    if (code || from->count == 0)
        return code;
    code = qs_observer_include(into, from->min, from->max);
    if (code)
        return code;
    int32_t shift = into->exponent - from->exponent;
    shift = shift > 30 ? 30 : shift;
    if (into->bins && !from->bins)
        into->bins[QS_SIDE] += from->count;
    into->count += from->count;
    if (!into->bins || !from->bins)
        return QSIM_OK;
    qs_observer_settle(from);
    if (shift != 0)
        qs_observer_add_widened(into, from, shift);
    else if (from->form == QS_LIST)
        set_list_aside(into, from);
    else if (from->form == QS_TALLY)
        set_table_aside(into, from, reads);
    else
        add_counts(into, from);
    return QSIM_OK;
}

int qsim_observer_merge(qsim_observer *into, const qsim_observer *from) {
    return into && from ? qs_observer_merge(into, from, NULL) : QSIM_E_ARGUMENT;
}
