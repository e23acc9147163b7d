/* SPDX-License-Identifier: MIT */
/* 8-bit weights with a zero point per channel: the file's form, and exact sums. */
#include <math.h>
#include <stdbool.h>

#include "ptq_nets.h"

/* ---- sums ---- */

#define CHANNELS 6
#define SIDE     7
#define X_SIZE   (2 * CHANNELS * SIDE * SIDE)
#define W_SIZE   (CHANNELS * CHANNELS * 9)

/* An operator between quantize/dequantize pairs, its weights and their real values. */
typedef struct layer {
    const char *op;
    int groups, taps; /* of a convolution's window, along each side; 0: a product of rows */
    bool by_rows;     /* a product: weights [outputs, inputs] */
    bool is_signed;
    uint8_t w[W_SIZE], zero[CHANNELS];
    float scale[CHANNELS];
} layer;

static const float x_scale = 0.02f, y_scale = 0.04f;
static const uint8_t x_zero = 117, y_zero = 131;

static int code(const layer *l, uint8_t byte) {
    return l->is_signed ? (int8_t)byte : byte;
}

/* Weights of all kinds, the ends of the type among them; `all`: w - zp may be 255. */
static void draw(layer *l, bool all, uint64_t seed) {
    for (int i = 0; i < W_SIZE; i++)
        l->w[i] = (uint8_t)(test_random(&seed) >> 8);
    for (int i = 0; i < CHANNELS; i++) {
        l->zero[i] = (uint8_t)(test_random(&seed) >> 8);
        l->scale[i] = (float)(test_random(&seed) % 1000 + 100) * 1e-6f;
    }
    for (int i = 0; i < CHANNELS && !all; i++)
        l->zero[i] = (uint8_t)(l->zero[i] + (l->zero[i] == (l->is_signed ? 0x80 : 0)));
    l->zero[0] = (uint8_t)((l->is_signed ? 0x80 : 0) + !all);
    l->zero[1] = l->is_signed ? 0x7f : 255;
    l->w[0] = l->zero[1];
}

static void add_constant(qsim_builder *b, const char *name, int32_t dtype, int rank,
                         const int64_t *dims, const void *data, size_t bytes) {
    const qsim_tensor t = {dtype, rank, dims, (void *)(uintptr_t)data, bytes};
    CHECK_INT(qsim_builder_constant(b, name, &t), QSIM_OK);
}

