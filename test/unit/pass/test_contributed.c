/* SPDX-License-Identifier: MIT */
/* Operators of com.microsoft for images, and those that ai.onnx has, too, against plain loops. */
#include "net.h"

#include <math.h>

#define MS "com.microsoft"
#define N  24

static float x[N], b[N];

static void draw(void) {
    uint64_t seed = 11;
    for (int i = 0; i < N; i++) {
        x[i] = (float)((int32_t)(test_random(&seed) % 2001) - 1000) / 250.0f;
        b[i] = (float)((int32_t)(test_random(&seed) % 2001) - 1000) / 500.0f;
    }
}

static void begin(net *n, qsim_ctx *ctx, int32_t rank, const int64_t *dims) {
    net_begin(n, ctx, 11);
    CHECK_INT(qs_graph_set_import(n->g, MS, 1), 0);
    net_input(n, "x", QSIM_FLOAT, rank, dims);
}

/* Compares output `name` of a net whose input is x of this shape, at both ends of the levels. */
static void gives(net *n, int32_t in_rank, const int64_t *in_dims, const char *name, int32_t rank,
                  const int64_t *dims, const double *expected) {
    const qsim_tensor in = net_tensor(QSIM_FLOAT, in_rank, in_dims, x);
    size_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    net_output(n, name);
    NET_OK(n, net_end(n));
    for (int32_t level = 0; level < 2; level++) {
        float y[64];
        qsim_tensor out = net_tensor(QSIM_FLOAT, rank, dims, y);
        NET_OK(n, net_run(n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out, 1));
        for (size_t i = 0; i < count; i++)
            CHECK_NEAR(y[i], expected[i], 4e-6 * (1 + fabs(expected[i])));
    }
    net_free(n);
}

/* ---- images ---- */

#define IMAGE NET_DIMS(1, 2, 3, 4) /* channels last */

/* Normalizes 2 groups of 2 of the 4 channels of v; index of (pixel, channel) in either layout. */
static int place(int pixel, int channel, bool last) {
    return last ? pixel * 4 + channel : channel * 6 + pixel;
}

static void group_norm(const double *v, bool last, bool silu, double *y) {
    for (int group = 0; group < 2; group++) {
        double mean = 0, square = 0;
        for (int i = 0; i < 12; i++)
            mean += v[place(i / 2, group * 2 + i % 2, last)] / 12;
        for (int i = 0; i < 12; i++)
            square += pow(v[place(i / 2, group * 2 + i % 2, last)] - mean, 2) / 12;
        for (int i = 0; i < 12; i++) {
            const int channel = group * 2 + i % 2, at = place(i / 2, channel, last);
            const double n =
                (v[at] - mean) / sqrt(square + 0.25) * (double)b[channel] + (double)b[4 + channel];
            y[at] = silu ? n / (1 + exp(-n)) : n;
        }
    }
}

static qs_id norm_node(net *n, const char *op, const char *inputs, const char *outputs, bool silu) {
    net_const(n, "gamma", QSIM_FLOAT, NET_DIMS(4), b);
    net_const(n, "beta", QSIM_FLOAT, NET_DIMS(4), b + 4);
    const qs_id node = net_node(n, MS, op, inputs, outputs);
    qs_node_set_int(n->g, node, "groups", 2);
    qs_node_set_int(n->g, node, "activation", silu);
    qs_node_set_float(n->g, node, "epsilon", 0.25f);
    return node;
}

static void test_groupnorm(qsim_ctx *ctx) {
    for (int form = 0; form < 4; form++) {
        const bool last = form & 1, silu = form & 2;
        double v[N], y[N];
        net n;
        for (int i = 0; i < N; i++)
            v[i] = (double)x[i];
        group_norm(v, last, silu, y);
        if (last)
            begin(&n, ctx, IMAGE);
        else
            begin(&n, ctx, NET_DIMS(1, 4, 2, 3));
        const qs_id node = norm_node(&n, "GroupNorm", "x,gamma,beta", "y", silu);
        if (last) { /* the default */
            gives(&n, IMAGE, "y", IMAGE, y);
            continue;
        }
        qs_node_set_int(n.g, node, "channels_last", 0);
        gives(&n, NET_DIMS(1, 4, 2, 3), "y", NET_DIMS(1, 4, 2, 3), y);
    }
}

