/* SPDX-License-Identifier: MIT */
/* Reads TensorProto: decodes all ways in which ONNX stores a tensor to plain bytes. */
#include "base/ctx.h"
#include "onnx/emit.h"
#include "onnx/reader.h"
#include "tensor/shape.h"

#include <qsim/data.h>

#include <stdio.h>

/* What becomes of the elements: kept in place or in the arena, only counted, or copied. */
enum mode { KEEP, COUNT, COPY };

struct parts {
    qs_span message;
    enum mode mode;
    uint8_t *copy;
    const char *what, *name;
    int64_t dims[QSIM_MAX_RANK];
    int32_t rank;
    uint64_t dtype, location;
    qs_span raw;
    uint32_t data_field; /* the field that has typed data; 0: none */
    size_t strings;
    bool has_raw, segment, external, mixed;
};

static const char *field_name(uint32_t field) {
    switch (field) {
    case TENSOR_FLOATS: return "float_data";
    case TENSOR_INT32S: return "int32_data";
    case TENSOR_STRINGS: return "string_data";
    case TENSOR_INT64S: return "int64_data";
    case TENSOR_DOUBLES: return "double_data";
    default: return "uint64_data";
    }
}

static uint32_t field_of_dtype(int32_t dtype) {
    switch (dtype) {
    case QSIM_FLOAT:
    case QSIM_COMPLEX64: return TENSOR_FLOATS;
    case QSIM_DOUBLE:
    case QSIM_COMPLEX128: return TENSOR_DOUBLES;
    case QSIM_INT64: return TENSOR_INT64S;
    case QSIM_UINT32:
    case QSIM_UINT64: return TENSOR_UINT64S;
    default: return TENSOR_INT32S;
    }
}

/* "float[2,3]" for messages. */
static const char *type_text(int32_t dtype, int32_t rank, const int64_t *dims, char buffer[96]) {
    const char *name = qsim_dtype_name(dtype);
    const size_t n = strlen(name);
    memcpy(buffer, name, n);
    qs_shape_text(buffer + n, 96 - n, rank, dims);
    return buffer;
}

int qs_read_dims(qs_reader *r, qs_span message, uint32_t field, const char *what, const char *name,
                 int64_t *dims, int32_t *rank) {
    qs_numbers numbers;
    uint64_t value;
    int code;
    *rank = 0;
    qs_numbers_begin(&numbers, message, field, PB_WT_VARINT);
    while ((code = qs_numbers_next(&numbers, &value)) == 1) {
        if (*rank == QSIM_MAX_RANK)
            return qs_read_fail(r, QSIM_E_LIMIT, "%s '%s' has more than %d axes", what, name,
                                QSIM_MAX_RANK);
        if (value > INT64_MAX)
            return qs_read_fail(r, QSIM_E_SHAPE, "%s '%s': size of axis %d is negative: %lld", what,
                                name, (int)*rank, (long long)value);
        dims[(*rank)++] = (int64_t)value;
    }
    return code;
}

static int collect(qs_reader *r, struct parts *p) {
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, p->message);
    while (qs_wire_next(&wire, &f) == 1) {
        switch (f.number) {
        case TENSOR_DTYPE: p->dtype = f.value; break;
        case TENSOR_LOCATION: p->location = f.value; break;
        case TENSOR_SEGMENT: p->segment = true; break;
        case TENSOR_EXTERNAL: p->external = true; break;
        case TENSOR_RAW:
            p->raw = f.data;
            p->has_raw = true;
            break;
        case TENSOR_FLOATS:
        case TENSOR_INT32S:
        case TENSOR_STRINGS:
        case TENSOR_INT64S:
        case TENSOR_DOUBLES:
        case TENSOR_UINT64S:
            if (f.type == PB_WT_STRING && f.data.size == 0 && f.number != TENSOR_STRINGS)
                break; /* an empty list counts as absent */
            p->mixed = p->mixed || (p->data_field && p->data_field != f.number);
            p->data_field = f.number;
            p->strings += f.number == TENSOR_STRINGS;
            break;
        default: break;
        }
    }
    return qs_read_dims(r, p->message, TENSOR_DIMS, p->what, p->name, p->dims, &p->rank);
}

/*
 * Whether an entry of an integer list is a value of the type; `packed`: of a byte with several
 * elements.
 */
