/* SPDX-License-Identifier: MIT */
/* Two operands broadcast over a result, and a function applied to its rows. */
#ifndef QS_BROADCAST_H
#define QS_BROADCAST_H

#include "graph/graph.h"

/* Strides of `v` in elements over the axes of a result of rank `rank`; 0: broadcast. */
void qs_broadcast_strides(const qs_value *v, int32_t rank, size_t *strides);

/*
 * Two operands broadcast over an output, as `rows` rows of `inner` elements; axes that can be
 * merged in both are merged. Strides are in elements; inner ones are 0 or 1.
 */
typedef struct qs_loops {
    int32_t rank; /* of the outer loops */
    size_t rows, inner, inner_a, inner_b;
    size_t dims[QSIM_MAX_RANK], a[QSIM_MAX_RANK], b[QSIM_MAX_RANK];
} qs_loops;

void qs_loops_make(qs_loops *l, const qs_value *a, const qs_value *b, const qs_value *y);
/* Offsets of row `row` in a and b, in elements. */
void qs_loops_offsets(const qs_loops *l, size_t row, size_t *a, size_t *b);

/* y[i] = f(a[i * inner_a], b[i * inner_b]) for n elements: a row, a part of one, or several rows.
 */
typedef void (*qs_broadcast_fn)(const void *arg, const void *a, const void *b, void *y, size_t n);

typedef struct qs_broadcast {
    qs_loops loops;
    qs_broadcast_fn fn;
    size_t size_a, size_b, size_y; /* bytes of an element */
    size_t grain;                  /* elements that take about QS_SLICE_NS */
    const size_t *spread; /* strides of an operand with one number for a row; NULL: none has */
} qs_broadcast;

/*
 * If an operand has one number for each of many short rows, lets `fn` have copies of it: fn's inner
 * strides, those of `loops`, become 1.
 */
void qs_broadcast_spread(qs_broadcast *how);

/* Whether one operand, the same for several rows, is short enough to be repeated in a tile. */
bool qs_loops_repeat(const qs_loops *l, size_t size_a, size_t size_b);

/*
 * Applies fn(arg, ...) to all rows, on the context's threads. Of an operand that is the same for
 * many short rows, like one number per channel with the channels last, it lays copies side by side,
 * so that one call of `fn` computes many rows.
 */
void qs_broadcast_run(const qs_broadcast *how, const qsim_ctx *ctx, const void *a, const void *b,
                      void *y, const void *arg);

#endif