static qsim_model *build(const layer *l) {
    qsim_builder *b = NULL;
    const int32_t type = l->is_signed ? QSIM_INT8 : QSIM_UINT8;
    const bool conv = l->taps > 0;
    const int64_t image[4] = {2, CHANNELS, SIDE, SIDE}, rows[2] = {X_SIZE / CHANNELS, CHANNELS};
    const int64_t w[4] = {CHANNELS, CHANNELS / l->groups, conv ? l->taps : 1, l->taps};
    const int64_t list[1] = {CHANNELS};
    CHECK_INT(qsim_builder_create(NULL, 13, "layer", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, conv ? 4 : 2, conv ? image : rows, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, conv ? 4 : 2, conv ? image : rows, NULL);
    add_constant(b, "w", type, conv ? 4 : 2, w, l->w,
                 (size_t)(w[0] * w[1] * (conv ? w[2] * w[3] : 1)));
    add_constant(b, "ws", QSIM_FLOAT, 1, list, l->scale, sizeof(l->scale));
    add_constant(b, "wz", type, 1, list, l->zero, sizeof(l->zero));
    add_constant(b, "xs", QSIM_FLOAT, 0, NULL, &x_scale, 4);
    add_constant(b, "xz", QSIM_UINT8, 0, NULL, &x_zero, 1);
    add_constant(b, "ys", QSIM_FLOAT, 0, NULL, &y_scale, 4);
    add_constant(b, "yz", QSIM_UINT8, 0, NULL, &y_zero, 1);
    qsim_builder_node(b, "", "QuantizeLinear", "qx", "x,xs,xz", "x8");
    qsim_builder_node(b, "", "DequantizeLinear", "dx", "x8,xs,xz", "xd");
    qsim_builder_node(b, "", "DequantizeLinear", "dw", "w,ws,wz", "wd");
    qsim_builder_attr_int(b, "axis", conv || l->by_rows ? 0 : 1);
    qsim_builder_node(b, "", l->op, "layer", "xd,wd", "f");
    if (conv) {
        const int64_t pad = l->taps / 2, pads[4] = {pad, pad, pad, pad};
        qsim_builder_attr_int(b, "group", l->groups);
        qsim_builder_attr_ints(b, "pads", pads, 4);
    }
    if (l->by_rows)
        qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_node(b, "", "QuantizeLinear", "qy", "f,ys,yz", "y8");
    qsim_builder_node(b, "", "DequantizeLinear", "dy", "y8,ys,yz", "y");
    return net_finish(b);
}

static float requantized(const layer *l, int64_t sum, int o) {
    const float v = (float)sum * (x_scale * l->scale[o] / y_scale);
    const float low = (float)-y_zero, high = (float)(255 - y_zero);
    return rintf(fminf(fmaxf(v, low), high)) * y_scale;
}

static float conv_at(const layer *l, const int *x, int image, int o, int row, int column) {
    const int inputs = CHANNELS / l->groups, first = o / inputs * inputs;
    int64_t sum = 0;
    for (int c = 0; c < inputs; c++)
        for (int t = 0; t < l->taps * l->taps; t++) {
            const int h = row + t / l->taps - l->taps / 2, w = column + t % l->taps - l->taps / 2;
            const uint8_t byte = l->w[(o * inputs + c) * l->taps * l->taps + t];
            if (h >= 0 && h < SIDE && w >= 0 && w < SIDE)
                sum += (int64_t)x[((image * CHANNELS + first + c) * SIDE + h) * SIDE + w] *
                       (code(l, byte) - code(l, l->zero[o]));
        }
    return requantized(l, sum, o);
}

static float product_at(const layer *l, const int *x, int row, int o) {
    int64_t sum = 0;
    for (int k = 0; k < CHANNELS; k++) {
        const uint8_t byte = l->w[l->by_rows ? o * CHANNELS + k : k * CHANNELS + o];
        sum += (int64_t)x[row * CHANNELS + k] * (code(l, byte) - code(l, l->zero[o]));
    }
    return requantized(l, sum, o);
}

/* The whole layer runs as one integer step. */
static void check_steps(const qsim_model *m, const qsim_tensor *x) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor y = {0};
    int integers = 0, floats = 0;
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, NULL), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, x, 1, &y, 1, NULL), QSIM_OK);
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), QSIM_OK);
        integers += strncmp(info.op_type, "QLinear", 7) == 0;
        floats += strcmp(info.op_type, "Conv") == 0 || strcmp(info.op_type, "MatMul") == 0;
    }
    CHECK(integers == 1 && floats == 0);
    qsim_run_free(r);
    qsim_session_free(s);
}

static void check_sums(layer l, bool all, uint64_t seed) {
    static float x[X_SIZE], y[X_SIZE];
    static int steps[X_SIZE];
    const int64_t image[4] = {2, CHANNELS, SIDE, SIDE}, rows[2] = {X_SIZE / CHANNELS, CHANNELS};
    const qsim_tensor t = {QSIM_FLOAT, l.taps ? 4 : 2, l.taps ? image : rows, x, sizeof(x)};
    int wrong = 0;
    draw(&l, all, seed);
    for (int i = 0; i < X_SIZE; i++) {
        steps[i] = (int)(test_random(&seed) % 256) - x_zero;
        x[i] = (float)steps[i] * x_scale;
    }
    qsim_model *m = build(&l);
    qsim_tensor in = t;
    CHECK_INT(net_run(m, &in, y, X_SIZE), X_SIZE);
    check_steps(m, &t);
    for (int i = 0; i < X_SIZE; i++) {
        const int plane = i / (SIDE * SIDE), at = i % (SIDE * SIDE);
        const float want =
            l.taps ? conv_at(&l, steps, plane / CHANNELS, plane % CHANNELS, at / SIDE, at % SIDE)
                   : product_at(&l, steps, i / CHANNELS, i % CHANNELS);
        wrong += y[i] != want;
    }
    CHECK_INT(wrong, 0);
    qsim_model_free(m);
}

