/* SPDX-License-Identifier: MIT */
/* Converts element types: any to floats, integers to integers where the value fits. */
#include "base/ctx.h"
#include "tensor/array.h"
#include "tensor/minifloat.h"

#define ROWS(X)                                                                                    \
    X(QSIM_FLOAT, float, v)                                                                        \
    X(QSIM_DOUBLE, double, v)                                                                      \
    X(QSIM_UINT8, uint8_t, v)                                                                      \
    X(QSIM_INT8, int8_t, v)                                                                        \
    X(QSIM_UINT16, uint16_t, v)                                                                    \
    X(QSIM_INT16, int16_t, v)                                                                      \
    X(QSIM_INT32, int32_t, v)                                                                      \
    X(QSIM_INT64, int64_t, v)                                                                      \
    X(QSIM_UINT32, uint32_t, v)                                                                    \
    X(QSIM_UINT64, uint64_t, v)                                                                    \
    X(QSIM_BOOL, uint8_t, v != 0)                                                                  \
    X(QSIM_FLOAT16, uint16_t, qs_half_value(v))                                                    \
    X(QSIM_BFLOAT16, uint16_t, qs_brain_value(v))

#define LOOP(code, type, expression)                                                               \
    case code:                                                                                     \
        for (size_t i = 0; i < n; i++) {                                                           \
            type v;                                                                                \
            memcpy(&v, in + i * sizeof(v), sizeof(v));                                             \
            out[i] = (TARGET)(expression);                                                         \
        }                                                                                          \
        return QSIM_OK;

#define TARGET float
static int to_float(int32_t from, const uint8_t *in, size_t n, float *out) {
    switch (from) {
        ROWS(LOOP)
    default: return QSIM_E_UNSUPPORTED;
    }
}
#undef TARGET

#define TARGET double
static int to_double(int32_t from, const uint8_t *in, size_t n, double *out) {
    switch (from) {
        ROWS(LOOP)
    default: return QSIM_E_UNSUPPORTED;
    }
}
#undef TARGET

/* To a type narrower than float, a block of doubles at a time: the value is rounded once. */
static int to_narrow(const qsim_tensor *from, const qsim_tensor *to, size_t n) {
    const qs_minifloat *format = qs_minifloat_of(to->dtype);
    const uint8_t *in = from->data;
    const size_t in_size = qs_element_size(from->dtype);
    uint16_t *out = to->data;
    double block[64];
    for (size_t i = 0; i < n; i += QS_COUNT(block)) {
        const size_t count = n - i < QS_COUNT(block) ? n - i : QS_COUNT(block);
        (void)to_double(from->dtype, in + i * in_size, count, block); /* a type that is converted */
        for (size_t k = 0; k < count; k++)
            out[i + k] = (uint16_t)qs_minifloat_bits(format, block[k], false);
    }
    return QSIM_OK;
}

/* A value of any integer type: as int64, or as uint64 where it is above INT64_MAX. */
typedef struct integer {
    int64_t value;
    uint64_t large; /* 0: value counts */
} integer;

#define LOAD(code, type)                                                                           \
    case code: {                                                                                   \
        type v;                                                                                    \
        memcpy(&v, p, sizeof(v));                                                                  \
        out->value = (int64_t)v;                                                                   \
        return true;                                                                               \
    }

static bool load_integer(int32_t dtype, const uint8_t *p, integer *out) {
    *out = (integer){0};
    switch (dtype) {
        LOAD(QSIM_UINT8, uint8_t)
        LOAD(QSIM_INT8, int8_t)
        LOAD(QSIM_UINT16, uint16_t)
        LOAD(QSIM_INT16, int16_t)
        LOAD(QSIM_UINT32, uint32_t)
        LOAD(QSIM_INT32, int32_t)
        LOAD(QSIM_INT64, int64_t)
    case QSIM_BOOL: out->value = *p != 0; return true;
    case QSIM_UINT64: {
        uint64_t v;
        memcpy(&v, p, sizeof(v));
        out->value = v <= INT64_MAX ? (int64_t)v : 0;
        out->large = v <= INT64_MAX ? 0 : v;
        return true;
    }
    default: return false;
    }
}

#define STORE(code, type, low, high)                                                               \
    case code: {                                                                                   \
        type t = (type)v.value;                                                                    \
        if (v.large || v.value < (low) || v.value > (high))                                        \
            return false;                                                                          \
        memcpy(p, &t, sizeof(t));                                                                  \
        return true;                                                                               \
    }

