/* SPDX-License-Identifier: MIT */
/*
 * qsim/op.h - quantized operators on plain buffers: convolution, linear layers, requantization.
 *
 * For trying out arithmetic, for reference values, and for applications with graphs of their own.
 * Each call packs its weights again: use a session (qsim/session.h) for a model that runs more than
 * once.
 *
 * All integer sums are exact. Results do not depend on the CPU or the number of threads. Any number
 * of threads may call these functions at once.
 */
#ifndef QSIM_OP_H
#define QSIM_OP_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- requantization ----------------------------------------------------------------------- */

/*
 * Requantization: converts int32 sums of products to 8 bits. The whole library uses this one
 * definition, which is also ONNX Runtime's:
 *
 *     y = round_half_even(clamp((float)acc * m, lo - zero_point, hi - zero_point)) + zero_point
 *
 * `acc` and `y` hold rows x channels elements, row-major. `m` holds `multipliers` elements: one for
 * all channels, or one per channel. A layer uses m = (x_scale * w_scale) / y_scale. `dtype`, the
 * type of y, is UINT8 or INT8. `lo` and `hi`, within the range of that type, are the bounds of a
 * fused ReLU or Clip, or the type's own. Errors: DTYPE; ARGUMENT (NULL, multipliers neither 1 nor
 * channels); VALUE (a multiplier that is not finite, zero_point or bounds out of range, lo > hi).
 */
QSIM_API int qsim_requantize(const int32_t *acc, size_t rows, size_t channels, const float *m,
                             size_t multipliers, int32_t zero_point, int32_t lo, int32_t hi,
                             int32_t dtype, void *y);

/*
 * Requantization with integers only, as gemmlowp and TensorFlow Lite define it. A pair of m and
 * shift stands for the multiplier m * 2^(shift - 31); `multipliers` is the number of pairs, 1 or
 * channels. In this order: acc is shifted left if shift > 0, saturating; multiplied by m, of which
 * the high 32 bits of the doubled product are kept, rounded and saturated; shifted right if shift <
 * 0, rounded half away from zero; the zero point is added; the result is clamped to [lo, hi].
 * Errors: those of qsim_requantize; VALUE also for a shift outside [-31, 30] or a negative m.
 */
QSIM_API int qsim_requantize_fixed(const int32_t *acc, size_t rows, size_t channels,
                                   const int32_t *m, const int32_t *shift, size_t multipliers,
                                   int32_t zero_point, int32_t lo, int32_t hi, int32_t dtype,
                                   void *y);

/*
 * Sets `*m` and `*shift` to the pair of qsim_requantize_fixed for a real `multiplier` >= 0: m is in
 * [2^30, 2^31), rounded half away from zero. A multiplier below 2^-32 gives m = 0, one of 2^30 or
 * more saturates. Errors: ARGUMENT (NULL), VALUE (negative, not finite).
 */
QSIM_API int qsim_fixed_from_float(double multiplier, int32_t *m, int32_t *shift);

/* ---- layers ------------------------------------------------------------------------------- */

/* qsim_op_options.flags: images are [N, H, W, C]; without this flag they are [N, C, H, W]. */
#define QSIM_OP_NHWC 1

/*
 * Options of both layers. For each output channel o the layer computes
 *
 *     acc[o] = sum((x - x_zero_point) * (w - w_zero_point[o])) + bias[o]
 *
 * Without multipliers y is INT32 and holds acc, modulo 2^32. With multipliers y is UINT8 or INT8
 * and holds acc requantized as by qsim_requantize, with y_zero_point, lo and hi.
 */
typedef struct qsim_op_options {
    size_t struct_size; /* sizeof(qsim_op_options) */
    int32_t flags;      /* 0 or QSIM_OP_NHWC */
    /* Of convolutions only, up to the pads. */
    int32_t groups;                                     /* 0: 1 */
    int32_t stride_h, stride_w, dilation_h, dilation_w; /* 0: 1 */
    int32_t pad_top, pad_left, pad_bottom, pad_right;   /* padding pixels are x_zero_point */
    int32_t x_zero_point;
    const int32_t *w_zero_point;
    size_t w_zero_points;    /* elements of w_zero_point: 1, one per output channel, or 0: all 0 */
    const int32_t *bias;     /* one per output channel; NULL: 0 */
    const float *multiplier; /* finite */
    size_t multipliers;      /* elements of multiplier: 1, one per output channel, or 0 */
    int32_t y_zero_point;
    int32_t lo, hi; /* bounds of a fused ReLU or Clip; both 0: the range of y's type */
} qsim_op_options;

/*
 * Convolution of images. x: 4 dims, UINT8 or INT8. w: [out channels, in channels / groups, kernel
 * height, kernel width], UINT8 or INT8. y: the caller sets dtype, dims, data and bytes. `ctx` gives
 * memory, kernels and threads and may not be NULL; `options` may be NULL. A depthwise convolution
 * has groups = in channels. After an error the contents of y are undefined. Errors: ARGUMENT (NULL,
 * buffer too small), DTYPE, SHAPE, VALUE (zero points, bounds, multipliers), UNSUPPORTED (sums that
 * may exceed int32 while y is 8 bits), LIMIT, NOMEM, VERSION, CANCELLED, TIME.
 */
QSIM_API int qsim_conv2d(qsim_ctx *ctx, const qsim_tensor *x, const qsim_tensor *w,
                         const qsim_op_options *options, const qsim_tensor *y, qsim_error *error);

/*
 * Linear layer, y = x w^T + bias. x: [rows, terms], w: [out channels, terms], y: [rows, out
 * channels]. Types, ownership and errors are those of qsim_conv2d. The options that only
 * convolutions have must be 0.
 */
QSIM_API int qsim_linear(qsim_ctx *ctx, const qsim_tensor *x, const qsim_tensor *w,
                         const qsim_op_options *options, const qsim_tensor *y, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
