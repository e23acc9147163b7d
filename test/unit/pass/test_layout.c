/* SPDX-License-Identifier: MIT */
/* Levels and layouts: one float network at every level against a plain computation. */
#include "net.h"

#include <math.h>

#define BATCH 3

/* ---- the plain computation, channels first, in double ---- */

static const float *floats(const net *n, const char *name) {
    return n->g->values[qs_graph_find(n->g, name)].data->data;
}

/* 3x3, stride 1, one pixel of padding. */
static void conv3(const double *x, int ci, int h, int w, const float *k, const float *b, int co,
                  double *y) {
    for (int o = 0; o < co; o++)
        for (int r = 0; r < h; r++)
            for (int c = 0; c < w; c++) {
                double sum = b ? (double)b[o] : 0;
                for (int i = 0; i < ci; i++)
                    for (int dy = -1; dy <= 1; dy++)
                        for (int dx = -1; dx <= 1; dx++)
                            if (r + dy >= 0 && r + dy < h && c + dx >= 0 && c + dx < w)
                                sum += x[(i * h + r + dy) * w + c + dx] *
                                       (double)k[((o * ci + i) * 3 + dy + 1) * 3 + dx + 1];
                y[(o * h + r) * w + c] = sum;
            }
}

#define H 5
#define W 4

/*
 * x[N,2,H,W] -> conv 5 -> BN -> Relu -> a; conv 5 of a -> + per-channel constant -> b;
 * concat(a, b) -> Clip -> transposed to channels-last (given out) ; flattened -> Gemm 7 -> Relu.
 */
static void make(net *n, qsim_ctx *ctx) {
    const int64_t perm[] = {0, 2, 3, 1}, pads[] = {1, 1, 1, 1};
    const float var[] = {1, 0.5f, 2, 0.1f, 4};
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(-1, 2, H, W));
    net_random(n, "w1", NET_DIMS(5, 2, 3, 3), 1, 1);
    net_random(n, "gamma", NET_DIMS(5), 2, 2);
    net_random(n, "beta", NET_DIMS(5), 3, 1);
    net_random(n, "mean", NET_DIMS(5), 4, 1);
    net_const(n, "var", QSIM_FLOAT, NET_DIMS(5), var);
    net_random(n, "w2", NET_DIMS(5, 5, 3, 3), 5, 1);
    net_random(n, "b2", NET_DIMS(5), 6, 1);
    net_random(n, "shift", NET_DIMS(5, 1, 1), 7, 1);
    net_random(n, "w3", NET_DIMS(7, 10 * H * W), 8, 0.3f);
    net_random(n, "b3", NET_DIMS(7), 9, 1);
    net_float(n, "lo", -1.5f);
    net_float(n, "hi", 1.25f);
    qs_id c = net_node(n, "", "Conv", "x,w1", "c1");
    net_ints(n, c, "pads", 4, pads);
    net_node(n, "", "BatchNormalization", "c1,gamma,beta,mean,var", "n1");
    net_node(n, "", "Relu", "n1", "a");
    c = net_node(n, "", "Conv", "a,w2,b2", "c2");
    net_ints(n, c, "pads", 4, pads);
    net_node(n, "", "Add", "c2,shift", "b");
    qs_node_set_int(n->g, net_node(n, "", "Concat", "a,b", "cat"), "axis", 1);
    net_node(n, "", "Clip", "cat,lo,hi", "clipped");
    net_ints(n, net_node(n, "", "Transpose", "clipped", "last"), "perm", 4, perm);
    net_node(n, "", "Flatten", "clipped", "flat");
    qs_node_set_int(n->g, net_node(n, "", "Gemm", "flat,w3,b3", "fc"), "transB", 1);
    net_node(n, "", "Relu", "fc", "y");
    net_output(n, "last");
    net_output(n, "y");
    NET_OK(n, net_end(n));
}

