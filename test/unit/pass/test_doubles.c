/* SPDX-License-Identifier: MIT */
/* Convolutions, pools and normalizations of doubles: sessions beside loops written out. */
#include "net.h"

#include <math.h>

#define MANY 1024

/* Numbers that a float does not hold. */
static void fill(double *v, size_t n, uint64_t seed) {
    uint64_t state = seed * 7919 + 3;
    for (size_t i = 0; i < n; i++)
        v[i] = (double)test_random(&state) / 4294967296.0 * 4 - 2;
}

/* The net's output 0 at the lowest and the highest level; type and count of `expected` are its. */
static void compare(net *n, int32_t rank, const int64_t *dims, const double *x,
                    const double *expected, size_t count) {
    static double y[MANY], copy[MANY];
    const int32_t levels[] = {QSIM_LEVEL_DISABLE, QSIM_LEVEL_ALL};
    const qsim_tensor in = net_tensor(QSIM_DOUBLE, rank, dims, copy);
    memcpy(copy, x, in.bytes);
    NET_OK(n, net_end(n));
    for (size_t k = 0; k < 2; k++) {
        qsim_tensor out = {.dtype = QSIM_DOUBLE, .data = y, .bytes = count * sizeof(double)};
        memset(y, 0xcd, sizeof(y));
        NET_OK(n, net_run(n, levels[k], false, &in, 1, &out, 1));
        CHECK_INT(out.dtype, QSIM_DOUBLE);
        CHECK_INT(out.bytes, count * sizeof(double));
        for (size_t i = 0; i < count; i++)
            CHECK_NEAR(y[i], expected[i], 1e-12);
    }
    net_free(n);
}

/* ---- convolutions: batch 2, two groups of 2 to 3 channels, two axes ---- */

enum { N = 2, G = 2, C = 4, M = 6, H = 5, W = 6, KH = 2, KW = 3 };

static size_t at4(size_t a, size_t b, size_t c, size_t d, size_t nb, size_t nc, size_t nd) {
    return ((a * nb + b) * nc + c) * nd + d;
}

static void add_conv(net *n, const char *op, const double *w, const int64_t *wd, const double *b) {
    const int64_t strides[] = {2, 1}, pads[] = {1, 0, 0, 2}, dilations[] = {1, 2};
    net_input(n, "x", QSIM_DOUBLE, NET_DIMS(N, C, H, W));
    net_const(n, "w", QSIM_DOUBLE, 4, wd, w);
    net_const(n, "b", QSIM_DOUBLE, NET_DIMS(M), b);
    const qs_id node = net_node(n, "", op, "x,w,b", "y");
    net_ints(n, node, "strides", 2, strides);
    net_ints(n, node, "pads", 4, pads);
    net_ints(n, node, "dilations", 2, dilations);
    qs_node_set_int(n->g, node, "group", G);
    net_output(n, "y");
}

static void test_conv(qsim_ctx *ctx, bool transposed) {
    enum { FH = 3, FW = 4, TH = 9, TW = 8 };
    const size_t oh = transposed ? TH : FH, ow = transposed ? TW : FW;
    static double x[N * C * H * W], w[C * M / G * KH * KW], b[M], y[N * M * TH * TW];
    fill(x, QS_COUNT(x), 1);
    fill(w, QS_COUNT(w), 2);
    fill(b, QS_COUNT(b), 3);
    const size_t count = N * M * oh * ow;
    for (size_t i = 0; i < count; i++)
        y[i] = b[i / (oh * ow) % M];
    for (size_t n = 0; n < N; n++)
        for (size_t m = 0; m < M; m++)
            for (size_t c = 0; c < C / G; c++)
                for (size_t i = 0; i < H * W * KH * KW; i++) {
                    const size_t g = m / (M / G), from = g * (C / G) + c, h = i / (W * KH * KW),
                                 v = i / (KH * KW) % W, kh = i / KW % KH, kw = i % KW;
                    const ptrdiff_t dh = (ptrdiff_t)h, dv = (ptrdiff_t)v;
                    ptrdiff_t r = dh - (ptrdiff_t)kh + 1, s = dv - 2 * (ptrdiff_t)kw;
                    if (!transposed && (r < 0 || r % 2))
                        continue;
                    r = transposed ? 2 * dh + (ptrdiff_t)kh - 1 : r / 2;
                    s = transposed ? dv + 2 * (ptrdiff_t)kw : s;
                    const size_t t = transposed ? at4(from, m % (M / G), kh, kw, M / G, KH, KW)
                                                : at4(m, c, kh, kw, C / G, KH, KW);
                    if (r >= 0 && s >= 0 && (size_t)r < oh && (size_t)s < ow)
                        y[at4(n, m, (size_t)r, (size_t)s, M, oh, ow)] +=
                            x[at4(n, from, h, v, C, H, W)] * w[t];
                }
    net n;
    net_begin(&n, ctx, 13);
    add_conv(&n, transposed ? "ConvTranspose" : "Conv", w,
             transposed ? (int64_t[]){C, M / G, KH, KW} : (int64_t[]){M, C / G, KH, KW}, b);
    compare(&n, NET_DIMS(N, C, H, W), x, y, count);
}

