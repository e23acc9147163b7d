/* SPDX-License-Identifier: MIT */
/* QuantizeLinear and related operators, QLinear operators and tables. */
#include "op_harness.h"

#include <math.h>

#define N 777
static float noise[N];
static uint8_t bytes[2 * N];

/* ---- QuantizeLinear, DequantizeLinear ---- */

static void golden_u8(void) {
    static const float x[] = {-256, -255, -3, -1, 0, 1, 3, 5, 253, 254, 255, 1000}, scale = 2;
    static const uint8_t zp = 128, y[] = {0, 0, 126, 128, 128, 128, 130, 130, 254, 255, 255, 255};
    for (int32_t constant = 0; constant < 2; constant++) {
        op_case *c = case_new("", "QuantizeLinear", 13);
        case_input(c, QSIM_FLOAT, SHAPE(12), x);
        if (constant) {
            case_const(c, QSIM_FLOAT, 0, NULL, &scale);
            case_const(c, QSIM_UINT8, 0, NULL, &zp);
        } else {
            case_input(c, QSIM_FLOAT, 0, NULL, &scale);
            case_input(c, QSIM_UINT8, 0, NULL, &zp);
        }
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "uint8[12]");
        CHECK(memcmp(case_data(c, 0), y, 12) == 0);
        case_free(c);
    }
}

/* zero points are added after rounding */
static void golden_s8(void) {
    static const float x[] = {-0.5f, 0.5f, 1.5f, 2.5f}, scale = 1;
    static const int8_t zp = 1, y[] = {1, 1, 3, 3};
    op_case *c = case_new("", "QuantizeLinear", 10);
    case_input(c, QSIM_FLOAT, SHAPE(4), x);
    case_const(c, QSIM_FLOAT, 0, NULL, &scale);
    case_const(c, QSIM_INT8, 0, NULL, &zp);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), y, 4) == 0);
    case_free(c);
}

/* Per axis and per block, 16 and 4 bits: q = saturate(rint(x / s) + z), then back. */
static void spread_one(int32_t dtype, int32_t low, int32_t high, int64_t axis, int64_t block) {
    const int64_t d[3] = {3, 4, 5};
    int64_t sd[3] = {3, 4, 5};
    float scale[60], x[60];
    int32_t rank = block ? 3 : 1;
    if (block)
        sd[axis] = (d[axis] + block - 1) / block;
    else
        sd[0] = d[axis];
    for (size_t i = 0; i < 60; i++) {
        scale[i] = 0.25f + (float)(i % 7) * 0.125f;
        x[i] = noise[i] * (float)high / 8.0f;
    }
    op_case *c = case_new("", "QuantizeLinear", 21);
    case_input(c, QSIM_FLOAT, 3, d, x);
    case_const(c, QSIM_FLOAT, rank, sd, scale);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", axis), 0);
    CHECK_INT(qs_node_set_int(c->g, c->node, "output_dtype", dtype), 0);
    if (block)
        CHECK_INT(qs_node_set_int(c->g, c->node, "block_size", block), 0);
    CHECK_INT(case_run(c), 0);
    op_case *back = case_new("", "DequantizeLinear", 21);
    case_input(back, dtype, 3, d, case_data(c, 0));
    case_const(back, QSIM_FLOAT, rank, sd, scale);
    case_node(back, 1);
    CHECK_INT(qs_node_set_int(back->g, back->node, "axis", axis), 0);
    if (block)
        CHECK_INT(qs_node_set_int(back->g, back->node, "block_size", block), 0);
    CHECK_INT(case_run(back), 0);
    CHECK_STR(case_shape(back, 0), "float[3,4,5]");
    const float *y = case_data(back, 0);
    for (size_t i = 0; i < 60; i++) {
        int64_t at[3] = {(int64_t)i / 20, (int64_t)i / 5 % 4, (int64_t)i % 5};
        if (block)
            at[axis] /= block;
        size_t k = block ? (size_t)((at[0] * sd[1] + at[1]) * sd[2] + at[2]) : (size_t)at[axis];
        double q = fmin(fmax(rint((double)(x[i] / scale[k])), low), high);
        CHECK_NEAR(y[i], q * (double)scale[k], 0);
    }
    case_free(back);
    case_free(c);
}

