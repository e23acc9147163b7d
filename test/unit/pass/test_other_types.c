/* SPDX-License-Identifier: MIT */
/*
 * Products and BatchNormalization on other types than float, BatchNormalization with statistics of
 * the batch, and forms before opset 7: sessions against explicit loops. Integers that operators
 * compute as floats.
 */
#include "net.h"

#include <math.h>

/* Checks the net's outputs at the highest and the lowest level. */
typedef void (*check_fn)(const void *const *y, const void *arg);

static void both_levels(net *n, const qsim_tensor *in, size_t inputs, qsim_tensor *out,
                        size_t outputs, check_fn check, const void *arg) {
    NET_OK(n, net_end(n));
    for (int32_t level = 0; level < 2; level++) {
        const void *y[3] = {NULL};
        for (size_t i = 0; i < outputs; i++)
            y[i] = memset(out[i].data, 0xcd, out[i].bytes);
        NET_OK(n, net_run(n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, in, inputs, out,
                          outputs));
        check(y, arg);
    }
    net_free(n);
}

/* ---- MatMul and Gemm ---- */

/* Values that a float does not hold. */
#define LARGE ((int64_t)1 << 40)

static void check_doubles(const void *const *y, const void *expected) {
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(((const double *)y[0])[i], ((const double *)expected)[i], 1e-13);
}

static void check_longs(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 4 * sizeof(int64_t)) == 0);
}

static void test_matmul(qsim_ctx *ctx) {
    static double a[6] = {1.0000000001, 2, 3, 4, 5, 6}, b[6] = {1, 2, 3, 4, 5, 6};
    static int64_t p[6] = {LARGE + 1, 2, 3, 4, 5, -6};
    double sums[4], y[4];
    int64_t whole[4], z[4];
    for (int i = 0; i < 4; i++) {
        sums[i] = 0;
        uint64_t sum = 0; /* integers wrap */
        for (int k = 0; k < 3; k++) {
            sums[i] += a[i / 2 * 3 + k] * b[k * 2 + i % 2];
            sum += (uint64_t)p[i / 2 * 3 + k] * (uint64_t)p[k * 2 + i % 2];
        }
        whole[i] = (int64_t)sum;
    }
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "a", QSIM_DOUBLE, NET_DIMS(2, 3));
    net_const(&n, "b", QSIM_DOUBLE, NET_DIMS(3, 2), b);
    net_node(&n, "", "MatMul", "a,b", "y");
    net_output(&n, "y");
    const qsim_tensor in = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 3), a);
    qsim_tensor out = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 2), y);
    both_levels(&n, &in, 1, &out, 1, check_doubles, sums);

    net_begin(&n, ctx, 13);
    net_input(&n, "a", QSIM_INT64, NET_DIMS(2, 3));
    net_const(&n, "b", QSIM_INT64, NET_DIMS(3, 2), p);
    net_node(&n, "", "MatMul", "a,b", "y");
    net_output(&n, "y");
    const qsim_tensor in2 = net_tensor(QSIM_INT64, NET_DIMS(2, 3), p);
    out = net_tensor(QSIM_INT64, NET_DIMS(2, 2), z);
    both_levels(&n, &in2, 1, &out, 1, check_longs, whole);
}

static void check_vector(const void *const *y, const void *expected) {
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(((const double *)y[0])[i], ((const double *)expected)[i], 1e-13);
}