static void plain(const net *n, const float *x, double *last, double *y) {
    double in[2 * H * W], a[5 * H * W], b[5 * H * W], cat[10 * H * W];
    const float *gamma = floats(n, "gamma"), *beta = floats(n, "beta"), *mean = floats(n, "mean");
    const float *var = floats(n, "var"), *w3 = floats(n, "w3"), *b3 = floats(n, "b3");
    for (int i = 0; i < 2 * H * W; i++)
        in[i] = (double)x[i];
    conv3(in, 2, H, W, floats(n, "w1"), NULL, 5, a);
    for (int i = 0; i < 5 * H * W; i++) {
        int c = i / (H * W);
        a[i] = (a[i] - (double)mean[c]) / sqrt((double)var[c] + (double)1e-5f) * (double)gamma[c] +
               (double)beta[c];
        a[i] = a[i] > 0 ? a[i] : 0;
    }
    conv3(a, 5, H, W, floats(n, "w2"), floats(n, "b2"), 5, b);
    for (int i = 0; i < 10 * H * W; i++) {
        int k = i - 5 * H * W;
        cat[i] = k < 0 ? a[i] : b[k] + (double)floats(n, "shift")[k / (H * W)];
        cat[i] = cat[i] < -1.5 ? -1.5 : cat[i] > 1.25 ? 1.25 : cat[i];
        last[(i % (H * W)) * 10 + i / (H * W)] = cat[i];
    }
    for (int o = 0; o < 7; o++) {
        double sum = (double)b3[o];
        for (int i = 0; i < 10 * H * W; i++)
            sum += cat[i] * (double)w3[o * 10 * H * W + i];
        y[o] = sum > 0 ? sum : 0;
    }
}

static void levels(void) {
    net n;
    float x[BATCH * 2 * H * W], last[BATCH * 10 * H * W], y[BATCH * 7];
    double want_last[BATCH * 10 * H * W], want_y[BATCH * 7];
    uint64_t state = 3;
    make(&n, NULL);
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&state) % 2001) / 1000 - 1;
    for (int i = 0; i < BATCH; i++)
        plain(&n, x + i * 2 * H * W, want_last + i * 10 * H * W, want_y + i * 7);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        const int64_t dims[] = {BATCH, 2, H, W};
        qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
        qsim_tensor out[2] = {{.data = last, .bytes = sizeof(last)},
                              {.data = y, .bytes = sizeof(y)}};
        memset(last, 0, sizeof(last));
        NET_OK(&n, net_run(&n, level, false, &in, 1, out, 2));
        for (size_t i = 0; i < QS_COUNT(last); i++)
            CHECK_NEAR(last[i], want_last[i], 1.5e-5);
        for (size_t i = 0; i < QS_COUNT(y); i++)
            CHECK_NEAR(y[i], want_y[i], 1e-4);
    }
    net_free(&n);
}

/* The remaining graph: no transposes except at the border. */
static void shape_of_graph(void) {
    net n;
    make(&n, NULL);
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_batchnorm(&p));
    CHECK_INT(net_count(&n, "BatchNormalization"), 0);
    NET_OK(&n, qs_pass_fuse(&p));
    CHECK_INT(net_count(&n, "Relu"), 0);
    NET_OK(&n, qs_pass_layout(&p, true));
    CHECK_INT(net_count(&n, "Transpose"), 1); /* of the input; the output wants channels last */
    CHECK_INT(net_count(&n, "Conv"), 2);
    net_free(&n);
    make(&n, NULL);
    p = net_pass(&n);
    NET_OK(&n, qs_pass_layout(&p, false));
    /* The model's own, and those around conv + BN and the second conv. */
    CHECK_INT(net_count(&n, "Transpose"), 1 + 2 * 2);
    net_free(&n);
}

/* conv + one number a channel, conv + one for all, conv + a picture: only the last Add stays. */
static void make_sums(net *n) {
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(1, 2, H, W));
    net_random(n, "w", NET_DIMS(3, 2, 3, 3), 1, 1);
    net_random(n, "shift", NET_DIMS(1, 3, 1, 1), 2, 1);
    net_random(n, "picture", NET_DIMS(H - 2, W - 2), 3, 1);
    net_float(n, "number", 0.375f);
    net_node(n, "", "Conv", "x,w", "c1");
    net_node(n, "", "Add", "shift,c1", "y1");
    net_node(n, "", "Conv", "x,w", "c2");
    net_node(n, "", "Add", "c2,number", "y2");
    net_node(n, "", "Conv", "x,w", "c3");
    net_node(n, "", "Add", "c3,picture", "y3");
    net_output(n, "y1");
    net_output(n, "y2");
    net_output(n, "y3");
    NET_OK(n, net_end(n));
}