static bool in_range(int32_t dtype, int64_t v, bool packed) {
    if (packed)
        return v >= -128 && v <= 255;
    switch (dtype) {
    case QSIM_INT8: return v >= -128 && v <= 127;
    case QSIM_INT16: return v >= -32768 && v <= 32767;
    case QSIM_BOOL: return v == 0 || v == 1;
    case QSIM_UINT16:
    case QSIM_FLOAT16:
    case QSIM_BFLOAT16: return v >= 0 && v <= 65535;
    case QSIM_UINT32: return v >= 0 && v <= UINT32_MAX;
    case QSIM_INT32: /* int32_data has no others */
    case QSIM_INT64:
    case QSIM_UINT64: return true;
    default: return v >= 0 && v <= 255; /* uint8 and the 8-bit floats */
    }
}

/* Memory for decoded elements. */
static uint8_t *alloc_elements(qs_reader *r, const struct parts *p, const qs_const *c) {
    return p->mode == COPY ? p->copy : qs_arena_alloc64(r->arena, c->bytes ? c->bytes : 1);
}

static int decode_integers(qs_reader *r, const struct parts *p, qs_const *c, size_t count) {
    size_t width = c->bytes / (count ? count : 1);
    bool packed = qsim_dtype_bits(c->dtype) < 8;
    uint8_t *out = alloc_elements(r, p, c);
    if (!out)
        return qs_read_nomem(r);
    qs_numbers numbers;
    uint64_t bits = 0;
    qs_numbers_begin(&numbers, p->message, p->data_field, PB_WT_VARINT);
    for (size_t i = 0; i < count; i++) {
        (void)qs_numbers_next(&numbers, &bits); /* there are as many: decode_typed */
        int64_t v = (int64_t)bits;
        if (p->data_field == TENSOR_INT32S)
            v = (int32_t)(uint32_t)bits;
        if (!in_range(c->dtype, v, packed))
            return qs_read_fail(r, QSIM_E_VALUE, "%s '%s': %lld in %s does not fit %s", p->what,
                                p->name, (long long)v, field_name(p->data_field),
                                qsim_dtype_name(c->dtype));
        memcpy(out + i * width, &v, width);
    }
    c->data = out;
    return QSIM_OK;
}

/* Reads floats and doubles; in place if they are one packed list. */
static int decode_floats(qs_reader *r, const struct parts *p, qs_const *c, size_t count) {
    size_t width = c->bytes / (count ? count : 1);
    qs_span list = qs_wire_find(p->message, p->data_field);
    if (list.size == c->bytes) {
        c->data = list.data;
        return QSIM_OK;
    }
    uint8_t *out = alloc_elements(r, p, c);
    if (!out)
        return qs_read_nomem(r);
    qs_numbers numbers;
    uint64_t bits = 0;
    qs_numbers_begin(&numbers, p->message, p->data_field, width == 4 ? PB_WT_32BIT : PB_WT_64BIT);
    for (size_t i = 0; i < count; i++) {
        (void)qs_numbers_next(&numbers, &bits);
        memcpy(out + i * width, &bits, width);
    }
    c->data = out;
    return QSIM_OK;
}

static int decode_typed(qs_reader *r, const struct parts *p, qs_const *c) {
    char text[96];
    uint32_t field = p->data_field ? p->data_field : field_of_dtype(c->dtype);
    if (field != field_of_dtype(c->dtype))
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s': %s cannot hold %s", p->what, p->name,
                            field_name(field), qsim_dtype_name(c->dtype));
    bool floats = field == TENSOR_FLOATS || field == TENSOR_DOUBLES;
    uint32_t width = field == TENSOR_FLOATS    ? PB_WT_32BIT
                     : field == TENSOR_DOUBLES ? PB_WT_64BIT
                                               : PB_WT_VARINT;
    int64_t count = qs_numbers_count(p->message, field, width);
    size_t need = c->elements;
    if (c->dtype == QSIM_COMPLEX64 || c->dtype == QSIM_COMPLEX128)
        need *= 2; /* does not overflow: the bytes fit */
    else if (qsim_dtype_bits(c->dtype) < 8)
        need = c->bytes;
    if ((uint64_t)count != need)
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s': %s holds %lld values, %s needs %zu",
                            p->what, p->name, p->data_field ? field_name(field) : "the tensor",
                            (long long)count, type_text(c->dtype, c->rank, c->dims, text), need);
    if (p->mode == COUNT)
        return QSIM_OK;
    return floats ? decode_floats(r, p, c, need) : decode_integers(r, p, c, need);
}