/* False: the type cannot hold the value. */
static bool store_integer(int32_t dtype, uint8_t *p, integer v) {
    switch (dtype) {
        STORE(QSIM_UINT8, uint8_t, 0, UINT8_MAX)
        STORE(QSIM_INT8, int8_t, INT8_MIN, INT8_MAX)
        STORE(QSIM_UINT16, uint16_t, 0, UINT16_MAX)
        STORE(QSIM_INT16, int16_t, INT16_MIN, INT16_MAX)
        STORE(QSIM_UINT32, uint32_t, 0, UINT32_MAX)
        STORE(QSIM_INT32, int32_t, INT32_MIN, INT32_MAX)
    case QSIM_INT64:
        if (v.large)
            return false;
        memcpy(p, &v.value, sizeof(v.value));
        return true;
    case QSIM_UINT64: {
        uint64_t u = v.large ? v.large : (uint64_t)v.value;
        if (v.value < 0)
            return false;
        memcpy(p, &u, sizeof(u));
        return true;
    }
    default: return false;
    }
}

/* Types are those that `convertible` accepts. */
static int to_integer(const qsim_tensor *from, const qsim_tensor *to, size_t n, qsim_error *error) {
    const uint8_t *in = from->data;
    uint8_t *out = to->data;
    size_t in_size = qs_element_size(from->dtype), out_size = qs_element_size(to->dtype);
    for (size_t i = 0; i < n; i++) {
        integer v;
        if (!load_integer(from->dtype, in + i * in_size, &v) ||
            !store_integer(to->dtype, out + i * out_size, v))
            return qs_fail(error, QSIM_E_VALUE, "element %zu does not fit %s", i,
                           qsim_dtype_name(to->dtype));
    }
    return QSIM_OK;
}

static bool convertible(int32_t from, int32_t to) {
    integer ignored;
    static const uint8_t zeros[8];
    if (qs_is_real(from))
        return qs_is_real(to);
    if (!load_integer(from, zeros, &ignored))
        return false;
    return qs_is_real(to) || (to != QSIM_BOOL && load_integer(to, zeros, &ignored));
}

static int check_shapes(const qsim_tensor *from, const qsim_tensor *to, size_t *n,
                        qsim_error *error) {
    size_t from_bytes, to_bytes;
    if (from->rank != to->rank)
        return qs_fail(error, QSIM_E_SHAPE, "ranks %d and %d differ", from->rank, to->rank);
    if (qsim_tensor_size(from->dtype, from->rank, from->dims, n, &from_bytes) != QSIM_OK ||
        qsim_tensor_size(to->dtype, to->rank, to->dims, NULL, &to_bytes) != QSIM_OK)
        return qs_fail(error, QSIM_E_SHAPE, "a bad shape");
    for (int32_t i = 0; i < from->rank; i++)
        if (from->dims[i] != to->dims[i])
            return qs_fail(error, QSIM_E_SHAPE, "sizes %lld and %lld of axis %d differ",
                           (long long)from->dims[i], (long long)to->dims[i], i);
    if (from->bytes < from_bytes || to->bytes < to_bytes || (*n > 0 && (!from->data || !to->data)))
        return qs_fail(error, QSIM_E_ARGUMENT, "a tensor has fewer bytes than its shape says");
    return QSIM_OK;
}

int qsim_tensor_convert(const qsim_tensor *from, const qsim_tensor *to, qsim_error *error) {
    size_t n;
    qs_error_clear(error);
    if (!from || !to)
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_tensor_convert: no tensor");
    if (!convertible(from->dtype, to->dtype))
        return qs_fail(error, QSIM_E_UNSUPPORTED, "%s is not converted to %s",
                       qsim_dtype_name(from->dtype), qsim_dtype_name(to->dtype));
    int code = check_shapes(from, to, &n, error);
    if (code != QSIM_OK)
        return code;
    if (!qs_is_real(to->dtype))
        return to_integer(from, to, n, error);
    const uint64_t fp = qs_fp_enter();
    if (to->dtype == QSIM_FLOAT)
        code = to_float(from->dtype, from->data, n, to->data);
    else if (to->dtype == QSIM_DOUBLE)
        code = to_double(from->dtype, from->data, n, to->data);
    else
        code = to_narrow(from, to, n);
    qs_fp_restore(fp);
    return code;
}
