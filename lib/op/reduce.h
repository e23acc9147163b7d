/* SPDX-License-Identifier: MIT */
/* Reductions in one written order, whatever the instruction set. */
#ifndef QS_REDUCE_H
#define QS_REDUCE_H

#include <stddef.h>

#include <qsim/base.h>

/* Sum of x[0], x[step], …: 16 lanes (lane = i mod 16), each in order, then 8-4-2-1. */
float qs_tree_sum(const float *x, size_t n, size_t step);

/* exp(x - max) over its sum; n >= 1. x and y may be the same. */
void qs_softmax_row(const qsim_ctx *ctx, const float *x, float *y, size_t n);

#endif
