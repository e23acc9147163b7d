/* SPDX-License-Identifier: MIT */
/* Operators that expand to several others, run by sessions, against their definitions in double. */
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

/* Compares y of a net, whose inputs are tensors in x, at the highest and the lowest level. */
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

/* ---- com.microsoft ---- */

#define MS "com.microsoft"

static double gelu(double v) {
    return v / 2 * (1 + erf(v / sqrt(2)));
}
static double fast_gelu(double v) {
    return v / 2 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
}
static double quick_gelu(double v) {
    return v * sigmoid((double)1.702f * v);
}

static void begin_ms(net *n, qsim_ctx *ctx) {
    net_begin(n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n->g, MS, 1), 0);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(4, 6));
}

static void test_gelus(qsim_ctx *ctx) {
    static const struct {
        const char *op;
        double (*curve)(double);
        bool bias;
    } all[] = {{"BiasGelu", gelu, true},
               {"Gelu", gelu, false},
               {"FastGelu", fast_gelu, true},
               {"FastGelu", fast_gelu, false},
               {"QuickGelu", quick_gelu, false}};
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(4, 6), x);
    for (size_t k = 0; k < QS_COUNT(all); k++) {
        net n;
        double y[N];
        for (int i = 0; i < N; i++)
            y[i] = all[k].curve((double)x[i] + (all[k].bias ? (double)b[i % 6] : 0));
        begin_ms(&n, ctx);
        net_const(&n, "b", QSIM_FLOAT, NET_DIMS(6), b);
        net_node(&n, MS, all[k].op, all[k].bias ? "x,b" : "x", "y");
        near(&n, &in, 1, NET_DIMS(4, 6), y, 2e-6);
    }
    net n;
    double y[12];
    for (int i = 0; i < 12; i++) {
        const int at = i / 3 * 6 + i % 3;
        y[i] = ((double)x[at] + (double)b[i % 3]) * gelu((double)x[at + 3] + (double)b[i % 3 + 3]);
    }
    begin_ms(&n, ctx);
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(6), b);
    net_node(&n, MS, "BiasSplitGelu", "x,b", "y");
    near(&n, &in, 1, NET_DIMS(4, 3), y, 2e-6);
}

/* x (4, 6) or its transpose times b (6, 2), by alpha; plus 1, curved. */
static void test_products(qsim_ctx *ctx) {
    static const float one = 1;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(4, 6), x);
    const qsim_tensor flat = net_tensor(QSIM_FLOAT, NET_DIMS(6, 4), x);
    for (int transposed = 0; transposed < 2; transposed++)
        for (int gemm = 0; gemm < 2; gemm++) {
            net n;
            double y[8] = {0};
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 2; j++) {
                    for (int k = 0; k < 6; k++)
                        y[i * 2 + j] += 0.5 * (double)x[transposed ? k * 4 + i : i * 6 + k] *
                                        (double)b[k * 2 + j];
                    y[i * 2 + j] += gemm;
                    if (gemm && y[i * 2 + j] < 0)
                        y[i * 2 + j] *= 0.25;
                }
            net_begin(&n, ctx, 13);
            CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
            net_input(&n, "x", QSIM_FLOAT, 2, transposed ? flat.dims : in.dims);
            net_const(&n, "b", QSIM_FLOAT, NET_DIMS(6, 2), b);
            net_const(&n, "one", QSIM_FLOAT, NET_DIMS(1), &one);
            const qs_id node =
                net_node(&n, MS, gemm ? "FusedGemm" : "FusedMatMul", gemm ? "x,b,one" : "x,b", "y");
            qs_node_set_float(n.g, node, "alpha", 0.5f);
            qs_node_set_int(n.g, node, "transA", transposed);
            const qs_attr curve = {.name = "activation",
                                   .type = QSIM_ATTR_STRING,
                                   .u.s = {(const uint8_t *)"LeakyRelu", 9}};
            if (gemm) {
                qs_node_set_attr(n.g, node, &curve);
                qs_node_set_float(n.g, node, "activation_alpha", 0.25f);
            }
            near(&n, transposed ? &flat : &in, 1, NET_DIMS(4, 2), y, 2e-6);
        }
}

