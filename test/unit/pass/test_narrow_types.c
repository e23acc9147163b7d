/* SPDX-License-Identifier: MIT */
/*
 * Types of fewer than 8 bits, and floats of 8 bits: what Cast, Transpose, ConstantOfShape, IsNaN,
 * IsInf, QuantizeLinear and DequantizeLinear make of them in a session. Expected bytes are written
 * out by hand from the formats' definitions.
 */
#include "net.h"

#include <math.h>

#define BYTES(...)                                                                                 \
    (const uint8_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }
#define FLOATS(...)                                                                                \
    (const float[]) {                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Runs the net whose input is x at both ends of the levels; y has to be `expected`. */
static void check(net *n, const qsim_tensor *x, int32_t dtype, int32_t rank, const int64_t *dims,
                  const void *expected) {
    uint8_t y[256];
    qsim_tensor out = net_tensor(dtype, rank, dims, y);
    net_output(n, "y");
    NET_OK(n, net_end(n));
    for (int32_t level = 0; level < 2; level++) {
        memset(y, 0xcd, sizeof(y));
        NET_OK(n, net_run(n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, x, 1, &out, 1));
        CHECK(memcmp(y, expected, out.bytes) == 0);
    }
    net_free(n);
}

/* ---- Cast ---- */

static void cast(qsim_ctx *ctx, int32_t from, const void *x, int32_t to, const char *round_mode,
                 int64_t count, const void *expected) {
    net n;
    net_begin(&n, ctx, 25);
    net_input(&n, "x", from, NET_DIMS(count));
    const qs_id node = net_node(&n, "", "Cast", "x", "y");
    qs_node_set_int(n.g, node, "to", to);
    if (round_mode)
        net_string(&n, node, "round_mode", round_mode);
    const qsim_tensor in = net_tensor(from, NET_DIMS(count), (void *)(uintptr_t)x);
    check(&n, &in, to, NET_DIMS(count), expected);
}

static void test_cast(qsim_ctx *ctx) {
    /* 0.24 0.25 | 0.26 0.75 | 1.25 5 | 5.01 -inf | NaN: halves go to even, NaN becomes 6 */
    cast(ctx, QSIM_FLOAT, FLOATS(0.24f, 0.25f, 0.26f, 0.75f, 1.25f, 5, 5.01f, -INFINITY, NAN),
         QSIM_FLOAT4E2M1, NULL, 9, BYTES(0x00, 0x21, 0x62, 0xf7, 0x07));
    cast(ctx, QSIM_FLOAT4E2M1, BYTES(0x10, 0x32, 0x54, 0x76, 0x0f), QSIM_FLOAT, NULL, 9,
         FLOATS(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -6));
    const float powers[] = {0, 1, 1.01f, 1.5f, -3, 0x1p-130f, 3e38f, NAN};
    cast(ctx, QSIM_FLOAT, powers, QSIM_FLOAT8E8M0, NULL, 8,
         BYTES(0, 127, 128, 128, 129, 0, 254, 255));
    cast(ctx, QSIM_FLOAT, powers, QSIM_FLOAT8E8M0, "down", 8,
         BYTES(0, 127, 127, 127, 128, 0, 254, 255));
    cast(ctx, QSIM_FLOAT, powers, QSIM_FLOAT8E8M0, "nearest", 8,
         BYTES(0, 127, 127, 128, 129, 0, 254, 255));
    cast(ctx, QSIM_FLOAT8E8M0, BYTES(0, 127, 254), QSIM_FLOAT, NULL, 3,
         FLOATS(0x1p-127f, 1, 0x1p127f));
    cast(ctx, QSIM_FLOAT, FLOATS(0, 1.9f, 2, 3, 5, -1), QSIM_UINT2, NULL, 6, BYTES(0xe4, 0x0d));
    cast(ctx, QSIM_UINT2, BYTES(0xe4, 0x0d), QSIM_UINT8, NULL, 6, BYTES(0, 1, 2, 3, 1, 3));
    cast(ctx, QSIM_INT2, BYTES(0xe4, 0x0d), QSIM_INT8, NULL, 6, BYTES(0, 1, 0xfe, 0xff, 1, 0xff));
}

/* ---- moved and filled ---- */

/* [2, 3] to [3, 2]: elements 0 1 2 | 3 4 5 of 4 bits, 0 1 2 | 3 0 1 of 2. */
static void test_transpose(qsim_ctx *ctx) {
    static const struct {
        int32_t dtype;
        uint8_t x[3], y[3];
    } cases[] = {{QSIM_UINT4, {0x10, 0x32, 0x54}, {0x30, 0x41, 0x52}},
                 {QSIM_INT4, {0x10, 0x3e, 0xd4}, {0x30, 0x41, 0xde}},
                 {QSIM_FLOAT4E2M1, {0x18, 0x32, 0xf4}, {0x38, 0x41, 0xf2}},
                 {QSIM_INT2, {0xe4, 0x04}, {0x1c, 0x06}}};
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        net n;
        net_begin(&n, ctx, 25);
        net_input(&n, "x", cases[i].dtype, NET_DIMS(2, 3));
        net_node(&n, "", "Transpose", "x", "y");
        const qsim_tensor in =
            net_tensor(cases[i].dtype, NET_DIMS(2, 3), (void *)(uintptr_t)cases[i].x);
        check(&n, &in, cases[i].dtype, NET_DIMS(3, 2), cases[i].y);
    }
}

