/* SPDX-License-Identifier: MIT */
/*
 * What scales a convolution's channels is folded into its weights or, where these are quantized,
 * into their scales: networks trained with quantization that keep BatchNormalization run in
 * integers. Each is compared with its literal evaluation.
 */
#include "net.h"

#include <math.h>

enum { BATCH = 2, IN = 4, OUT = 4, SIDE = 6, MOST = BATCH * OUT * 12 * 12 };

/* How the weights are stored, and which convolution reads them. */
typedef struct weights {
    bool channels;   /* one scale for each output channel */
    bool transposed; /* of a ConvTranspose */
    bool depthwise;
    int32_t dtype;
    int zero_point;
    bool lowest; /* -128 is among those of channel 1 */
} weights;

/* "x" -> QuantizeLinear, DequantizeLinear -> the convolution with weights of 8 bits -> "c" */
static void begin(net *n, const weights *w) {
    const float scales[OUT] = {0.01f, 0.004f, 0.02f, 0.007f};
    const int64_t count = w->channels ? OUT : 1;
    const int64_t per_group = w->depthwise ? 1 : IN;
    int8_t q[OUT * IN * 9], zeros[OUT];
    for (int i = 0; i < OUT * IN * 9; i++)
        q[i] = (int8_t)(i * 37 % 251 - 125);
    if (w->lowest)
        q[9 * per_group + 2] = -128;
    memset(zeros, w->zero_point, sizeof(zeros));
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(BATCH, IN, SIDE, SIDE));
    net_pair(n, "x", QSIM_UINT8, 0.02f, 118, 0);
    net_const(n, "w", w->dtype, NET_DIMS(OUT, per_group, 3, 3), q);
    net_const(n, "w_s", QSIM_FLOAT, w->channels, &count, scales);
    net_const(n, "w_z", w->dtype, w->channels, &count, zeros);
    const qs_id back = net_node(n, "", "DequantizeLinear", "w,w_s,w_z", "w_d");
    CHECK_INT(qs_node_set_int(n->g, back, "axis", w->transposed), 0);
    const qs_id conv = net_node(n, "", w->transposed ? "ConvTranspose" : "Conv", "x_d,w_d", "c");
    if (w->depthwise)
        CHECK_INT(qs_node_set_int(n->g, conv, "group", OUT), 0);
}

/* Channel 1 is negative, channel 2 of factor 0. */
static void normalize(net *n, const char *x, const char *y) {
    const float scale[OUT] = {0.8f, -1.7f, 0, 0.3f}, shift[OUT] = {0.1f, -0.2f, 0.5f, 0},
                mean[OUT] = {0.05f, 0.4f, -0.3f, 0}, var[OUT] = {0.7f, 2, 1, 0.1f};
    char in[64];
    net_const(n, "scale", QSIM_FLOAT, NET_DIMS(OUT), scale);
    net_const(n, "shift", QSIM_FLOAT, NET_DIMS(OUT), shift);
    net_const(n, "mean", QSIM_FLOAT, NET_DIMS(OUT), mean);
    net_const(n, "var", QSIM_FLOAT, NET_DIMS(OUT), var);
    snprintf(in, sizeof(in), "%s,scale,shift,mean,var", x);
    net_node(n, "", "BatchNormalization", in, y);
}

static void with_channels(net *n, const char *op, const char *x, const char *y) {
    const float v[OUT] = {0.5f, 2, 1.5f, 0.25f};
    char c[32], in[64];
    snprintf(c, sizeof(c), "%.8s_c", op);
    net_const(n, c, QSIM_FLOAT, NET_DIMS(OUT, 1, 1), v);
    const bool first = strcmp(op, "Mul") == 0; /* the constant stands first */
    snprintf(in, sizeof(in), "%s,%s", first ? c : x, first ? x : c);
    net_node(n, "", op, in, y);
}

/* Nodes of an operator in the file that optimization leaves. */
static int optimized(const net *n, int32_t level, const char *op_type) {
    qsim_model *m = NULL;
    int found = 0;
    CHECK_INT(qsim_model_optimize(n->model, level, &m, NULL), 0);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info info = {.struct_size = sizeof(info)};
        found += qsim_model_node(m, i, &info) == 0 && strcmp(info.op_type, op_type) == 0;
    }
    qsim_model_free(m);
    return found;
}

static qsim_tensor input(float *x) {
    static const int64_t dims[] = {BATCH, IN, SIDE, SIDE};
    for (int i = 0; i < BATCH * IN * SIDE * SIDE; i++)
        x[i] = (float)(i * 29 % 101 - 50) * 0.05f;
    return net_tensor(QSIM_FLOAT, 4, dims, x);
}

