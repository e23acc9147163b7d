/* SPDX-License-Identifier: MIT */
/* ImageScaler, Crop, Affine, ScaledTanh and ParametricSoftplus against their formulas. */
#include "net.h"

#include <math.h>

#define N 24

static float x[N];

static void expect(net *n, const qsim_tensor *in, int32_t rank, const int64_t *dims,
                   const double *expected) {
    float y[N];
    size_t count = 1;
    const qsim_tensor shape = net_tensor(QSIM_FLOAT, rank, dims, y);
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    net_output(n, "y");
    NET_OK(n, net_end(n));
    for (int level = 0; level < 2; level++) {
        qsim_tensor out = shape;
        NET_OK(n, net_run(n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, in, 1, &out, 1));
        for (size_t i = 0; i < count; i++)
            CHECK_NEAR(y[i], expected[i], 1e-6);
    }
    net_free(n);
}

/* scale * x + bias of the channel, with the defaults 1 and no bias. */
static void test_imagescaler(qsim_ctx *ctx) {
    static const float biases[] = {1, -2, 3};
    const qs_attr bias = {.name = "bias", .type = QSIM_ATTR_FLOATS, .count = 3, .u.floats = biases};
    for (int with = 0; with < 2; with++) {
        net n;
        double y[N];
        for (int i = 0; i < N; i++)
            y[i] = with ? 0.25 * (double)x[i] + (double)biases[i / 4 % 3] : (double)x[i];
        net_begin(&n, ctx, 7);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 2, 2));
        const qs_id node = net_node(&n, "", "ImageScaler", "x", "y");
        if (with) {
            qs_node_set_float(n.g, node, "scale", 0.25f);
            qs_node_set_attr(n.g, node, &bias);
        }
        const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(2, 3, 2, 2), x);
        expect(&n, &in, NET_DIMS(2, 3, 2, 2), y);
    }
    net n;
    net_begin(&n, ctx, 7);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 4, 2, 2));
    qs_node_set_attr(n.g, net_node(&n, "", "ImageScaler", "x", "y"), &bias);
    net_output(&n, "y");
    CHECK_INT(net_end(&n), QSIM_E_SHAPE);
    CHECK(strstr(n.error.message, "3 biases for 4 channels") != NULL);
    net_free(&n);
}

/* An image [1,2,3,4] without a border of left, top, right, bottom, or `size` of it. */
static void crop(qsim_ctx *ctx, const int64_t border[4], const int64_t *size, int64_t h, int64_t w,
                 const char *refusal) {
    const qs_attr borders = {
        .name = "border", .type = QSIM_ATTR_INTS, .count = 4, .u.ints = border};
    const qs_attr sizes = {.name = "scale", .type = QSIM_ATTR_INTS, .count = 2, .u.ints = size};
    double y[N];
    net n;
    net_begin(&n, ctx, 7);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 2, 3, 4));
    const qs_id node = net_node(&n, "", "Crop", "x", "y");
    qs_node_set_attr(n.g, node, &borders);
    if (size)
        qs_node_set_attr(n.g, node, &sizes);
    if (refusal) {
        net_output(&n, "y");
        CHECK_INT(net_end(&n), QSIM_E_SHAPE);
        CHECK(strstr(n.error.message, refusal) != NULL);
        net_free(&n);
        return;
    }
    for (int64_t i = 0; i < 2 * h * w; i++)
        y[i] = (double)x[i / (h * w) * 12 + (border[1] + i / w % h) * 4 + border[0] + i % w];
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(1, 2, 3, 4), x);
    expect(&n, &in, NET_DIMS(1, 2, h, w), y);
}

static void test_crop(qsim_ctx *ctx) {
    crop(ctx, (int64_t[]){0, 0, 0, 0}, NULL, 3, 4, NULL);
    crop(ctx, (int64_t[]){1, 0, 2, 1}, NULL, 2, 1, NULL);
    crop(ctx, (int64_t[]){1, 2, 0, 0}, (int64_t[]){1, 2}, 1, 2, NULL);
    crop(ctx, (int64_t[]){2, 0, 3, 0}, NULL, 0, 0, "axis 3 of size 4 cannot be cropped so");
    crop(ctx, (int64_t[]){0, 1, 0, 0}, (int64_t[]){3, 4}, 0, 0, "axis 2 of size 3 cannot");
    crop(ctx, (int64_t[]){0, -1, 0, 0}, NULL, 0, 0, "axis 2 of size 3 cannot");
}

/* Of an image whose height only the run knows: 2 rows of 3, and 4 of 3, which is refused. */
static void test_free_size(qsim_ctx *ctx) {
    static const int64_t border[4] = {1, 1, 0, 0}, few[2] = {2, 3}, many[2] = {4, 3};
    const qs_attr borders = {
        .name = "border", .type = QSIM_ATTR_INTS, .count = 4, .u.ints = border};
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(1, 2, 3, 4), x);
    for (int with = 0; with < 3; with++) {
        const qs_attr sizes = {
            .name = "scale", .type = QSIM_ATTR_INTS, .count = 2, .u.ints = with == 1 ? few : many};
        qsim_tensor out = {0};
        float y[N];
        net n;
        net_begin(&n, ctx, 7);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 2, -1, 4));
        const qs_id node = net_node(&n, "", "Crop", "x", "y");
        qs_node_set_attr(n.g, node, &borders);
        if (with)
            qs_node_set_attr(n.g, node, &sizes);
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        if (with < 2)
            out = net_tensor(QSIM_FLOAT, NET_DIMS(1, 2, 2, 3), y);
        CHECK_INT(net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &out, 1), with < 2 ? 0 : QSIM_E_SHAPE);
        for (int i = 0; i < 12 && with < 2; i++)
            CHECK_NEAR(y[i], x[i / 6 * 12 + (1 + i / 3 % 2) * 4 + 1 + i % 3], 0);
        net_free(&n);
    }
}

static double affine(double v, double alpha, double beta) {
    return alpha * v + beta;
}
static double scaled_tanh(double v, double alpha, double beta) {
    return alpha * tanh(beta * v);
}
static double parametric_softplus(double v, double alpha, double beta) {
    return alpha * log1p(exp(beta * v));
}

static void activation(qsim_ctx *ctx, const char *op, double (*f)(double, double, double)) {
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(4, 6), x);
    double y[N];
    net n;
    for (int i = 0; i < N; i++)
        y[i] = f((double)x[i], -1.5, 0.25);
    net_begin(&n, ctx, 7);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(4, 6));
    const qs_id node = net_node(&n, "", op, "x", "y");
    qs_node_set_float(n.g, node, "alpha", -1.5f);
    qs_node_set_float(n.g, node, "beta", 0.25f);
    expect(&n, &in, NET_DIMS(4, 6), y);
}

int main(void) {
    qsim_ctx *ctx = NULL;
    for (int i = 0; i < N; i++)
        x[i] = (float)(i * 7 % 11) - 4.5f;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    test_imagescaler(ctx);
    test_crop(ctx);
    test_free_size(ctx);
    activation(ctx, "Affine", affine);
    activation(ctx, "ScaledTanh", scaled_tanh);
    activation(ctx, "ParametricSoftplus", parametric_softplus);
    qsim_ctx_free(ctx);
    return test_done();
}
