/* SPDX-License-Identifier: MIT */
/*
 * Affine quantization for the rest of the library: the loops without the public functions' checks.
 */
#ifndef QS_AFFINE_H
#define QS_AFFINE_H

#include "base/base.h"
#include "quant/requantize.h"

#include <qsim/quant.h>

/* Greatest zero point: sums with larger ones would not be exact in float. */
#define QS_MAX_ZERO_POINT (1 << 20)

/*
 * Maps elements to scales: element (o, a, i) of [outer][axis][inner] has scale 0 per tensor, a per
 * channel, (o * blocks + a / block) * inner + i per block.
 */
typedef struct qs_qlayout {
    size_t outer, axis, inner; /* per tensor: 1, 1, elements */
    size_t block, blocks;      /* 0 unless per block */
} qs_qlayout;

/* Layout of q over a tensor of this shape; checks axis, block and count. */
int qs_qlayout_make(int32_t rank, const int64_t *dims, const qsim_qparams *q, qs_qlayout *layout,
                    qsim_error *error);

/* Checks dtype, scales and zero points. */
int qs_qparams_check(const qsim_qparams *q, qsim_error *error);

/* Both expect arguments that the two functions above have accepted. */
void qs_quantize(const qsim_ctx *ctx, const float *x, const qs_qlayout *layout,
                 const qsim_qparams *q, void *y);
void qs_dequantize(const qsim_ctx *ctx, const void *x, const qs_qlayout *layout,
                   const qsim_qparams *q, float *y);

/* Quantize or dequantize n elements with one scale. */
void qs_quantize_u8(const float *x, size_t n, float scale, int32_t zero_point, uint8_t *y);
void qs_quantize_s8(const float *x, size_t n, float scale, int32_t zero_point, int8_t *y);
void qs_dequantize_u8(const uint8_t *x, size_t n, float scale, int32_t zero_point, float *y);
void qs_dequantize_s8(const int8_t *x, size_t n, float scale, int32_t zero_point, float *y);

#endif
