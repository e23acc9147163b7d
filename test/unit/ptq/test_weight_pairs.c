/* SPDX-License-Identifier: MIT */
/*
 * QSIM_REDUCE_PAIRS: no two weights whose products ONNX Runtime adds in 16 bits may saturate the
 * sum, and no scale is larger than that takes.
 */
#include <stdbool.h>

#include "ptq_nets.h"

#include <qsim/recipe.h>

#define MOST 512 /* weights of a layer */

/* A layer with weights between x and y. Sizes of the window are 0 for products. */
typedef struct layer {
    const char *name, *op;
    int outputs, inputs, groups, height, width;
    bool by_rows;    /* a product: weights [outputs, inputs] */
    bool in_floats;  /* dynamic quantization leaves no int8 weights */
    bool never_adds; /* ONNX Runtime adds no two of its products in 16 bits */
} layer;

static const layer layers[] = {
    {"Conv 3x3", "Conv", 6, 4, 1, 3, 3, true, true, false},
    {"Conv 1x1", "Conv", 5, 7, 1, 1, 1, true, true, false},
    {"Conv of 3 channels", "Conv", 4, 3, 1, 3, 2, true, true, false},
    {"Conv in groups", "Conv", 6, 6, 2, 3, 3, true, true, false},
    {"Conv in many groups", "Conv", 12, 6, 6, 3, 3, true, true, false},
    {"depthwise Conv", "Conv", 6, 6, 6, 3, 3, true, true, true},
    {"MatMul", "MatMul", 5, 9, 1, 0, 0, false, false, false},
    {"Gemm", "Gemm", 5, 8, 1, 0, 0, false, false, false},
    {"Gemm by rows", "Gemm", 6, 11, 1, 0, 0, true, false, false},
};

static int taps(const layer *l) {
    return l->height ? l->height * l->width : 1;
}
static int depth(const layer *l) {
    return l->inputs / l->groups * taps(l);
}
static int weight_count(const layer *l) {
    return l->outputs * depth(l);
}

/* Where the weight of place `k` in a window's row is: kernel positions first, channels last. */
static int place(const layer *l, bool by_rows, int output, int k) {
    const int channels = l->inputs / l->groups, tap = k / channels, channel = k % channels;
    return by_rows ? (output * channels + channel) * taps(l) + tap : k * l->outputs + output;
}

/* Many large weights of one sign, so that pairs saturate in most channels. */
static void draw(const layer *l, float *w, uint64_t seed) {
    for (int i = 0; i < weight_count(l); i++) {
        const float v = (float)(test_random(&seed) % 1000) / 1000;
        w[i] = test_random(&seed) % 4 == 0 ? -v : v;
    }
}