/* One by one pixels: y = clip(w x + b + z). */
static void test_fusedconv(qsim_ctx *ctx) {
    static const float bounds[2] = {-0.5f, 0.75f};
    const float *z = x + 12;
    net n;
    double y[12];
    for (int i = 0; i < 12; i++) { /* (1, 2, 2, 3): channel i / 6 of 2 */
        const double sum = (double)b[i / 6 * 2] * (double)x[i % 6] +
                           (double)b[i / 6 * 2 + 1] * (double)x[6 + i % 6] + (double)b[4 + i / 6] +
                           (double)z[i];
        y[i] = fmin((double)bounds[1], fmax((double)bounds[0], sum));
    }
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 2, 2, 3));
    net_input(&n, "z", QSIM_FLOAT, NET_DIMS(1, 2, 2, 3));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(2, 2, 1, 1), b);
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(2), b + 4);
    const qs_id node = net_node(&n, MS, "FusedConv", "x,w,b,z", "y");
    const qs_attr curve = {
        .name = "activation", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)"Clip", 4}};
    const qs_attr params = {
        .name = "activation_params", .type = QSIM_ATTR_FLOATS, .count = 2, .u.floats = bounds};
    qs_node_set_attr(n.g, node, &curve);
    qs_node_set_attr(n.g, node, &params);
    const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(1, 2, 2, 3), x),
                               net_tensor(QSIM_FLOAT, NET_DIMS(1, 2, 2, 3), (float *)(uintptr_t)z)};
    near(&n, in, 2, NET_DIMS(1, 2, 2, 3), y, 2e-6);
}

/* Attention over two heads of 3: 4 queries in 1 batch; the mask leaves out key 1. */
static void attend(const double *q, const double *k, const double *v, int keys, int masked,
                   double *y) {
    for (int i = 0; i < 4; i++)
        for (int h = 0; h < 2; h++) {
            double p[8], sum = 0;
            for (int j = 0; j < keys; j++) {
                double s = 0;
                for (int d = 0; d < 3; d++)
                    s += q[i * 6 + h * 3 + d] * k[j * 6 + h * 3 + d];
                p[j] = j == masked ? 0 : exp(s / sqrt(3));
                sum += p[j];
            }
            for (int d = 0; d < 3; d++) {
                y[i * 6 + h * 3 + d] = 0;
                for (int j = 0; j < keys; j++)
                    y[i * 6 + h * 3 + d] += p[j] / sum * v[j * 6 + h * 3 + d];
            }
        }
}

static void test_multihead(qsim_ctx *ctx) {
    double q[N], k[N], v[N], y[N];
    int32_t mask[4] = {1, -1, 2, 7}; /* what is above 0 counts */
    net n;
    for (int i = 0; i < N; i++) {
        q[i] = (double)x[i] + (double)b[i % 6];
        k[i] = (double)b[i] + (double)b[6 + i % 6];
        v[i] = (double)x[i] + (double)b[12 + i % 6];
    }
    attend(q, k, v, 4, 1, y);
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 4, 6));
    net_input(&n, "k", QSIM_FLOAT, NET_DIMS(1, 4, 6));
    net_input(&n, "m", QSIM_INT32, NET_DIMS(1, 4));
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(18), b);
    qs_node_set_int(n.g, net_node(&n, MS, "MultiHeadAttention", "x,k,x,b,m", "y"), "num_heads", 2);
    const qsim_tensor in[3] = {net_tensor(QSIM_FLOAT, NET_DIMS(1, 4, 6), x),
                               net_tensor(QSIM_FLOAT, NET_DIMS(1, 4, 6), b),
                               net_tensor(QSIM_INT32, NET_DIMS(1, 4), mask)};
    near(&n, in, 3, NET_DIMS(1, 4, 6), y, 1e-5);
}