static void sums(void) {
    enum { OUT = 3 * (H - 2) * (W - 2) };
    net n;
    float x[2 * H * W], y[2][3][OUT];
    uint64_t state = 5;
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&state) % 2001) / 1000 - 1;
    make_sums(&n);
    for (int i = 0; i < 2; i++) {
        const int64_t dims[] = {1, 2, H, W};
        const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
        qsim_tensor out[3] = {{.data = y[i][0], .bytes = sizeof(y[i][0])},
                              {.data = y[i][1], .bytes = sizeof(y[i][1])},
                              {.data = y[i][2], .bytes = sizeof(y[i][2])}};
        NET_OK(&n, net_run(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, out, 3));
    }
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_bias(&p));
    CHECK_INT(net_count(&n, "Add"), 1);
    CHECK_INT(net_count(&n, "Conv"), 3);
    net_free(&n);
}

/* Convolutions around a channel shuffle: only the shuffle and the borders move data. */
static void shuffle(void) {
    net n;
    const int64_t apart[] = {2, 2, 3, H, W}, shape[] = {2, 6, H, W}, five = 5, four = 4;
    const int64_t perm[] = {0, 2, 1, 3, 4};
    float x[2 * 6 * H * W], want[2 * 6 * H * W], got[2 * 6 * H * W];
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 6, H, W));
    net_random(&n, "w1", NET_DIMS(6, 6, 1, 1), 1, 1);
    net_const(&n, "apart", QSIM_INT64, 1, &five, apart);
    net_const(&n, "shape", QSIM_INT64, 1, &four, shape);
    net_node(&n, "", "Conv", "x,w1", "c1");
    net_node(&n, "", "Reshape", "c1,apart", "g");
    net_ints(&n, net_node(&n, "", "Transpose", "g", "t"), "perm", 5, perm);
    net_node(&n, "", "Reshape", "t,shape", "s");
    net_node(&n, "", "Conv", "s,w1", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(i * 7 % 31) / 16 - 1;
    const int64_t dims[] = {2, 6, H, W};
    qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    qsim_tensor out = {.data = want, .bytes = sizeof(want)};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
    out = (qsim_tensor){.data = got, .bytes = sizeof(got)};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &out, 1));
    CHECK(memcmp(want, got, sizeof(got)) == 0);
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_layout(&p, true));
    CHECK_INT(net_count(&n, "Transpose"), 3);
    net_free(&n);
}

/* BatchNormalization takes the layout that it finds: alone the model's, else a convolution's. */
static void normalization(bool between) {
    enum { CHANNELS = 19 }; /* more than a vector, and some left */
    static const float var[CHANNELS] = {1, 0.5f, 2, 0.1f, 4};
    float x[CHANNELS * H * W], y[2][CHANNELS * H * W];
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, CHANNELS, H, W));
    net_random(&n, "w", NET_DIMS(CHANNELS, CHANNELS, 1, 1), 1, 1);
    net_random(&n, "scale", NET_DIMS(CHANNELS), 2, 2);
    net_random(&n, "shift", NET_DIMS(CHANNELS), 3, 1);
    net_random(&n, "mean", NET_DIMS(CHANNELS), 4, 1);
    net_const(&n, "var", QSIM_FLOAT, NET_DIMS(CHANNELS), var);
    net_node(&n, "", between ? "Conv" : "Identity", between ? "x,w" : "x", "c");
    net_node(&n, "", "BatchNormalization", "c,scale,shift,mean,var", "b");
    net_node(&n, "", between ? "Conv" : "Identity", between ? "b,w" : "b", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(i * 7 % 31) / 16 - 1;
    for (int i = 0; i < 2 && !between; i++) {
        const int64_t dims[] = {1, CHANNELS, H, W};
        qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        NET_OK(&n, net_run(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
        for (size_t k = 0; k < QS_COUNT(x); k++) {
            const size_t c = k / (H * W);
            const float factor = floats(&n, "scale")[c] / sqrtf(var[c] + 1e-5f);
            const float want = (x[k] - floats(&n, "mean")[c]) * factor + floats(&n, "shift")[c];
            CHECK(memcmp(&y[i][k], &want, sizeof(want)) == 0);
        }
    }
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_layout(&p, true));
    CHECK_INT(net_count(&n, "Transpose"), between ? 2 : 0);
    net_free(&n);
}

/* ---- optimize: the same network in standard operators ---- */

static void optimize(void) {
    net n;
    qsim_model *m;
    make(&n, NULL);
    NET_OK(&n, qsim_model_optimize(n.model, QSIM_LEVEL_ALL, &m, &n.error));
    for (size_t i = 0; i < m->graph->order_count; i++) {
        const qs_node *k = &m->graph->nodes[m->graph->order[i]];
        CHECK_STR(k->domain, "");
        CHECK(strcmp(k->op_type, "BatchNormalization") != 0);
    }
    CHECK_STR(m->graph->values[m->graph->outputs[1]].name, "y");
    CHECK(qs_graph_find(m->graph, "w1_folded") != QS_NONE);
    qsim_model_free(m);
    net_free(&n);
}

/* Nodes of one name get distinct names; the first keeps its name. */
static void names(void) {
    static const char *const expected[] = {"a", "a_2", "a_3"};
    net n;
    qsim_model *m;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2));
    const qs_id ids[] = {net_node(&n, "", "Exp", "x", "p"), net_node(&n, "", "Tanh", "p", "q"),
                         net_node(&n, "", "Exp", "q", "y")};
    for (int i = 0; i < 3; i++)
        n.g->nodes[ids[i]].name = "a";
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qsim_model_optimize(n.model, QSIM_LEVEL_ALL, &m, &n.error));
    CHECK_INT(m->graph->order_count, 3);
    for (size_t i = 0; i < 3 && i < m->graph->order_count; i++)
        CHECK_STR(m->graph->nodes[m->graph->order[i]].name, expected[i]);
    qsim_model_free(m);
    net_free(&n);
}

