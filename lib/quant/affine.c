/* SPDX-License-Identifier: MIT */
/* Quantize and dequantize. */
#include "quant/affine.h"
#include "quant/affine_loops.h"

#include "base/ctx.h"

#include <assert.h>
#include <math.h>

QS_QUANTIZE(static void, quantize_u16, uint16_t, 0, 65535)
QS_QUANTIZE(static void, quantize_s16, int16_t, -32768, 32767)
QS_DEQUANTIZE(static void, dequantize_u16, uint16_t)
QS_DEQUANTIZE(static void, dequantize_s16, int16_t)

static int32_t quantize_s32(float x, float scale) {
    float v = x / scale;
    if (!(v > -2147483648.0f))
        return INT32_MIN;
    return v < 2147483648.0f ? (int32_t)rintf(v) : INT32_MAX;
}

/* Bits of a packed type and whether it is signed; 0 for types of whole bytes. */
static int32_t packed_bits(int32_t dtype) {
    switch (dtype) {
    case QSIM_UINT4:
    case QSIM_INT4: return 4;
    case QSIM_UINT2:
    case QSIM_INT2: return 2;
    default: return 0;
    }
}

static void put_packed(uint8_t *y, size_t index, int32_t bits, int32_t value) {
    assert(bits > 0);
    size_t per = (size_t)(8 / bits);
    int32_t shift = (int32_t)(index % per) * bits, mask = (1 << bits) - 1;
    int32_t old = shift == 0 ? 0 : y[index / per];
    y[index / per] = (uint8_t)((old & ~(mask << shift)) | ((value & mask) << shift));
}