static void test_sums(void) {
    static const layer layers[] = {{.op = "Conv", .groups = 1, .taps = 3},
                                   {.op = "Conv", .groups = 1, .taps = 1},
                                   {.op = "Conv", .groups = 2, .taps = 3},
                                   {.op = "Conv", .groups = CHANNELS, .taps = 3},
                                   {.op = "Conv", .groups = CHANNELS, .taps = 5},
                                   {.op = "MatMul", .groups = 1},
                                   {.op = "Gemm", .groups = 1},
                                   {.op = "Gemm", .groups = 1, .by_rows = true}};
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        for (int k = 0; k < 4; k++) {
            layer l = layers[i];
            l.is_signed = k & 1;
            check_sums(l, k & 2, 100 * i + (uint64_t)k);
        }
}

/* ---- the written file ---- */

/* One weight beside the formula: s = (high - low) / 254, z = round(qmin - low / s), qmin the second
 * lowest code. */
static void check_weight(const qsim_model *m, const qsim_model *q, const char *name, int channels,
                         int stride, int step, int32_t type) {
    char quantized[32], scale[32], zero[32];
    qsim_value_info w, wq, ws, wz;
    snprintf(quantized, sizeof(quantized), "%s_quantized", name);
    snprintf(scale, sizeof(scale), "%s_scale", name);
    snprintf(zero, sizeof(zero), "%s_zero_point", name);
    CHECK(net_value(m, name, &w) && net_value(q, quantized, &wq));
    CHECK(net_value(q, scale, &ws) && ws.bytes == (size_t)channels * 4);
    CHECK(net_value(q, zero, &wz) && wz.bytes == (size_t)channels && wz.dtype == type);
    const float *v = w.data, *s = ws.data;
    const uint8_t *codes = wq.data, *zeros = wz.data;
    const int depth = (int)(w.bytes / 4) / channels, least = type == QSIM_INT8 ? -127 : 1;
    int wrong = 0;
    for (int c = 0; c < channels; c++) {
        float low = 0, high = 0;
        for (int k = 0; k < depth; k++) {
            low = fminf(low, v[c * stride + k * step]);
            high = fmaxf(high, v[c * stride + k * step]);
        }
        const float width = (float)(((double)high - (double)low) / 254);
        const int z = (int)rint(least - (double)low / (double)width);
        wrong += s[c] != width || zeros[c] != (uint8_t)z;
        for (int k = 0; k < depth; k++) {
            const float code = rintf(v[c * stride + k * step] / width) + (float)z;
            const int want = (int)fminf(fmaxf(code, (float)(least - 1)), (float)(least + 254));
            wrong += codes[c * stride + k * step] != (uint8_t)want;
        }
    }
    CHECK_INT(wrong, 0);
}