/* Unused bits of the last byte are 0. */
static void test_fill(qsim_ctx *ctx) {
    static const int32_t types[] = {QSIM_UINT4, QSIM_INT2, QSIM_FLOAT8E5M2};
    static const uint8_t expected[][5] = {{0x33, 0x33, 0x03}, {0xff, 0x03}, {3, 3, 3, 3, 3}};
    for (size_t i = 0; i < QS_COUNT(types); i++) {
        const int64_t one = 1;
        int64_t shape = 5;
        const uint8_t three = 3;
        const qs_const value = {
            .dtype = types[i], .rank = 1, .dims = &one, .data = &three, .elements = 1, .bytes = 1};
        const qs_attr attr = {.name = "value", .type = QSIM_ATTR_TENSOR, .u.tensor = &value};
        net n;
        net_begin(&n, ctx, 25);
        net_input(&n, "x", QSIM_INT64, NET_DIMS(1));
        qs_node_set_attr(n.g, net_node(&n, "", "ConstantOfShape", "x", "y"), &attr);
        const qsim_tensor in = net_tensor(QSIM_INT64, NET_DIMS(1), &shape);
        check(&n, &in, types[i], NET_DIMS(5), expected[i]);
    }
}

/* Infinity, its neighbours, NaN, and what would be NaN or infinity in other formats. */
static void test_questions(qsim_ctx *ctx) {
    static const uint8_t x[] = {0x7c, 0xfc, 0x7d, 0x7b, 0x7f, 0xff, 0x80, 0x00};
    static const struct {
        int32_t dtype;
        uint8_t nan[8], inf[8];
    } cases[] = {{QSIM_FLOAT8E5M2, {0, 0, 1, 0, 1, 1, 0, 0}, {1, 1, 0, 0, 0, 0, 0, 0}},
                 {QSIM_FLOAT8E4M3FN, {0, 0, 0, 0, 1, 1, 0, 0}, {0}},
                 {QSIM_FLOAT8E4M3FNUZ, {0, 0, 0, 0, 0, 0, 1, 0}, {0}},
                 {QSIM_FLOAT8E5M2FNUZ, {0, 0, 0, 0, 0, 0, 1, 0}, {0}}};
    for (size_t i = 0; i < 2 * QS_COUNT(cases); i++) {
        const int32_t dtype = cases[i / 2].dtype;
        net n;
        net_begin(&n, ctx, 20);
        net_input(&n, "x", dtype, NET_DIMS(8));
        net_node(&n, "", i % 2 ? "IsInf" : "IsNaN", "x", "y");
        const qsim_tensor in = net_tensor(dtype, NET_DIMS(8), (void *)(uintptr_t)x);
        check(&n, &in, QSIM_BOOL, NET_DIMS(8), i % 2 ? cases[i / 2].inf : cases[i / 2].nan);
    }
}

/* ---- QuantizeLinear, DequantizeLinear ---- */

/* [2, 3] with `scales`, one per axis 1, or per block of 2 along it. */
static void quantized(qsim_ctx *ctx, const char *op, int32_t from, int32_t to, const void *x,
                      int32_t scale_type, int32_t rank, const int64_t *dims, const void *scales,
                      int64_t block, const void *expected) {
    net n;
    net_begin(&n, ctx, 25);
    net_input(&n, "x", from, NET_DIMS(2, 3));
    net_const(&n, "s", scale_type, rank, dims, scales);
    const qs_id node = net_node(&n, "", op, "x,s", "y");
    qs_node_set_int(n.g, node, "block_size", block);
    if (*op == 'Q')
        qs_node_set_int(n.g, node, "output_dtype", to);
    const qsim_tensor in = net_tensor(from, NET_DIMS(2, 3), (void *)(uintptr_t)x);
    check(&n, &in, to, NET_DIMS(2, 3), expected);
}