static void test_spread(void) {
    for (int64_t axis = 0; axis < 3; axis++)
        for (int64_t block = 0; block < 4; block += 2) {
            spread_one(QSIM_UINT8, 0, 255, axis, block);
            spread_one(QSIM_INT8, -128, 127, axis, block);
            spread_one(QSIM_INT16, -32768, 32767, axis, block);
            spread_one(QSIM_INT4, -8, 7, axis, block);
            spread_one(QSIM_UINT4, 0, 15, axis, block);
        }
}

static void refuse_one(int64_t version, int64_t scales, float scale, int32_t zp_dtype, int64_t axis,
                       int expected) {
    const float s[4] = {1, scale, 1, 1};
    const uint8_t zp[8] = {0};
    op_case *c = case_new("", "QuantizeLinear", version);
    case_input(c, QSIM_FLOAT, SHAPE(2, 2), noise);
    case_const(c, QSIM_FLOAT, 1, &scales, scales == 1 ? s + 1 : s);
    case_const(c, zp_dtype, 1, &scales, zp);
    case_node(c, 1);
    if (version >= 13)
        CHECK_INT(qs_node_set_int(c->g, c->node, "axis", axis), 0);
    CHECK_INT(case_infer(c), expected);
    case_free(c);
}

static void test_refusals(void) {
    refuse_one(13, 2, 2, QSIM_UINT8, 1, 0);
    refuse_one(13, 3, 2, QSIM_UINT8, 1, QSIM_E_SHAPE);
    refuse_one(13, 2, 2, QSIM_UINT8, -9, QSIM_E_VALUE);
    refuse_one(13, 2, 2, QSIM_INT16, 1, QSIM_E_DTYPE);
    refuse_one(21, 2, 2, QSIM_INT16, 1, 0);
    refuse_one(18, 2, 2, QSIM_FLOAT8E4M3FN, 1, QSIM_E_DTYPE);
    refuse_one(21, 2, 2, QSIM_FLOAT8E4M3FN, 1, 0);
    refuse_one(13, 2, 0.0f, QSIM_UINT8, 1, QSIM_E_VALUE);
    refuse_one(13, 2, -0.0f, QSIM_UINT8, 1, QSIM_E_VALUE);
    refuse_one(13, 1, -1.0f, QSIM_UINT8, 1, QSIM_E_VALUE);
    refuse_one(10, 1, NAN, QSIM_UINT8, 1, QSIM_E_VALUE);
    refuse_one(10, 1, INFINITY, QSIM_UINT8, 1, QSIM_E_VALUE);
    refuse_one(10, 1, 1e-42f, QSIM_UINT8, 1, 0); /* a denormal is one */
}

/* ---- DynamicQuantizeLinear ---- */

static void dynamic_one(size_t n, const float *x, float scale, uint8_t zp, const uint8_t *y) {
    op_case *c = case_new("", "DynamicQuantizeLinear", 11);
    int64_t d = (int64_t)n;
    case_input(c, QSIM_FLOAT, 1, &d, x);
    case_node(c, 3);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), y, n) == 0);
    CHECK_NEAR(*(const float *)case_data(c, 1), scale, 0);
    CHECK_INT(*(const uint8_t *)case_data(c, 2), zp);
    case_free(c);
}

static void test_dynamic(void) {
    dynamic_one(6, (const float[]){0, 2, -3, -2.5f, 1.34f, 0.5f}, 0.01960784383f, 153,
                (const uint8_t[]){153, 255, 0, 26, 221, 179});
    dynamic_one(6, (const float[]){-1, -2.1f, -1.3f, -2.5f, -3.34f, -4}, 0.01568627544f, 255,
                (const uint8_t[]){191, 121, 172, 96, 42, 0});
    dynamic_one(3, (const float[]){0, 0, 0}, 1.0f, 0, (const uint8_t[]){0, 0, 0});
}

