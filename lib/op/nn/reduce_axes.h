/* SPDX-License-Identifier: MIT */
/* Reductions over axes: offsets of one output's elements, and the functions that reduce them. */
#ifndef QS_REDUCE_AXES_H
#define QS_REDUCE_AXES_H

#include "op/rules.h"

#include "kernel/ew.h"

typedef enum qs_reduce_kind {
    QS_REDUCE_MEAN,
    QS_REDUCE_SUM,
    QS_REDUCE_L1,         /* sum of magnitudes */
    QS_REDUCE_SUM_SQUARE, /* sum of x² */
    QS_REDUCE_L2,         /* its square root */
    QS_REDUCE_LOG_SUM,    /* log of the sum */
    QS_REDUCE_LOG_SUM_EXP,
    QS_REDUCE_PROD,
    QS_REDUCE_MAX,
    QS_REDUCE_MIN,
} qs_reduce_kind;

struct qs_reduce;
/*
 * Computes outputs from their elements, the first of which is at x. Those of n outputs lie side by
 * side, or run by run (qs_reduce_is_run): returns how many of these it has computed, 1 at least.
 */
typedef size_t (*qs_reduce_fn)(const struct qs_reduce *p, const qsim_ctx *ctx, const void *x,
                               void *y, size_t n);

/* The reduced elements as `count` rows of `inner` elements that are `step` apart. */
typedef struct qs_reduce_rows {
    size_t count, inner, step;
} qs_reduce_rows;

/* Sizes and strides of the kept axes (one index per output) and of the reduced axes. */
typedef struct qs_reduce {
    qs_reduce_kind kind;
    int32_t dtype;
    size_t bytes; /* of an element */
    qs_reduce_fn fn;
    size_t outputs, count;
    int32_t kept, reduced;
    size_t kept_dims[QSIM_MAX_RANK], kept_strides[QSIM_MAX_RANK];
    size_t dims[QSIM_MAX_RANK], strides[QSIM_MAX_RANK]; /* merged */
    qs_reduce_rows rows;
} qs_reduce;

/* Computes all outputs of x, with the context's threads (op_reduce.c). */
void qs_reduce_run(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y);

/* Offset of element i, by dims and strides. */
static inline size_t qs_reduce_offset(size_t i, int32_t n, const size_t *dims,
                                      const size_t *strides) {
    size_t at = 0;
    for (int32_t k = n - 1; k > 0; k--) {
        at += i % dims[k] * strides[k];
        i /= dims[k];
    }
    return n ? at + i * strides[0] : 0;
}

/* Whether the elements of an output lie end to end. */
static inline bool qs_reduce_is_run(const qs_reduce *p) {
    return p->reduced == 1 && p->strides[0] == 1;
}

/* Offset of a row of reduced elements. */
static inline size_t qs_reduce_row_at(const qs_reduce *p, size_t row) {
    return p->reduced ? qs_reduce_offset(row, p->reduced - 1, p->dims, p->strides) : 0;
}

/*
 * Float: sums are trees over 16 lanes, lane = i mod 16; products are in order. An extreme of equals
 * is the first of them, which tells -0 from +0; of NaNs one.
 */
size_t qs_reduce_f32(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y, size_t n);
/* Double: in order. */
size_t qs_reduce_f64(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y, size_t n);
/*
 * Integers and bool: sums and products wrap around at the type's width; means, roots and logarithms
 * lose their fraction.
 */
size_t qs_reduce_int(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y, size_t n);

#endif