/* A vector on the left or on the right of a stack of matrices. */
static void test_vectors(qsim_ctx *ctx) {
    static double a[18], v[3] = {1, -2, 0.5};
    double left[6], right[6], y[6];
    for (int i = 0; i < 18; i++)
        a[i] = i * 0.1 + 1e-9;
    for (int i = 0; i < 6; i++) {
        left[i] = right[i] = 0;
        for (int k = 0; k < 3; k++) {
            left[i] += v[k] * a[i / 3 * 9 + k * 3 + i % 3];
            right[i] += v[k] * a[i / 3 * 9 + i % 3 * 3 + k];
        }
    }
    for (int transposed = 0; transposed < 2; transposed++) {
        net n;
        net_begin(&n, ctx, 13);
        net_input(&n, "a", QSIM_DOUBLE, NET_DIMS(2, 3, 3));
        net_const(&n, "v", QSIM_DOUBLE, NET_DIMS(3), v);
        net_node(&n, "", "MatMul", transposed ? "a,v" : "v,a", "y");
        net_output(&n, "y");
        const qsim_tensor in = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 3, 3), a);
        qsim_tensor out = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 3), y);
        both_levels(&n, &in, 1, &out, 1, check_vector, transposed ? right : left);
    }
}

static void test_gemm(qsim_ctx *ctx) {
    static double a[6] = {1.0000000001, 2, 3, 4, 5, 6}, b[6] = {1, 2, 3, 4, 5, 6}, c[2] = {7, -8};
    for (int form = 0; form < 4; form++) {
        const int ta = form & 1, tb = form >> 1;
        double sums[4], y[4];
        for (int i = 0; i < 4; i++) {
            const int r = i / 2, s = i % 2;
            sums[i] = -0.25 * c[s];
            for (int k = 0; k < 3; k++)
                sums[i] += 1.5 * a[ta ? k * 2 + r : r * 3 + k] * b[tb ? s * 3 + k : k * 2 + s];
        }
        net n;
        net_begin(&n, ctx, 13);
        net_input(&n, "a", QSIM_DOUBLE, 2, ta ? (int64_t[]){3, 2} : (int64_t[]){2, 3});
        net_const(&n, "b", QSIM_DOUBLE, 2, tb ? (int64_t[]){2, 3} : (int64_t[]){3, 2}, b);
        net_const(&n, "c", QSIM_DOUBLE, NET_DIMS(2), c);
        const qs_id node = net_node(&n, "", "Gemm", "a,b,c", "y");
        qs_node_set_int(n.g, node, "transA", ta);
        qs_node_set_int(n.g, node, "transB", tb);
        qs_node_set_float(n.g, node, "alpha", 1.5f);
        qs_node_set_float(n.g, node, "beta", -0.25f);
        net_output(&n, "y");
        const qsim_tensor in =
            net_tensor(QSIM_DOUBLE, 2, ta ? (int64_t[]){3, 2} : (int64_t[]){2, 3}, a);
        qsim_tensor out = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 2), y);
        both_levels(&n, &in, 1, &out, 1, check_doubles, sums);
    }
}

/* A node without meaning, or without a step, is refused at load. */
static void test_refused(qsim_ctx *ctx) {
    for (int i = 0; i < 2; i++) {
        net n;
        net_begin(&n, ctx, 13);
        net_input(&n, "a", i ? QSIM_INT32 : QSIM_DOUBLE, NET_DIMS(2, 2));
        net_input(&n, "b", i ? QSIM_INT32 : QSIM_FLOAT, NET_DIMS(2, 2));
        const qs_id node = net_node(&n, "", "Gemm", "a,b", "y");
        qs_node_set_float(n.g, node, "alpha", i ? 0.5f : 1.0f);
        net_output(&n, "y");
        CHECK_INT(net_end(&n), i ? QSIM_E_UNSUPPORTED : QSIM_E_DTYPE);
        CHECK(strstr(n.error.message, i ? "alpha and beta of integers" : "double"));
        net_free(&n);
    }
}

/* ---- BatchNormalization ---- */

#define VALUES 24 /* (2, 3, 4): four to a channel, twice */
static double x[VALUES];
static const double scale[3] = {1, 0.5, -2}, shift[3] = {0, 1, 0.25}, mean0[3] = {0.5, -1, 2},
                    var0[3] = {1, 4, 0.25};

typedef struct normalized {
    double y[VALUES], mean[3], var[3]; /* the running ones */
} normalized;