static void test_written(void) {
    static float x[144 * 8], y[40], z[40];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    net_batch(x, 8, 7);
    CHECK_INT(net_run(m, &t, y, 40), 40);
    for (int k = 0; k < 12; k++) {
        const int32_t type = k % 2 ? QSIM_UINT8 : QSIM_INT8;
        const qsim_quantize_options o = {.struct_size = sizeof(o),
                                         .weight_scheme = QSIM_WEIGHT_CHANNEL_ASYMMETRIC,
                                         .weight_type = type,
                                         .format = k / 2 % 2,
                                         .mode = k / 4 == 2 ? QSIM_MODE_WEIGHTS : QSIM_MODE_STATIC,
                                         .no_bias_correction = k / 4 == 1};
        qsim_model *q = net_quantize(m, c, &o);
        check_weight(m, q, "w1", 4, 9, 1, type);
        check_weight(m, q, "w2", 6, 36, 1, type);
        check_weight(m, q, "w3", 16, 54, 1, type);
        check_weight(m, q, "w4", 5, 1, 5, type);
        CHECK_INT(net_layer(m, c, &o, 1).info.scheme, QSIM_WEIGHT_CHANNEL_ASYMMETRIC);
        CHECK_INT(net_run(q, &t, z, 40), 40);
        double noise = 0, signal = 0;
        for (int i = 0; i < 40; i++) {
            noise += pow((double)(y[i] - z[i]), 2);
            signal += pow((double)y[i], 2);
        }
        CHECK(signal > 300 * noise);
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ConvInteger has one zero point in ONNX Runtime: convolutions stay symmetric, with a message. */
static void test_dynamic(void) {
    qsim_model *m = net_lenet();
    qsim_quantize_options o = {.struct_size = sizeof(o),
                               .mode = QSIM_MODE_DYNAMIC,
                               .weight_scheme = QSIM_WEIGHT_CHANNEL_ASYMMETRIC};
    qsim_model *q = net_quantize(m, NULL, &o), *refused = NULL;
    qsim_value_info z;
    qsim_error e = {0};
    CHECK(net_value(q, "w1_zero_point", &z) && z.bytes == 1 && *(const uint8_t *)z.data == 128);
    CHECK(net_value(q, "w3_zero_point", &z) && z.bytes == 16 && z.dtype == QSIM_INT8);
    CHECK_INT(net_layer(m, NULL, &o, 0).info.scheme, QSIM_WEIGHT_CHANNEL_SYMMETRIC);
    CHECK_INT(net_layer(m, NULL, &o, 2).info.scheme, QSIM_WEIGHT_CHANNEL_ASYMMETRIC);
    check_weight(m, q, "w4", 5, 1, 5, QSIM_INT8);
    qsim_model_free(q);
    static const char text[] = "qsim-recipe 1\nlayer \"conv2\" weights uint8 channel asymmetric\n";
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_load_memory(NULL, text, sizeof(text) - 1, "r", &r, &e), QSIM_OK);
    o.recipe = r;
    CHECK_INT(qsim_quantize(m, NULL, &o, &refused, &e), QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "layer 'conv2' (Conv): 'channel asymmetric' is not") != NULL);
    qsim_recipe_free(r);
    qsim_model_free(m);
}

/* A recipe with the option's scheme gives the option's bytes. */
static void test_recipe(void) {
    static char text[4000];
    size_t need;
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 2);
    qsim_recipe *decided = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &decided, NULL), QSIM_OK);
    const qsim_quantize_options o = {.struct_size = sizeof(o),
                                     .decided = decided,
                                     .weight_scheme = QSIM_WEIGHT_CHANNEL_ASYMMETRIC};
    qsim_model *q = net_quantize(m, c, &o);
    CHECK_INT(qsim_recipe_text(decided, text, sizeof(text) - 1, &need, NULL), QSIM_OK);
    CHECK(strstr(text, "layer \"conv2\" weights int8 channel asymmetric bias") != NULL);
    const qsim_quantize_options same = {.struct_size = sizeof(same), .recipe = decided};
    qsim_model *again = net_quantize(m, c, &same);
    CHECK(net_same_bytes(q, again));
    qsim_model_free(again);
    qsim_model_free(q);
    qsim_recipe_free(decided);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    test_sums();
    test_written();
    test_dynamic();
    test_recipe();
    return test_done();
}
