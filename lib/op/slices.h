/* SPDX-License-Identifier: MIT */
/* Splitting the work of one step over threads. */
#ifndef QS_SLICES_H
#define QS_SLICES_H

#include "base/ctx.h"

/* Multiply-accumulates (or bytes moved) that are worth waking a thread for: some 15 us. */
#define QS_SLICE_WORK 1000000

/* How many slices `items` independent pieces of `work` altogether are cut into: 1 … threads. */
static inline size_t qs_slice_count(const qsim_ctx *ctx, size_t items, double work) {
    size_t most = ctx->threads > 0 ? (size_t)ctx->threads : 1;
    double worth = work / QS_SLICE_WORK;
    if (worth < (double)most)
        most = worth < 1.0 ? 1 : (size_t)worth;
    return items < most ? (items ? items : 1) : most;
}

/* First item of slice i of n. */
static inline size_t qs_slice_begin(size_t items, size_t n, size_t i) {
    return items / n * i + (items % n < i ? items % n : i);
}

#endif