static int32_t get_packed(const uint8_t *x, size_t index, int32_t bits, bool is_signed) {
    assert(bits > 0);
    size_t per = (size_t)(8 / bits);
    int32_t v = (x[index / per] >> (int32_t)(index % per) * bits) & ((1 << bits) - 1);
    return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

static void quantize_packed(const float *x, size_t first, size_t n, float scale, int32_t zero_point,
                            int32_t dtype, uint8_t *y) {
    int32_t low = 0, high = 0, bits = packed_bits(dtype);
    (void)qsim_dtype_limits(dtype, 0, &low, &high);
    float lo = (float)(low - zero_point), hi = (float)(high - zero_point);
    for (size_t i = 0; i < n; i++) {
        float v = qs_minf(qs_maxf(x[first + i] / scale, lo), hi);
        put_packed(y, first + i, bits, qs_round_even(v) + zero_point);
    }
}

/* Quantizes elements [first, first + n) with one scale; x and y are the starts of the tensors. */
static void quantize_part(const void *real, size_t first, size_t n, float scale, int32_t zp,
                          int32_t dtype, void *y) {
    const float *x = real;
    switch (dtype) {
    case QSIM_UINT8: qs_quantize_u8(x + first, n, scale, zp, (uint8_t *)y + first); break;
    case QSIM_INT8: qs_quantize_s8(x + first, n, scale, zp, (int8_t *)y + first); break;
    case QSIM_UINT16: quantize_u16(x + first, n, scale, zp, (uint16_t *)y + first); break;
    case QSIM_INT16: quantize_s16(x + first, n, scale, zp, (int16_t *)y + first); break;
    case QSIM_INT32:
        for (size_t i = first; i < first + n; i++)
            ((int32_t *)y)[i] = quantize_s32(x[i], scale);
        break;
    default: quantize_packed(x, first, n, scale, zp, dtype, y); break;
    }
}

static void dequantize_part(const void *x, size_t first, size_t n, float scale, int32_t zp,
                            int32_t dtype, void *real) {
    float *y = real;
    bool is_signed = dtype == QSIM_INT4 || dtype == QSIM_INT2;
    switch (dtype) {
    case QSIM_UINT8: qs_dequantize_u8((const uint8_t *)x + first, n, scale, zp, y + first); break;
    case QSIM_INT8: qs_dequantize_s8((const int8_t *)x + first, n, scale, zp, y + first); break;
    case QSIM_UINT16: dequantize_u16((const uint16_t *)x + first, n, scale, zp, y + first); break;
    case QSIM_INT16: dequantize_s16((const int16_t *)x + first, n, scale, zp, y + first); break;
    case QSIM_INT32:
        for (size_t i = first; i < first + n; i++)
            y[i] = (float)((const int32_t *)x)[i] * scale;
        break;
    default:
        for (size_t i = first; i < first + n; i++)
            y[i] = (float)(get_packed(x, i, packed_bits(dtype), is_signed) - zp) * scale;
        break;
    }
}

typedef void (*part_fn)(const void *x, size_t first, size_t n, float scale, int32_t zp,
                        int32_t dtype, void *y);

/* Elements between two checks for a stop: a multiple of the elements in a byte. */
#define PIECE ((size_t)1 << 20)

/* Calls `part` for every run of contiguous elements with one scale, in order. */
static void for_each_run(const qsim_ctx *ctx, const void *x, const qs_qlayout *l,
                         const qsim_qparams *q, void *y, part_fn part) {
    if (q->count == 1 && l->block == 0) {
        const size_t all = l->outer * l->axis * l->inner;
        for (size_t at = 0, n; at < all && !(at && ctx && qs_stopped(ctx)); at += n) {
            n = all - at < PIECE ? all - at : PIECE;
            part(x, at, n, q->scale[0], q->zero_point ? q->zero_point[0] : 0, q->dtype, y);
        }
        return;
    }
    size_t run = l->block ? 1 : l->inner;
    for (size_t o = 0; o < l->outer; o++)
        for (size_t a = 0; a < l->axis && !(ctx && qs_stopped_at(ctx, a)); a++)
            for (size_t i = 0; i < l->inner; i += run) {
                size_t s = l->block ? (o * l->blocks + a / l->block) * l->inner + i : a;
                part(x, (o * l->axis + a) * l->inner + i, run, q->scale[s],
                     q->zero_point ? q->zero_point[s] : 0, q->dtype, y);
            }
}

void qs_quantize(const qsim_ctx *ctx, const float *x, const qs_qlayout *layout,
                 const qsim_qparams *q, void *y) {
    for_each_run(ctx, x, layout, q, y, quantize_part);
}

void qs_dequantize(const qsim_ctx *ctx, const void *x, const qs_qlayout *layout,
                   const qsim_qparams *q, float *y) {
    for_each_run(ctx, x, layout, q, y, dequantize_part);
}

/* ---- public ---- */

static int check_values(const void *x, const void *y, size_t count, float scale, int32_t zero_point,
                        int32_t dtype) {
    qsim_qparams q = {.dtype = dtype, .count = 1, .scale = &scale, .zero_point = &zero_point};
    int code = qs_qparams_check(&q, NULL);
    if (code)
        return code;
    return count > 0 && (!x || !y) ? QSIM_E_ARGUMENT : QSIM_OK;
}

int qsim_values_quantize(const float *x, size_t count, float scale, int32_t zero_point,
                         int32_t dtype, void *y) {
    int code = check_values(x, y, count, scale, zero_point, dtype);
    if (!code)
        quantize_part(x, 0, count, scale, zero_point, dtype, y);
    return code;
}

int qsim_values_dequantize(const void *x, size_t count, float scale, int32_t zero_point,
                           int32_t dtype, float *y) {
    int code = check_values(x, y, count, scale, zero_point, dtype);
    if (!code)
        dequantize_part(x, 0, count, scale, zero_point, dtype, y);
    return code;
}

static bool same_shape(const qsim_tensor *a, const qsim_tensor *b) {
    if (a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* Checks that quantizing and dequantizing have in common. */
static int check_pair(const qsim_tensor *real, const qsim_tensor *quantized, const qsim_qparams *q,
                      qs_qlayout *layout, qsim_error *error) {
    size_t float_bytes, bytes;
    if (!real || !quantized || !q)
        return qs_fail_missing(error, "quantization");
    int code = qs_qparams_check(q, error);
    if (code)
        return code;
    if (real->dtype != QSIM_FLOAT || quantized->dtype != q->dtype)
        return qs_fail(error, QSIM_E_DTYPE, "quantization: tensors are %s and %s, not float and %s",
                       qsim_dtype_name(real->dtype), qsim_dtype_name(quantized->dtype),
                       qsim_dtype_name(q->dtype));
    code = qsim_tensor_size(QSIM_FLOAT, real->rank, real->dims, NULL, &float_bytes);
    if (!code)
        code = qsim_tensor_size(q->dtype, real->rank, real->dims, NULL, &bytes);
    if (code)
        return qs_fail(error, code, "quantization: the tensor has no valid shape");
    if ((quantized->rank > 0 && !quantized->dims) || !same_shape(real, quantized))
        return qs_fail(error, QSIM_E_SHAPE, "quantization: the tensors' shapes differ");
    if (real->bytes < float_bytes || quantized->bytes < bytes ||
        (float_bytes > 0 && (!real->data || !quantized->data)))
        return qs_fail(error, QSIM_E_ARGUMENT, "quantization: a buffer is too small");
    return qs_qlayout_make(real->rank, real->dims, q, layout, error);
}

int qsim_tensor_quantize(const qsim_tensor *x, const qsim_qparams *q, qsim_tensor *y,
                         qsim_error *error) {
    qs_qlayout layout;
    qs_error_clear(error);
    int code = check_pair(x, y, q, &layout, error);
    if (!code)
        qs_quantize(NULL, x->data, &layout, q, y->data);
    return code;
}

int qsim_tensor_dequantize(const qsim_tensor *x, const qsim_qparams *q, qsim_tensor *y,
                           qsim_error *error) {
    qs_qlayout layout;
    qs_error_clear(error);
    int code = check_pair(y, x, q, &layout, error);
    if (!code)
        qs_dequantize(NULL, x->data, &layout, q, y->data);
    return code;
}