static void test_quantize(qsim_ctx *ctx) {
    const char *q = "QuantizeLinear", *dq = "DequantizeLinear";
    const float x[] = {1, -3, 1000, 0, -0.0f, 5.5f};
    const uint8_t e4m3[] = {0x38, 0xc4, 0x7e, 0x00, 0x80, 0x43}; /* 1 -3 448 0 -0 2.75 */
    const int64_t three = 3;
    /* one scale, 2: 0.5 -1.5 500 (saturates to 448) 0 -0 2.75 */
    quantized(ctx, q, QSIM_FLOAT, QSIM_FLOAT8E4M3FN, x, QSIM_FLOAT, 0, NULL, FLOATS(2), 0,
              BYTES(0x30, 0xbc, 0x7e, 0x00, 0x80, 0x43));
    /* a scale for each column: 1 -1.5 250 (256 in 3 bits and 1) | 0 -0 1.375 */
    quantized(ctx, q, QSIM_FLOAT, QSIM_FLOAT8E4M3FN, x, QSIM_FLOAT, 1, &three, FLOATS(1, 2, 4), 0,
              BYTES(0x38, 0xbc, 0x78, 0x00, 0x80, 0x3b));
    /* blocks (2, then the last column): 0.5 -1.5 6 | 0 -0 1.375 in four bits, halves to even */
    quantized(ctx, q, QSIM_FLOAT, QSIM_FLOAT4E2M1, x, QSIM_FLOAT, NET_DIMS(2, 2),
              FLOATS(2, 100, 1, 4), 2, BYTES(0xb1, 0x07, 0x38));
    quantized(ctx, dq, QSIM_FLOAT8E4M3FN, QSIM_FLOAT, e4m3, QSIM_FLOAT, 0, NULL, FLOATS(2), 0,
              FLOATS(2, -6, 896, 0, -0.0f, 5.5f));
    quantized(ctx, dq, QSIM_FLOAT8E4M3FN, QSIM_FLOAT, e4m3, QSIM_FLOAT, 1, &three,
              FLOATS(1, 2, 0.5f), 0, FLOATS(1, -6, 224, 0, -0.0f, 1.375f));
    /* powers of two as scales: 4 and 1 for the first row, 2 and 0.5 for the second */
    quantized(ctx, dq, QSIM_FLOAT8E4M3FN, QSIM_FLOAT, e4m3, QSIM_FLOAT8E8M0, NET_DIMS(2, 2),
              BYTES(129, 127, 128, 126), 2, FLOATS(4, -12, 448, 0, -0.0f, 1.375f));
    quantized(ctx, dq, QSIM_INT8, QSIM_FLOAT, BYTES(1, 2, 0xff, 0, 5, 6), QSIM_FLOAT8E8M0, 0, NULL,
              BYTES(128), 0, FLOATS(2, 4, -2, 0, 10, 12));
}

/* A zero point of another value counts, fed or constant; here 1 and -2. */
static void test_zero_points(qsim_ctx *ctx) {
    const uint8_t x[] = {0x38, 0x40}, zp[] = {0x38, 0xc0}; /* 1, 2 */
    net n;
    net_begin(&n, ctx, 21);
    net_input(&n, "x", QSIM_FLOAT8E4M3FN, NET_DIMS(1, 2));
    net_const(&n, "s", QSIM_FLOAT, NET_DIMS(2), FLOATS(1, 2));
    net_const(&n, "z", QSIM_FLOAT8E4M3FN, NET_DIMS(2), zp);
    net_node(&n, "", "DequantizeLinear", "x,s,z", "y");
    const qsim_tensor in = net_tensor(QSIM_FLOAT8E4M3FN, NET_DIMS(1, 2), (void *)(uintptr_t)x);
    check(&n, &in, QSIM_FLOAT, NET_DIMS(1, 2), FLOATS(0, 8));
}

/* What the expansion needs to know is refused by name where it is missing. */
static void test_refused(qsim_ctx *ctx) {
    const qs_dim open[] = {{2, NULL}, {-1, "n"}};
    for (int blocks = 0; blocks < 2; blocks++) {
        net n;
        net_begin(&n, ctx, 25);
        net_input(&n, "x", QSIM_FLOAT8E5M2, NET_DIMS(2, 3));
        if (blocks)
            qs_value_set_shape(n.g, net_value(&n, "x"), QSIM_FLOAT8E5M2, 2, open);
        else
            qs_value_set_shape(n.g, net_value(&n, "x"), QSIM_FLOAT8E5M2, -1, NULL);
        net_const(&n, "s", QSIM_FLOAT, NET_DIMS(2, 2), FLOATS(1, 1, 1, 1));
        qs_node_set_int(n.g, net_node(&n, "", "DequantizeLinear", "x,s", "y"), "block_size", 2);
        net_output(&n, "y");
        CHECK_INT(net_end(&n), QSIM_E_UNSUPPORTED);
        CHECK(strstr(n.error.message, "must be in the file") != NULL);
        net_free(&n);
    }
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    test_cast(ctx);
    test_transpose(ctx);
    test_fill(ctx);
    test_questions(ctx);
    test_quantize(ctx);
    test_zero_points(ctx);
    test_refused(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
