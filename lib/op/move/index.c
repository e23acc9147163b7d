/* SPDX-License-Identifier: MIT */
#include "op/move/index.h"

static int64_t whole(double v) {
    if (v != v)
        return 0;
    if (v >= 9223372036854775808.0) /* 2^63 */
        return INT64_MAX;
    return v <= -9223372036854775808.0 ? INT64_MIN : (int64_t)v;
}

int64_t qs_number_at(const void *data, int32_t dtype, size_t i) {
    union {
        float f;
        double d;
        uint8_t u8;
        int8_t s8;
        uint16_t u16;
        int16_t s16;
        uint32_t u32;
        int32_t s32;
        uint64_t u64;
        int64_t s64;
    } v = {0};
    const size_t bytes = qs_dtype_bytes(dtype);
    memcpy(&v, (const char *)data + i * bytes, bytes);
    switch (dtype) {
    case QSIM_FLOAT: return whole((double)v.f);
    case QSIM_DOUBLE: return whole(v.d);
    case QSIM_UINT8: return v.u8;
    case QSIM_INT8: return v.s8;
    case QSIM_UINT16: return v.u16;
    case QSIM_INT16: return v.s16;
    case QSIM_UINT32: return v.u32;
    case QSIM_INT32: return v.s32;
    case QSIM_UINT64: return v.u64 > INT64_MAX ? INT64_MAX : (int64_t)v.u64;
    default: return v.s64;
    }
}

QS_COLD int qs_infer_number(const qs_infer *x, int32_t index, int64_t *number, bool *known) {
    const qs_value *v = qs_infer_in(x, index);
    qs_const c;
    *known = false;
    int code = qs_infer_type(x, index, QS_T_ARITH);
    if (code)
        return code;
    const int64_t n = v && v->rank >= 0 ? qs_dims_product(v->dims, 0, v->rank) : -1;
    if (n >= 0 && n != 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %lld elements, expected 1", (int)index,
                             (long long)n);
    *known = qs_infer_const(x, index, &c);
    if (*known && c.elements != 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %zu elements, expected 1", (int)index,
                             c.elements);
    if (*known)
        *number = qs_number_at(c.data, c.dtype, 0);
    return QSIM_OK;
}

QS_COLD void qs_index_outside(const qs_frame *f, int64_t index, int64_t size, int32_t axis) {
    qs_step_outside(f, "index", index, -size, size, axis);
}

QS_COLD int qs_infer_indices(const qs_infer *x, int32_t index, int64_t size) {
    qs_const c;
    if (size < 0 || !qs_infer_const(x, index, &c))
        return QSIM_OK;
    for (size_t i = 0; i < c.elements; i++) {
        const int64_t at = qs_index_at(c.data, c.dtype == QSIM_INT64, i);
        if (qs_index_wrap(at, size) < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "index %lld is outside an axis of size %lld",
                                 (long long)at, (long long)size);
    }
    return QSIM_OK;
}
