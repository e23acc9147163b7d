/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a description of an array: true, forged or out of range. The array is
 * read, converted to every type, and written as .npy and as TensorProto, which read as the same.
 */
#include <string.h>

#include <qsim/quant.h>

#include "fuzz.h"

typedef struct view {
    int64_t dims[QSIM_MAX_RANK];
    qsim_tensor t;
} view;

/* A tensor with memory of exactly its size; seldom one that states less than it needs. */
static bool take_tensor(fuzz_bytes *b, view *v) {
    v->t = (qsim_tensor){(int32_t)fuzz_below(b, 28), (int32_t)fuzz_below(b, 5), v->dims, NULL, 0};
    for (int32_t i = 0; i < QSIM_MAX_RANK; i++) /* set, should the rank be forged */
        v->dims[i] = i < v->t.rank ? fuzz_number(b) : 1;
    if (fuzz_byte(b) > 250)
        v->t.rank = (int32_t)fuzz_number(b);
    if (v->t.rank > QSIM_MAX_RANK)
        v->t.rank = QSIM_MAX_RANK + 1;
    if (qsim_tensor_size(v->t.dtype, v->t.rank, v->dims, NULL, &v->t.bytes) ||
        v->t.bytes > 1u << 16)
        v->t.bytes = fuzz_below(b, 64);
    if (fuzz_byte(b) > 240)
        v->t.bytes -= v->t.bytes > 0;
    v->t.data = malloc(v->t.bytes ? v->t.bytes : 1);
    uint8_t *p = v->t.data;
    for (size_t i = 0; p && i < v->t.bytes; i++)
        p[i] = fuzz_byte(b);
    if (p && v->t.bytes > 0 && qsim_dtype_bits(v->t.dtype) < 8)
        p[v->t.bytes - 1] = 0; /* the rule for tensors: its tail is zero */
    return p != NULL;
}

static void forge(fuzz_bytes *b) {
    qsim_array a = {.struct_size = fuzz_byte(b) > 200 ? (size_t)fuzz_number(b) : sizeof(a)};
    a.dtype = (int32_t)fuzz_below(b, 28);
    a.rank = (int32_t)fuzz_below(b, 4);
    for (int32_t i = 0; i < a.rank; i++)
        a.dims[i] = fuzz_number(b);
    a.rank = fuzz_byte(b) > 250 ? (int32_t)fuzz_number(b) : a.rank;
    if (fuzz_byte(b) > 200 || qsim_tensor_size(a.dtype, a.rank, a.dims, &a.elements, &a.bytes)) {
        a.elements = (size_t)fuzz_number(b);
        a.bytes = (size_t)fuzz_number(b);
    }
    a.fortran = fuzz_byte(b) % 2;
    a.swapped = fuzz_byte(b) % 2;
    a.offset = fuzz_byte(b) > 128 ? (size_t)fuzz_number(b) : 0;
    const int64_t first = fuzz_number(b), count = fuzz_number(b);
    const size_t capacity = a.bytes < 4096 ? a.bytes : fuzz_below(b, 200);
    const size_t size = b->left;
    uint8_t *in = malloc(size + 1), *out = malloc(capacity + 1);
    if (in && out) {
        memcpy(in, b->data, size);
        fuzz_legal(qsim_array_read(&a, in, size, first, count, out, capacity, NULL));
    }
    free(in);
    free(out);
}

static void convert(fuzz_bytes *b) {
    view from, to;
    if (!take_tensor(b, &from))
        return;
    if (take_tensor(b, &to)) {
        if (fuzz_byte(b) % 4 != 0) { /* the same shape */
            size_t bytes = 0;
            to.t.rank = from.t.rank;
            to.t.dims = from.dims;
            if (qsim_tensor_size(to.t.dtype, to.t.rank, to.t.dims, NULL, &bytes) == QSIM_OK &&
                bytes < 1u << 17) {
                free(to.t.data);
                to.t.data = malloc(bytes + 1);
                to.t.bytes = bytes;
            }
        }
        fuzz_legal(qsim_tensor_convert(&from.t, &to.t, NULL));
        free(to.t.data);
    }
    free(from.t.data);
}

/* Aborts unless the array reads as the tensor that was written. */
static void same(const view *v, const qsim_array *a, const void *out) {
    if (a->dtype != v->t.dtype || a->rank != v->t.rank ||
        memcmp(a->dims, v->dims, (size_t)a->rank * sizeof(*a->dims)) != 0 ||
        a->bytes > v->t.bytes || (a->bytes && memcmp(out, v->t.data, a->bytes) != 0))
        abort();
}