static qsim_model *build(const layer *l, const float *w) {
    qsim_builder *b = NULL;
    const bool conv = l->height > 0;
    const int64_t image[4] = {1, l->inputs, 6, 6}, rows[2] = {12, l->inputs};
    const int64_t window[4] = {l->outputs, l->inputs / l->groups, l->height, l->width};
    const int64_t matrix[2] = {l->by_rows ? l->outputs : l->inputs,
                               l->by_rows ? l->inputs : l->outputs};
    const qsim_tensor t = {QSIM_FLOAT, conv ? 4 : 2, conv ? window : matrix, (void *)(uintptr_t)w,
                           (size_t)weight_count(l) * 4};
    CHECK_INT(qsim_builder_create(NULL, 13, l->name, &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, conv ? 4 : 2, conv ? image : rows, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, -1, NULL, NULL);
    CHECK_INT(qsim_builder_constant(b, "w", &t), QSIM_OK);
    qsim_builder_node(b, "", l->op, "layer", "x,w", "y");
    if (conv)
        qsim_builder_attr_int(b, "group", l->groups);
    else if (l->by_rows)
        qsim_builder_attr_int(b, "transB", 1);
    return net_finish(b);
}

/* One batch; values of neighbours are alike, which makes GPTQ move weights far. */
static qsim_calibration *calibrate(const qsim_model *m, const qsim_quantize_options *o) {
    static float x[1024];
    const qsim_calibration_options co = {.struct_size = sizeof(co), .quantize = o};
    qsim_value_info in = {.struct_size = sizeof(in)};
    qsim_calibration *c = NULL;
    uint64_t seed = 5;
    CHECK_INT(qsim_model_input(m, 0, &in), QSIM_OK);
    size_t elements = 0;
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, in.rank, in.dims, &elements, NULL), QSIM_OK);
    CHECK(elements <= sizeof(x) / sizeof(*x));
    for (size_t i = 0; i < elements; i++)
        x[i] = (float)(i / 36 % 3) + (float)(test_random(&seed) % 100) / 400;
    const qsim_tensor t = {QSIM_FLOAT, in.rank, in.dims, x, elements * 4};
    CHECK_INT(qsim_calibration_create(m, &co, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
    return c;
}

/* The int8 weights of a quantized layer and, of static quantization, their scales. */
static const int8_t *codes_of(const layer *l, const qsim_model *q, const float **scale) {
    for (int32_t i = 0; i < qsim_model_value_count(q); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)}, s;
        qsim_node_info n;
        CHECK_INT(qsim_model_value(q, i, &v), QSIM_OK);
        if (!v.data || v.dtype != QSIM_INT8 || v.bytes != (size_t)weight_count(l))
            continue;
        if (net_find(q, "DequantizeLinear", "w_DequantizeLinear", &n) &&
            net_value(q, n.inputs[1], &s))
            *scale = s.data;
        return v.data;
    }
    return NULL;
}

static int largest(int a, int b) {
    return a > b ? a : b;
}

/* How many pairs saturate for some uint8 activations: 255 and 0 are the extremes. */
static int saturated(const layer *l, bool by_rows, const int8_t *w) {
    int count = 0;
    for (int o = 0; o < l->outputs; o++)
        for (int k = 0; k + 1 < depth(l); k += 2) {
            const int a = w[place(l, by_rows, o, k)], b = w[place(l, by_rows, o, k + 1)];
            const int high = 255 * (largest(a, 0) + largest(b, 0));
            const int low = -255 * (largest(-a, 0) + largest(-b, 0));
            count += high > INT16_MAX || low < INT16_MIN;
        }
    return count;
}

/* What a channel's range is widened to: its largest weight, or sum of two of one sign. */
static float reach(const layer *l, const float *w, int o) {
    float most = 0;
    for (int k = 0; k < depth(l); k++) {
        const float a = w[place(l, l->by_rows, o, k)];
        const float b = k % 2 ? w[place(l, l->by_rows, o, k - 1)] : 0;
        most = fmaxf(most, fabsf(a));
        if (a * b > 0 && !l->never_adds)
            most = fmaxf(most, fabsf(a + b));
    }
    return most;
}

static void check_layer(const layer *l, const qsim_quantize_options *o, uint64_t seed,
                        int *without) {
    float w[MOST];
    const bool tensor = o->weight_scheme == QSIM_WEIGHT_TENSOR_SYMMETRIC;
    const bool by_rows = l->by_rows && (l->height || o->mode == QSIM_MODE_STATIC);
    qsim_quantize_options plain = *o;
    plain.reduce_range = QSIM_REDUCE_NONE;
    draw(l, w, seed);
    qsim_model *m = build(l, w);
    qsim_calibration *c = calibrate(m, o);
    qsim_model *q = net_quantize(m, c, o), *p = net_quantize(m, c, &plain);
    const float *scale = NULL, *other = NULL;
    const int8_t *codes = codes_of(l, q, &scale), *full = codes_of(l, p, &other);
    CHECK(codes && full && (scale != NULL) == (o->mode == QSIM_MODE_STATIC));
    if (l->never_adds)
        CHECK(memcmp(codes, full, (size_t)weight_count(l)) == 0);
    else
        CHECK_INT(saturated(l, by_rows, codes), 0);
    *without += saturated(l, by_rows, full);
    float most = 0;
    for (int i = 0; i < l->outputs; i++)
        most = fmaxf(most, reach(l, w, i));
    for (int i = 0; i < (tensor ? 1 : l->outputs) && scale; i++) {
        const float wanted = (tensor ? most : reach(l, w, i)) / 127;
        CHECK(fabsf(scale[i] - wanted) <= 1e-6f * wanted);
    }
    qsim_model_free(m);
    qsim_model_free(q);
    qsim_model_free(p);
    qsim_calibration_free(c);
}

