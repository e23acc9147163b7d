/* SPDX-License-Identifier: MIT */
/* Data types by number: name, bits; elements and bytes of a shape. */
#include "base/base.h"
#include "tensor/shape.h"

#include <stdio.h>

static const struct {
    const char *name;
    int32_t bits;
} dtypes[] = {
    [QSIM_UNDEFINED] = {"undefined", 0},
    [QSIM_FLOAT] = {"float", 32},
    [QSIM_UINT8] = {"uint8", 8},
    [QSIM_INT8] = {"int8", 8},
    [QSIM_UINT16] = {"uint16", 16},
    [QSIM_INT16] = {"int16", 16},
    [QSIM_INT32] = {"int32", 32},
    [QSIM_INT64] = {"int64", 64},
    [QSIM_STRING] = {"string", 0},
    [QSIM_BOOL] = {"bool", 8},
    [QSIM_FLOAT16] = {"float16", 16},
    [QSIM_DOUBLE] = {"double", 64},
    [QSIM_UINT32] = {"uint32", 32},
    [QSIM_UINT64] = {"uint64", 64},
    [QSIM_COMPLEX64] = {"complex64", 64},
    [QSIM_COMPLEX128] = {"complex128", 128},
    [QSIM_BFLOAT16] = {"bfloat16", 16},
    [QSIM_FLOAT8E4M3FN] = {"float8e4m3fn", 8},
    [QSIM_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 8},
    [QSIM_FLOAT8E5M2] = {"float8e5m2", 8},
    [QSIM_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 8},
    [QSIM_UINT4] = {"uint4", 4},
    [QSIM_INT4] = {"int4", 4},
    [QSIM_FLOAT4E2M1] = {"float4e2m1", 4},
    [QSIM_FLOAT8E8M0] = {"float8e8m0", 8},
    [QSIM_UINT2] = {"uint2", 2},
    [QSIM_INT2] = {"int2", 2},
};

const char *qsim_dtype_name(int32_t dtype) {
    if ((uint32_t)dtype >= QS_COUNT(dtypes))
        return dtypes[QSIM_UNDEFINED].name;
    return dtypes[dtype].name;
}

int32_t qsim_dtype_bits(int32_t dtype) {
    if ((uint32_t)dtype >= QS_COUNT(dtypes))
        return 0;
    return dtypes[dtype].bits;
}

int qsim_tensor_size(int32_t dtype, int32_t rank, const int64_t *dims, size_t *elements,
                     size_t *bytes) {
    size_t bits = (size_t)qsim_dtype_bits(dtype);
    if (bits == 0)
        return QSIM_E_DTYPE;
    if (rank < 0 || rank > QSIM_MAX_RANK || (rank > 0 && !dims))
        return QSIM_E_SHAPE;
    /* The other sizes must fit even beside a zero: strides are computed from them. */
    size_t n = 1;
    bool empty = false;
    for (int32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return QSIM_E_SHAPE;
        if (dims[i] == 0)
            empty = true;
        else if ((uint64_t)dims[i] > SIZE_MAX || !qs_mul(n, (size_t)dims[i], &n))
            return QSIM_E_LIMIT;
    }
    size_t total, groups = n;
    if (bits < 8)
        groups = n / (8 / bits) + (n % (8 / bits) != 0);
    if (!qs_mul(groups, bits < 8 ? 1 : bits / 8, &total) || total > (SIZE_MAX >> 1))
        return QSIM_E_LIMIT;
    if (elements)
        *elements = empty ? 0 : n;
    if (bytes)
        *bytes = empty ? 0 : total;
    return QSIM_OK;
}

void qs_tensor_dims(const qsim_tensor *t, int64_t *to) {
    for (int32_t i = 0; i < t->rank; i++)
        to[i] = t->dims[i];
}

const char *qs_shape_text(char *text, size_t capacity, int32_t rank, const int64_t *dims) {
    char number[24];
    size_t n = 0;
    text[n++] = '[';
    for (int32_t i = 0; i < rank && n + sizeof(number) < capacity; i++) {
        snprintf(number, sizeof(number), "%s%lld", i ? "," : "", (long long)dims[i]);
        memcpy(text + n, number, strlen(number));
        n += strlen(number);
    }
    text[n++] = ']';
    text[n] = 0;
    return text;
}