/* Of x + skip + bias; skip is a list of channels for each image, or an image. */
static void test_skipgroupnorm(qsim_ctx *ctx) {
    for (int form = 0; form < 3; form++) {
        const bool sum = form == 2;
        double v[N], y[N];
        net n;
        for (int i = 0; i < N; i++)
            v[i] = (double)x[i] + (double)b[form == 0 ? 8 + i % 4 : i] +
                   (form ? (double)b[12 + i % 4] : 0);
        group_norm(v, true, true, y);
        begin(&n, ctx, IMAGE);
        if (form == 0)
            net_const(&n, "skip", QSIM_FLOAT, NET_DIMS(1, 4), b + 8);
        else
            net_const(&n, "skip", QSIM_FLOAT, IMAGE, b);
        net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(4), b + 12);
        norm_node(&n, "SkipGroupNorm", form ? "x,gamma,beta,skip,bias" : "x,gamma,beta,skip",
                  sum ? "y,s" : "y", true);
        gives(&n, IMAGE, sum ? "s" : "y", IMAGE, sum ? v : y);
    }
}

static void test_biasadd(qsim_ctx *ctx) {
    double y[N];
    net n;
    for (int i = 0; i < N; i++)
        y[i] = (double)x[i] + (double)b[i % 4] + (double)b[i];
    begin(&n, ctx, NET_DIMS(1, 6, 4));
    net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(4), b);
    net_const(&n, "skip", QSIM_FLOAT, NET_DIMS(1, 6, 4), b);
    net_node(&n, MS, "BiasAdd", "x,bias,skip", "y");
    gives(&n, NET_DIMS(1, 6, 4), "y", NET_DIMS(1, 6, 4), y);
}

/* A window of 1 x 2 over 2 x 3 pixels of 4 channels, to 2 channels. */
static void test_nhwc(qsim_ctx *ctx) {
    for (int fused = 0; fused < 2; fused++) {
        double y[8];
        net n;
        for (int i = 0; i < 8; i++) {
            const int row = i / 4, column = i / 2 % 2, to = i % 2;
            y[i] = (double)b[20 + to] + (fused ? (double)b[8 + i] : 0);
            for (int k = 0; k < 8; k++) {
                const int tap = k / 4, from = k % 4;
                const int at = fused ? (to * 4 + from) * 2 + tap : (to * 2 + tap) * 4 + from;
                y[i] += (double)x[(row * 3 + column + tap) * 4 + from] * (double)b[at];
            }
            y[i] = fused && y[i] < 0 ? 0 : y[i];
        }
        begin(&n, ctx, IMAGE);
        if (fused)
            net_const(&n, "w", QSIM_FLOAT, NET_DIMS(2, 4, 1, 2), b);
        else
            net_const(&n, "w", QSIM_FLOAT, NET_DIMS(2, 1, 2, 4), b);
        net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(2), b + 20);
        net_const(&n, "z", QSIM_FLOAT, NET_DIMS(1, 2, 2, 2), b + 8);
        const qs_id node = fused ? net_node(&n, MS, "NhwcFusedConv", "x,w,bias,z", "y")
                                 : net_node(&n, MS, "NhwcConv", "x,w,bias", "y");
        if (fused)
            net_string(&n, node, "activation", "Relu");
        gives(&n, IMAGE, "y", NET_DIMS(1, 2, 2, 2), y);
    }
}

/* What cannot be is refused when the graph is checked. */
static void refuses(net *n, const qs_id node, const char *attr, int64_t v, const char *why) {
    if (attr)
        qs_node_set_int(n->g, node, attr, v);
    net_output(n, "y");
    CHECK(net_end(n) != 0);
    CHECK(strstr(n->error.message, why) != NULL);
    net_free(n);
}

static void test_refused(qsim_ctx *ctx) {
    net n;
    begin(&n, ctx, IMAGE);
    refuses(&n, norm_node(&n, "GroupNorm", "x,gamma,beta", "y", false), "groups", 3,
            "3 groups of 4 channels");
    begin(&n, ctx, IMAGE);
    refuses(&n, norm_node(&n, "GroupNorm", "x,gamma,beta", "y", false), "activation", 2,
            "activation 2");
    begin(&n, ctx, NET_DIMS(1, 2, 3, 4));
    refuses(&n, norm_node(&n, "GroupNorm", "x,gamma,beta", "y", false), "channels_last", 0,
            "axis 0 of input 1 is 4, expected 2");
    begin(&n, ctx, IMAGE);
    net_const(&n, "skip", QSIM_FLOAT, NET_DIMS(1, 2, 4), b);
    refuses(&n, norm_node(&n, "SkipGroupNorm", "x,gamma,beta,skip", "y", false), NULL, 0,
            "input 3 has rank 3");
}