static normalized normalize(bool training, double epsilon, double momentum) {
    normalized r;
    for (int c = 0; c < 3; c++) {
        double mean = 0, var = 0;
        for (int i = 0; i < 8; i++)
            mean += x[i / 4 * 12 + c * 4 + i % 4] / 8;
        for (int i = 0; i < 8; i++)
            var += pow(x[i / 4 * 12 + c * 4 + i % 4] - mean, 2) / 8;
        r.mean[c] = mean0[c] * momentum + mean * (1 - momentum);
        r.var[c] = var0[c] * momentum + var * (1 - momentum);
        mean = training ? mean : mean0[c];
        var = training ? var : var0[c];
        for (int i = 0; i < 8; i++) {
            const int at = i / 4 * 12 + c * 4 + i % 4;
            r.y[at] = (x[at] - mean) / sqrt(var + epsilon) * scale[c] + shift[c];
        }
    }
    return r;
}

static void check_floats(const void *const *y, const void *arg) {
    const normalized *r = arg;
    for (int i = 0; i < VALUES; i++)
        CHECK_NEAR(((const float *)y[0])[i], r->y[i], 2e-6);
    for (int i = 0; i < 3; i++) {
        CHECK_NEAR(((const float *)y[1])[i], r->mean[i], 1e-6);
        CHECK_NEAR(((const float *)y[2])[i], r->var[i], 1e-6);
    }
}

static void check_wide(const void *const *y, const void *arg) {
    const normalized *r = arg;
    for (int i = 0; i < VALUES; i++)
        CHECK_NEAR(((const double *)y[0])[i], r->y[i], 1e-13);
}

static void parameters(net *n, int32_t dtype) {
    static const char *const names[] = {"s", "b", "m", "v"};
    const double *const from[] = {scale, shift, mean0, var0};
    for (int k = 0; k < 4; k++) {
        float narrow[3];
        for (int i = 0; i < 3; i++)
            narrow[i] = (float)from[k][i];
        net_const(n, names[k], dtype, NET_DIMS(3),
                  dtype == QSIM_FLOAT ? (const void *)narrow : from[k]);
    }
}

/* After a convolution, into which it would be folded if it did not compute statistics. */
static void test_training(qsim_ctx *ctx) {
    static const float unit[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    float values[VALUES], y[VALUES], mean[3], var[3];
    for (int i = 0; i < VALUES; i++)
        values[i] = (float)x[i];
    const normalized expected = normalize(true, (double)1e-2f, (double)0.6f);
    net n;
    net_begin(&n, ctx, 15);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(3, 3, 1), unit);
    parameters(&n, QSIM_FLOAT);
    net_node(&n, "", "Conv", "x,w", "t");
    const qs_id node = net_node(&n, "", "BatchNormalization", "t,s,b,m,v", "y,rm,rv");
    qs_node_set_int(n.g, node, "training_mode", 1);
    qs_node_set_float(n.g, node, "epsilon", 1e-2f);
    qs_node_set_float(n.g, node, "momentum", 0.6f);
    net_output(&n, "y");
    net_output(&n, "rm");
    net_output(&n, "rv");
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(2, 3, 4), values);
    qsim_tensor out[3] = {net_tensor(QSIM_FLOAT, NET_DIMS(2, 3, 4), y),
                          net_tensor(QSIM_FLOAT, NET_DIMS(3), mean),
                          net_tensor(QSIM_FLOAT, NET_DIMS(3), var)};
    both_levels(&n, &in, 1, out, 3, check_floats, &expected);
}

static void test_wide_batchnorm(qsim_ctx *ctx) {
    double y[VALUES];
    const normalized expected = normalize(false, (double)1e-5f, 0.9);
    net n;
    net_begin(&n, ctx, 9);
    net_input(&n, "x", QSIM_DOUBLE, NET_DIMS(2, 3, 4));
    parameters(&n, QSIM_DOUBLE);
    net_node(&n, "", "BatchNormalization", "x,s,b,m,v", "y");
    net_output(&n, "y");
    const qsim_tensor in = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 3, 4), x);
    qsim_tensor out = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 3, 4), y);
    both_levels(&n, &in, 1, &out, 1, check_wide, &expected);
}