/* ---- QLinearAdd, QLinearMul ---- */

static int32_t value_of(int32_t dtype, uint8_t byte) {
    return dtype == QSIM_INT8 ? (int8_t)byte : byte;
}

static uint8_t saturate(double v, double lo, double hi, int32_t zp) {
    v = v < lo - zp ? lo - zp : v > hi - zp ? hi - zp : v;
    return (uint8_t)((int32_t)rint(v) + zp);
}

/* Scales are powers of two, so that the definition is exact in double. */
static void qlinear_one(const char *op_type, int32_t ta, int32_t tb, bool internal, int64_t rows) {
    static const float sa = 0.5f, sb = 0.25f, sc = 2.0f;
    static const uint8_t za = 3, zb = 250, zc = 7;
    op_case *c = case_new(internal ? "qsim" : "com.microsoft", op_type, 1);
    case_input(c, ta, SHAPE(2, N / 2), bytes);
    case_const(c, QSIM_FLOAT, 0, NULL, &sa);
    case_const(c, ta, 0, NULL, &za);
    case_input(c, tb, SHAPE(rows, rows == 1 ? 1 : N / 2), bytes + N);
    case_const(c, QSIM_FLOAT, 0, NULL, &sb);
    case_const(c, tb, 0, NULL, &zb);
    case_const(c, QSIM_FLOAT, 0, NULL, &sc);
    case_const(c, ta, 0, NULL, &zc);
    case_node(c, 1);
    double lo = ta == QSIM_INT8 ? -128 : 0, hi = lo + 255;
    if (internal) {
        CHECK_INT(qs_node_set_int(c->g, c->node, "lo", zc), 0);
        lo = zc;
    }
    CHECK_INT(case_run(c), 0);
    CHECK_INT(case_out(c, 0)->dtype, ta);
    const uint8_t *y = case_data(c, 0);
    size_t wrong = 0;
    for (size_t i = 0; i < 2 * (N / 2); i++) {
        double a = value_of(ta, bytes[i]) - value_of(ta, za);
        double b = value_of(tb, bytes[N + (rows == 1 ? 0 : i)]) - value_of(tb, zb);
        double v = op_type[7] == 'A' ? a * 0.25 + b * 0.125 : a * b * 0.0625;
        wrong += y[i] != saturate(v, lo, hi, value_of(ta, zc));
    }
    CHECK_INT(wrong, 0);
    case_free(c);
}

/* [images, pixels, channels] with factors [images, 1, channels] of a type, on either side. */
static void qlinear_factors(const char *op_type, int64_t images, int64_t pixels, int64_t channels,
                            bool first, int32_t type) {
    static const float sa = 0.5f, sb = 0.25f, sc = 2.0f;
    static const uint8_t za = 3, zb = 250, zc = 7;
    op_case *c = case_new("com.microsoft", op_type, 1);
    int64_t count = images * pixels * channels;
    uint8_t *x = malloc((size_t)count + 64);
    for (int64_t i = 0; i < count; i++)
        x[i] = (uint8_t)(i * 31 + i / 57);
    for (int side = 0; side < 2; side++) {
        const bool factors = (side == 0) == first;
        if (factors)
            case_input(c, type, SHAPE(images, 1, channels), bytes);
        else
            case_input(c, QSIM_UINT8, SHAPE(images, pixels, channels), x);
        case_const(c, QSIM_FLOAT, 0, NULL, side ? &sb : &sa);
        case_const(c, factors ? type : QSIM_UINT8, 0, NULL, side ? &zb : &za);
    }
    case_const(c, QSIM_FLOAT, 0, NULL, &sc);
    case_const(c, QSIM_UINT8, 0, NULL, &zc);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const uint8_t *y = case_data(c, 0);
    size_t wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t f = value_of(type, bytes[i / (pixels * channels) * channels + i % channels]);
        double a = first ? f - value_of(type, za) : x[i] - za;
        double b = first ? x[i] - zb : f - value_of(type, zb);
        double v = op_type[7] == 'A' ? a * 0.25 + b * 0.125 : a * b * 0.0625;
        wrong += y[i] != saturate(v, 0, 255, zc);
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(x);
}

