/* SPDX-License-Identifier: MIT */
/*
 * The histogram of a qsim_observer. Its state depends only on the set of its values:
 *
 *   exponent   from the greatest magnitude alone (qs_histogram_exponent); bin width w = 2^exponent
 *   below      bins under zero: ceil(-min / w);  above: bins from zero on: floor(max / w) + 1
 *   bin i      counts values with floor(x / w) = i, -below <= i < above
 *
 * Halving an index by an arithmetic shift is floor(floor(x / w) / 2) = floor(x / 2w), so that
 * widening gives the counts of wider bins.
 */
#ifndef QS_OBSERVER_H
#define QS_OBSERVER_H

#include "base/base.h"
#include "quant/exact_sum.h"

#include <qsim/quant.h>

#define QS_BITS         11
#define QS_LEAST_BITS   7
#define QS_SIDE         (1 << QS_BITS) /* most bins on either side of zero */
#define QS_MIN_EXPONENT (-160)         /* of all zeros; the least float, 2^-149, needs no less */

struct qsim_observer {
    qsim_ctx *ctx;
    uint64_t *bins; /* 2 * QS_SIDE counters; bin i at bins[QS_SIDE + i]; NULL: nothing but zeros */
    uint64_t count;
    float min, max;
    int32_t exponent;
    int32_t bits; /* 2^bits bins on either side of zero, QS_BITS at the most */
    int32_t form; /* what the memory of `bins` holds: QS_WIDE, except in a batch */
    size_t listed;
    uint64_t zeros; /* in a table: values of bin 0 that none of its counters has */
    uint32_t most;  /* no counter is greater of the table that is counted in; 0: none was */
    /*
     * Merged values that are not in `bins` yet, in another form than QS_WIDE and with the same
     * exponent; NULL: none. Adding to it touches less memory than adding to `bins`.
     */
    qsim_observer *recent;
};
/* Counters in uint64_t. */
#define QS_WIDE 0
/* Counters in uint16_t, QS_TABLE of them, of `recent`. */
#define QS_NARROW 1
/* No counters, but the bins of `listed` values in uint16_t; the other values are zeros. */
#define QS_LIST 2
/*
 * The table of a qs_tally, in which kernels count at once: nothing is copied before a merge. It
 * becomes QS_WIDE before a counter is full.
 */
#define QS_TALLY 3

/* The exponent for these extremes, with 2^bits bins on either side. */
int32_t qs_histogram_exponent(float min, float max, int32_t bits);
/* Index of the bin that x falls into: exact, since a power of two changes no digits. */
static inline int32_t qs_histogram_index(float x, int32_t exponent) {
    const uint64_t bits = (uint64_t)(1023 - exponent) << 52; /* of 2^-exponent, a normal number */
    double inverse;
    memcpy(&inverse, &bits, sizeof(inverse));
    const double v = (double)x * inverse;
    const int32_t index = (int32_t)v;
    return index - (v < (double)index);
}
/* The index of bin `at` of a table after bins are widened by 2^shift; zeros have that of bin 0. */
static inline size_t qs_histogram_widened(size_t at, int32_t shift) {
    return at < 2 * QS_SIDE ? (size_t)(QS_SIDE + (((int32_t)at - QS_SIDE) >> shift)) : QS_SIDE;
}
/*
 * Sets the exponent of an empty observer in advance: an observer that will be merged into another
 * with this exponent then need not widen its bins several times.
 */
static inline void qs_observer_expect(qsim_observer *o, int32_t exponent) {
    o->exponent = o->count == 0 && exponent > o->exponent ? exponent : o->exponent;
}

int32_t qs_observer_below(const qsim_observer *o);
int32_t qs_observer_above(const qsim_observer *o);

/* Finds *bits, the logarithm of the option `bins`; 0 bins: the most. Errors: ARGUMENT. */
int qs_observer_bits(int32_t bins, int32_t *bits, qsim_error *error);
/* qsim_observer_create with 2^bits bins on either side. */
int qs_observer_create(qsim_ctx *ctx, int32_t bits, qsim_observer **out, qsim_error *error);
/* Resets an observer to its initial state; keeps the memory of its bins. */
void qs_observer_reset(qsim_observer *o);
/* Counts in the bins of `into` those of `from`, which are narrower by 2^-shift. */
void qs_observer_add_widened(const qsim_observer *into, const qsim_observer *from, int32_t shift);
/* Counts in `bins` what is in `recent`. */
void qs_observer_settle(const qsim_observer *o);
/* Adds new extremes and widens the bins for them; allocates them. Errors: NOMEM. */
int qs_observer_include(qsim_observer *o, float min, float max);

/* Allocates what merging `from` needs, so that it cannot fail. Errors: NOMEM, MISMATCH, LIMIT. */
int qs_observer_reserve(qsim_observer *into, const qsim_observer *from);

/*
 * Counts that are not yet in an observer's bins. An increment of a counter waits for the previous
 * increment of the same counter, so zeros, of which a ReLU makes many, are counted in QS_ZEROS bins
 * of their own. Other neighbours are mostly of different channels.
 */
#define QS_ZEROS 8
#define QS_TABLE (2 * QS_SIDE + QS_ZEROS)
/* Number of values whose bins are found at a time: few calls, and bins stay in the caches. */
#define QS_PART 8192
#define QS_ROOM 32 /* bins that kernels may write beyond those that they find */

/*
 * Bins that are found but not yet counted. Counting is a store, of which a core makes one a cycle:
 * kernels count some of these bins after each vector, so that stores and arithmetic overlap.
 */
typedef struct qs_waiting {
    const uint16_t *at;
    size_t left;
    uint16_t *count; /* a table */
} qs_waiting;