static void check_mixed(const void *const *y, const void *arg) {
    const normalized *r = arg;
    for (int i = 0; i < VALUES; i++)
        CHECK_NEAR(((const double *)y[0])[i], r->y[i], 1e-6);
}

static void check_narrow(const void *const *y, const void *arg) {
    const normalized *r = arg;
    for (int i = 0; i < VALUES; i++)
        CHECK_NEAR(((const float *)y[0])[i], r->y[i], 2e-6);
}

/* x of doubles and parameters of floats, and the other way round. */
static void test_mixed_batchnorm(qsim_ctx *ctx) {
    const normalized expected = normalize(false, (double)1e-5f, 0.9);
    for (int wide = 0; wide < 2; wide++) {
        const int32_t dtype = wide ? QSIM_DOUBLE : QSIM_FLOAT;
        double y[VALUES];
        float values[VALUES];
        for (int i = 0; i < VALUES; i++)
            values[i] = (float)x[i];
        net n;
        net_begin(&n, ctx, 15);
        net_input(&n, "x", dtype, NET_DIMS(2, 3, 4));
        parameters(&n, wide ? QSIM_FLOAT : QSIM_DOUBLE);
        net_node(&n, "", "BatchNormalization", "x,s,b,m,v", "y");
        net_output(&n, "y");
        const qsim_tensor in =
            net_tensor(dtype, NET_DIMS(2, 3, 4), wide ? (void *)x : (void *)values);
        qsim_tensor out = net_tensor(dtype, NET_DIMS(2, 3, 4), y);
        both_levels(&n, &in, 1, &out, 1, wide ? check_mixed : check_narrow, &expected);
    }
}

/* A zero point of int32 has no effect; one that is fed is checked when the model runs. */
static void test_int32_zero_point(qsim_ctx *ctx) {
    int32_t q[2] = {-3, 1 << 20}, zp = 0;
    float y[2];
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_INT32, NET_DIMS(2));
    net_input(&n, "z", QSIM_INT32, 0, NULL);
    net_float(&n, "s", 0.5f);
    net_node(&n, "", "DequantizeLinear", "x,s,z", "y");
    net_output(&n, "y");
    const qsim_tensor in[] = {net_tensor(QSIM_INT32, NET_DIMS(2), q),
                              net_tensor(QSIM_INT32, 0, NULL, &zp)};
    qsim_tensor out = net_tensor(QSIM_FLOAT, NET_DIMS(2), y);
    NET_OK(&n, net_end(&n));
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, &out, 1));
    CHECK(y[0] == -1.5f && y[1] == 524288.0f);
    zp = 1;
    CHECK_INT(net_run(&n, QSIM_LEVEL_ALL, false, in, 2, &out, 1), QSIM_E_VALUE);
    CHECK(strstr(n.error.message, "zero point") != NULL);
    net_free(&n);
}

/* ---- before opset 7 ---- */

static void check_bytes(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 6) == 0);
}

/* (2, 3) and a list along the axis given: 1, the last, or 0. */
static void test_old_broadcast(qsim_ctx *ctx) {
    static float a[6] = {1, 5, 3, 4, 2, 6}, rows[2] = {3, 4}, columns[3] = {4, 4, 4};
    static const uint8_t less[2][6] = {{1, 0, 1, 0, 1, 0}, {1, 0, 0, 0, 1, 0}};
    for (int first = 0; first < 2; first++) {
        uint8_t y[6];
        net n;
        net_begin(&n, ctx, 6);
        net_input(&n, "a", QSIM_FLOAT, NET_DIMS(2, 3));
        if (first)
            net_const(&n, "b", QSIM_FLOAT, NET_DIMS(2), rows);
        else
            net_const(&n, "b", QSIM_FLOAT, NET_DIMS(3), columns);
        const qs_id node = net_node(&n, "", "Less", "a,b", "y");
        qs_node_set_int(n.g, node, "broadcast", 1);
        if (first)
            qs_node_set_int(n.g, node, "axis", 0);
        net_output(&n, "y");
        const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(2, 3), a);
        qsim_tensor out = net_tensor(QSIM_BOOL, NET_DIMS(2, 3), y);
        both_levels(&n, &in, 1, &out, 1, check_bytes, less[first]);
    }
}