/* Attention with products before it: weights that pick 6 of 6 numbers, three times, by a factor. */
static void test_attention(qsim_ctx *ctx) {
    static const float factors[3] = {0.5f, -0.25f, 2};
    double parts[3][N], y[N];
    float w[6 * 18] = {0};
    int32_t lengths[1] = {3};
    net n;
    for (int i = 0; i < 18; i++)
        w[i % 6 * 18 + i] = factors[i / 6];
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < N; i++)
            parts[k][i] = (double)factors[k] * (double)x[i] + (double)b[k * 6 + i % 6];
    attend(parts[0], parts[1], parts[2], 3, -1, y); /* 3 keys of 4 count */
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 4, 6));
    net_input(&n, "m", QSIM_INT32, NET_DIMS(1));
    net_const(&n, "w", QSIM_FLOAT, NET_DIMS(6, 18), w);
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(18), b);
    qs_node_set_int(n.g, net_node(&n, MS, "Attention", "x,w,b,m", "y"), "num_heads", 2);
    const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(1, 4, 6), x),
                               net_tensor(QSIM_INT32, NET_DIMS(1), lengths)};
    near(&n, in, 2, NET_DIMS(1, 4, 6), y, 1e-5);
}

/* The same in 8 bits: (x - 120) * 0.02, and weights with a scale for each column. */
static void test_qattention(qsim_ctx *ctx) {
    static const int codes[3] = {50, -25, 100};
    double parts[3][N], y[N];
    uint8_t bytes[N];
    int8_t w[6 * 18];
    float scales[18];
    int32_t lengths[1] = {3};
    net n;
    for (int i = 0; i < 6 * 18; i++)
        w[i] = (int8_t)(i / 18 == i % 6 ? codes[i % 18 / 6] + 3 : 3); /* the zero point is 3 */
    for (int i = 0; i < 18; i++)
        scales[i] = i < 9 ? 0.01f : 0.02f;
    for (int i = 0; i < 3 * N; i++) {
        const int k = i / N, at = k * 6 + i % 6, q = (int)lrint((double)x[i % N] * 25);
        bytes[i % N] = (uint8_t)(120 + q);
        parts[k][i % N] = 0.02 * q * codes[k] * (double)scales[at] + (double)b[at];
    }
    attend(parts[0], parts[1], parts[2], 3, -1, y);
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_UINT8, NET_DIMS(1, 4, 6));
    net_input(&n, "m", QSIM_INT32, NET_DIMS(1));
    net_const(&n, "w", QSIM_INT8, NET_DIMS(6, 18), w);
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(18), b);
    net_float(&n, "xs", 0.02f);
    net_const(&n, "ws", QSIM_FLOAT, NET_DIMS(18), scales);
    net_byte(&n, "xz", QSIM_UINT8, 120);
    net_byte(&n, "wz", QSIM_INT8, 3);
    const qs_id node = net_node(&n, MS, "QAttention", "x,w,b,xs,ws,m,xz,wz", "y");
    qs_node_set_int(n.g, node, "num_heads", 2);
    const qsim_tensor in[2] = {net_tensor(QSIM_UINT8, NET_DIMS(1, 4, 6), bytes),
                               net_tensor(QSIM_INT32, NET_DIMS(1), lengths)};
    near(&n, in, 2, NET_DIMS(1, 4, 6), y, 1e-5);
}