/* `at` is first: each vector of bins is one cache line, as long as kernels leave out none. */
typedef struct qs_tally {
    uint16_t at[2][QS_PART + QS_ROOM]; /* the waiting bins, and those that are being found */
    uint16_t count[QS_TABLE];          /* narrow: it stays in the first-level cache */
    qs_waiting waiting;
    uint64_t zeros; /* and others of bin 0 that kernels left out */
    uint32_t turn;  /* index in `at` of the waiting bins */
} qs_tally;

/* Counts 4 * groups of the waiting bins, or none if fewer wait: one branch for all of them. */
static inline __attribute__((always_inline)) void qs_count_some(qs_waiting *w, size_t groups) {
    if (w->left < 4 * groups)
        return;
#pragma GCC unroll 2
    for (size_t i = 0; i < 4 * groups; i += 4) {
        w->count[w->at[i]]++;
        w->count[w->at[i + 1]]++;
        w->count[w->at[i + 2]]++;
        w->count[w->at[i + 3]]++;
    }
    w->at += 4 * groups;
    w->left -= 4 * groups;
}

/*
 * A read of rows >= 1 of channels side by side. `sum` NULL: of values that are of no channels,
 * whose sums and extremes are not wanted.
 */
typedef struct qs_row_read {
    const float *x;
    size_t rows, channels;
    double *sum;    /* sum[c] += x[i, c] for one row after the other */
    float *extreme; /* grow to the extremes of a channel: extreme[c], extreme[channels + c] */
    float min, max; /* results: the extremes of all values, -0 taken as 0 */
    float inverse;  /* of the width of bins */
    uint16_t *at;   /* gets the values' bins, as by `bins`; NULL: none are wanted */
    size_t found;   /* result: their number, or QS_NOT_FOUND */
} qs_row_read;
#define QS_NOT_FOUND SIZE_MAX

/* The loops of observers (observer_loops.h) for an instruction set (kernel/ew.h). */
typedef struct qs_reads {
    /*
     * Finds the extremes of n >= 1 values, -0 taken as 0; false if one is not finite. Counts some
     * of the waiting bins.
     */
    bool (*extremes)(const float *x, size_t n, float *min, float *max, qs_waiting *w);
    /*
     * Finds the values' indices in a tally: bin floor(x * inverse), or one of the zeros'. Returns
     * their number: zeros and others of bin 0 may be left out. `at` has room for n and
     * QS_ROOM more. Counts some of the waiting bins, which are not in `at`.
     */
    size_t (*bins)(const float *x, size_t n, float inverse, uint16_t *at, qs_waiting *w);
    /* False if a value is not finite. Counts some of the waiting bins, too. */
    bool (*rows)(qs_row_read *r, qs_waiting *w);
    qs_exact_add_fn add_sums;
    /*
     * into[i] += from[i], modulo 2^16. Returns the greatest sum, or UINT16_MAX if a greater one
     * does not fit.
     */
    uint16_t (*add_table)(uint16_t *restrict into, const uint16_t *restrict from, size_t n);
} qs_reads;

/* qsim_observer_merge; `reads`: where `from` may be in the form of a table. */
int qs_observer_merge(qsim_observer *into, const qsim_observer *from, const qs_reads *reads);
/* Finite values, whose extremes the caller has found. */
typedef struct qs_values {
    const float *x;
    size_t count;
    float min, max;
    size_t found; /* number of bins at qs_observer_place, or QS_NOT_FOUND */
} qs_values;
/*
 * Where bins of the next `count` values can be found before qs_observer_add, with which inverse, in
 * case that these values do not widen the bins; NULL: nowhere.
 */
uint16_t *qs_observer_place(const qsim_observer *o, qs_tally *t, size_t count, float *inverse);
/*
 * Adds values; with qs_observer_flush at the end the result is that of qsim_observer_feed. The
 * tally is zero before the first call and after the flush. Errors: LIMIT, NOMEM.
 */
int qs_observer_add(qsim_observer *o, qs_tally *t, const qs_reads *reads, const qs_values *v);
/*
 * Chooses the form of an empty observer that will be fed `most` values and then only be merged and
 * reset: a list if they are fewer than there are bins, else a table.
 */
#define QS_LISTED ((size_t)QS_SIDE)
static inline void qs_observer_form(qsim_observer *o, size_t most) {
    if (o->count == 0)
        o->form = most <= QS_LISTED ? QS_LIST : QS_TALLY;
}
/* The number of zeros in a table. */
uint64_t qs_table_zeros(const uint16_t *count);
void qs_observer_flush(qsim_observer *o, qs_tally *t);
/*
 * The same, except that bins may still wait for an observer in the form of a table: they are
 * counted while the tally is used for another one, or by qs_count_waiting.
 */
void qs_observer_leave(qsim_observer *o, qs_tally *t);
/* Counts all waiting bins. */
void qs_count_waiting(qs_tally *t);

/*
 * Adds planes of n values each, one after the other, to a sum for each plane: each QS_READ_BLOCK
 * values of a plane in double, in order.
 */
#define QS_READ_BLOCK 1024
void qs_read_planes(const float *x, size_t planes, size_t n, qs_exact *sum);

/* The same without waiting bins, for callers without kernels. */
bool qs_find_extremes(const float *x, size_t n, float *min, float *max);
/* Whether every value is finite, which feeding requires. */
bool qs_all_finite(const float *x, size_t n);

/* Searches of observer_search.c over a histogram with at least one value. */
void qs_search_mse(const qsim_observer *o, int32_t dtype, int32_t flags, float *low, float *high);
void qs_search_entropy(const qsim_observer *o, int32_t dtype, int32_t flags, float *low,
                       float *high);

/* Natural logarithm of a finite x > 0, to the same bits on every machine. */
double qs_logarithm(double x);

#endif
