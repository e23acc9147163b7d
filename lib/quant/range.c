/* SPDX-License-Identifier: MIT */
/* Ranges of types; scale and zero point from a range. */
#include "quant/affine.h"

#include <float.h>
#include <math.h>

static int limits_of(int32_t dtype, int32_t *bits, bool *is_signed) {
    switch (dtype) {
    case QSIM_UINT2: *bits = 2; break;
    case QSIM_INT2: *bits = 2; break;
    case QSIM_UINT4: *bits = 4; break;
    case QSIM_INT4: *bits = 4; break;
    case QSIM_UINT8: *bits = 8; break;
    case QSIM_INT8: *bits = 8; break;
    case QSIM_UINT16: *bits = 16; break;
    case QSIM_INT16: *bits = 16; break;
    case QSIM_INT32: *bits = 32; break;
    default: return QSIM_E_DTYPE;
    }
    *is_signed = dtype == QSIM_INT2 || dtype == QSIM_INT4 || dtype == QSIM_INT8 ||
                 dtype == QSIM_INT16 || dtype == QSIM_INT32;
    return QSIM_OK;
}

int qsim_dtype_limits(int32_t dtype, int32_t flags, int32_t *low, int32_t *high) {
    int32_t bits;
    bool is_signed;
    if (!low || !high)
        return QSIM_E_ARGUMENT;
    int code = limits_of(dtype, &bits, &is_signed);
    if (code)
        return code;
    if (flags & ~(QSIM_RANGE_SYMMETRIC | QSIM_RANGE_REDUCED | QSIM_RANGE_NARROW))
        return QSIM_E_ARGUMENT;
    int64_t half = (int64_t)1 << (bits - 1);
    if (flags & QSIM_RANGE_REDUCED) {
        *low = is_signed ? (int32_t)(-half / 2) : 0;
        *high = (int32_t)(is_signed ? half / 2 : half - 1);
        return QSIM_OK;
    }
    *low = is_signed ? (int32_t)(-half + ((flags & QSIM_RANGE_NARROW) != 0)) : 0;
    *high = (int32_t)(is_signed ? half - 1 : 2 * half - 1);
    return QSIM_OK;
}

int qsim_qparams_choose(float low, float high, int32_t dtype, int32_t flags, float *scale,
                        int32_t *zero_point) {
    int32_t qmin, qmax;
    if (!scale || !zero_point)
        return QSIM_E_ARGUMENT;
    int code = qsim_dtype_limits(dtype, flags, &qmin, &qmax);
    if (code)
        return code;
    if (!isfinite(low) || !isfinite(high) || low > high)
        return QSIM_E_VALUE;
    bool symmetric = (flags & QSIM_RANGE_SYMMETRIC) || dtype == QSIM_INT32;
    double lo = low < 0 ? low : 0, hi = high > 0 ? high : 0;
    if (symmetric) {
        hi = hi > -lo ? hi : -lo;
        lo = -hi;
    }
    float s = (float)((hi - lo) / ((double)qmax - (double)qmin));
    if (s < FLT_MIN) {
        *scale = 1.0f;
        *zero_point = 0;
        return QSIM_OK;
    }
    double z = symmetric ? ((double)qmin + (double)qmax) / 2 : (double)qmin - lo / (double)s;
    z = rint(z);
    z = z < qmin ? qmin : z > qmax ? qmax : z;
    *scale = s;
    *zero_point = dtype == QSIM_INT32 ? 0 : (int32_t)z;
    return QSIM_OK;
}

int qsim_qparams_count(int32_t rank, const int64_t *dims, int32_t axis, int64_t block,
                       size_t *count) {
    if (!count || block < 0 || (rank > 0 && !dims))
        return QSIM_E_ARGUMENT;
    if (rank < 1 || rank > QSIM_MAX_RANK || axis < -rank || axis >= rank)
        return QSIM_E_SHAPE;
    if (axis < 0)
        axis += rank;
    size_t n = 1;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return QSIM_E_SHAPE;
        size_t size = (size_t)dims[i];
        if (i != axis && !block)
            continue;
        if (i == axis && block)
            size = (size_t)(dims[i] / block + (dims[i] % block != 0));
        if (!qs_mul(n, size, &n))
            return QSIM_E_LIMIT;
    }
    *count = n;
    return QSIM_OK;
}