/* ConvTranspose, a constant per channel, BatchNormalization, ReLU: one step, also from a file. */
static void transposed(int64_t groups) {
    net n;
    qsim_model *m;
    const float var[] = {1, 0.5f, 2, 0.1f};
    const int64_t stride[] = {2, 2};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 4, H, W));
    net_random(&n, "w", NET_DIMS(4, 4 / groups, 2, 2), 1, 1);
    net_random(&n, "b", NET_DIMS(1, 4, 1, 1), 2, 1);
    net_random(&n, "gamma", NET_DIMS(4), 2, 2);
    net_random(&n, "beta", NET_DIMS(4), 3, 1);
    net_random(&n, "mean", NET_DIMS(4), 4, 1);
    net_const(&n, "var", QSIM_FLOAT, NET_DIMS(4), var);
    qs_id c = net_node(&n, "", "ConvTranspose", "x,w", "t");
    net_ints(&n, c, "strides", 2, stride);
    qs_node_set_int(n.g, c, "group", groups);
    net_node(&n, "", "Add", "b,t", "s");
    if (groups == 1)
        net_node(&n, "", "BatchNormalization", "s,gamma,beta,mean,var", "z");
    net_node(&n, "", "Relu", groups == 1 ? "z" : "s", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    static float x[8 * H * W], y[2][32 * H * W];
    const int64_t dims[] = {2, 4, H, W};
    for (int i = 0; i < 8 * H * W; i++)
        x[i] = (float)(i * 5 % 13) - 6;
    qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    for (int i = 0; i < 2; i++) {
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        NET_OK(&n, net_run(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
    }
    for (int i = 0; i < 32 * H * W; i++)
        CHECK(fabsf(y[0][i] - y[1][i]) <= (groups == 1 ? 1e-4f : 0));
    NET_OK(&n, qsim_model_optimize(n.model, QSIM_LEVEL_ALL, &m, &n.error));
    CHECK_INT(m->graph->order_count, 2);
    qsim_model_free(m);
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_bias(&p));
    NET_OK(&n, qs_pass_batchnorm(&p));
    NET_OK(&n, qs_pass_fuse(&p));
    CHECK_INT(n.g->order_count, 1);
    net_free(&n);
}

/* A detector's head: its planes become rows of channels without a transpose. */
static void head(void) {
    net n;
    const int64_t shape[] = {1, 5, -1}, pads[] = {1, 1, 1, 1}, perm[] = {0, 2, 1};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 2, H, W));
    net_random(&n, "w1", NET_DIMS(5, 2, 3, 3), 1, 1);
    net_random(&n, "w2", NET_DIMS(5, 5, 1, 1), 2, 1);
    net_const(&n, "shape", QSIM_INT64, NET_DIMS(3), shape);
    net_ints(&n, net_node(&n, "", "Conv", "x,w1", "a"), "pads", 4, pads);
    net_node(&n, "", "Conv", "a,w2", "b");
    net_node(&n, "", "Reshape", "a,shape", "c");
    net_node(&n, "", "Reshape", "b,shape", "d");
    qs_node_set_int(n.g, net_node(&n, "", "Concat", "c,d", "e"), "axis", 2);
    net_ints(&n, net_node(&n, "", "Transpose", "e", "y"), "perm", 3, perm);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    float x[2 * H * W], y[2][10 * H * W];
    const int64_t dims[] = {1, 2, H, W};
    for (int i = 0; i < 2 * H * W; i++)
        x[i] = (float)(i * 5 % 13) - 6;
    qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    for (int i = 0; i < 2; i++) {
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        NET_OK(&n, net_run(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
    }
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_layout(&p, true));
    CHECK_INT(net_count(&n, "Transpose"), 1); /* of the input */
    net_free(&n);
}