/* Integers at every level, the same ones, within a step of the literal evaluation. */
static void judge(net *n, bool folded, const char *conv) {
    float x[BATCH * IN * SIDE * SIDE];
    uint8_t want[MOST], first[MOST], got[MOST];
    const qsim_tensor in = input(x);
    qsim_tensor out = {.data = want, .bytes = sizeof(want)};
    net_pair(n, "y", QSIM_UINT8, 0.05f, 118, 0);
    net_output(n, "y_q");
    NET_OK(n, net_end(n));
    NET_OK(n, net_run(n, 0, true, &in, 1, &out, 1));
    const size_t count = out.bytes;
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        int differ = 0;
        out = (qsim_tensor){.data = got, .bytes = sizeof(got)};
        NET_OK(n, net_run(n, level, false, &in, 1, &out, 1));
        CHECK_INT(out.bytes, count);
        for (size_t i = 0; i < count; i++) {
            CHECK(abs(got[i] - want[i]) <= 1);
            differ += got[i] != want[i];
        }
        CHECK(differ * 50 <= (int)count);
        if (level == QSIM_LEVEL_DISABLE)
            memcpy(first, got, count);
        CHECK(memcmp(first, got, count) == 0);
    }
    CHECK_INT(optimized(n, QSIM_LEVEL_EXTENDED, "BatchNormalization"), !folded);
    if (conv)
        CHECK_INT(optimized(n, QSIM_LEVEL_EXTENDED, conv), folded);
    net_free(n);
}

/* As PyTorch leaves it: the quotient of a scale that the weights were multiplied by, a bias. */
static void quantized(const weights *w, bool folded) {
    const char *conv = w->transposed ? NULL : "QLinearConv"; /* no file has that transposed */
    net n;
    begin(&n, w);
    normalize(&n, "c", "y");
    judge(&n, folded, conv);
    begin(&n, w);
    with_channels(&n, "Div", "c", "d");
    with_channels(&n, "Add", "d", "e");
    with_channels(&n, "Mul", "e", "f");
    normalize(&n, "f", "y");
    judge(&n, folded, conv);
}

/* Weights of floats: products and quotients fold at level basic and for quantization. */
static void floats(const char *op, bool channels, bool folded) {
    float x[BATCH * IN * SIDE * SIDE], want[MOST], got[MOST];
    const qsim_tensor in = input(x);
    net n;
    qsim_tensor out = {.data = want, .bytes = sizeof(want)};
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(BATCH, IN, SIDE, SIDE));
    net_random(&n, "w", NET_DIMS(OUT, IN, 3, 3), 5, 0.4f);
    net_random(&n, "b", NET_DIMS(OUT), 6, 1);
    net_node(&n, "", "Conv", "x,w,b", "c");
    if (channels) {
        with_channels(&n, op, "c", "y");
    } else {
        net_random(&n, "rows", NET_DIMS(4, 1), 7, 1);
        net_node(&n, "", op, "c,rows", "y");
    }
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    NET_OK(&n, net_run(&n, QSIM_LEVEL_DISABLE, true, &in, 1, &out, 1));
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        qsim_tensor y = {.data = got, .bytes = sizeof(got)};
        NET_OK(&n, net_run(&n, level, false, &in, 1, &y, 1));
        CHECK_INT(y.bytes, out.bytes);
        for (size_t i = 0; i < out.bytes / sizeof(float); i++)
            CHECK(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])));
    }
    CHECK_INT(optimized(&n, QSIM_LEVEL_BASIC, op), !folded);
    net_free(&n);
}

int main(void) {
    const weights good[] = {
        {.channels = true, .dtype = QSIM_INT8},
        {.dtype = QSIM_INT8},
        {.channels = true, .depthwise = true, .dtype = QSIM_INT8},
        {.channels = true, .transposed = true, .dtype = QSIM_INT8},
        {.transposed = true, .dtype = QSIM_INT8},
    };
    const weights others[] = {
        {.channels = true, .dtype = QSIM_INT8, .lowest = true},
        {.channels = true, .dtype = QSIM_INT8, .zero_point = 3},
        {.dtype = QSIM_UINT8, .zero_point = 100},
    };
    for (size_t i = 0; i < QS_COUNT(good); i++)
        quantized(&good[i], true);
    for (size_t i = 0; i < QS_COUNT(others); i++)
        quantized(&others[i], false);
    floats("Mul", true, true);
    floats("Div", true, true);
    floats("Mul", false, false);
    return test_done();
}