static void check_states(const void *const *y, const void *expected) {
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(((const float *)y[0])[i], ((const double *)expected)[i / 2], 1e-6);
}

/* A GRU of zeros halves its state by z = 1/2 and adds tanh(b) / 2; before opset 3 as later. */
static void test_old_gru(qsim_ctx *ctx) {
    static float in[4], zeros[12], bias[12];
    for (int i = 0; i < 2; i++)
        bias[4 + i] = 0.5493061443340549f; /* artanh(1/2) */
    net n;
    net_begin(&n, ctx, 1);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 1, 2));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(1, 6, 2), zeros);
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(1, 12), bias);
    const qs_id node = net_node(&n, "", "GRU", "x,w,w,b", "y");
    qs_node_set_int(n.g, node, "hidden_size", 2);
    qs_node_set_int(n.g, node, "output_sequence", 1);
    net_output(&n, "y");
    float y[4];
    const qsim_tensor x2 = net_tensor(QSIM_FLOAT, NET_DIMS(2, 1, 2), in);
    qsim_tensor out = net_tensor(QSIM_FLOAT, NET_DIMS(2, 1, 1, 2), y);
    both_levels(&n, &x2, 1, &out, 1, check_states, (const double[]){0.25, 0.375});
}

/* ---- integers that are computed as floats ---- */

static void check_five(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 5 * sizeof(int64_t)) == 0);
}

static void check_steps(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 5) == 0);
}

/* Results are cut to the type, as by Cast. */
static void test_integers(qsim_ctx *ctx) {
    static int64_t v[5] = {-5, -1, 0, 5, LARGE};
    static int32_t q[5] = {-7, 5, 1000, -1000, 0};
    int64_t y[5];
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_INT64, NET_DIMS(5));
    const qs_id shrink = net_node(&n, "", "Shrink", "x", "y");
    qs_node_set_float(n.g, shrink, "lambd", 1.5f);
    qs_node_set_float(n.g, shrink, "bias", 1.5f);
    net_output(&n, "y");
    const qsim_tensor in = net_tensor(QSIM_INT64, NET_DIMS(5), v);
    qsim_tensor out = net_tensor(QSIM_INT64, NET_DIMS(5), y);
    both_levels(&n, &in, 1, &out, 1, check_five, (const int64_t[]){-3, 0, 0, 3, LARGE - 2});

    net_begin(&n, ctx, 13); /* between other nodes on integers; erf(5) is 1 - 1.5e-12 */
    net_input(&n, "x", QSIM_INT64, NET_DIMS(5));
    net_node(&n, "", "Neg", "x", "a");
    net_node(&n, "", "Erf", "a", "b");
    net_node(&n, "", "Sub", "b,x", "y");
    net_output(&n, "y");
    both_levels(&n, &in, 1, &out, 1, check_five, (const int64_t[]){6, 1, 0, -6, -LARGE - 1});

    net_begin(&n, ctx, 13); /* -3.5 and 2.5 to even */
    net_input(&n, "x", QSIM_INT32, NET_DIMS(5));
    net_float(&n, "s", 2);
    net_byte(&n, "z", QSIM_UINT8, 10);
    net_node(&n, "", "QuantizeLinear", "x,s,z", "y");
    net_output(&n, "y");
    const qsim_tensor in2 = net_tensor(QSIM_INT32, NET_DIMS(5), q);
    out = net_tensor(QSIM_UINT8, NET_DIMS(5), y);
    both_levels(&n, &in2, 1, &out, 1, check_steps, (const uint8_t[]){6, 12, 255, 0, 10});
}

static void check_pair(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 2 * sizeof(int16_t)) == 0);
}

