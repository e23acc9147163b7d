/* SPDX-License-Identifier: MIT */
/*
 * Jobs of float kernels, of any length: long ones in pieces, with a check for a stop before each.
 * The bits are those of the whole job.
 */
#ifndef QS_FLOAT_JOBS_H
#define QS_FLOAT_JOBS_H

#include "base/ctx.h"
#include "kernel/f32.h"

/* Multiply-accumulates between two checks for a stop: 2 ms of a fast core. The C kernels do less.
 */
#define QS_CHECK_MACS ((size_t)1 << 26)

/* k->gemm; the rest of a stopped job is not computed. */
void qs_gemm_f32(const qsim_ctx *ctx, const qk_f32 *k, const qk_gemm_f32 *g);

/* qk_pack_f32 for the context's table; with `flush` denormals become 0. */
void qs_pack_f32(const qsim_ctx *ctx, float *packed, size_t k, size_t cols,
                 const qk_pack_source *source, bool flush);

/* `kernel`: depthwise or depthwise_3x3 of a table. */
void qs_depthwise_f32(const qsim_ctx *ctx, void (*kernel)(const qk_depthwise_f32 *d),
                      const qk_depthwise_f32 *d);

#endif