static void test_qlinear(void) {
    static const char *const names[] = {"QLinearAdd", "QLinearMul"};
    for (int i = 0; i < 8; i++) {
        const int32_t type = i < 4 ? QSIM_UINT8 : QSIM_INT8;
        qlinear_factors(names[i & 1], 1, 500, 24, i >> 1 & 1, type);
        qlinear_factors(names[i & 1], 3, i < 4 ? 7 : 301, 16 + 3 * i, i >> 1 & 1, type);
    }
    for (size_t i = 0; i < 2; i++)
        for (int32_t internal = 0; internal < 2; internal++)
            for (int64_t rows = 1; rows <= 2; rows++) {
                qlinear_one(names[i], QSIM_UINT8, QSIM_UINT8, internal, rows);
                qlinear_one(names[i], QSIM_INT8, QSIM_INT8, internal, rows);
                qlinear_one(names[i], QSIM_UINT8, QSIM_INT8, internal, rows);
            }
}

/* ---- tables ---- */

static void test_table(void) {
    uint8_t table[256];
    for (size_t i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 7 + 3);
    op_case *c = case_new("qsim", "QTable", 1);
    case_input(c, QSIM_UINT8, SHAPE(N), bytes);
    case_const(c, QSIM_INT8, SHAPE(256), table);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "int8[777]");
    for (size_t i = 0; i < N; i++)
        CHECK_INT(((const uint8_t *)case_data(c, 0))[i], (uint8_t)(bytes[i] * 7 + 3));
    case_free(c);
}

static void unary_one(const char *op_type, int32_t dtype, bool constant) {
    static const float sx = 0.05f, sy = 1.0f / 64;
    static const uint8_t zx = 130, zy = 9;
    op_case *c = case_new("com.microsoft", op_type, 1);
    case_input(c, dtype, SHAPE(N), bytes);
    if (constant)
        case_const(c, QSIM_FLOAT, 0, NULL, &sx);
    else
        case_input(c, QSIM_FLOAT, 0, NULL, &sx);
    case_const(c, dtype, 0, NULL, &zx);
    case_const(c, QSIM_FLOAT, 0, NULL, &sy);
    case_const(c, dtype, 0, NULL, &zy);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    double lo = dtype == QSIM_INT8 ? -128 : 0;
    for (size_t i = 0; i < N; i++) {
        float x = (float)(value_of(dtype, bytes[i]) - value_of(dtype, zx)) * sx;
        double f = op_type[7] == 'S' ? 1 / (1 + exp(-(double)x)) : (double)(x < 0 ? x * 0.01f : x);
        uint8_t y = saturate(f / (double)sy, lo, lo + 255, value_of(dtype, zy));
        CHECK_INT(((const uint8_t *)case_data(c, 0))[i], y);
    }
    case_free(c);
}

static void test_qconcat(bool constant) {
    static const float s[] = {0.5f, 0.25f, 1.0f};
    static const uint8_t z[] = {10, 20, 30};
    op_case *c = case_new("com.microsoft", "QLinearConcat", 1);
    if (constant)
        case_const(c, QSIM_FLOAT, 0, NULL, &s[2]);
    else
        case_input(c, QSIM_FLOAT, 0, NULL, &s[2]);
    case_const(c, QSIM_UINT8, 0, NULL, &z[2]);
    for (size_t i = 0; i < 2; i++) {
        case_input(c, QSIM_UINT8, SHAPE(2, (int64_t)i + 2, 3), bytes + i * 100);
        case_const(c, QSIM_FLOAT, 0, NULL, &s[i]);
        case_const(c, QSIM_UINT8, 0, NULL, &z[i]);
    }
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 1), 0);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "uint8[2,5,3]");
    const uint8_t *y = case_data(c, 0);
    for (size_t k = 0; k < 30; k++) {
        size_t row = k / 3 % 5, part = row >= 2, at = k / 15 * (part ? 9 : 6) + k % 15 - part * 6;
        double v = (double)(bytes[part * 100 + at] - z[part]) * (double)s[part];
        CHECK_INT(y[k], saturate(v, 0, 255, 30));
    }
    case_free(c);
}