/* Sets the bits after the last element to zero, whatever the file has there. */
static int clear_tail(qs_reader *r, const struct parts *p, qs_const *c) {
    size_t per_byte = 8 / (size_t)qsim_dtype_bits(c->dtype), used = c->elements % per_byte;
    if (used == 0)
        return QSIM_OK;
    uint8_t mask = (uint8_t)((1u << (used * 8 / per_byte)) - 1);
    const uint8_t *bytes = c->data;
    if ((bytes[c->bytes - 1] & ~mask) == 0)
        return QSIM_OK;
    uint8_t *copy = p->mode == COPY ? p->copy : qs_arena_copy(r->arena, bytes, c->bytes);
    if (!copy)
        return qs_read_nomem(r);
    copy[c->bytes - 1] &= mask;
    c->data = copy;
    return QSIM_OK;
}

static int read_strings(qs_reader *r, const struct parts *p, qs_const *c) {
    size_t n = 1;
    for (int32_t i = 0; i < p->rank; i++)
        if ((uint64_t)p->dims[i] > SIZE_MAX || !qs_mul(n, (size_t)p->dims[i], &n))
            return qs_read_fail(r, QSIM_E_LIMIT, "%s '%s' is too large", p->what, p->name);
    if (p->has_raw || p->external || (p->data_field && p->data_field != TENSOR_STRINGS))
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s': strings stand in string_data only", p->what,
                            p->name);
    if (n != p->strings)
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s': %zu strings, the shape needs %zu", p->what,
                            p->name, p->strings, n);
    c->elements = n;
    return QSIM_OK;
}

static int read_raw(qs_reader *r, const struct parts *p, qs_const *c) {
    char text[96];
    if (p->raw.size != c->bytes)
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s': raw_data has %zu bytes, %s needs %zu",
                            p->what, p->name, p->raw.size,
                            type_text(c->dtype, c->rank, c->dims, text), c->bytes);
    c->data = p->raw.data;
    return QSIM_OK;
}

int qs_read_size(qs_reader *r, const char *what, const char *name, qs_const *c) {
    char text[96];
    int code = qsim_tensor_size(c->dtype, c->rank, c->dims, &c->elements, &c->bytes);
    if (code)
        return qs_read_fail(r, code, "%s '%s' is too large: %s", what, name,
                            type_text(c->dtype, c->rank, c->dims, text));
    return r->ctx ? QS_LIMIT(r->ctx, elements, c->elements, r->error, r->name) : QSIM_OK;
}

static int read_data(qs_reader *r, const struct parts *p, qs_const *c) {
    static const uint64_t nothing;
    int code;
    if (p->location > 1)
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s': unknown data_location %llu", p->what,
                            p->name, (unsigned long long)p->location);
    if (p->segment)
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "%s '%s' is stored in segments", p->what,
                            p->name);
    if ((p->data_field && p->raw.size > 0) || p->mixed)
        return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s' holds its data twice (%s too)", p->what,
                            p->name, field_name(p->data_field));
    if (p->location == 1) {
        c->external = true;
        if (p->raw.size > 0 || p->data_field)
            return qs_read_fail(r, QSIM_E_FORMAT, "%s '%s' holds its data inside and outside",
                                p->what, p->name);
        code = qs_read_external(r, p->message, p->what, p->name, c->bytes, &c->data);
    } else if (p->has_raw && !p->data_field) {
        code = read_raw(r, p, c);
    } else {
        code = decode_typed(r, p, c);
    }
    if (code || p->mode == COUNT)
        return code;
    if (c->bytes == 0)
        c->data = &nothing;
    if (p->mode == COPY && c->data != p->copy) { /* no context: it is in a file of its own */
        (void)qs_copy(NULL, p->copy, c->data, c->bytes);
        c->data = p->copy;
    }
    return qsim_dtype_bits(c->dtype) < 8 ? clear_tail(r, p, c) : QSIM_OK;
}