/* Over three axes, and over one, where a window of one element copies. */
static void test_axes(qsim_ctx *ctx, int32_t rank) {
    static double x[16], y[16];
    const double w[1] = {1 + 1e-11};
    const int64_t dims[] = {1, 1, rank == 3 ? 16 : 2, 2, 4}, ones[] = {1, 1, 1, 1, 1};
    fill(x, 16, 4);
    for (int i = 0; i < 16; i++)
        y[i] = x[i] * w[0];
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_DOUBLE, rank, dims);
    net_const(&n, "w", QSIM_DOUBLE, rank, ones, w);
    net_node(&n, "", "Conv", "x,w", "y");
    net_output(&n, "y");
    compare(&n, rank, dims, x, y, 16);
}

/* Weights of floats over three axes whose sizes only a run knows. */
static void test_late_weights(qsim_ctx *ctx) {
    float x[8], w[8], y[1], sum = 0;
    for (int i = 0; i < 8; i++) {
        x[i] = (float)i - 3;
        w[i] = (float)(i * i);
        sum += x[i] * w[i];
    }
    const int64_t free_dims[] = {1, 1, -1, -1, -1};
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 1, 2, 2, 2));
    net_input(&n, "w", QSIM_FLOAT, 5, free_dims);
    net_node(&n, "", "Conv", "x,w", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in[] = {net_tensor(QSIM_FLOAT, NET_DIMS(1, 1, 2, 2, 2), x),
                              net_tensor(QSIM_FLOAT, NET_DIMS(1, 1, 2, 2, 2), w)};
    qsim_tensor out = {.dtype = QSIM_FLOAT, .data = y, .bytes = sizeof(y)};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, 2, &out, 1));
    CHECK(y[0] == sum);
    net_free(&n);
}

/* ---- pools ---- */

static double pool(const double *x, const char *op, size_t plane, int r, int c) {
    const bool max = strcmp(op, "MaxPool") == 0;
    double best = max ? -INFINITY : 0;
    int count = 0;
    for (int i = r * 2 - 1; i < r * 2 + 1; i++)
        for (int k = c; k < c + 3; k++)
            if (i >= 0 && i < H && k < W) {
                const double v = x[plane * H * W + (size_t)(i * W + k)];
                best = max ? fmax(best, v) : best + v;
                count++;
            }
    return max ? best : best / count;
}

static void test_pool(qsim_ctx *ctx, const char *op) {
    static double x[N * C * H * W], y[N * C * 3 * 4];
    const int64_t kernel[] = {2, 3}, strides[] = {2, 1}, pads[] = {1, 0, 0, 0};
    fill(x, QS_COUNT(x), 5);
    for (size_t i = 0; i < QS_COUNT(y); i++)
        y[i] = pool(x, op, i / 12, (int)(i / 4 % 3), (int)(i % 4));
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_DOUBLE, NET_DIMS(N, C, H, W));
    const qs_id node = net_node(&n, "", op, "x", "y");
    net_ints(&n, node, "kernel_shape", 2, kernel);
    net_ints(&n, node, "strides", 2, strides);
    net_ints(&n, node, "pads", 4, pads);
    net_output(&n, "y");
    compare(&n, NET_DIMS(N, C, H, W), x, y, QS_COUNT(y));
}