/* Scales and zero points of both sides are checked: input `which` has this type and rank. */
static void refuse_unary(int32_t which, int32_t dtype, int32_t rank, int expected) {
    static const float scale[2] = {0.1f, 0.2f};
    op_case *c = case_new("com.microsoft", "QLinearSigmoid", 1);
    case_input(c, QSIM_UINT8, SHAPE(7, 11, 3), bytes);
    for (int32_t i = 1; i < 5; i++)
        case_const(c,
                   i == which ? dtype
                   : i % 2    ? QSIM_FLOAT
                              : QSIM_UINT8,
                   i == which ? rank : 0, (int64_t[]){2}, scale);
    case_node(c, 1);
    CHECK_INT(case_infer(c), expected);
    case_free(c);
}

static void test_unary_refusals(void) {
    refuse_unary(0, QSIM_FLOAT, 0, QSIM_OK);
    for (int32_t i = 1; i < 5; i++) {
        refuse_unary(i, QSIM_INT32, 0, QSIM_E_DTYPE);
        refuse_unary(i, i % 2 ? QSIM_FLOAT : QSIM_UINT8, 1, QSIM_E_SHAPE);
    }
    refuse_unary(2, QSIM_INT8, 0, QSIM_E_DTYPE); /* not that of the data */
}

static void test_qsoftmax(void) {
    static const float sx = 0.1f, sy = 1.0f / 256;
    static const uint8_t zx = 100, zy = 0;
    op_case *c = case_new("com.microsoft", "QLinearSoftmax", 1);
    case_input(c, QSIM_UINT8, SHAPE(7, 11, 3), bytes);
    case_const(c, QSIM_FLOAT, 0, NULL, &sx);
    case_const(c, QSIM_UINT8, 0, NULL, &zx);
    case_const(c, QSIM_FLOAT, 0, NULL, &sy);
    case_const(c, QSIM_UINT8, 0, NULL, &zy);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "axis", 1), 0);
    CHECK_INT(qs_node_set_int(c->g, c->node, "opset", 13), 0);
    CHECK_INT(case_run(c), 0);
    const uint8_t *y = case_data(c, 0);
    for (size_t o = 0; o < 7; o++)
        for (size_t i = 0; i < 3; i++) {
            double sum = 0;
            for (size_t k = 0; k < 11; k++)
                sum += exp(((double)bytes[o * 33 + k * 3 + i] - 100) * 0.1);
            for (size_t k = 0; k < 11; k++) {
                double v = exp(((double)bytes[o * 33 + k * 3 + i] - 100) * 0.1) / sum * 256;
                CHECK_NEAR(y[o * 33 + k * 3 + i], fmin(v, 255), 0.501);
            }
        }
    case_free(c);
}

int main(void) {
    uint64_t state = 5;
    for (size_t i = 0; i < N; i++)
        noise[i] = (float)(int32_t)test_random(&state) / 1e8f;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)test_random(&state);
    golden_u8();
    golden_s8();
    test_spread();
    test_refusals();
    test_dynamic();
    test_qlinear();
    test_table();
    for (int32_t constant = 0; constant < 2; constant++) {
        unary_one("QLinearSigmoid", QSIM_UINT8, constant);
        unary_one("QLinearSigmoid", QSIM_INT8, constant);
        unary_one("QLinearLeakyRelu", QSIM_UINT8, constant);
        test_qconcat(constant);
    }
    test_unary_refusals();
    test_qsoftmax();
    return test_done();
}
