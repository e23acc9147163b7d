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
 * x / w is exact in float too, unless the bins are wider than 1, when the least values would
 * underflow, or narrower than a float can invert.
 */
static size_t find_bins(const qs_reads *reads, const float *x, size_t n, int32_t exponent,
                        uint16_t *at, qs_waiting *w) {
    const uint32_t word = (uint32_t)(127 - exponent) << 23; /* of 2^-exponent */
    float inverse;
    if (exponent <= 0 && exponent >= -126) {
        memcpy(&inverse, &word, sizeof(inverse));
        return reads->bins(x, n, inverse, at, w);
    }
    for (size_t i = 0; i < n; i++)
        at[i] = (uint16_t)(QS_SIDE + qs_histogram_index(x[i], exponent));
    return n;
}

/* Counts all waiting bins. */
static void count_waiting(qs_tally *t) {
    qs_waiting w = t->waiting;
    while (w.left >= 4)
        qs_count_some(&w, 1);
    for (; w.left > 0; w.left--)
        w.count[(w.left & 1) * QS_TABLE + *w.at++]++;
    t->waiting = w;
}

static __attribute__((noinline)) void add_narrow(uint64_t *restrict into,
                                                 const uint16_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        into[i] += from[i];
}

_Static_assert(QS_TALLIES == 2, "both are summed");

/* into[i] += a[i] + b[i]; a[i] = b[i] = 0. */
static __attribute__((noinline)) void take_wide(uint64_t *restrict into, uint16_t *restrict a,
                                                uint16_t *restrict b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        into[i] += (uint16_t)(a[i] + b[i]);
        a[i] = b[i] = 0;
    }
}

void qs_observer_flush(qsim_observer *o, qs_tally *t) {
    const size_t first = (size_t)(QS_SIDE - qs_observer_below(o));
    const size_t n = (size_t)(QS_SIDE + qs_observer_above(o)) - first;
    uint16_t *table = (uint16_t *)o->bins;
    if (t->most == 0)
        return;
    count_waiting(t);
    const uint64_t zeros = qs_tally_zeros(t);
    if (o->form == QS_TALLY) {
        table[QS_SIDE] = (uint16_t)(table[QS_SIDE] + zeros);
    } else {
        take_wide(o->bins + first, t->count[0] + first, t->count[1] + first, n);
        o->bins[QS_SIDE] += zeros;
    }
    t->most = 0;
}

/* Finds the bins of a part, and counts those of the previous part meanwhile. */
static void count_part(qsim_observer *o, qs_tally *t, const qs_reads *reads, const float *x,
                       size_t n) {
    if (t->most > UINT16_MAX - QS_PART)
        qs_observer_flush(o, t);
    uint16_t *at = t->at[t->turn ^= 1];
    t->waiting.count = o->form == QS_TALLY ? (uint16_t *)o->bins : t->count[0];
    const size_t count = find_bins(reads, x, n, o->exponent, at, &t->waiting);
    count_waiting(t);
    t->zeros += n - count;
    t->waiting.at = at;
    t->waiting.left = count;
    t->most += (uint32_t)count + 1;
}

static void list_part(qsim_observer *o, const qs_reads *reads, const float *x, size_t n) {
    qs_waiting none = {NULL, 0, NULL};
    uint16_t *list = (uint16_t *)o->bins + o->listed;
    assert(o->listed + n <= QS_LISTED);
    o->listed += find_bins(reads, x, n, o->exponent, list, &none);
}