static void test_embedding(qsim_ctx *ctx) {
    int32_t words[3] = {3, 0, 2}, segments[3] = {1, 1, 0};
    double y[18];
    net n;
    for (int i = 0; i < 3; i++) {
        double sum[6], mean = 0, square = 0;
        for (int d = 0; d < 6; d++) {
            sum[d] =
                (double)x[words[i] * 6 + d] + (double)b[i * 6 + d] + (double)x[segments[i] * 6 + d];
            mean += sum[d] / 6;
        }
        for (int d = 0; d < 6; d++)
            square += (sum[d] - mean) * (sum[d] - mean) / 6;
        for (int d = 0; d < 6; d++)
            y[i * 6 + d] = (sum[d] - mean) / sqrt(square) * (double)b[d] + (double)b[6 + d];
    }
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "w", QSIM_INT32, NET_DIMS(1, 3));
    net_input(&n, "s", QSIM_INT32, NET_DIMS(1, 3));
    net_const(&n, "words", QSIM_FLOAT, NET_DIMS(4, 6), x);
    net_const(&n, "positions", QSIM_FLOAT, NET_DIMS(4, 6), b);
    net_const(&n, "segments", QSIM_FLOAT, NET_DIMS(2, 6), x);
    net_const(&n, "scale", QSIM_FLOAT, NET_DIMS(6), b);
    net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(6), b + 6);
    net_node(&n, MS, "EmbedLayerNormalization", "w,s,words,positions,segments,scale,bias", "y");
    const qsim_tensor in[2] = {net_tensor(QSIM_INT32, NET_DIMS(1, 3), words),
                               net_tensor(QSIM_INT32, NET_DIMS(1, 3), segments)};
    near(&n, in, 2, NET_DIMS(1, 3, 6), y, 1e-5);
}

/* ---- quantized ---- */

static uint8_t bytes[N];
static int8_t weights[12];

static void quantized_net(net *n, qsim_ctx *ctx) {
    static const float scales[4] = {0.03125f, 0.0625f, 0.5f, 0.015625f};
    for (int i = 0; i < N; i++)
        bytes[i] = (uint8_t)(i * 37 + 11);
    for (int i = 0; i < 12; i++)
        weights[i] = (int8_t)(i * 29 % 127 - 60);
    net_begin(n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n->g, MS, 1), 0);
    net_input(n, "q", QSIM_UINT8, NET_DIMS(4, 6));
    net_const(n, "w", QSIM_INT8, NET_DIMS(6, 2), weights);
    net_const(n, "c", QSIM_INT32, NET_DIMS(2), (const int32_t[]){700, -300});
    net_float(n, "s0", scales[0]);
    net_float(n, "s1", scales[1]);
    net_float(n, "s2", scales[2]);
    net_byte(n, "z0", QSIM_UINT8, 100);
    net_byte(n, "z1", QSIM_INT8, 2);
    net_byte(n, "z2", QSIM_UINT8, 128);
}

static int32_t sum_of(int i, int j) {
    int32_t sum = 0;
    for (int k = 0; k < 6; k++)
        sum += (bytes[i * 6 + k] - 100) * (weights[k * 2 + j] - 2);
    return sum;
}

static uint8_t to_byte(double v) {
    v = rint(v) + 128;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void test_quantized_products(qsim_ctx *ctx) {
    const qsim_tensor in = net_tensor(QSIM_UINT8, NET_DIMS(4, 6), bytes);
    net n;
    double y[8];
    quantized_net(&n, ctx);
    for (int i = 0; i < 8; i++)
        y[i] = sum_of(i / 2, i % 2) * 0.03125 * 0.0625 + (double)b[i % 2];
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(2), b);
    net_node(&n, MS, "MatMulIntegerToFloat", "q,w,s0,s1,z0,z1,b", "y");
    near(&n, &in, 1, NET_DIMS(4, 2), y, 1e-6);
    quantized_net(&n, ctx);
    for (int i = 0; i < 8; i++)
        y[i] = (sum_of(i / 2, i % 2) + (i % 2 ? -300 : 700)) * 0.03125 * 0.0625 * 1.5;
    qs_node_set_float(n.g, net_node(&n, MS, "QGemm", "q,s0,z0,w,s1,z1,c", "y"), "alpha", 1.5f);
    near(&n, &in, 1, NET_DIMS(4, 2), y, 1e-6);
}