static void test_global(qsim_ctx *ctx) {
    static double x[N * C * H * W];
    double y[N * C] = {0};
    fill(x, QS_COUNT(x), 6);
    for (size_t i = 0; i < QS_COUNT(x); i++)
        y[i / (H * W)] += x[i] / (H * W);
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_DOUBLE, NET_DIMS(N, C, H, W));
    net_node(&n, "", "GlobalAveragePool", "x", "y");
    net_output(&n, "y");
    compare(&n, NET_DIMS(N, C, H, W), x, y, N * C);
}

/* ---- normalizations of the last two axes: statistics in stash_type ---- */

static void test_norm(qsim_ctx *ctx, bool centred, int32_t stash) {
    enum { ROWS = 4, COUNT = 6 };
    static double x[ROWS * COUNT], scale[COUNT], shift[COUNT], y[ROWS * COUNT];
    const double epsilon = (double)1e-2f;
    fill(x, QS_COUNT(x), 7);
    fill(scale, COUNT, 8);
    fill(shift, COUNT, 9);
    for (size_t r = 0; r < ROWS; r++) {
        double mean = 0, var = 0, v[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            v[i] = stash == QSIM_FLOAT ? (double)(float)x[r * COUNT + i] : x[r * COUNT + i];
            mean += centred ? v[i] / COUNT : 0;
        }
        for (size_t i = 0; i < COUNT; i++)
            var += (v[i] - mean) * (v[i] - mean) / COUNT;
        for (size_t i = 0; i < COUNT; i++)
            y[r * COUNT + i] =
                (v[i] - mean) / sqrt(var + epsilon) * scale[i] + (centred ? shift[i] : 0);
    }
    net n;
    net_begin(&n, ctx, 23);
    net_input(&n, "x", QSIM_DOUBLE, NET_DIMS(2, 2, 2, 3));
    net_const(&n, "s", QSIM_DOUBLE, NET_DIMS(2, 3), scale);
    net_const(&n, "b", QSIM_DOUBLE, NET_DIMS(2, 3), shift);
    const qs_id node = centred ? net_node(&n, "", "LayerNormalization", "x,s,b", "y")
                               : net_node(&n, "", "RMSNormalization", "x,s", "y");
    qs_node_set_int(n.g, node, "axis", -2);
    qs_node_set_float(n.g, node, "epsilon", 1e-2f);
    qs_node_set_int(n.g, node, "stash_type", stash);
    net_output(&n, "y");
    if (stash == QSIM_DOUBLE) {
        compare(&n, NET_DIMS(2, 2, 2, 3), x, y, QS_COUNT(y));
        return;
    }
    double out[QS_COUNT(y)];
    const qsim_tensor in = net_tensor(QSIM_DOUBLE, NET_DIMS(2, 2, 2, 3), x);
    qsim_tensor made = {.dtype = QSIM_DOUBLE, .data = out, .bytes = sizeof(out)};
    NET_OK(&n, net_end(&n));
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &made, 1));
    for (size_t i = 0; i < QS_COUNT(y); i++)
        CHECK_NEAR(out[i], y[i], 1e-5); /* in float: not to the bits of a double */
    net_free(&n);
}

/* Both operands have one type. */
static void test_mixed(qsim_ctx *ctx) {
    static const char *const ops[] = {"Conv", "ConvTranspose"};
    const float w[1] = {1};
    for (size_t i = 0; i < 2; i++) {
        net n;
        net_begin(&n, ctx, 13);
        net_input(&n, "x", QSIM_DOUBLE, NET_DIMS(1, 1, 3));
        net_const(&n, "w", QSIM_FLOAT, NET_DIMS(1, 1, 1), w);
        net_node(&n, "", ops[i], "x,w", "y");
        net_output(&n, "y");
        CHECK_INT(net_end(&n), QSIM_E_DTYPE);
        net_free(&n);
    }
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    test_conv(ctx, false);
    test_conv(ctx, true);
    test_axes(ctx, 3);
    test_axes(ctx, 5);
    test_late_weights(ctx);
    test_pool(ctx, "MaxPool");
    test_pool(ctx, "AveragePool");
    test_global(ctx);
    test_norm(ctx, true, QSIM_DOUBLE);
    test_norm(ctx, true, QSIM_FLOAT);
    test_norm(ctx, false, QSIM_DOUBLE);
    test_mixed(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
