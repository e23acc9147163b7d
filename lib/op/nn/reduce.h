/* SPDX-License-Identifier: MIT */
/* Reductions in one defined order, the same with every instruction set. */
#ifndef QS_REDUCE_H
#define QS_REDUCE_H

#include "graph/graph.h"

struct qk_norm;

/*
 * The tree of sums: 16 lanes (lane = i mod 16), each in order, then 8-4-2-1. In parts: qs_tree_add
 * of each part to lanes that are 0 at first, then qs_reduce_fold. All parts but the last have a
 * multiple of 16 numbers.
 */
void qs_tree_add(const float *x, size_t n, float lanes[16]);
float qs_reduce_fold(const float lanes[16]);

/*
 * Longer sums are those of the trees of blocks of so many terms, added in order. In one tree a lane
 * would add thousands of terms to a sum far greater than they are: of 1920 x 1080 equal numbers the
 * mean would be off by up to 0.1 %.
 */
#define QS_SUM_BLOCK ((size_t)1 << 14)

/* The sums of x[i], and of (x[i] - mean)^2, contiguous; end early where the run is stopped. */
float qs_row_sum(const qsim_ctx *ctx, const float *x, size_t n);
float qs_row_squares(const qsim_ctx *ctx, const float *x, float mean, size_t n);
/* The kernel's `normalize`; rows of more than a block in pieces. */
void qs_normalize(const qsim_ctx *ctx, const struct qk_norm *how, const float *x, float *y,
                  size_t n, size_t rows);

/* exp(x - max) over its sum; n >= 1. x and y may be the same. */
void qs_softmax_row(const qsim_ctx *ctx, const float *x, float *y, size_t n);
/* The same for contiguous rows. */
void qs_softmax_rows(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows);

/* `outer` times `inner` softmaxes of `count` elements that are `inner` apart. */
typedef struct qs_softmax_shape {
    size_t outer, count, inner;
} qs_softmax_shape;

/* The shape of a softmax over axes `axis` to `last` of x, counted as one axis. */
qs_softmax_shape qs_softmax_split(const qs_value *x, int32_t axis, int32_t last);

#endif