/* ---- as in ai.onnx ---- */

static void test_same(qsim_ctx *ctx) {
    double y[N + 8];
    net n;
    for (int i = 0; i < N; i++)
        y[i] = i % 6 > i / 6 ? 0 : (double)x[i];
    begin(&n, ctx, NET_DIMS(4, 6));
    qs_id node = net_node(&n, MS, "Trilu", "x", "y");
    qs_node_set_int(n.g, node, "upper", 0);
    gives(&n, NET_DIMS(4, 6), "y", NET_DIMS(4, 6), y);

    for (int i = 0; i < 28; i++)
        y[i] = i % 7 == 0 ? 0.5 : (double)x[i / 7 * 6 + i % 7 - 1];
    begin(&n, ctx, NET_DIMS(4, 6));
    net_const(&n, "pads", QSIM_INT64, NET_DIMS(4), (const int64_t[]){0, 1, 0, 0});
    net_float(&n, "value", 0.5f);
    net_node(&n, MS, "Pad", "x,pads,value", "y");
    gives(&n, NET_DIMS(4, 6), "y", NET_DIMS(4, 7), y);
}

static void test_same_on_floats(qsim_ctx *ctx) {
    static const float grid[] = {-0.5f, 0, 0.5f, 1};
    double y[12];
    qs_id node;
    net n;
    /* Pixel (0.5, 2.5) of 4 x 6 lies between four, (3.5, 4) below the last row: half is 0. */
    begin(&n, ctx, NET_DIMS(1, 1, 4, 6));
    net_const(&n, "grid", QSIM_FLOAT, NET_DIMS(1, 1, 2, 2), grid);
    node = net_node(&n, MS, "GridSample", "x,grid", "y");
    net_string(&n, node, "mode", "bilinear");
    gives(&n, NET_DIMS(1, 1, 4, 6), "y", NET_DIMS(1, 1, 1, 2),
          (const double[]){(double)(x[7] + x[13]) / 2, (double)x[22] / 2});

    for (int i = 0; i < 12; i++) {
        y[i] = 0;
        for (int k = 0; k < 6; k++)
            y[i] += (double)x[i / 3 * 6 + k] * (double)b[i % 3 * 6 + k];
    }
    begin(&n, ctx, NET_DIMS(4, 6));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(3, 6), b);
    node = net_node(&n, MS, "TransposeMatMul", "x,w", "y");
    qs_node_set_int(n.g, node, "transB", 1);
    gives(&n, NET_DIMS(4, 6), "y", NET_DIMS(4, 3), y);
}

/* One channel: y[t] = 0.25 + w0 x[t - 2] + w1 x[t - 1] + w2 x[t]; and a state of 1 x 1 numbers. */
static void test_states(qsim_ctx *ctx) {
    double y[6], s = 0;
    net n;
    for (int t = 0; t < 6; t++)
        y[t] = 0.25 + (t > 1 ? (double)(b[0] * x[t - 2]) : 0) +
               (t > 0 ? (double)(b[1] * x[t - 1]) : 0) + (double)(b[2] * x[t]);
    begin(&n, ctx, NET_DIMS(1, 1, 6));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(1, 1, 3), b);
    net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(1), &(float){0.25f});
    net_node(&n, MS, "CausalConvWithState", "x,w,bias", "y,state");
    gives(&n, NET_DIMS(1, 1, 6), "y", NET_DIMS(1, 1, 6), y);

    for (int t = 0; t < 6; t++) {
        s += (double)b[t] * (double)b[6 + t];
        y[t] = 0.5 * s * (double)x[t];
    }
    begin(&n, ctx, NET_DIMS(1, 6, 1));
    net_const(&n, "k", QSIM_FLOAT, NET_DIMS(1, 6, 1), b);
    net_const(&n, "v", QSIM_FLOAT, NET_DIMS(1, 6, 1), b + 6);
    const qs_id node = net_node(&n, MS, "LinearAttention", "x,k,v", "y,state");
    qs_node_set_int(n.g, node, "q_num_heads", 1);
    qs_node_set_int(n.g, node, "kv_num_heads", 1);
    qs_node_set_float(n.g, node, "scale", 0.5f);
    net_string(&n, node, "update_rule", "linear");
    gives(&n, NET_DIMS(1, 6, 1), "y", NET_DIMS(1, 6, 1), y);
}

