/* SPDX-License-Identifier: MIT */
/* Operators that stand for several others, run by sessions, beside their definitions in double. */
#include "net.h"

#include <math.h>

#define N 24

static float x[N], b[N];

static void draw(void) {
    uint64_t seed = 7;
    for (int i = 0; i < N; i++) {
        x[i] = (float)((int32_t)(test_random(&seed) % 2001) - 1000) / 250.0f;
        b[i] = (float)((int32_t)(test_random(&seed) % 2001) - 1000) / 500.0f;
    }
}

/* y of a net whose inputs are tensors in x, at the highest and the lowest level. */
static void near(net *n, const qsim_tensor *in, size_t inputs, int32_t rank, const int64_t *dims,
                 const double *expected, double tolerance) {
    net_output(n, "y");
    NET_OK(n, net_end(n));
    for (int32_t level = 0; level < 2; level++) {
        float y[64];
        size_t count = 1;
        qsim_tensor out = net_tensor(QSIM_FLOAT, rank, dims, y);
        for (int32_t i = 0; i < rank; i++)
            count *= (size_t)dims[i];
        NET_OK(n,
               net_run(n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, in, inputs, &out, 1));
        for (size_t i = 0; i < count; i++)
            CHECK_NEAR(y[i], expected[i], tolerance * (1 + fabs(expected[i])));
    }
    net_free(n);
}

static double sigmoid(double v) {
    return 1 / (1 + exp(-v));
}

static void test_swiglu(qsim_ctx *ctx) {
    for (int with = 0; with < 2; with++) {
        net n;
        double y[N];
        const float alpha = with ? 1.5f : 1.0f;
        for (int i = 0; i < N; i++)
            y[i] = (double)x[i] * sigmoid((double)alpha * (double)x[i]) * (double)b[i];
        net_begin(&n, ctx, 28);
        net_input(&n, "a", QSIM_FLOAT, NET_DIMS(4, 6));
        net_input(&n, "b", QSIM_FLOAT, NET_DIMS(4, 6));
        const qs_id node = net_node(&n, "", "SwiGLU", "a,b", "y");
        if (with)
            qs_node_set_float(n.g, node, "alpha", alpha);
        const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(4, 6), x),
                                   net_tensor(QSIM_FLOAT, NET_DIMS(4, 6), b)};
        near(&n, in, 2, NET_DIMS(4, 6), y, 1e-6);
    }
}

/* Over axes 0 and 2: a channel is axis 1. */
static void test_mean_variance(qsim_ctx *ctx) {
    net n;
    double y[N];
    for (int c = 0; c < 3; c++) {
        double mean = 0, square = 0;
        for (int i = 0; i < 8; i++)
            mean += (double)x[i / 4 * 12 + c * 4 + i % 4] / 8;
        for (int i = 0; i < 8; i++)
            square += pow((double)x[i / 4 * 12 + c * 4 + i % 4] - mean, 2) / 8;
        for (int i = 0; i < 8; i++)
            y[i / 4 * 12 + c * 4 + i % 4] =
                ((double)x[i / 4 * 12 + c * 4 + i % 4] - mean) / sqrt(square);
    }
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    const qs_id node = net_node(&n, "", "MeanVarianceNormalization", "x", "y");
    net_ints(&n, node, "axes", 2, (const int64_t[]){0, 2});
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(2, 3, 4), x);
    near(&n, &in, 1, NET_DIMS(2, 3, 4), y, 1e-6);
}

/* Sizes that are known make Shape, and what follows from it, constants. */
static void test_shapes(qsim_ctx *ctx) {
    net n;
    net_begin(&n, ctx, 15);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_const(&n, "two", QSIM_INT64, NET_DIMS(1), (const int64_t[]){2});
    const qs_id shape = net_node(&n, "", "Shape", "x", "s");
    qs_node_set_int(n.g, shape, "end", 2);
    net_node(&n, "", "Mul", "s,two", "double");
    net_node(&n, "", "ConstantOfShape", "double", "zeros");
    net_node(&n, "", "ReduceMax", "zeros", "zero");
    net_node(&n, "", "Add", "x,zero", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qs_pass p = net_pass(&n);
    CHECK_INT(qs_pass_shapes(&p), 0);
    CHECK_INT(n.g->order_count, 1);
    CHECK_INT(net_count(&n, "Add"), 1);
    net_free(&n);
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    draw();
    test_swiglu(ctx);
    test_mean_variance(ctx);
    test_shapes(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
