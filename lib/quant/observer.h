/* SPDX-License-Identifier: MIT */
/*
 * The histogram behind qsim_observer. Its state is a function of the set of values seen:
 *
 *   exponent   from the greatest magnitude alone (qs_histogram_exponent); bin width w = 2^exponent
 *   below      bins under zero: ceil(-min / w);  above: bins from zero on: floor(max / w) + 1
 *   bin i      counts values with floor(x / w) = i, -below <= i < above
 *
 * Halving an index by an arithmetic shift is floor(floor(x / w) / 2) = floor(x / 2w), so that
 * widening gives what counting with the wider bins would have given.
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
    uint64_t *bins; /* 2 * QS_SIDE; bin i at bins[QS_SIDE + i]; NULL: nothing but zeros */
    uint64_t count;
    float min, max;
    int32_t exponent;
    int32_t bits; /* 2^bits bins on either side of zero, QS_BITS at the most */
    /*
     * In place of counts, while `lists`: the bins of so many values, as uint16_t in the memory of
     * `bins`; the others are zeros.
     */
    size_t listed;
    bool lists;
};

/* Values that a list takes: a kernel may write 16 more. */
#define QS_LISTED (2 * QS_SIDE * (sizeof(uint64_t) / sizeof(uint16_t)) - 32)

/* The exponent that goes with these extremes, with 2^bits bins on either side. */
int32_t qs_histogram_exponent(float min, float max, int32_t bits);
/* Index of the bin that x falls into. */
int32_t qs_histogram_index(float x, int32_t exponent);
/* The exponent as it would be, before any value: an observer that will be merged into one with it
 * need not widen its bins on the way there. */
static inline void qs_observer_expect(qsim_observer *o, int32_t exponent) {
    o->exponent = o->count == 0 && exponent > o->exponent ? exponent : o->exponent;
}

static inline int32_t qs_observer_below(const qsim_observer *o) {
    int32_t first = qs_histogram_index(o->min, o->exponent);
    return o->count > 0 && first < 0 ? -first : 0;
}
static inline int32_t qs_observer_above(const qsim_observer *o) {
    int32_t last = qs_histogram_index(o->max, o->exponent);
    return o->count > 0 && last >= 0 ? last + 1 : 0;
}

/* 2^*bits = bins, as options have it; 0: the most. Errors: ARGUMENT. */
int qs_observer_bits(int32_t bins, int32_t *bits, qsim_error *error);
/* qsim_observer_create with 2^bits bins on either side. */
int qs_observer_create(qsim_ctx *ctx, int32_t bits, qsim_observer **out, qsim_error *error);
/* As it was created, but for the memory of its bins. */
void qs_observer_reset(qsim_observer *o);

/* Makes merging `from` unable to fail. Errors: NOMEM, MISMATCH, LIMIT. */
int qs_observer_reserve(qsim_observer *into, const qsim_observer *from);

/*
 * Counts on their way into an observer's bins. Incrementing a counter waits for the last increment
 * of the same counter, so neighbours go to different tables, and zeros, of which a ReLU makes many,
 * have bins of their own.
 */
#define QS_TALLIES 2
#define QS_ZEROS   8
#define QS_TABLE   (2 * QS_SIDE + QS_ZEROS)
/* Values that are turned into bins at a time: they, their bins and the tables fit a first cache. */
#define QS_PART 2048

/*
 * Bins that are to be counted. A count is a store, and a core makes one a cycle: kernels count some
 * after each vector, so that stores and arithmetic overlap.
 */
typedef struct qs_waiting {
    const uint16_t *at;
    size_t left;
    uint16_t *count; /* QS_TALLIES tables */
} qs_waiting;

typedef struct qs_tally {
    uint16_t count[QS_TALLIES][QS_TABLE]; /* narrow: tables stay in the first cache */
    uint16_t at[2][QS_PART + 16];         /* bins that wait, and those that are being found */
    qs_waiting waiting;
    uint32_t turn; /* index in `at` of what waits */
    uint32_t most; /* upper bound of what a table will hold; 0: nothing is counted or waits */
} qs_tally;

/* Counts up to 4 * groups of the bins that wait. */
static inline __attribute__((always_inline)) void qs_count_some(qs_waiting *w, size_t groups) {
    uint16_t *even = w->count, *odd = even + QS_TABLE;
    for (; groups > 0 && w->left >= 4; groups--) {
        even[w->at[0]]++;
        odd[w->at[1]]++;
        even[w->at[2]]++;
        odd[w->at[3]]++;
        w->at += 4;
        w->left -= 4;
    }
}

/* The loops of a read (observer_loops.h), as an instruction set has them (kernel/ew.h). */
typedef struct qs_reads {
    /* Of n >= 1 values, -0 as 0; false if one is not finite. */
    bool (*extremes)(const float *x, size_t n, float *min, float *max);
    /*
     * Where in a tally values are counted: bin floor(x * inverse), or one of the zeros'. Returns
     * how many: zeros may be left out. `at` has room for n, rounded up to 16. Counts some of what
     * waits, which is elsewhere.
     */
    size_t (*bins)(const float *x, size_t n, float inverse, uint16_t *at, qs_waiting *w);
    /*
     * Rows >= 1 of channels side by side: sum[c] += x[i, c] for one row after the other; their
     * extremes go to extreme[c] and extreme[channels + c], those of all to *min and *max, -0 as 0.
     * False if a value is not finite. Counts some of what waits, too.
     */
    bool (*rows)(const float *x, size_t rows, size_t channels, double *sum, float *extreme,
                 float *min, float *max, qs_waiting *w);
} qs_reads;

/*
 * Takes in finite values, whose extremes the caller has found. With qs_observer_flush at the end
 * it does what qsim_observer_feed does. The tally is all zero at first, and counts nothing
 * afterwards. Errors: LIMIT, NOMEM.
 */
int qs_observer_take(qsim_observer *o, qs_tally *t, const qs_reads *reads, const float *values,
                     size_t count, float min, float max);
/* An empty observer that is fed QS_LISTED values at the most lists them until it is merged. */
static inline void qs_observer_list(qsim_observer *o) {
    o->lists = o->count == 0;
}
void qs_observer_flush(qsim_observer *o, qs_tally *t);

/*
 * Adds planes of n values each, one after the other, to a sum for each plane: each QS_READ_BLOCK
 * values of a plane in double, in order.
 */
#define QS_READ_BLOCK 1024
void qs_read_planes(const float *x, size_t planes, size_t n, qs_exact *sum);

/* Whether every value is finite, as feeding demands. */
bool qs_all_finite(const float *x, size_t n);

/* Searches of observer_search.c over a histogram with at least one value. */
void qs_search_mse(const qsim_observer *o, int32_t dtype, int32_t flags, float *low, float *high);
void qs_search_entropy(const qsim_observer *o, int32_t dtype, int32_t flags, float *low,
                       float *high);

/* Natural logarithm of a finite x > 0, to the same bits on every machine. */
double qs_logarithm(double x);

#endif