static void test_layers(void) {
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        for (int32_t way = 0; way < 3; way++) {
            const qsim_quantize_options o = {
                .struct_size = sizeof(o),
                .reduce_range = QSIM_REDUCE_PAIRS,
                .weight_scheme =
                    way == 1 ? QSIM_WEIGHT_TENSOR_SYMMETRIC : QSIM_WEIGHT_CHANNEL_SYMMETRIC,
                .mode = way == 2 ? QSIM_MODE_DYNAMIC : QSIM_MODE_STATIC};
            int without = 0;
            if (way == 2 && layers[i].in_floats)
                continue; /* ConvInteger: uint8 weights */
            for (uint64_t seed = 1; seed <= 5; seed++)
                check_layer(&layers[i], &o, seed * 31 + i, &without);
            CHECK(without > 0);
        }
}

/* ---- GPTQ and recipes ---- */

static qsim_recipe *load(const char *line) {
    char text[256];
    qsim_recipe *r = NULL;
    snprintf(text, sizeof(text), "qsim-recipe 1\nlayer \"layer\" %s\n", line);
    CHECK_INT(qsim_recipe_load_memory(NULL, text, strlen(text), "file", &r, NULL), QSIM_OK);
    return r;
}

/* Every pair is as large as a scale of paired weights lets it be, and GPTQ may not add to it. */
static void draw_full(const layer *l, float *w, uint64_t seed) {
    draw(l, w, seed);
    for (int o = 0; o < l->outputs; o++)
        for (int k = 0; k + 1 < depth(l); k += 2) {
            float *a = &w[place(l, l->by_rows, o, k)], *b = &w[place(l, l->by_rows, o, k + 1)];
            *b = *a < 0 ? -1 - *a : 1 - *a;
        }
}

/* Weights that GPTQ moves stay within the bound, too. */
static void test_gptq(void) {
    qsim_recipe *r = load("weights int8 channel symmetric paired rounding gptq");
    int moved = 0;
    for (size_t i = 0; i < sizeof(layers) / sizeof(*layers); i++)
        for (uint64_t seed = 1; seed <= 20 && layers[i].groups == 1; seed++) {
            float w[MOST];
            const float *scale = NULL;
            const qsim_quantize_options plain = {
                .struct_size = sizeof(plain), .reduce_range = QSIM_REDUCE_PAIRS, .keep_moments = 1};
            qsim_quantize_options o = plain;
            o.recipe = r;
            draw_full(&layers[i], w, seed);
            qsim_model *m = build(&layers[i], w);
            qsim_calibration *c = calibrate(m, &plain);
            qsim_model *p = net_quantize(m, c, &plain), *q = net_quantize(m, c, &o);
            const int8_t *nearest = codes_of(&layers[i], p, &scale),
                         *codes = codes_of(&layers[i], q, &scale);
            CHECK_INT(saturated(&layers[i], layers[i].by_rows, codes), 0);
            moved += memcmp(nearest, codes, (size_t)weight_count(&layers[i])) != 0;
            qsim_model_free(m);
            qsim_model_free(p);
            qsim_model_free(q);
            qsim_calibration_free(c);
        }
    CHECK(moved > 0);
    qsim_recipe_free(r);
}