/* Outputs of bytes: equal at both levels. */
static void test_quantized_bytes(qsim_ctx *ctx) {
    for (int kind = 0; kind < 3; kind++) {
        uint8_t expected[N], y[N];
        net n;
        quantized_net(&n, ctx);
        for (int i = 0; i < N; i++) {
            const int32_t sum = i < 8 ? sum_of(i / 2, i % 2) + (i % 2 ? -300 : 700) : 0;
            double mean = 0;
            for (int k = 0; k < 6; k++)
                mean += (bytes[i / 6 * 6 + k] - 100) * 0.03125 / 6;
            const double v = (bytes[i] - 100) * 0.03125;
            expected[i] = kind == 0   ? to_byte(sum * 0.03125 * 0.0625 / 0.5)
                          : kind == 1 ? to_byte(mean / 0.5)
                                      : to_byte((i % 2 ? v : (bytes[i % 6] - 128) * 0.0625) / 0.5);
        }
        qs_id node;
        if (kind == 0)
            net_node(&n, MS, "QGemm", "q,s0,z0,w,s1,z1,c,s2,z2", "y");
        if (kind == 1) {
            node = net_node(&n, MS, "QLinearReduceMean", "q,s0,z0,s2,z2", "y");
            net_ints(&n, node, "axes", 1, (const int64_t[]){-1});
            qs_node_set_int(n.g, node, "keepdims", 0);
            for (int i = 0; i < 4; i++)
                expected[i] = expected[i * 6];
        }
        if (kind == 2) {
            net_const(&n, "if", QSIM_BOOL, NET_DIMS(6), (const uint8_t[]){0, 1, 0, 1, 0, 1});
            net_const(&n, "other", QSIM_UINT8, NET_DIMS(6), bytes);
            net_node(&n, MS, "QLinearWhere", "if,q,s0,z0,other,s1,z2,s2,z2", "y");
        }
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        const int64_t shapes[3][2] = {{4, 2}, {4, 1}, {4, 6}};
        const qsim_tensor in = net_tensor(QSIM_UINT8, NET_DIMS(4, 6), bytes);
        for (int level = 0; level < 2; level++) {
            qsim_tensor out = net_tensor(QSIM_UINT8, kind == 1 ? 1 : 2, shapes[kind], y);
            NET_OK(&n, net_run(&n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, &in, 1, &out,
                               1));
            CHECK(memcmp(y, expected, out.bytes) == 0);
        }
        net_free(&n);
    }
}

/* Dynamic: x is quantized by its range, which includes 0; then the product. */
static void test_dynamic(qsim_ctx *ctx) {
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(4, 6), x);
    net n;
    double y[8];
    float low = 0, high = 0;
    quantized_net(&n, ctx);
    for (int i = 0; i < N; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    const float scale = (high - low) / 255;
    const float zero = rintf(0 - low / scale);
    for (int i = 0; i < 8; i++) {
        double sum = 0;
        for (int k = 0; k < 6; k++)
            sum += (double)fminf(255 - zero, fmaxf(-zero, rintf(x[i / 2 * 6 + k] / scale))) *
                   (weights[k * 2 + i % 2] - 2);
        y[i] = sum * (double)scale * 0.0625;
    }
    n.g->input_count = 0;
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(4, 6));
    net_node(&n, MS, "DynamicQuantizeMatMul", "x,w,s1,z1", "y");
    near(&n, &in, 1, NET_DIMS(4, 2), y, 1e-6);
}

/* Channels last and channels first: 2 by 2 pixels, the maximum of each channel. */
static void test_channels_last(qsim_ctx *ctx) {
    uint8_t y[3], q[12], expected[3] = {0};
    net n;
    for (int i = 0; i < 12; i++) {
        q[i] = (uint8_t)(i * 61 % 200);
        expected[i % 3] = q[i] > expected[i % 3] ? q[i] : expected[i % 3];
    }
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "q", QSIM_UINT8, NET_DIMS(1, 2, 2, 3));
    net_ints(&n, net_node(&n, MS, "NhwcMaxPool", "q", "y"), "kernel_shape", 2,
             (const int64_t[]){2, 2});
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in = net_tensor(QSIM_UINT8, NET_DIMS(1, 2, 2, 3), q);
    qsim_tensor out = net_tensor(QSIM_UINT8, NET_DIMS(1, 1, 1, 3), y);
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, &out, 1));
    CHECK(memcmp(y, expected, 3) == 0);
    net_free(&n);
}