int qs_qlayout_make(int32_t rank, const int64_t *dims, const qsim_qparams *q, qs_qlayout *layout,
                    qsim_error *error) {
    size_t total, expected;
    int code = qsim_tensor_size(QSIM_UINT8, rank, dims, &total, NULL);
    if (code)
        return qs_fail(error, code, "quantization: the tensor has no valid shape");
    *layout = (qs_qlayout){.outer = 1, .axis = 1, .inner = total};
    if (q->count == 1 && q->block == 0)
        return QSIM_OK;
    code = qsim_qparams_count(rank, dims, q->axis, q->block, &expected);
    if (code)
        return qs_fail(error, code,
                       "quantization: axis %d, block %lld do not fit a tensor of rank %d", q->axis,
                       (long long)q->block, rank);
    if (expected != q->count)
        return qs_fail(error, QSIM_E_SHAPE, "quantization: %zu scales where axis %d takes %zu",
                       q->count, q->axis, expected);
    int32_t axis = q->axis < 0 ? q->axis + rank : q->axis;
    layout->inner = 1;
    for (int32_t i = 0; i < rank; i++) {
        size_t size = (size_t)dims[i];
        if (i < axis)
            layout->outer *= size;
        else if (i > axis)
            layout->inner *= size;
        else
            layout->axis = size;
    }
    if (total == 0) /* whatever the other sizes are */
        layout->outer = 0;
    if (q->block) {
        layout->block = (size_t)q->block;
        layout->blocks = layout->axis / layout->block + (layout->axis % layout->block != 0);
    }
    return QSIM_OK;
}

int qs_qparams_check(const qsim_qparams *q, qsim_error *error) {
    int32_t low, high;
    if (!q || !q->scale || q->count == 0)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: no scale is given");
    if (qsim_dtype_limits(q->dtype, 0, &low, &high))
        return qs_fail(error, QSIM_E_DTYPE, "quantization: %s is not a quantized type",
                       qsim_dtype_name(q->dtype));
    int32_t most = q->dtype == QSIM_INT32 ? 0 : QS_MAX_ZERO_POINT;
    for (size_t i = 0; i < q->count; i++) {
        if (!(q->scale[i] > 0) || !isfinite(q->scale[i]))
            return qs_fail(error, QSIM_E_VALUE,
                           "quantization: scale %g at index %zu is not finite and positive",
                           (double)q->scale[i], i);
        if (q->zero_point && (q->zero_point[i] > most || q->zero_point[i] < -most))
            return qs_fail(error, QSIM_E_VALUE,
                           "quantization: zero point %d at index %zu is out of range for %s",
                           q->zero_point[i], i, qsim_dtype_name(q->dtype));
    }
    return QSIM_OK;
}

/* Least and greatest of the elements with one scale. */
typedef struct extremes {
    float low, high;
} extremes;

static bool stretch(extremes *e, const float *x, size_t n, size_t stride) {
    for (size_t i = 0; i < n; i++) {
        float v = x[i * stride];
        if (!isfinite(v))
            return false;
        e->low = v < e->low ? v : e->low;
        e->high = v > e->high ? v : e->high;
    }
    return true;
}

/* Finds the extremes of the elements with scale g, zero included; false: one is not finite. */
static bool measure_group(const float *x, const qs_qlayout *l, size_t count, size_t g,
                          extremes *e) {
    *e = (extremes){0, 0};
    if (l->block) {
        size_t i = g % l->inner, b = g / l->inner % l->blocks, o = g / l->inner / l->blocks;
        size_t first = b * l->block, left = l->axis - first;
        return stretch(e, x + (o * l->axis + first) * l->inner + i,
                       left < l->block ? left : l->block, l->inner);
    }
    if (count == 1)
        return stretch(e, x, l->outer * l->axis * l->inner, 1);
    for (size_t o = 0; o < l->outer; o++)
        if (!stretch(e, x + (o * l->axis + g) * l->inner, l->inner, 1))
            return false;
    return true;
}

int qsim_qparams_measure(const qsim_tensor *x, int32_t dtype, int32_t axis, int64_t block,
                         int32_t flags, size_t count, float *scale, int32_t *zero_point,
                         qsim_error *error) {
    qs_error_clear(error);
    if (!x || !scale || !zero_point)
        return qs_fail_missing(error, "quantization");
    if (x->dtype != QSIM_FLOAT)
        return qs_fail(error, QSIM_E_DTYPE, "quantization: the tensor is %s, not float",
                       qsim_dtype_name(x->dtype));
    qsim_qparams q = {.dtype = dtype, .axis = axis, .block = block, .count = count};
    qs_qlayout layout;
    int code = qs_qlayout_make(x->rank, x->dims, &q, &layout, error);
    if (code)
        return code;
    if (x->bytes / sizeof(float) < layout.outer * layout.axis * layout.inner)
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: the buffer is too small");
    for (size_t g = 0; g < count; g++) {
        extremes e;
        if (!measure_group(x->data, &layout, count, g, &e))
            return qs_fail(error, QSIM_E_VALUE, "quantization: a value of group %zu is not finite",
                           g);
        code = qsim_qparams_choose(e.low, e.high, dtype, flags, scale + g, zero_point + g);
        if (code)
            return qs_fail(error, code, "quantization: %s is not a quantized type",
                           qsim_dtype_name(dtype));
    }
    return QSIM_OK;
}
