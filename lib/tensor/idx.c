/* SPDX-License-Identifier: MIT */
/* IDX, the format of MNIST's files: a type, sizes, then elements in big-endian order. */
#include "tensor/array.h"

static int32_t idx_dtype(uint8_t code) {
    switch (code) {
    case 0x08: return QSIM_UINT8;
    case 0x09: return QSIM_INT8;
    case 0x0b: return QSIM_INT16;
    case 0x0c: return QSIM_INT32;
    case 0x0d: return QSIM_FLOAT;
    case 0x0e: return QSIM_DOUBLE;
    default: return QSIM_UNDEFINED;
    }
}

int qsim_idx_parse(const void *data, size_t size, qsim_array *array, qsim_error *error) {
    const uint8_t *p = data;
    qs_error_clear(error);
    if (!array || array->struct_size < sizeof(*array) || (!data && size > 0))
        return qs_fail(error, QSIM_E_ARGUMENT, "qsim_idx_parse: no array or no data");
    qsim_array a = {.struct_size = array->struct_size};
    if (size < 4 || p[0] != 0 || p[1] != 0)
        return qs_fail(error, QSIM_E_FORMAT, "not an IDX file: it does not begin with two zeros");
    a.dtype = idx_dtype(p[2]);
    if (a.dtype == QSIM_UNDEFINED)
        return qs_fail(error, QSIM_E_FORMAT, "not an IDX file: unknown element type 0x%02x", p[2]);
    if (p[3] == 0)
        return qs_fail(error, QSIM_E_FORMAT, "IDX: the header says that there are no dimensions");
    if (p[3] > QSIM_MAX_RANK)
        return qs_fail(error, QSIM_E_LIMIT, "IDX: %d dimensions, at most %d are supported", p[3],
                       QSIM_MAX_RANK);
    a.rank = p[3];
    a.offset = 4 + 4 * (size_t)a.rank;
    if (size < a.offset)
        return qs_fail(error, QSIM_E_FORMAT, "IDX: the header is cut short");
    for (int32_t i = 0; i < a.rank; i++) {
        const uint8_t *d = p + 4 + 4 * (size_t)i;
        a.dims[i] = (int64_t)d[0] << 24 | (int64_t)d[1] << 16 | (int64_t)d[2] << 8 | (int64_t)d[3];
    }
    a.swapped = qs_element_size(a.dtype) > 1 && !qs_big_endian();
    int code = qs_array_finish(&a, size, "IDX", error);
    if (code == QSIM_OK)
        *array = a;
    return code;
}