/* ONNX Runtime's optimizer writes LayerNormalization into files of opset 11. */
static void test_early_layernorm(qsim_ctx *ctx) {
    double y[N];
    net n;
    for (int i = 0; i < 4; i++) {
        double mean = 0, square = 0;
        for (int k = 0; k < 6; k++)
            mean += (double)x[i * 6 + k] / 6;
        for (int k = 0; k < 6; k++)
            square += pow((double)x[i * 6 + k] - mean, 2) / 6;
        for (int k = 0; k < 6; k++)
            y[i * 6 + k] = ((double)x[i * 6 + k] - mean) / sqrt(square + 0.125) * (double)b[k] +
                           (double)b[6 + k];
    }
    begin(&n, ctx, NET_DIMS(4, 6));
    net_const(&n, "scale", QSIM_FLOAT, NET_DIMS(6), b);
    net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(6), b + 6);
    const qs_id node = net_node(&n, "", "LayerNormalization", "x,scale,bias", "y");
    qs_node_set_float(n.g, node, "epsilon", 0.125f);
    gives(&n, NET_DIMS(4, 6), "y", NET_DIMS(4, 6), y);
}

/* Rows (q - zero point) * scale of two tables, with scale and bias of the same kind. */
static void test_quantized_embedding(qsim_ctx *ctx) {
    static const uint8_t words[12] = {9, 200, 31, 77, 140, 3, 250, 90, 11, 66, 129, 180};
    static const uint8_t positions[8] = {1, 99, 128, 255, 30, 144, 7, 61};
    static const uint8_t gamma[4] = {130, 140, 150, 111}, beta[4] = {128, 129, 0, 255};
    static const int32_t ids[2] = {2, 1};
    double y[8];
    net n;
    for (int i = 0; i < 2; i++) {
        double v[4], mean = 0, square = 0;
        for (int k = 0; k < 4; k++) {
            v[k] = (words[ids[i] * 4 + k] - 100) * 0.5 + (positions[i * 4 + k] - 120) * 0.25;
            mean += v[k] / 4;
        }
        for (int k = 0; k < 4; k++)
            square += pow(v[k] - mean, 2) / 4;
        for (int k = 0; k < 4; k++)
            y[i * 4 + k] = (v[k] - mean) / sqrt(square) * (gamma[k] - 128) * 0.125 +
                           (beta[k] - 130) * 2.0 + (double)x[i * 4 + k];
    }
    begin(&n, ctx, NET_DIMS(1, 2, 4));
    net_const(&n, "ids", QSIM_INT32, NET_DIMS(1, 2), ids);
    net_const(&n, "words", QSIM_UINT8, NET_DIMS(3, 4), words);
    net_const(&n, "positions", QSIM_UINT8, NET_DIMS(2, 4), positions);
    net_const(&n, "gamma", QSIM_UINT8, NET_DIMS(4), gamma);
    net_const(&n, "beta", QSIM_UINT8, NET_DIMS(4), beta);
    net_float(&n, "ws", 0.5f);
    net_float(&n, "ps", 0.25f);
    net_float(&n, "gs", 0.125f);
    net_float(&n, "bs", 2);
    net_byte(&n, "wz", QSIM_UINT8, 100);
    net_byte(&n, "pz", QSIM_UINT8, 120);
    net_byte(&n, "gz", QSIM_UINT8, 128);
    net_byte(&n, "bz", QSIM_UINT8, 130);
    net_node(&n, MS, "QEmbedLayerNormalization",
             "ids,,words,positions,,gamma,beta,,ws,ps,,gs,bs,wz,pz,,gz,bz", "e,count");
    net_node(&n, "", "Add", "e,x", "y");
    gives(&n, NET_DIMS(1, 2, 4), "y", NET_DIMS(1, 2, 4), y);
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    draw();
    test_groupnorm(ctx);
    test_skipgroupnorm(ctx);
    test_biasadd(ctx);
    test_nhwc(ctx);
    test_refused(ctx);
    test_same(ctx);
    test_same_on_floats(ctx);
    test_states(ctx);
    test_early_layernorm(ctx);
    test_quantized_embedding(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
