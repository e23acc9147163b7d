/* SPDX-License-Identifier: MIT */
#include "tensor/array.h"

int qs_array_finish(qsim_array *a, uint64_t file_size, const char *what, qsim_error *error) {
    int code = qsim_tensor_size(a->dtype, a->rank, a->dims, &a->elements, &a->bytes);
    if (code != QSIM_OK)
        return qs_fail(error, code, "%s: the shape in the header is too large", what);
    uint64_t present = file_size - a->offset;
    if (a->bytes > present)
        return qs_fail(error, QSIM_E_FORMAT,
                       "%s: truncated: the shape in the header needs %zu bytes, %llu are there",
                       what, a->bytes, (unsigned long long)present);
    if (a->bytes < present)
        return qs_fail(error, QSIM_E_FORMAT, "%s: %llu bytes follow the %zu bytes of the array",
                       what, (unsigned long long)(present - a->bytes), a->bytes);
    return QSIM_OK;
}

static void copy_swapped(uint8_t *out, const uint8_t *in, size_t count, size_t size) {
    for (size_t i = 0; i < count; i++)
        for (size_t b = 0; b < size; b++)
            out[i * size + b] = in[i * size + size - 1 - b];
}

/* Copies `count` elements of a Fortran-order array in row-major order, from index `first` on. */
static void copy_fortran(const qsim_array *a, const uint8_t *in, int64_t first, size_t count,
                         uint8_t *out) {
    size_t size = qs_element_size(a->dtype), strides[QSIM_MAX_RANK] = {0};
    int64_t index[QSIM_MAX_RANK] = {first};
    strides[0] = size;
    for (int32_t d = 1; d < a->rank; d++)
        strides[d] = strides[d - 1] * (size_t)a->dims[d - 1];
    size_t at = (size_t)first * size;
    for (size_t i = 0; i < count; i++) {
        if (a->swapped)
            copy_swapped(out + i * size, in + at, 1, size);
        else
            memcpy(out + i * size, in + at, size);
        for (int32_t d = a->rank - 1; d >= 0; d--) {
            at += strides[d];
            if (++index[d] < a->dims[d] || d == 0)
                break;
            at -= strides[d] * (size_t)a->dims[d];
            index[d] = 0;
        }
    }
}

static int check_array(const qsim_array *a, size_t size) {
    size_t elements, bytes;
    if (!a || a->struct_size < sizeof(*a) || qs_element_size(a->dtype) == 0 ||
        qsim_tensor_size(a->dtype, a->rank, a->dims, &elements, &bytes) != QSIM_OK)
        return QSIM_E_ARGUMENT;
    if (elements != a->elements || bytes != a->bytes || a->offset > size ||
        bytes > size - a->offset)
        return QSIM_E_ARGUMENT;
    return QSIM_OK;
}

int qsim_array_read(const qsim_array *a, const void *data, size_t size, int64_t first,
                    int64_t count, void *out, size_t capacity, qsim_error *error) {
    qs_error_clear(error);
    if (check_array(a, size) != QSIM_OK)
        return qs_fail(error, QSIM_E_ARGUMENT, "the array was not parsed from these bytes");
    int64_t rows = a->rank > 0 ? a->dims[0] : 1;
    if (first < 0 || count < 0 || first > rows || count > rows - first)
        return qs_fail(error, QSIM_E_ARGUMENT, "%lld positions from %lld on, of an array of %lld",
                       (long long)count, (long long)first, (long long)rows);
    size_t row = rows > 0 ? a->elements / (size_t)rows : 0, element = qs_element_size(a->dtype);
    size_t n = row * (size_t)count;
    if (n == 0)
        return QSIM_OK;
    if (!out || !data || n * element > capacity)
        return qs_fail(error, QSIM_E_ARGUMENT, "%zu bytes do not fit a buffer of %zu", n * element,
                       capacity);
    const uint8_t *in = (const uint8_t *)data + a->offset;
    if (a->fortran)
        copy_fortran(a, in, first, n, out);
    else if (a->swapped)
        copy_swapped(out, in + (size_t)first * row * element, n, element);
    else
        memcpy(out, in + (size_t)first * row * element, n * element);
    if (a->dtype == QSIM_BOOL)
        for (size_t i = 0; i < n; i++)
            if (((const uint8_t *)out)[i] > 1)
                return qs_fail(error, QSIM_E_VALUE, "a bool has the value %d, not 0 or 1",
                               ((const uint8_t *)out)[i]);
    return QSIM_OK;
}
