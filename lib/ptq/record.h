/* SPDX-License-Identifier: MIT */
/*
 * A calibration's statistics of one tensor: histogram, means and extremes of its channels, and the
 * samples that have its extremes. Except for the numbers of samples they do not depend on the order
 * in which parts of the data are observed and merged.
 */
#ifndef QS_RECORD_H
#define QS_RECORD_H

#include "base/base.h"
#include "quant/exact_sum.h"
#include "quant/observer.h"

/* Sums over all positions (samples and pixels) and extremes, by channel. */
typedef struct qs_means {
    int32_t axis; /* of the channels in the model's layout; -1: no means are kept */
    size_t channels;
    uint64_t positions;
    qs_exact *sum;  /* by channel; NULL: no values yet; without what is in `recent` */
    double *recent; /* 2 * channels: sums of blocks, qs_exact_add_each's high, then low */
    bool aside;     /* all of it is in `recent` */
    bool alone;     /* and that is a batch's only block: the second half is 0 */
    float *extreme; /* the least value of each channel, then the greatest */
    bool bare;      /* without extremes: loaded from a file that has none */
} qs_means;

/* The greatest value of all samples, the sample that has it, and the greatest of the others. */
typedef struct qs_top {
    float value, next; /* -infinity: there is none */
    int64_t sample;    /* -1: not known, from a file */
} qs_top;

typedef struct qs_record {
    qsim_observer *observer;
    qs_means means;
    qs_top high, low; /* low: of the negated values */
} qs_record;

int qs_record_create(qsim_ctx *ctx, int32_t bits, qs_record *r);
void qs_record_free(qsim_ctx *ctx, qs_record *r);
/* Resets a record to its initial state; keeps its memory. */
void qs_record_reset(qs_record *r);
void qs_top_add(qs_top *top, float value, int64_t sample);
/* Allocates what merging `from` needs, so that it cannot fail. Errors: NOMEM, MISMATCH, LIMIT. */
int qs_record_reserve(qsim_ctx *ctx, qs_record *into, const qs_record *from);
/*
 * Adds the statistics of `from`, whose first sample now has number `first`; after
 * qs_record_reserve.
 */
void qs_record_merge(qs_record *into, const qs_record *from, int64_t first, const qs_reads *reads);
/* The same without means and extremes of channels; after qs_observer_reserve. */
void qs_record_merge_values(qs_record *into, const qs_record *from, int64_t first,
                            const qs_reads *reads);
/* Adds the sums of `from`. The first `channels` of either are used, and 2 * channels of `recent`.
 */
void qs_means_merge(qs_means *into, const qs_means *from, size_t channels, const qs_reads *reads);
/* Sets the extremes of channels to those of no values. */
void qs_extremes_reset(float *extreme, size_t channels);
void qs_extremes_merge(float *into, const float *from, size_t channels);
/*
 * Allocates the sums of `channels` channels, all 0, if there are none; MISMATCH: their number
 * differs.
 */
int qs_means_reserve(qsim_ctx *ctx, qs_means *m, size_t channels);
void qs_means_free(qsim_ctx *ctx, const qs_means *m);
/* The sum of a channel. */
qs_exact qs_means_sum(const qs_means *m, size_t channel);
/* The mean of a channel, which has values. */
double qs_means_mean(const qs_means *m, size_t channel);

/* ---- watching (watch.c) ---- */

/* Scratch memory of each thread. */
struct qs_watch_part;

typedef struct qs_watch {
    qsim_ctx *ctx;
    int32_t bits;
    struct qs_watch_part *parts; /* one for each thread of ctx */
    size_t part_count;
} qs_watch;

int qs_watch_create(qsim_ctx *ctx, int32_t bits, qs_watch *w);
void qs_watch_free(qs_watch *w);

/* A float tensor in memory: [samples, outer, channels, inner]. */
typedef struct qs_watched {
    const float *x;
    size_t samples, outer, channels, inner;
    bool means;   /* of the channels, too */
    bool counted; /* in a histogram */
    bool repeats; /* a batch may make the tensor several times */
} qs_watched;

/*
 * Records a tensor in one read, split over the context's threads. Errors: VALUE (a NaN or an
 * infinity), LIMIT, NOMEM, MISMATCH (another number of channels than before); the record then has
 * to be reset.
 */
int qs_watch_tensor(qs_watch *w, const qs_watched *t, qs_record *r);
/*
 * Completes the records, before they are used or reset: the last values of a tensor may have been
 * left to be counted during the read of the next one.
 */
void qs_watch_end(qs_watch *w);

#endif
