/* SPDX-License-Identifier: MIT */
/*
 * qsim/quant.h - affine quantization: scales and zero points, quantize, dequantize, observers.
 *
 *     q = saturate(round_half_even(x / scale) + zero_point)          x' = (q - zero_point) * scale
 *
 * as ONNX defines QuantizeLinear and DequantizeLinear (opset 25): x is divided by the scale in
 * float, then rounded, then the zero point is added, then the result saturates to the range of the
 * type. Infinities saturate; a NaN becomes the lowest value of the type. A zero point outside the
 * range of its type is legal here.
 *
 * Quantized types: QSIM_UINT8, INT8, UINT16, INT16, INT32, and the packed UINT4, INT4, UINT2, INT2.
 * Only observers allocate memory. Any number of threads may call all functions at once; an observer
 * belongs to one thread at a time.
 */
#ifndef QSIM_QUANT_H
#define QSIM_QUANT_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scale and zero point ----------------------------------------------------------------- */

/*
 * The parameters that quantize a tensor. Frozen layout. The arrays are the caller's.
 *
 *   per tensor    count = 1, block = 0; axis is ignored
 *   per channel   count = dims[axis], block = 0
 *   per block     block = B > 0: B neighbours along axis share a scale. The arrays have the shape
 *                 of the tensor with dims[axis] replaced by ceil(dims[axis] / B); count is their
 *                 size
 */
typedef struct qsim_qparams {
    int32_t dtype; /* of the quantized values */
    int32_t axis;  /* negative: counted from the last one */
    int64_t block;
    size_t count;              /* elements of scale and of zero_point */
    const float *scale;        /* each finite and > 0 */
    const int32_t *zero_point; /* NULL: all 0 */
} qsim_qparams;

/* Flags that say which part of a type's range is used, and how zero points are chosen; added up. */
#define QSIM_RANGE_SYMMETRIC 1 /* the range is widened to [-a, a]: zero point in the middle */
#define QSIM_RANGE_REDUCED   2 /* 7 bits: int8 [-64, 64], uint8 [0, 127], other types likewise */
#define QSIM_RANGE_NARROW    4 /* signed types without their lowest value: int8 [-127, 127] */

/*
 * Sets `*low` and `*high` to the lowest and highest value of a quantized type with these
 * QSIM_RANGE_* flags. Errors: DTYPE, ARGUMENT (flags).
 */
QSIM_API int qsim_dtype_limits(int32_t dtype, int32_t flags, int32_t *low, int32_t *high);

/*
 * Sets `*scale` and `*zero_point` for values between `low` and `high`, as ONNX Runtime's quantizer
 * does. The range is first extended to contain 0, so that 0 is represented exactly:
 *
 *   scale      = (high - low) / (qmax - qmin)
 *   zero_point = round_half_even(qmin - low / scale), or the middle of the range when SYMMETRIC
 *
 * A range so narrow that the scale would be denormal gives scale 1 and zero point 0. INT32 is
 * always symmetric. Errors: DTYPE; ARGUMENT (flags); VALUE (a NaN, an infinity, low > high).
 */
QSIM_API int qsim_qparams_choose(float low, float high, int32_t dtype, int32_t flags, float *scale,
                                 int32_t *zero_point);

/*
 * Sets `*count` to the number of scales of a tensor of this shape: one per channel of `axis` if
 * `block` is 0, else one per block. Errors: SHAPE (rank, sizes, axis), ARGUMENT (block < 0), LIMIT.
 */
QSIM_API int qsim_qparams_count(int32_t rank, const int64_t *dims, int32_t axis, int64_t block,
                                size_t *count);

/*
 * Computes scales and zero points for type `dtype` from the least and greatest values of the float
 * tensor `x`, as qsim_qparams_choose does. With `count` 1 and `block` 0 there is one pair for the
 * tensor; else one per channel or block, and `count` must be that of qsim_qparams_count. `scale`
 * and `zero_point` have room for `count` elements. Errors: DTYPE, SHAPE, ARGUMENT; VALUE (the
 * tensor holds a NaN or an infinity).
 */
QSIM_API int qsim_qparams_measure(const qsim_tensor *x, int32_t dtype, int32_t axis, int64_t block,
                                  int32_t flags, size_t count, float *scale, int32_t *zero_point,
                                  qsim_error *error);

/* ---- quantize, dequantize ----------------------------------------------------------------- */

/*
 * Quantizes `count` floats with one scale. `y` has room for count elements of `dtype`, packed where
 * the type is under 8 bits. Errors: DTYPE; VALUE (scale not finite or not > 0, zero point beyond
 * +-2^20, or not 0 with INT32).
 */
QSIM_API int qsim_values_quantize(const float *x, size_t count, float scale, int32_t zero_point,
                                  int32_t dtype, void *y);

