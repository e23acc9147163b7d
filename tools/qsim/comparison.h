/* SPDX-License-Identifier: MIT */
/* Results of qsim compare, for two models on the same data, and their report. */
#ifndef QSIM_COMPARISON_H
#define QSIM_COMPARISON_H

#include "engine.h"
#include "latency.h"
#include "pages.h"
#include "tensor_pairs.h"

typedef struct bounds {
    double rtol, atol;
    bool allclose; /* rtol or atol is given: they are bounds */
    double max_abs, min_sqnr, min_cosine, min_agreement; /* NaN: not given */
} bounds;

typedef struct comparison {
    const char *file[2];
    engine engine[2];
    latency time[2];
    time_ratio speed;      /* A's time over B's */
    text why;              /* why quantized B is not faster; empty if it is */
    const char *data;      /* --data, NULL: made up data */
    int64_t samples, rows; /* rows: samples of the batch that was timed */
    tensor_pairs outputs;
    /* Layers are compared in sessions of their own, since an output is never fused away. */
    engine layer_engine[2];
    tensor_pairs layers;
    bounds bounds;
    thumbs worst; /* samples with the highest ratio of noise to signal in the first output */
} comparison;

/*
 * The first layer, in A's order, that misses a bound or, without bounds, has an SQNR under 20 dB;
 * the number of layers if there is none.
 */
size_t comparison_first_bad(const comparison *c);

/* A bound that a tensor misses; `what` NULL: none. */
typedef struct miss {
    const char *what;
    double value, bound;
} miss;

/* The bounds that a tensor misses, at most 4; the rest of `found` is empty. */
size_t comparison_misses(const bounds *b, const qsim_metrics *m, miss found[4]);

/* Whether outputs, of which the first one has the classes, miss a bound; prints each that does. */
bool comparison_fails(const char *file, const tensor_pairs *outputs, const bounds *b);

void comparison_print(const tool *t, const comparison *c);
void comparison_print_json(const tool *t, const comparison *c);

#endif