/* A bound that a convolution makes is read as it was, not where it was. */
static void bound(void) {
    enum { OUT = 3 * H * W };
    net n;
    float x[2 * H * W], y[2][OUT];
    const int64_t dims[] = {1, 2, H, W};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 2, H, W));
    net_random(&n, "w", NET_DIMS(3, 2, 1, 1), 1, 1);
    net_random(&n, "whole", NET_DIMS(1, 2, H, W), 2, 1);
    net_float(&n, "low", -4);
    net_node(&n, "", "Conv", "x,w", "c");
    net_node(&n, "", "Conv", "x,whole", "sum");
    net_node(&n, "", "Sigmoid", "sum", "high");
    net_node(&n, "", "Clip", "c,low,high", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (int i = 0; i < 2 * H * W; i++)
        x[i] = (float)(i * 5 % 13) - 6;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    for (int i = 0; i < 2; i++) {
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        NET_OK(&n, net_run(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
    }
    CHECK(memcmp(y[0], y[1], sizeof(y[0])) == 0);
    net_free(&n);
}

/* Identity keeps names of outputs; Constant and what follows from it become constants. */
static void identities(void) {
    net n;
    const float two = 2;
    float x[2] = {3, 4}, y[2], z[2];
    const int64_t dims[] = {2};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2));
    qs_const c = {.dtype = QSIM_FLOAT, .data = &two, .elements = 1, .bytes = 4};
    qs_attr a = {.name = "value", .type = QSIM_ATTR_TENSOR, .u.tensor = &c};
    qs_node_set_attr(n.g, net_node(&n, "", "Constant", "", "c"), &a);
    net_node(&n, "", "Mul", "c,c", "four");
    net_node(&n, "", "Identity", "x", "i1");
    net_node(&n, "", "Identity", "i1", "i2");
    net_node(&n, "", "Mul", "i2,four", "m");
    net_node(&n, "", "Identity", "m", "i3");
    net_node(&n, "", "Identity", "i3", "y");
    net_node(&n, "", "Add", "i3,c", "z");
    net_output(&n, "y");
    net_output(&n, "z");
    NET_OK(&n, net_end(&n));
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_tensor in = net_tensor(QSIM_FLOAT, 1, dims, x);
        qsim_tensor out[2] = {{.data = y, .bytes = 8}, {.data = z, .bytes = 8}};
        NET_OK(&n, net_run(&n, level, false, &in, 1, out, 2));
        CHECK(y[0] == 12 && y[1] == 16 && z[0] == 14 && z[1] == 18);
    }
    qs_pass p = net_pass(&n);
    NET_OK(&n, qs_pass_constants(&p));
    NET_OK(&n, qs_pass_fold(&p, 0));
    NET_OK(&n, qs_pass_identities(&p));
    CHECK_INT(n.g->order_count, 2); /* x * 4, and that + 2 */
    CHECK_STR(n.g->values[n.g->outputs[0]].name, "y");
    CHECK_INT(n.g->values[n.g->outputs[0]].producer, n.g->order[0]);
    net_free(&n);
}

int main(void) {
    head();
    bound();
    transposed(1);
    transposed(2);
    identities();
    optimize();
    names();
    shape_of_graph();
    sums();
    shuffle();
    normalization(false);
    normalization(true);
    levels();
    return test_done();
}
