/* SPDX-License-Identifier: MIT */
/*
 * qsim/op.h - quantized operators on plain buffers: convolution, linear layers, requantization.
 *
 * For trying out arithmetic, for reference values and for applications with their own graphs. Each
 * call packs its weights again; a model that runs more than once belongs in a session.
 *
 * All integer sums are exact. Results do not depend on the CPU or the number of threads.
 */
#ifndef QSIM_OP_H
#define QSIM_OP_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- requantization ----------------------------------------------------------------------- */

/*
 * Sums of products to 8 bits, the one definition that the whole library uses (as ONNX Runtime
 * does):
 *
 *     y = round_half_even(clamp((float)acc * m, lo - zero_point, hi - zero_point)) + zero_point
 *
 * `acc` holds rows x channels sums, `m` one multiplier or one per channel (`multipliers` of them):
 * m = (x_scale * w_scale) / y_scale. y is UINT8 or INT8; lo and hi, both within its range, are the
 * bounds of a fused ReLU or Clip. Errors: DTYPE; ARGUMENT (NULL, multipliers neither 1 nor
 * channels); VALUE (a multiplier that is not finite, zero_point or bounds out of range, lo > hi).
 */
QSIM_API int qsim_requantize(const int32_t *acc, size_t rows, size_t channels, const float *m,
                             size_t multipliers, int32_t zero_point, int32_t lo, int32_t hi,
                             int32_t dtype, void *y);

/*
 * The same in integers only, as gemmlowp and TensorFlow Lite define it: the multiplier is
 * m * 2^(shift - 31). acc is shifted left by a positive shift (saturating), multiplied by the
 * saturating rounding doubling high product, and shifted right by a negative shift with rounding
 * half away from zero; then the zero point is added and the result clamped to [lo, hi]. One pair,
 * or one per channel. VALUE: also a shift outside [-31, 30] or a negative m.
 */
QSIM_API int qsim_requantize_fixed(const int32_t *acc, size_t rows, size_t channels,
                                   const int32_t *m, const int32_t *shift, size_t multipliers,
                                   int32_t zero_point, int32_t lo, int32_t hi, int32_t dtype,
                                   void *y);

/*
 * The pair for a real multiplier >= 0: m in [2^30, 2^31), rounded half away from zero. Multipliers
 * below 2^-32 give 0, those from 2^30 on saturate. Errors: ARGUMENT, VALUE (negative, not finite).
 */
QSIM_API int qsim_fixed_from_float(double multiplier, int32_t *m, int32_t *shift);

/* ---- layers ------------------------------------------------------------------------------- */

#define QSIM_OP_NHWC 1 /* x and y are [N, H, W, C]; else [N, C, H, W] */

/*
 * Options of both layers. Counts say how long the arrays are: 1, or one element per output channel.
 *
 *     acc[o] = sum((x - x_zero_point) * (w - w_zero_point[o])) + bias[o]
 *
 * Without multipliers y is INT32 and holds acc, modulo 2^32. With them y is UINT8 or INT8 and holds
 * qsim_requantize(acc).
 */
typedef struct qsim_op_options {
    size_t struct_size; /* sizeof(qsim_op_options) */
    int32_t flags;      /* QSIM_OP_* */
    int32_t groups;     /* convolution only, as all down to the pads; 0: 1 */
    int32_t stride_h, stride_w, dilation_h, dilation_w; /* 0: 1 */
    int32_t pad_top, pad_left, pad_bottom, pad_right;   /* padding holds x_zero_point */
    int32_t x_zero_point;
    const int32_t *w_zero_point;
    size_t w_zero_points; /* 0: all zero points are 0 */
    const int32_t *bias;  /* one per output channel, or NULL */
    const float *multiplier;
    size_t multipliers; /* 0: y is INT32 */
    int32_t y_zero_point;
    int32_t lo, hi; /* bounds of a fused ReLU or Clip; both 0: the range of y's type */
} qsim_op_options;

/*
 * Convolution. x: 4 dims, UINT8 or INT8; w: [out channels, in channels / groups, kernel height,
 * kernel width], UINT8 or INT8; y: the caller's buffer, its dims set. `ctx` lends memory, kernels
 * and threads and may not be NULL. Depthwise: groups = in channels.
 * Errors: ARGUMENT (NULL, buffer too small), DTYPE, SHAPE, VALUE (zero points, bounds,
 * multipliers), UNSUPPORTED (sums that may leave int32 while y is 8 bits), LIMIT, NOMEM, VERSION,
 * CANCELLED, TIME (y is not defined).
 */
QSIM_API int qsim_conv2d(qsim_ctx *ctx, const qsim_tensor *x, const qsim_tensor *w,
                         const qsim_op_options *options, const qsim_tensor *y, qsim_error *error);

/* Linear layer. x: [rows, terms]; w: [out channels, terms]; y: [rows, out channels]. As above. */
QSIM_API int qsim_linear(qsim_ctx *ctx, const qsim_tensor *x, const qsim_tensor *w,
                         const qsim_op_options *options, const qsim_tensor *y, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
