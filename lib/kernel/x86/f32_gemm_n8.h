/* SPDX-License-Identifier: MIT */
/* Products of at most 8 columns whose rows are one element apart: first layers of one channel. */
#ifndef QK_F32_GEMM_N8_H
#define QK_F32_GEMM_N8_H

#include "kernel/f32.h"

#define QK_NARROW_LEAST 20
#define QK_NARROW_MOST  32

/*
 * Computes rows [r, r + n) of g, QK_NARROW_LEAST <= n <= QK_NARROW_MOST, each one element after the
 * other; panel, bias and c are those of a panel of b, which is 8 wide and has `cols` columns.
 */
void qk_gemm_narrow_avx512(const qk_gemm_f32 *g, size_t r, size_t n, const float *panel,
                           const float *bias, float *c, size_t cols);

#endif
