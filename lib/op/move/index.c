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

#define BLOCK ((size_t)256)

/* The highest bit is set if one of n indices is below -size or not below size. */
#define OUTSIDE(T, indices, n)                                                                     \
    for (size_t k = 0; k < n; k++) {                                                               \
        T index;                                                                                   \
        memcpy(&index, indices + k * sizeof(T), sizeof(T));                                        \
        outside |= ((uint64_t)index + (uint64_t)size) | ((uint64_t)size - 1 - (uint64_t)index);    \
    }

size_t qs_index_find_outside(const void *indices, bool wide, size_t n, int64_t size) {
    const char *at = indices;
    size_t i = 0;
    for (size_t m; i < n; i += m, at += m * (wide ? 8 : 4)) {
        uint64_t outside = 0;
        m = n - i < BLOCK ? n - i : BLOCK;
        if (wide)
            OUTSIDE(int64_t, at, m)
        else
            OUTSIDE(int32_t, at, m)
        if (outside >> 63)
            break;
    }
    while (i < n && qs_index_wrap(qs_index_at(indices, wide, i), size) >= 0)
        i++;
    return i;
}

#define GATHER(T, wide)                                                                            \
    for (size_t i = 0; i < n; i++, from += step) {                                                 \
        const int64_t index = qs_index_at(indices, wide, i);                                       \
        const size_t at = (size_t)(index < 0 ? index + size : index) * along;                      \
        memcpy(y + i * sizeof(T), x + (from + at) * sizeof(T), sizeof(T));                         \
    }
#define GATHER_BOTH(T)                                                                             \
    {                                                                                              \
        if (g->wide)                                                                               \
            GATHER(T, true)                                                                        \
        else                                                                                       \
            GATHER(T, false)                                                                       \
        break;                                                                                     \
    }

void qs_index_gather(const qs_gathering *g, const char *x, const void *indices, char *y, size_t n) {
    const int64_t size = g->size;
    const size_t step = g->step, along = g->along;
    size_t from = 0;
    switch (g->bytes) {
    case 1: GATHER_BOTH(uint8_t)
    case 2: GATHER_BOTH(uint16_t)
    case 4: GATHER_BOTH(uint32_t)
    default: GATHER_BOTH(uint64_t)
    }
}

QS_COLD int qs_infer_number(const qs_infer *x, int32_t index, int64_t *number, bool *known) {
    qs_const c;
    int code = qs_infer_type(x, index, QS_T_ARITH);
    if (!code)
        code = qs_infer_each(x, index, 1);
    *known = !code && qs_infer_const(x, index, &c) && c.elements == 1;
    if (*known)
        *number = qs_number_at(c.data, c.dtype, 0);
    return code;
}

QS_COLD void qs_index_outside(const qs_frame *f, int64_t index, int64_t size, int32_t axis) {
    qs_step_outside(f, "index", index, -size, size, axis);
}

QS_COLD int qs_infer_indices(const qs_infer *x, int32_t index, int64_t size) {
    qs_const c;
    if (size < 0 || !qs_infer_const(x, index, &c))
        return QSIM_OK;
    const bool wide = c.dtype == QSIM_INT64;
    const size_t at = qs_index_find_outside(c.data, wide, c.elements, size);
    if (at == c.elements)
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_VALUE, "index %lld is outside an axis of size %lld",
                         (long long)qs_index_at(c.data, wide, at), (long long)size);
}