/* Reads type, shape and size; the data comes later. */
static int measure(qs_reader *r, struct parts *p, qs_const *c) {
    int code = collect(r, p);
    if (code)
        return code;
    if (p->dtype == QSIM_UNDEFINED || p->dtype > QSIM_INT2)
        return qs_read_fail(r, QSIM_E_DTYPE, "%s '%s' has the unknown data type %llu", p->what,
                            p->name, (unsigned long long)p->dtype);
    *c = (qs_const){.dtype = (int32_t)p->dtype, .rank = p->rank, .source = p->message};
    c->dims = p->dims;
    return c->dtype == QSIM_STRING ? read_strings(r, p, c) : qs_read_size(r, p->what, p->name, c);
}

int qs_read_tensor(qs_reader *r, qs_span message, const char *what, const char *name,
                   qs_const *out) {
    struct parts p = {.message = message, .what = what, .name = name};
    qs_const c;
    int code = measure(r, &p, &c);
    if (!code && c.dtype != QSIM_STRING)
        code = read_data(r, &p, &c);
    if (code)
        return code;
    c.dims = qs_arena_copy(r->arena, p.dims, (size_t)p.rank * sizeof(p.dims[0]));
    if (!c.dims)
        return qs_read_nomem(r);
    *out = c;
    return QSIM_OK;
}

/* ---- a tensor in a file of its own ---- */

static int open_file(qs_reader *r, struct parts *p, qs_const *c) {
    int code = qs_schema_check(p->message, QS_MESSAGE_TENSOR, r->name, r->error);
    if (!code)
        code = measure(r, p, c);
    if (!code && c->dtype == QSIM_STRING)
        code = qs_read_fail(r, QSIM_E_DTYPE, "a tensor of strings");
    return code;
}

int qsim_proto_parse(const void *data, size_t size, qsim_array *array, qsim_error *error) {
    qs_reader r = {.name = "TensorProto", .error = error};
    struct parts p = {.message = {data, size}, .mode = COUNT, .what = "tensor", .name = "(file)"};
    qsim_array a = {.struct_size = sizeof(a)};
    qs_const c;
    qs_error_clear(error);
    if ((!data && size) || !array || array->struct_size < sizeof(a))
        return qs_fail(error, QSIM_E_ARGUMENT, "TensorProto: no data, no array or no struct_size");
    int code = open_file(&r, &p, &c);
    if (!code)
        code = read_data(&r, &p, &c);
    if (code)
        return code;
    memcpy(a.dims, p.dims, sizeof(a.dims));
    a.elements = c.elements;
    a.bytes = c.bytes;
    a.dtype = c.dtype;
    a.rank = c.rank;
    *array = a;
    return QSIM_OK;
}

int qsim_proto_read(const void *data, size_t size, void *out, size_t capacity, qsim_error *error) {
    qs_reader r = {.name = "TensorProto", .error = error};
    struct parts p = {.message = {data, size}, .mode = COPY, .copy = out, .what = "tensor"};
    qs_const c;
    p.name = "(file)";
    qs_error_clear(error);
    if ((!data && size) || (!out && capacity))
        return qs_fail(error, QSIM_E_ARGUMENT, "TensorProto: no data or no place for it");
    int code = open_file(&r, &p, &c);
    if (!code && c.bytes > capacity)
        code = qs_fail(error, QSIM_E_ARGUMENT, "TensorProto: %zu bytes do not fit %zu", c.bytes,
                       capacity);
    return code ? code : read_data(&r, &p, &c);
}

int qsim_proto_write(const qsim_tensor *tensor, const char *name, void *buffer, size_t capacity,
                     size_t *need) {
    qs_const c = {0};
    if (!tensor || !need || (!buffer && capacity))
        return QSIM_E_ARGUMENT;
    c.dtype = tensor->dtype;
    c.rank = tensor->rank;
    c.dims = tensor->dims;
    c.data = tensor->data;
    int code = qsim_tensor_size(c.dtype, c.rank, c.dims, &c.elements, &c.bytes);
    if (code)
        return code;
    if (c.bytes != tensor->bytes || (c.bytes && !c.data))
        return QSIM_E_ARGUMENT;
    pb_ostream_t size = PB_OSTREAM_SIZING;
    if (!qs_emit_tensor_body(&size, name ? name : "", &c))
        return QSIM_E_INTERNAL;
    *need = size.bytes_written;
    if (*need > capacity)
        return QSIM_OK;
    pb_ostream_t stream = pb_ostream_from_buffer(buffer, capacity);
    return qs_emit_tensor_body(&stream, name ? name : "", &c) ? QSIM_OK : QSIM_E_INTERNAL;
}