/* A recipe that the option wrote gives the same weights without the option. */
static void test_recipe(void) {
    float w[MOST];
    const float *scale = NULL;
    qsim_recipe *decided = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &decided, NULL), QSIM_OK);
    qsim_quantize_options o = {
        .struct_size = sizeof(o), .reduce_range = QSIM_REDUCE_PAIRS, .decided = decided};
    draw(&layers[0], w, 9);
    qsim_model *m = build(&layers[0], w);
    qsim_calibration *c = calibrate(m, NULL);
    qsim_model *q = net_quantize(m, c, &o);
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_get(decided, qsim_recipe_find(decided, QSIM_RECIPE_LAYER, "layer"), &e),
              QSIM_OK);
    CHECK_INT(e.flags, QSIM_RECIPE_PAIRED);
    o = (qsim_quantize_options){.struct_size = sizeof(o), .recipe = decided};
    qsim_model *again = net_quantize(m, c, &o);
    CHECK(memcmp(codes_of(&layers[0], q, &scale), codes_of(&layers[0], again, &scale),
                 (size_t)weight_count(&layers[0])) == 0);
    CHECK(net_same_bytes(q, again));
    qsim_model_free(m);
    qsim_model_free(q);
    qsim_model_free(again);
    qsim_calibration_free(c);
    qsim_recipe_free(decided);
}

/* The search for weight schemes tries none with zero points. */
static void test_search(void) {
    static float x[4 * 36];
    float w[MOST];
    uint64_t seed = 3;
    qsim_recipe *found = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    draw(&layers[0], w, 9);
    for (int i = 0; i < weight_count(&layers[0]); i++) /* channels ask for scales of their own */
        w[i] /= (float)(1 << 2 * (i / depth(&layers[0])));
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        x[i] = (float)(test_random(&seed) % 100) / 50 - 1;
    qsim_model *m = build(&layers[0], w);
    qsim_calibration *c = calibrate(m, NULL);
    const qsim_tensor in = {QSIM_FLOAT, 4, (int64_t[]){1, 4, 6, 6}, x, sizeof(x)};
    const qsim_quantize_options by = {.struct_size = sizeof(by),
                                      .reduce_range = QSIM_REDUCE_PAIRS,
                                      .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    const qsim_search_options o = {
        .struct_size = sizeof(o), .inputs = &in, .input_count = 1, .methods = "greedy"};
    CHECK_INT(qsim_search(m, c, &by, &o, found, NULL, NULL), QSIM_OK);
    const int32_t at = qsim_recipe_find(found, QSIM_RECIPE_LAYER, "layer");
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_get(found, at, &e), QSIM_OK);
    CHECK(e.flags == QSIM_RECIPE_PAIRED && e.symmetric == 1);
    qsim_model_free(m);
    qsim_calibration_free(c);
    qsim_recipe_free(found);
}

static void test_refused(void) {
    static const char *const lines[] = {"weights uint8 paired", "weights int8 asymmetric paired",
                                        "weights int4 paired"};
    const char *const wrong = "pairs are reduced of symmetric weights of int8 alone";
    float w[MOST];
    draw(&layers[0], w, 9);
    qsim_model *m = build(&layers[0], w);
    qsim_calibration *c = calibrate(m, NULL);
    qsim_quantize_options o = {.struct_size = sizeof(o), .reduce_range = 3};
    net_refused(m, c, &o, QSIM_E_ARGUMENT, "reduce_range 3 is not known");
    o.reduce_range = -1;
    net_refused(m, c, &o, QSIM_E_ARGUMENT, "reduce_range -1 is not known");
    o.reduce_range = QSIM_REDUCE_PAIRS;
    o.weight_type = QSIM_UINT8;
    net_refused(m, c, &o, QSIM_E_UNSUPPORTED, wrong);
    o.weight_type = QSIM_INT8;
    o.weight_scheme = QSIM_WEIGHT_CHANNEL_ASYMMETRIC;
    net_refused(m, c, &o, QSIM_E_UNSUPPORTED, wrong);
    o.weight_scheme = QSIM_WEIGHT_TENSOR_ASYMMETRIC;
    net_refused(m, c, &o, QSIM_E_UNSUPPORTED, wrong);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        qsim_recipe *r = load(lines[i]);
        o = (qsim_quantize_options){.struct_size = sizeof(o), .recipe = r};
        net_refused(m, c, &o, QSIM_E_UNSUPPORTED, "paired' is not supported");
        qsim_recipe_free(r);
    }
    qsim_model_free(m);
    qsim_calibration_free(c);
}

int main(void) {
    test_layers();
    test_gptq();
    test_recipe();
    test_search();
    test_refused();
    return test_done();
}
