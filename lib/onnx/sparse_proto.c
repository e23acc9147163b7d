/* SPDX-License-Identifier: MIT */
/* Reads SparseTensorProto into a tensor that holds all elements: libqsim computes on no others. */
#include "base/ctx.h"
#include "onnx/reader.h"
#include "tensor/shape.h"

struct sparse {
    const char *name;
    int64_t dims[QSIM_MAX_RANK];
    int32_t rank;
    qs_const values, indices;
};

/* A part is inside the file, since external data of sparse tensors could not be saved again. */
static int read_part(qs_reader *r, qs_span message, const char *what, const char *name,
                     qs_const *out) {
    const int code = qs_read_tensor(r, message, what, name, out);
    if (!code && out->external)
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "%s '%s' is sparse and external", what, name);
    return code;
}

/* Checks the parts' types and shapes: `count` values, and of each either one index or `rank`. */
static int check_parts(qs_reader *r, const struct sparse *s) {
    const qs_const *v = &s->values, *at = &s->indices;
    if (qsim_dtype_bits(v->dtype) < 8) /* strings too */
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "sparse tensor '%s' is of type %s", s->name,
                            qsim_dtype_name(v->dtype));
    if (at->dtype != QSIM_INT64)
        return qs_read_fail(r, QSIM_E_DTYPE, "sparse tensor '%s': indices are %s, not int64",
                            s->name, qsim_dtype_name(at->dtype));
    const bool fits = v->rank == 1 && at->rank >= 1 && at->rank <= 2 && at->dims[0] == v->dims[0] &&
                      (at->rank == 1 || at->dims[1] == s->rank);
    if (!fits)
        return qs_read_fail(r, QSIM_E_SHAPE, "sparse tensor '%s': values and indices do not fit",
                            s->name);
    return QSIM_OK;
}

/*
 * Sets *place to the position of value i among all elements. Indices have either the position
 * itself or one number for each axis.
 */
static bool find_place(const struct sparse *s, size_t elements, size_t i, uint64_t *place) {
    const bool linear = s->indices.rank == 1;
    const size_t count = linear ? 1 : (size_t)s->rank;
    const uint8_t *from = (const uint8_t *)s->indices.data + i * count * sizeof(int64_t);
    *place = 0;
    for (size_t axis = 0; axis < count; axis++) {
        const uint64_t size = linear ? elements : (uint64_t)s->dims[axis];
        uint64_t index;
        memcpy(&index, from + axis * sizeof(index), sizeof(index));
        if (index >= size) /* negative ones too */
            return false;
        *place = *place * size + index; /* below `elements` */
    }
    return true;
}

/* Copies the values into `out`, which has zeros. The specification asks for ascending indices. */
static int scatter(qs_reader *r, const struct sparse *s, size_t elements, uint8_t *out) {
    const size_t width = (size_t)qsim_dtype_bits(s->values.dtype) / 8;
    const uint8_t *values = s->values.data;
    uint64_t place, before = 0;
    for (size_t i = 0; i < s->values.elements; i++) {
        if (!find_place(s, elements, i, &place))
            return qs_read_fail(r, QSIM_E_VALUE, "sparse tensor '%s': index %zu is out of range",
                                s->name, i);
        if (i > 0 && place <= before)
            return qs_read_fail(r, QSIM_E_VALUE, "sparse tensor '%s': index %zu does not ascend",
                                s->name, i);
        memcpy(out + place * width, values + i * width, width);
        before = place;
    }
    return QSIM_OK;
}

int qs_read_sparse(qs_reader *r, qs_span message, const char *what, const char *name,
                   qs_const *out) {
    struct sparse s = {.name = name};
    int code = read_part(r, qs_wire_find(message, SPARSE_VALUES), what, name, &s.values);
    if (!code)
        code = read_part(r, qs_wire_find(message, SPARSE_INDICES), what, name, &s.indices);
    if (!code)
        code = qs_read_dims(r, message, SPARSE_DIMS, what, name, s.dims, &s.rank);
    if (!code)
        code = check_parts(r, &s);
    if (code)
        return code;
    qs_const c = {.dtype = s.values.dtype, .rank = s.rank, .dims = s.dims};
    code = qs_read_size(r, what, name, &c);
    if (code)
        return code;
    uint8_t *data = qs_arena_alloc64(r->arena, c.bytes ? c.bytes : 1);
    c.dims = qs_arena_copy(r->arena, s.dims, (size_t)s.rank * sizeof(s.dims[0]));
    if (!data || !c.dims)
        return qs_read_nomem(r);
    memset(data, 0, c.bytes);
    c.data = data;
    *out = c;
    return scatter(r, &s, c.elements, data);
}
