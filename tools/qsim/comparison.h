/* SPDX-License-Identifier: MIT */
/* Two models on the same data: what qsim compare finds, and how it is shown. */
#ifndef QSIM_COMPARISON_H
#define QSIM_COMPARISON_H

#include <qsim/ptq.h>

#include "engine.h"
#include "latency.h"
#include "pages.h"
#include "taps.h"

typedef struct bounds {
    double rtol, atol;
    bool allclose;                                       /* a tolerance was given: it is a gate */
    double max_abs, min_sqnr, min_cosine, min_agreement; /* NaN: not given */
} bounds;

/* Pairs of tensors and what was found of each. */
typedef struct matched {
    taps taps;
    qsim_metrics *metrics;
} matched;

typedef struct comparison {
    const char *file[2];
    engine engine[2];
    latency time[2];
    time_ratio speed;      /* of A's time to B's */
    text why;              /* B, which is quantized, is not faster; empty: it is, or is not */
    const char *data;      /* --data, NULL: made up */
    int64_t samples, rows; /* rows: of the batch that was timed */
    matched outputs;
    /* Layers are compared in sessions of their own: giving out a tensor keeps it from being fused.
     */
    engine layer_engine[2];
    matched layers;
    bounds bounds;
    thumbs worst; /* samples by noise over signal of the first output */
} comparison;

/* Percent of rows of the first output with the same greatest element. */
double comparison_agreement(const comparison *c);
/*
 * The first layer in A's order that misses a bound, or where none was given has an SQNR under
 * 20 dB; the number of layers if there is none.
 */
size_t comparison_first_bad(const comparison *c);

/* One thing that a tensor misses; `what` NULL: nothing. */
typedef struct miss {
    const char *what;
    double value, bound;
} miss;

/* Which bounds a tensor misses: at most 4, the rest of `found` is empty. */
size_t comparison_misses(const bounds *b, const qsim_metrics *m, miss found[4]);

void comparison_print(const tool *t, const comparison *c);
void comparison_print_json(const tool *t, const comparison *c);

#endif