/* a (2, batch 3, 4) times b (batch 3, 2, 4): rows of a before its batches, b's last axes
 * transposed. */
static void test_transposed_batches(qsim_ctx *ctx) {
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(2, 3, 4), x);
    net n;
    double y[12] = {0};
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 4; k++) /* y (batch, row of a, row of b) */
            y[i] +=
                (double)x[(i / 2 % 2) * 12 + i / 4 * 4 + k] * (double)b[i / 4 * 8 + i % 2 * 4 + k];
    net_begin(&n, ctx, 13);
    CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3, 4));
    net_const(&n, "b", QSIM_FLOAT, NET_DIMS(3, 2, 4), b);
    const qs_id node = net_node(&n, MS, "FusedMatMul", "x,b", "y");
    qs_node_set_int(n.g, node, "transBatchA", 1);
    qs_node_set_int(n.g, node, "transB", 1);
    near(&n, &in, 1, NET_DIMS(3, 2, 2), y, 2e-6);
}

/*
 * x (1, 1, 2, 3) spread by w (1, 1, 3, 2) with strides 2 and 1 makes (5, 4); pads 1, 0, 2, 1 remove
 * a row before, two rows behind and a column behind. Pads are constant or an input.
 */
static void test_dynamic_pads(qsim_ctx *ctx) {
    static int64_t pads[4] = {1, 0, 2, 1};
    double full[20] = {0}, y[6];
    for (int i = 0; i < 36; i++) {
        const int at = i / 6, tap = i % 6; /* of 2 x 3 pixels, of 3 x 2 taps */
        full[(at / 3 * 2 + tap / 2) * 4 + at % 3 + tap % 2] += (double)x[at] * (double)b[tap];
    }
    for (int i = 0; i < 6; i++)
        y[i] = full[(1 + i / 3) * 4 + i % 3] + (double)b[6];
    for (int fixed = 0; fixed < 2; fixed++) {
        const qsim_tensor in[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(1, 1, 2, 3), x),
                                   net_tensor(QSIM_INT64, NET_DIMS(4), pads)};
        net n;
        net_begin(&n, ctx, 13);
        CHECK_INT(qs_graph_set_import(n.g, MS, 1), 0);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, 1, 2, 3));
        if (fixed)
            net_const(&n, "pads", QSIM_INT64, NET_DIMS(4), pads);
        else
            net_input(&n, "pads", QSIM_INT64, NET_DIMS(4));
        net_const(&n, "w", QSIM_FLOAT, NET_DIMS(1, 1, 3, 2), b);
        net_const(&n, "bias", QSIM_FLOAT, NET_DIMS(1), b + 6);
        net_ints(&n, net_node(&n, MS, "ConvTransposeWithDynamicPads", "x,w,pads,bias", "y"),
                 "strides", 2, (const int64_t[]){2, 1});
        near(&n, in, fixed ? 1 : 2, NET_DIMS(1, 1, 2, 3), y, 2e-6);
    }
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    draw();
    test_swiglu(ctx);
    test_mean_variance(ctx);
    test_gelus(ctx);
    test_products(ctx);
    test_fusedconv(ctx);
    test_multihead(ctx);
    test_attention(ctx);
    test_qattention(ctx);
    test_embedding(ctx);
    test_quantized_products(ctx);
    test_quantized_bytes(ctx);
    test_dynamic(ctx);
    test_transposed_batches(ctx);
    test_dynamic_pads(ctx);
    test_channels_last(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