/* The inverse: dequantizes `count` elements of `dtype` at `x` to floats at `y`. Same errors. */
QSIM_API int qsim_values_dequantize(const void *x, size_t count, float scale, int32_t zero_point,
                                    int32_t dtype, float *y);

/*
 * Quantizes the float tensor `x` into the buffer of `y`. The caller sets all fields of `y`: the
 * dtype of `q`, the shape of x, data and bytes. Errors: DTYPE; SHAPE (the shapes differ, q->count
 * does not fit); VALUE (as in qsim_values_quantize; the message has the index); ARGUMENT (buffer
 * too small).
 */
QSIM_API int qsim_tensor_quantize(const qsim_tensor *x, const qsim_qparams *q, qsim_tensor *y,
                                  qsim_error *error);

/* The inverse: `x` has the dtype of `q`, `y` is float. Same errors. */
QSIM_API int qsim_tensor_dequantize(const qsim_tensor *x, const qsim_qparams *q, qsim_tensor *y,
                                    qsim_error *error);

/* ---- observers ---------------------------------------------------------------------------- */

/*
 * An observer collects statistics of values: the least, the greatest, and a histogram. The width of
 * a bin is a power of two, and its edges are multiples of the width; there are at most 2048 bins on
 * either side of zero. When the range grows, pairs of bins are merged. So the state of an observer
 * depends only on the set of values it has seen: not on their order, nor on how they were spread
 * over observers that were merged later. An observer's memory does not grow.
 */
typedef struct qsim_observer qsim_observer;

/* Methods that choose a range from the values seen. */
#define QSIM_METHOD_MINMAX     0 /* the least to the greatest value */
#define QSIM_METHOD_PERCENTILE 1 /* cuts off (100 - percentile) / 2 percent at either end */
#define QSIM_METHOD_MSE        2 /* the least mean squared error of quantizing */
#define QSIM_METHOD_ENTROPY    3 /* the least Kullback-Leibler divergence of the histogram */

typedef struct qsim_observer_options {
    size_t struct_size; /* sizeof(qsim_observer_options) */
    int32_t bins;       /* on either side of zero: a power of two from 128 to 2048; 0: 2048 */
    int32_t reserved;
} qsim_observer_options;

/* Creates an observer. `ctx` and `options` may be NULL. Errors: NOMEM; ARGUMENT, VERSION (options).
 */
QSIM_API int qsim_observer_create(qsim_ctx *ctx, const qsim_observer_options *options,
                                  qsim_observer **out, qsim_error *error);
QSIM_API void qsim_observer_free(qsim_observer *o);

/*
 * Feeds `count` values. After an error none of them is recorded. Errors: VALUE (a NaN or an
 * infinity), LIMIT (2^64 values), NOMEM.
 */
QSIM_API int qsim_observer_feed(qsim_observer *o, const float *values, size_t count);

/*
 * Adds the values that `from` has seen to `into`. Exact: the same state in any order. Errors:
 * LIMIT, NOMEM, MISMATCH (other numbers of bins).
 */
QSIM_API int qsim_observer_merge(qsim_observer *into, const qsim_observer *from);

/* The number of values fed, the least and the greatest of them (0 if there are none). */
QSIM_API uint64_t qsim_observer_count(const qsim_observer *o);
QSIM_API float qsim_observer_min(const qsim_observer *o);
QSIM_API float qsim_observer_max(const qsim_observer *o);

/*
 * Gives the histogram: sets `*width` to the width of a bin, `*low` to the lower edge of the first
 * one and `*count` to the number of bins (at most 4096; 0 if nothing was fed). `bins` has room for
 * `capacity` numbers and gets the number of values in each bin, up to its capacity. Errors:
 * ARGUMENT.
 */
QSIM_API int qsim_observer_histogram(const qsim_observer *o, double *low, double *width,
                                     uint64_t *bins, size_t capacity, size_t *count);

/*
 * Sets `*low` and `*high` to the range that `method` (QSIM_METHOD_*) chooses for quantizing to
 * `dtype` with the QSIM_RANGE_* `flags`; MINMAX and PERCENTILE do not depend on these. The range
 * lies within [min(0, least), max(0, greatest)]; qsim_qparams_choose makes scale and zero point of
 * it. `percentile` is in (0, 100]; 0: 99.999. The result is the same on every machine. Errors:
 * STATE (nothing was fed), ARGUMENT (method, percentile, flags), DTYPE (MSE and ENTROPY take types
 * up to 8 bits).
 */
QSIM_API int qsim_observer_range(const qsim_observer *o, int32_t method, double percentile,
                                 int32_t dtype, int32_t flags, float *low, float *high);

#ifdef __cplusplus
}
#endif
#endif