/* In the middle between -11 and -20, and a tenth of the way. */
static void test_sampled(qsim_ctx *ctx) {
    static int16_t image[2] = {-11, -20};
    static float places[4] = {0, 0, -0.8f, 0};
    int16_t y[2];
    net n;
    net_begin(&n, ctx, 20);
    net_input(&n, "x", QSIM_INT16, NET_DIMS(1, 1, 1, 2));
    net_input(&n, "g", QSIM_FLOAT, NET_DIMS(1, 1, 2, 2));
    qs_node_set_int(n.g, net_node(&n, "", "GridSample", "x,g", "y"), "align_corners", 1);
    net_output(&n, "y");
    const qsim_tensor in[] = {net_tensor(QSIM_INT16, NET_DIMS(1, 1, 1, 2), image),
                              net_tensor(QSIM_FLOAT, NET_DIMS(1, 1, 2, 2), places)};
    qsim_tensor out = net_tensor(QSIM_INT16, NET_DIMS(1, 1, 1, 2), y);
    both_levels(&n, in, 2, &out, 1, check_pair, (const int16_t[]){-15, -11});
}

/* ---- Resize ---- */

static void check_six(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 6) == 0);
}

static void check_exact(const void *const *y, const void *expected) {
    CHECK(memcmp(y[0], expected, 4 * sizeof(double)) == 0);
}

static void resize(net *n, qsim_ctx *ctx, int32_t dtype, int64_t size, const char *mode,
                   const char *places) {
    net_begin(n, ctx, 19);
    net_input(n, "x", dtype, NET_DIMS(size));
    net_const(n, "s", QSIM_FLOAT, NET_DIMS(1), (const float[]){2});
    const qs_id node = net_node(n, "", "Resize", "x,,s", "y");
    net_string(n, node, "mode", mode);
    net_string(n, node, "coordinate_transformation_mode", places);
    net_output(n, "y");
}

/* Between pixels integers are truncated towards zero, and saturate. */
static void test_resized(qsim_ctx *ctx) {
    static int8_t steps[3] = {0, 10, -40};
    static uint8_t ends[3] = {0, 255, 255};
    static double large[2] = {(double)LARGE, (double)LARGE + 2};
    double y[4];
    net n;
    resize(&n, ctx, QSIM_INT8, 3, "linear", "half_pixel");
    qsim_tensor in = net_tensor(QSIM_INT8, NET_DIMS(3), steps);
    qsim_tensor out = net_tensor(QSIM_INT8, NET_DIMS(6), y);
    both_levels(&n, &in, 1, &out, 1, check_six, (const int8_t[]){0, 2, 7, -2, -27, -40});
    resize(&n, ctx, QSIM_UINT8, 3, "cubic", "half_pixel");
    in = net_tensor(QSIM_UINT8, NET_DIMS(3), ends);
    out = net_tensor(QSIM_UINT8, NET_DIMS(6), y);
    /* -26.9, 57.8, 197.2, 281.9, 264.0, 255 with a = -0.75 */
    both_levels(&n, &in, 1, &out, 1, check_six, (const uint8_t[]){0, 57, 197, 255, 255, 255});
    resize(&n, ctx, QSIM_DOUBLE, 2, "linear", "asymmetric");
    in = net_tensor(QSIM_DOUBLE, NET_DIMS(2), large);
    out = net_tensor(QSIM_DOUBLE, NET_DIMS(4), y);
    both_levels(&n, &in, 1, &out, 1, check_exact,
                (const double[]){large[0], large[0] + 1, large[1], large[1]});
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (int i = 0; i < VALUES; i++)
        x[i] = (i * 7 % 11) / 4.0 - 1;
    test_matmul(ctx);
    test_vectors(ctx);
    test_gemm(ctx);
    test_refused(ctx);
    test_training(ctx);
    test_wide_batchnorm(ctx);
    test_mixed_batchnorm(ctx);
    test_int32_zero_point(ctx);
    test_old_broadcast(ctx);
    test_old_gru(ctx);
    test_integers(ctx);
    test_sampled(ctx);
    test_resized(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
