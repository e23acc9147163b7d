/* SPDX-License-Identifier: MIT */
/*
 * The one rule for splitting the work of a step over threads. Work is counted in nanoseconds of one
 * thread, at the rates below.
 */
#ifndef QS_SLICES_H
#define QS_SLICES_H

#include "base/ctx.h"

/*
 * The least nanoseconds of a task. Handing it to a waiting thread and seeing it done takes three
 * transfers of a cache line: 0.15 us between cores that share a cache, 0.5 us between others (of
 * 500, 700, 1000, 1500 and 2500 ns this was the best on small networks). An application's own
 * parallel_for is assumed to wake a thread.
 */
#define QS_SLICE_NS      1000
#define QS_LENT_SLICE_NS 5000

/* Work per nanosecond of one thread of a fast core; a slower core splits later than it could. */
#define QS_MACS_F32      40.0
#define QS_MACS_I8       150.0
#define QS_DEPTHWISE_F32 10.0 /* multiply-accumulates, too */
#define QS_DEPTHWISE_I8  30.0
#define QS_QUANTIZED     5.0   /* floats searched for extremes, then quantized */
#define QS_POOLED        100.0 /* bytes looked at */

/* How many slices `items` independent pieces of work altogether are cut into: 1 … threads. */
size_t qs_slice_count(const qsim_ctx *ctx, size_t items, double ns);

/* First item of slice i of n. */
size_t qs_slice_begin(size_t items, size_t n, size_t i);

#endif