static void write_proto(const view *v) {
    qsim_array a = {.struct_size = sizeof(a)};
    size_t need = 0;
    if (fuzz_legal(qsim_proto_write(&v->t, "t", NULL, 0, &need)) != QSIM_OK)
        return;
    uint8_t *bytes = malloc(need), *out = malloc(v->t.bytes + 1);
    if (bytes && out && qsim_proto_write(&v->t, "t", bytes, need, &need) == QSIM_OK) {
        if (qsim_proto_parse(bytes, need, &a, NULL) != QSIM_OK)
            abort();
        const int code = qsim_proto_read(bytes, need, out, v->t.bytes, NULL);
        if (code == QSIM_OK)
            same(v, &a, out);
        else if (code != QSIM_E_VALUE) /* for instance bits after the last element */
            abort();
    }
    free(bytes);
    free(out);
}

static void write_npy(const view *v) {
    char header[QSIM_NPY_HEADER_MAX];
    qsim_array a = {.struct_size = sizeof(a)};
    size_t exact = 0;
    const int n = qsim_npy_header(&v->t, header);
    if (fuzz_legal(n) < 0 || qsim_tensor_size(v->t.dtype, v->t.rank, v->dims, NULL, &exact) ||
        exact > v->t.bytes)
        return;
    uint8_t *file = malloc((size_t)n + exact), *out = malloc(exact + 1);
    if (file && out) {
        memcpy(file, header, (size_t)n);
        memcpy(file + n, v->t.data, exact);
        if (qsim_npy_parse(file, (size_t)n + exact, 0, &a, NULL) != QSIM_OK)
            abort();
        const int64_t rows = a.rank > 0 ? a.dims[0] : 1;
        if (qsim_array_read(&a, file, (size_t)n + exact, 0, rows, out, exact, NULL) == QSIM_OK)
            same(v, &a, out);
    }
    free(file);
    free(out);
}

static void quantize(fuzz_bytes *b) {
    static const float scales[] = {1.0f, 0.1f, 1e-30f, 0.0f, -1.0f};
    static const int32_t zeros[] = {0, 128, -128, 1 << 21};
    view x, y;
    float scale[4];
    int32_t zero[4];
    for (size_t i = 0; i < 4; i++) {
        scale[i] = scales[fuzz_below(b, 5)];
        zero[i] = zeros[fuzz_below(b, 4)];
    }
    const qsim_qparams q = {(int32_t)fuzz_below(b, 28),
                            (int32_t)fuzz_number(b),
                            fuzz_number(b),
                            fuzz_below(b, 5),
                            scale,
                            fuzz_byte(b) % 2 ? zero : NULL};
    if (!take_tensor(b, &x))
        return;
    if (take_tensor(b, &y)) {
        fuzz_legal(qsim_tensor_quantize(&x.t, &q, &y.t, NULL));
        fuzz_legal(qsim_tensor_dequantize(&x.t, &q, &y.t, NULL));
        fuzz_legal(qsim_qparams_measure(&x.t, q.dtype, q.axis, q.block, (int32_t)fuzz_below(b, 8),
                                        q.count < 5 ? q.count : 4, scale, zero, NULL));
        free(y.t.data);
    }
    free(x.t.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes b = {data, size};
    view v;
    switch (fuzz_below(&b, 4)) {
    case 0: forge(&b); break;
    case 1: convert(&b); break;
    case 2: quantize(&b); break;
    default:
        if (take_tensor(&b, &v)) {
            write_proto(&v);
            write_npy(&v);
            free(v.t.data);
        }
    }
    return 0;
}

#define TYPES 28

/* An array of 2 x 3 floats for each of the four functions; then conversions of each type to each
 * other. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const uint8_t heads[4][24] = {
        {0, 0, 1, 2, 2, 3, 0, 0, 0, 0, 0, 0, 2},
        {1, 1, 2, 2, 3, 0, 0},
        {2, 0, 0, 1, 1, 2, 2, 3, 3, 2, 0, 0, 1, 1},
        {3, 6, 2, 2, 3, 0, 0},
    };
    if (index >= 4 + TYPES * TYPES || capacity < 160)
        return 0;
    for (size_t i = 0; i < 160; i++)
        buffer[i] = (uint8_t)(i * 37 % 251);
    if (index < 4) {
        memcpy(buffer, heads[index], 14);
        return 64;
    }
    /* 1: convert; 6 elements of a type, whose bytes follow; the other type, 6 elements, their bytes
     */
    const uint8_t from = (uint8_t)((index - 4) / TYPES), to = (uint8_t)((index - 4) % TYPES);
    const uint8_t first[] = {1, from, 1, 6, 0, 0}, second[] = {to, 1, 6, 0, 0};
    const size_t bytes = (6 * (size_t)qsim_dtype_bits(from) + 7) / 8;
    memcpy(buffer, first, sizeof(first));
    memcpy(buffer + sizeof(first) + bytes, second, sizeof(second));
    return 160;
}