int qs_observer_add(qsim_observer *o, qs_tally *t, const qs_reads *reads, const float *values,
                    size_t count, float min, float max) {
    if (o->count > UINT64_MAX - count)
        return QSIM_E_LIMIT;
    const float low = o->count > 0 && o->min < min ? o->min : min;
    const float high = o->count > 0 && o->max > max ? o->max : max;
    if (qs_histogram_exponent(low, high, o->bits) > o->exponent)
        qs_observer_flush(o, t);
    int code = qs_observer_include(o, min, max);
    o->count += code ? 0 : count;
    for (size_t i = 0; !code && o->bins && i < count; i += QS_PART) {
        const size_t n = count - i < QS_PART ? count - i : QS_PART;
        if (o->form == QS_LIST)
            list_part(o, reads, values + i, n);
        else
            count_part(o, t, reads, values + i, n);
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

/*
 * Counts the bins in the list of `from`, first in narrow counters, which the first-level cache
 * holds; from four places of the list in turns, since neighbours are often in one bin, and an
 * increment waits for the previous one of the same counter.
 */
static void add_list(uint64_t *restrict bins, const qsim_observer *from) {
    const uint16_t *restrict list = (const uint16_t *)from->bins;
    const size_t n = from->listed, step = n / 4;
    uint16_t count[QS_TABLE] = {0};
    _Static_assert(QS_RECENT <= UINT16_MAX, "a counter holds all of the longest list");
    for (size_t i = 0; i < step; i++) {
        count[list[i]]++;
        count[list[i + step]]++;
        count[list[i + 2 * step]]++;
        count[list[i + 3 * step]]++;
    }
    for (size_t i = 4 * step; i < n; i++)
        count[list[i]]++;
    add_narrow(bins, count, 2 * QS_SIDE);
    bins[QS_SIDE] += from->count - n;
    for (size_t i = 2 * QS_SIDE; i < QS_TABLE; i++)
        bins[QS_SIDE] += count[i];
}

/* into[i] += a[i] + b[i]. Returns the greatest counter of `into`. */
static __attribute__((noinline)) uint16_t add_tables(uint16_t *restrict into,
                                                     const uint16_t *restrict a,
                                                     const uint16_t *restrict b, size_t n) {
    uint16_t most = 0;
    for (size_t i = 0; i < n; i++) {
        into[i] = (uint16_t)(into[i] + a[i] + b[i]);
        most = into[i] > most ? into[i] : most;
    }
    return most;
}

static void add_bins(uint64_t *restrict into, const uint64_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        into[i] += from[i];
}

/* Counts in the bins of `into` those of `from`, of the same width. */
static void add_counts(const qsim_observer *into, const qsim_observer *from) {
    const int32_t below = qs_observer_below(from), above = qs_observer_above(from);
    const size_t first = (size_t)(QS_SIDE - below), n = (size_t)(below + above);
    if (from->form == QS_LIST)
        add_list(into->bins, from);
    else if (from->form == QS_NARROW)
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
    if (r->form != QS_LIST || r->listed + from->listed > QS_RECENT - QS_ROOM)
        qs_observer_settle(into);
    r->form = QS_LIST;
    memcpy((uint16_t *)r->bins + r->listed, from->bins, from->listed * sizeof(uint16_t));
    r->listed += from->listed;
    r->count += from->count;
}

/*
 * Adds the tables of `from` to the recent counters; but bin 0, which has most values after a ReLU
 * and would soon be full, to the others.
 */
static void set_tables_aside(const qsim_observer *into, const qsim_observer *from) {
    qsim_observer *r = into->recent;
    uint16_t *to = (uint16_t *)r->bins + QS_SIDE;
    const uint16_t *a = (const uint16_t *)from->bins + QS_SIDE, *b = a + QS_TABLE;
    const size_t below = (size_t)qs_observer_below(from), above = (size_t)qs_observer_above(from);
    uint64_t zeros = (uint64_t)a[0] + b[0];
    for (size_t i = QS_SIDE; i < QS_SIDE + QS_ZEROS; i++)
        zeros += (uint64_t)a[i] + b[i];
    if (r->form != QS_NARROW || r->most + from->count - zeros > UINT16_MAX)
        qs_observer_settle(into);
    r->form = QS_NARROW;
    r->count += from->count - zeros;
    into->bins[QS_SIDE] += zeros;
    const uint16_t low = add_tables(to - below, a - below, b - below, below);
    const uint16_t high = add_tables(to + 1, a + 1, b + 1, above > 0 ? above - 1 : 0);
    r->most = low > r->most ? low : r->most;
    r->most = high > r->most ? high : r->most;
}

int qsim_observer_merge(qsim_observer *into, const qsim_observer *from) {
    if (!into || !from)
        return QSIM_E_ARGUMENT;
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
        set_tables_aside(into, from);
    else
        add_counts(into, from);
    return QSIM_OK;
}
