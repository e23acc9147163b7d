/* SPDX-License-Identifier: MIT */
/*
 * Functions on plain tensors, which have no context, with more elements than any piece in which
 * work that can be cancelled is divided.
 */
#include "test.h"
#include "proto.h"

#include <qsim/data.h>
#include <qsim/op.h>
#include <qsim/ptq.h>
#include <qsim/quant.h>

#define ROWS    3
#define COLUMNS ((size_t)1 << 20)
#define COUNT   (ROWS * COLUMNS)

static const int64_t dims[] = {ROWS, (int64_t)COLUMNS};

enum { DIMS = 1, DTYPE = 2, FLOATS = 4, INT32S = 5, RAW = 9 };

static void *numbers(size_t bytes) {
    void *p = malloc(bytes);
    if (!p)
        exit(1);
    return p;
}

/* Whole numbers between -100 and 100. */
static float value(size_t i) {
    return (float)(i % 201) - 100;
}

static float *floats(void) {
    float *x = numbers(COUNT * sizeof(*x));
    for (size_t i = 0; i < COUNT; i++)
        x[i] = value(i);
    return x;
}

static void head(proto *t, int32_t dtype) {
    proto_int(t, DIMS, dims[0]);
    proto_int(t, DIMS, dims[1]);
    proto_int(t, DTYPE, dtype);
}

static void expect_read(proto *t, const void *bytes, size_t size) {
    qsim_array a = {.struct_size = sizeof(a)};
    void *out = numbers(size);
    CHECK_INT(qsim_proto_parse(t->data, t->size, &a, NULL), QSIM_OK);
    CHECK_INT(a.bytes, size);
    CHECK_INT(qsim_proto_read(t->data, t->size, out, size, NULL), QSIM_OK);
    CHECK(memcmp(out, bytes, size) == 0);
    free(out);
    proto_free(t);
}

static void protos(const float *x) {
    proto raw = {0}, typed = {0}, small = {0}, list = {0};
    uint8_t *bytes = numbers(COUNT);
    head(&raw, QSIM_FLOAT);
    proto_bytes(&raw, RAW, x, COUNT * sizeof(*x));
    expect_read(&raw, x, COUNT * sizeof(*x));

    head(&typed, QSIM_FLOAT);
    proto_bytes(&typed, FLOATS, x, COUNT * sizeof(*x)); /* packed */
    expect_read(&typed, x, COUNT * sizeof(*x));

    for (size_t i = 0; i < COUNT; i++)
        proto_varint(&list, bytes[i] = (uint8_t)(i % 251));
    head(&small, QSIM_UINT8);
    proto_take(&small, INT32S, &list);
    expect_read(&small, bytes, COUNT);
    proto_free(&list);
    free(bytes);
}

static void written(const float *x) {
    const qsim_tensor t = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x, COUNT * sizeof(*x)};
    size_t need = 0;
    CHECK_INT(qsim_proto_write(&t, "x", NULL, 0, &need), QSIM_OK);
    proto p = {0};
    p.data = numbers(need);
    p.size = need;
    CHECK_INT(qsim_proto_write(&t, "x", p.data, need, &need), QSIM_OK);
    expect_read(&p, x, COUNT * sizeof(*x));
}

/* One scale for all, one for each row, one for each two columns: real = q / 2. */
static void quantized(const float *x, size_t count, int32_t axis, int64_t block) {
    qsim_tensor from = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x, COUNT * sizeof(*x)};
    qsim_tensor q = {QSIM_INT16, 2, dims, numbers(2 * COUNT), 2 * COUNT};
    qsim_tensor back = {QSIM_FLOAT, 2, dims, numbers(COUNT * sizeof(*x)), COUNT * sizeof(*x)};
    float *scale = numbers(count * sizeof(*scale));
    for (size_t i = 0; i < count; i++)
        scale[i] = 0.5f;
    const qsim_qparams p = {QSIM_INT16, axis, block, count, scale, NULL};
    CHECK_INT(qsim_tensor_quantize(&from, &p, &q, NULL), QSIM_OK);
    long wrong = 0;
    for (size_t i = 0; i < COUNT; i++)
        wrong += (float)((const int16_t *)q.data)[i] != 2 * x[i];
    CHECK_INT(wrong, 0);
    CHECK_INT(qsim_tensor_dequantize(&q, &p, &back, NULL), QSIM_OK);
    CHECK(memcmp(back.data, x, COUNT * sizeof(*x)) == 0);
    free(q.data);
    free(back.data);
    free(scale);
}

static void converted(const float *x) {
    const qsim_tensor from = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x, COUNT * sizeof(*x)};
    const qsim_tensor wide = {QSIM_DOUBLE, 2, dims, numbers(8 * COUNT), 8 * COUNT};
    CHECK_INT(qsim_tensor_convert(&from, &wide, NULL), QSIM_OK);
    long wrong = 0;
    for (size_t i = 0; i < COUNT; i++)
        wrong += ((const double *)wide.data)[i] != (double)x[i];
    CHECK_INT(wrong, 0);
    free(wide.data);
}

static void requantized(void) {
    int32_t *sums = numbers(COUNT * sizeof(*sums));
    int8_t *y = numbers(COUNT);
    const float half = 0.5f;
    long wrong = 0;
    for (size_t i = 0; i < COUNT; i++)
        sums[i] = 2 * (int32_t)value(i);
    CHECK_INT(qsim_requantize(sums, ROWS, COLUMNS, &half, 1, 0, -128, 127, QSIM_INT8, y), QSIM_OK);
    for (size_t i = 0; i < COUNT; i++)
        wrong += y[i] != (int8_t)value(i);
    CHECK_INT(wrong, 0);
    free(sums);
    free(y);
}

static void compared(const float *x) {
    const qsim_tensor t = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x, COUNT * sizeof(*x)};
    qsim_metrics m = {.struct_size = sizeof(m)};
    qsim_divergence d = {.struct_size = sizeof(d)};
    CHECK_INT(qsim_metrics_add(&m, &t, &t, 0, 0), QSIM_OK);
    CHECK_INT(m.count, COUNT);
    CHECK_INT(m.outside, 0);
    CHECK_INT(qsim_divergence_add(&d, &t, &t), QSIM_OK);
    CHECK_INT(d.rows, ROWS);
    CHECK_INT(d.agree, ROWS);
}

int main(void) {
    float *x = floats();
    protos(x);
    written(x);
    quantized(x, 1, 0, 0);
    quantized(x, ROWS, 0, 0);
    quantized(x, COUNT / 2, 1, 2);
    converted(x);
    requantized();
    compared(x);
    free(x);
    return test_done();
}
