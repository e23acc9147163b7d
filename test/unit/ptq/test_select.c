/* SPDX-License-Identifier: MIT */
/* The choice of nodes to quantize, on graphs with every form of the rules. */
#include <math.h>

#include "ptq_nets.h"

static const int64_t image[4] = {-1, 4, 8, 8};
static const int64_t one[4] = {1, 1, 1, 1};

static qsim_builder *begin(void) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    CHECK_INT(qsim_builder_create(NULL, 13, "net", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, image, symbol);
    return b;
}

static void output(qsim_builder *b, const char *name, int rank, int64_t a, int64_t c, int64_t d) {
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    qsim_builder_output(b, name, QSIM_FLOAT, rank, (int64_t[]){-1, a, c, d}, symbol);
}

/* 3x3 convolution of 4 channels that keeps the size; its weights are called w<name>. */
static void conv(qsim_builder *b, const char *name, const char *x, const char *y) {
    char w[32], inputs[64];
    snprintf(w, sizeof(w), "w%s", name);
    snprintf(inputs, sizeof(inputs), "%s,%s", x, w);
    net_constant(b, w, 4, (int64_t[]){4, 4, 3, 3}, 0.3f, (uint64_t)name[0] * 31 + (uint64_t)y[0]);
    qsim_builder_node(b, "", "Conv", name, inputs, y);
    qsim_builder_attr_ints(b, "pads", one, 4);
}

static qsim_calibration *calibrate(const qsim_model *m, uint64_t seed) {
    static float x[8 * 256];
    const int64_t dims[4] = {8, 4, 8, 8};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_error e = {0};
    for (int i = 0; i < 8 * 256; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    if (qsim_calibration_create(m, NULL, &c, &e) || qsim_calibration_feed(c, &t, 1, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(e.code, QSIM_OK);
    return c;
}

/* Quantizes, saves, loads, runs, and compares with the float model. The caller frees the result. */
static qsim_model *quantized(const qsim_model *m, const qsim_calibration *c,
                             const qsim_quantize_options *o) {
    static char file[1 << 18];
    static float x[4 * 256], y[4 * 1024], z[4 * 1024];
    const int64_t dims[4] = {4, 4, 8, 8};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *q = NULL, *back = NULL;
    qsim_error e = {0};
    uint64_t seed = 99;
    size_t size = 0;
    for (int i = 0; i < 4 * 256; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    if (qsim_quantize(m, c, o, &q, &e) ||
        qsim_model_save_memory(q, file, sizeof(file), &size, &e) ||
        qsim_model_load_memory(NULL, file, size, NULL, &back, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(e.code, QSIM_OK);
    size_t n = net_run(m, &t, y, sizeof(y) / sizeof(y[0]));
    CHECK(n > 0);
    CHECK_INT(net_run(back, &t, z, sizeof(z) / sizeof(z[0])), n);
    double signal = 0, noise = 0;
    for (size_t i = 0; i < n; i++) {
        signal += pow((double)y[i], 2);
        noise += pow((double)y[i] - (double)z[i], 2);
    }
    if (!(signal > 100 * noise))
        fprintf(stderr, "%g dB\n", 10 * log10(signal / noise));
    CHECK(signal > 100 * noise); /* 20 dB */
    qsim_model_free(back);
    return q;
}

static void check_input(const qsim_model *q, const char *op, const char *name, int index,
                        const char *expected) {
    qsim_node_info n;
    CHECK(net_find(q, op, name, &n));
    CHECK_STR(n.inputs[index], expected);
}

/* A residual block: the sum absorbs its ReLU, averages run in integers, Softmax does not. */
static void test_residual(void) {
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    qsim_builder_node(b, "", "Relu", "ra", "ca", "r");
    conv(b, "b", "r", "cb");
    qsim_builder_node(b, "", "Add", "sum", "cb,r", "s");
    qsim_builder_node(b, "", "Relu", "rs", "s", "t");
    qsim_builder_node(b, "", "GlobalAveragePool", "gap", "t", "g");
    qsim_builder_node(b, "", "Flatten", "flat", "g", "f");
    net_constant(b, "wf", 2, (int64_t[]){4, 6}, 0.5f, 3);
    qsim_builder_node(b, "", "MatMul", "fc", "f,wf", "l");
    qsim_builder_node(b, "", "Softmax", "soft", "l", "y");
    output(b, "y", 2, 6, 0, 0);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    CHECK_INT(net_count(q, "QuantizeLinear"), 7); /* x r cb t g f l */
    check_input(q, "Add", "sum", 0, "cb_DequantizeLinear_Output");
    check_input(q, "Add", "sum", 1, "r_DequantizeLinear_Output");
    check_input(q, "Relu", "rs", 0, "s");
    check_input(q, "GlobalAveragePool", "gap", 0, "t_DequantizeLinear_Output");
    check_input(q, "QuantizeLinear", "f_QuantizeLinear", 1, "g_scale");
    check_input(q, "Softmax", "soft", 0, "l_DequantizeLinear_Output");
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Concat between layers has a scale of its own; curves and sums at the end stay float. */
static void test_concat_and_head(void) {
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    conv(b, "b", "x", "cb");
    qsim_builder_node(b, "", "Concat", "cat", "ca,cb", "k");
    qsim_builder_attr_int(b, "axis", 1);
    net_constant(b, "wk", 4, (int64_t[]){4, 8, 1, 1}, 0.3f, 9);
    qsim_builder_node(b, "", "Conv", "k1", "k,wk", "ck");
    qsim_builder_node(b, "", "Sigmoid", "sig", "ck", "s");
    net_constant(b, "two", 1, (int64_t[]){1}, 2.0f, 10);
    qsim_builder_node(b, "", "Mul", "scale", "s,two", "y");
    output(b, "y", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    CHECK_INT(net_count(q, "QuantizeLinear"), 5); /* x ca cb k ck */
    check_input(q, "Concat", "cat", 0, "ca_DequantizeLinear_Output");
    check_input(q, "Sigmoid", "sig", 0, "ck_DequantizeLinear_Output");
    check_input(q, "Mul", "scale", 0, "s");
    qsim_model_free(q);
    /* By a rule it runs in integers. */
    qsim_rule rule = {.struct_size = sizeof(rule), .pattern = "sig", .action = QSIM_RULE_INT8};
    qsim_quantize_options o = {.struct_size = sizeof(o), .rules = &rule, .rule_count = 1};
    q = quantized(m, c, &o);
    check_input(q, "Mul", "scale", 0, "s_DequantizeLinear_Output");
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Padding with zero moves values and shares a scale; with another constant it stays float. */
static void test_pad(void) {
    const int64_t eight[1] = {8}, pads[8] = {0, 0, 1, 1, 0, 0, 1, 1};
    qsim_tensor p = {QSIM_INT64, 1, eight, (void *)(uintptr_t)pads, sizeof(pads)};
    for (int other = 0; other < 2; other++) {
        qsim_builder *b = begin();
        float value = other ? -100.0f : 0.0f;
        qsim_tensor v = {QSIM_FLOAT, 0, NULL, &value, sizeof(value)};
        qsim_builder_constant(b, "pads", &p);
        qsim_builder_constant(b, "value", &v);
        conv(b, "a", "x", "ca");
        qsim_builder_node(b, "", "Pad", "pad", other ? "ca,pads,value" : "ca,pads", "k");
        qsim_builder_node(b, "", "MaxPool", "most", "k", "m"); /* not a Conv: it would pad */
        qsim_builder_attr_ints(b, "kernel_shape", (int64_t[]){1, 1}, 2);
        net_constant(b, "wk", 4, (int64_t[]){4, 4, 3, 3}, 0.3f, 9);
        qsim_builder_node(b, "", "Conv", "k1", "m,wk", "y");
        output(b, "y", 4, 4, 8, 8);
        qsim_model *m = net_finish(b);
        qsim_calibration *c = calibrate(m, 99);
        qsim_model *q = quantized(m, c, NULL);
        check_input(q, "QuantizeLinear", "k_QuantizeLinear", 1, other ? "k_scale" : "ca_scale");
        qsim_model_free(q);
        /* In the format of integer operators the Pad itself takes integers. */
        qsim_quantize_options o = {.struct_size = sizeof(o), .format = QSIM_FORMAT_QOPERATOR};
        q = quantized(m, c, &o);
        CHECK_INT(net_count(q, "QuantizeLinear"), other ? 2 : 1);
        CHECK_INT(net_count(q, "DequantizeLinear"), other ? 2 : 1);
        qsim_model_free(q);
        qsim_calibration_free(c);
        qsim_model_free(m);
    }
}

/* Constant operands, weights that two layers share, BatchNormalization, an inner graph output. */
static void test_constants(void) {
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    net_constant(b, "gain", 4, (int64_t[]){1, 1, 8, 1}, 2.0f, 11);
    qsim_builder_node(b, "", "Mul", "mul", "ca,gain", "m");
    qsim_builder_node(b, "", "Conv", "again", "m,wa", "cb");
    qsim_builder_attr_ints(b, "pads", one, 4);
    net_constant(b, "bs", 1, (int64_t[]){4}, 1.0f, 12);
    net_constant(b, "bb", 1, (int64_t[]){4}, 1.0f, 13);
    net_constant(b, "bm", 1, (int64_t[]){4}, 0.5f, 14);
    const float variance[4] = {0.5f, 1, 2, 3};
    const int64_t four[1] = {4};
    qsim_tensor v = {QSIM_FLOAT, 1, four, (void *)(uintptr_t)variance, sizeof(variance)};
    qsim_builder_constant(b, "bv", &v);
    qsim_builder_node(b, "", "BatchNormalization", "bn", "cb,bs,bb,bm,bv", "n");
    conv(b, "c", "n", "y");
    output(b, "y", 4, 4, 8, 8);
    output(b, "n", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    qsim_value_info info;
    CHECK_INT(net_count(q, "BatchNormalization"), 0);
    CHECK_INT(net_count(q, "QuantizeLinear"), 5); /* x ca m n y */
    check_input(q, "Mul", "mul", 1, "gain_DequantizeLinear_Output");
    CHECK(net_value(q, "gain_quantized", &info) && info.dtype == QSIM_UINT8 && info.bytes == 8);
    /* The inner output keeps its name, and its readers inside read the same values. */
    check_input(q, "Conv", "c", 0, "n");
    check_input(q, "QuantizeLinear", "n_QuantizeLinear", 0, "n_QuantizeLinear_Input");
    CHECK_INT(qsim_model_output_count(q), 2);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A tensor whose line is commented out stays float, with the nodes around it. */
static void test_commented(void) {
    static char text[1 << 20];
    char path[] = "test_select.qcal";
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    qsim_builder_node(b, "", "Relu", "ra", "ca", "r");
    conv(b, "b", "r", "cb");
    conv(b, "c", "cb", "y");
    output(b, "y", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99), *edited = NULL;
    CHECK_INT(qsim_calibration_save(c, path, 1, NULL), QSIM_OK);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    CHECK(n > 0);
    if (f)
        fclose(f);
    char *line = strstr(text, "tensor \"r\"");
    CHECK(line != NULL);
    if (line)
        memcpy(line, "#ensor", 6);
    CHECK_INT(qsim_calibration_load_memory(NULL, text, n, path, &edited, NULL), QSIM_OK);
    remove(path);
    qsim_model *q = quantized(m, edited, NULL);
    check_input(q, "Conv", "a", 1, "wa");
    check_input(q, "Conv", "b", 1, "wb");
    check_input(q, "Conv", "c", 1, "wc_DequantizeLinear_Output");
    CHECK_INT(net_count(q, "QuantizeLinear"), 2); /* cb y */
    CHECK_INT(net_layer(m, edited, NULL, 0).info.scheme, -1);
    CHECK_INT(net_layer(m, edited, NULL, 2).info.scheme, 0);
    CHECK_INT(net_layer(m, NULL, NULL, 0).info.scheme, 0);
    CHECK_INT(net_layer_count(q), QSIM_E_UNSUPPORTED);
    CHECK_INT(qsim_quantize_layers(q, c, NULL, NULL, NULL, NULL), QSIM_E_UNSUPPORTED);
    qsim_model_free(q);
    qsim_calibration_free(edited);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Without calibration data no tensor has a range: quantizing fails. */
static void test_no_data(void) {
    qsim_builder *b = begin();
    qsim_builder_node(b, "", "Flatten", "flat", "x", "y");
    output(b, "y", 2, 256, 0, 0);
    qsim_model *m = net_finish(b), *q = m;
    qsim_calibration *c = NULL;
    qsim_error e;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_quantize(m, c, NULL, &q, &e), QSIM_E_STATE);
    CHECK(q == NULL && strstr(e.message, "the calibration has seen no data"));
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Forms without an integer kernel stay as they are. */
static void test_left_alone(void) {
    qsim_builder *b = begin();
    qsim_builder_node(b, "", "Flatten", "flat", "x", "f");
    net_constant(b, "w", 2, (int64_t[]){256, 3}, 0.1f, 5);
    net_constant(b, "v", 2, (int64_t[]){3, 3}, 0.5f, 6);
    qsim_builder_node(b, "", "MatMul", "first", "f,w", "g");
    qsim_builder_node(b, "", "Gemm", "moving", "g,v,g", "h");
    qsim_builder_node(b, "", "MatMul", "square", "h,v", "y");
    output(b, "y", 2, 3, 0, 0);
    net_constant(b, "u", 4, (int64_t[]){4, 4, 1, 1}, 0.3f, 7);
    qsim_builder_node(b, "", "ReduceMean", "bias", "x", "m");
    qsim_builder_attr_ints(b, "axes", (int64_t[]){0, 2, 3}, 3);
    qsim_builder_attr_int(b, "keepdims", 0);
    qsim_builder_node(b, "", "Conv", "biased", "x,u,m", "z");
    output(b, "z", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    CHECK_INT(net_layer_count(m), 2);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    check_input(q, "Gemm", "moving", 1, "v");
    check_input(q, "Conv", "biased", 1, "u");
    check_input(q, "MatMul", "square", 1, "v_DequantizeLinear_Output");
    CHECK_INT(net_count(q, "QuantizeLinear"), 5); /* x f g h y */
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

static int32_t integer_nodes(const qsim_model *m, const char *op) {
    int32_t n = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_model_node(m, i, &info), QSIM_OK);
        n += strcmp(info.op_type, op) == 0 && info.integer;
    }
    return n;
}

/* Factors, a bias of one element and transA: all run in integers, close to the floats. */
static void test_gemm_forms(void) {
    qsim_builder *b = begin();
    qsim_builder_node(b, "", "Flatten", "flat", "x", "f");
    qsim_builder_node(b, "", "Transpose", "turn", "f", "t");
    net_constant(b, "w", 2, (int64_t[]){6, 256}, 0.1f, 5);
    net_constant(b, "c", 1, (int64_t[]){6}, 1.0f, 6);
    net_constant(b, "v", 2, (int64_t[]){6, 3}, 0.5f, 7);
    net_constant(b, "one", 1, (int64_t[]){1}, 2.0f, 8);
    qsim_builder_node(b, "", "Gemm", "factors", "t,w,c", "g");
    qsim_builder_attr_float(b, "alpha", 0.5f);
    qsim_builder_attr_float(b, "beta", -3.0f);
    qsim_builder_attr_int(b, "transA", 1);
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_node(b, "", "Gemm", "scalar", "g,v,one", "y");
    qsim_builder_attr_float(b, "alpha", -2.0f);
    output(b, "y", 2, 3, 0, 0);
    qsim_model *m = net_finish(b);
    CHECK_INT(net_layer_count(m), 2);
    qsim_calibration *c = calibrate(m, 99);
    for (int format = QSIM_FORMAT_QDQ; format <= QSIM_FORMAT_QOPERATOR; format++) {
        qsim_quantize_options o = {.struct_size = sizeof(o), .format = format};
        qsim_model *q = quantized(m, c, &o);
        qsim_value_info v;
        float w[1536], scale[6];
        CHECK_INT(integer_nodes(q, "Gemm"), 2);
        CHECK(net_value(m, "w", &v) && v.bytes == sizeof(w));
        memcpy(w, v.data, sizeof(w));
        CHECK(net_value(q, "w_1_scale", &v) && v.bytes == sizeof(scale));
        memcpy(scale, v.data, sizeof(scale));
        for (int k = 0; k < 6; k++) {
            float most = 0;
            for (int i = 0; i < 256; i++)
                most = fmaxf(most, fabsf(0.5f * w[k * 256 + i]));
            CHECK_NEAR(scale[k], most / 127, 1e-9);
        }
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A mean over height and width is a global pool; over other axes it stays float. */
static void test_mean(void) {
    for (int k = 0; k < 4; k++) {
        const int64_t axes[2] = {k == 3 ? 1 : 2, k == 1 ? -1 : 3};
        qsim_builder *b = begin();
        conv(b, "a", "x", "ca");
        qsim_builder_node(b, "", "ReduceMean", "mean", "ca", "m");
        qsim_builder_attr_ints(b, "axes", axes, 2);
        qsim_builder_attr_int(b, "keepdims", k != 2);
        qsim_builder_node(b, "", "Flatten", "flat", "m", "y");
        output(b, "y", 2, k == 3 ? 8 : 4, 0, 0);
        qsim_model *m = net_finish(b);
        qsim_calibration *c = calibrate(m, 99);
        qsim_model *q = quantized(m, c, NULL);
        check_input(q, "ReduceMean", "mean", 0, "ca_DequantizeLinear_Output");
        CHECK_INT(net_count(q, "QuantizeLinear"), k == 3 ? 2 : 4); /* x ca m y */
        qsim_model_free(q);
        qsim_calibration_free(c);
        qsim_model_free(m);
    }
}

/* Conv + constant and MatMul + constant: one layer each, with an int32 bias. */
static void test_bias(void) {
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    net_constant(b, "ba", 3, (int64_t[]){4, 1, 1}, 1.0f, 21);
    qsim_builder_node(b, "", "Add", "plus", "ba,ca", "s");
    qsim_builder_node(b, "", "Relu", "ra", "s", "r");
    net_constant(b, "row", 4, (int64_t[]){1, 1, 1, 8}, 1.0f, 22);
    conv(b, "b", "r", "cb");
    qsim_builder_node(b, "", "Add", "not_a_bias", "cb,row", "t");
    conv(b, "c", "t", "cc");
    qsim_builder_node(b, "", "Flatten", "flat", "cc", "f");
    net_constant(b, "w", 2, (int64_t[]){256, 3}, 0.1f, 23);
    net_constant(b, "bw", 2, (int64_t[]){1, 3}, 0.5f, 24);
    qsim_builder_node(b, "", "MatMul", "fc", "f,w", "g");
    qsim_builder_node(b, "", "Add", "last", "g,bw", "y");
    output(b, "y", 2, 3, 0, 0);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    CHECK_INT(net_count(q, "Add"), 1);
    check_input(q, "Conv", "a", 2, "ba_1_DequantizeLinear_Output");
    check_input(q, "Relu", "ra", 0, "s");
    check_input(q, "Add", "not_a_bias", 0, "cb_DequantizeLinear_Output");
    check_input(q, "Gemm", "fc", 2, "bw_1_DequantizeLinear_Output");
    CHECK_INT(net_count(q, "QuantizeLinear"), 7); /* x r cb t cc f y */
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* y = x w + b along the last axis of rank 4, which Gemm cannot express. */
static void linear(qsim_builder *b, const char *name, const char *x, const char *y) {
    char w[16], v[16], product[16], in[64];
    snprintf(w, sizeof(w), "w%s", name);
    snprintf(v, sizeof(v), "b%s", name);
    snprintf(product, sizeof(product), "p%s", name);
    net_constant(b, w, 2, (int64_t[]){8, 8}, 0.5f, (uint64_t)name[0]);
    net_constant(b, v, 1, (int64_t[]){8}, 0.5f, (uint64_t)name[0] + 40);
    snprintf(in, sizeof(in), "%s,%s", x, w);
    qsim_builder_node(b, "", "MatMul", w, in, product);
    snprintf(in, sizeof(in), "%s,%s", v, product);
    qsim_builder_node(b, "", "Add", v, in, y);
}

/* Self-attention: biases join their products; scores and their product with values are integer. */
static void test_attention(int masked) {
    qsim_builder *b = begin();
    const float eight = 2.83f;
    const qsim_tensor t = {QSIM_FLOAT, 0, NULL, (void *)(uintptr_t)&eight, sizeof(eight)};
    CHECK_INT(qsim_builder_constant(b, "eight", &t), QSIM_OK);
    linear(b, "q", "x", "q");
    linear(b, "k", "x", "k0");
    qsim_builder_node(b, "", "Relu", "rk", "k0", "k");
    linear(b, "v", "x", "v");
    qsim_builder_node(b, "", "Transpose", "turn", "k", "kt");
    qsim_builder_attr_ints(b, "perm", (int64_t[]){0, 1, 3, 2}, 4);
    qsim_builder_node(b, "", "MatMul", "scores", "q,kt", "s");
    qsim_builder_node(b, "", "Div", "scale", "s,eight", "d");
    net_constant(b, "mask", 2, (int64_t[]){8, 8}, 1.0f, 7);
    if (masked)
        qsim_builder_node(b, "", "Add", "hide", "d,mask", "e");
    qsim_builder_node(b, "", "Softmax", "soft", masked ? "e" : "d", "p");
    qsim_builder_attr_int(b, "axis", -1);
    qsim_builder_node(b, "", "MatMul", "weigh", "p,v", "o");
    linear(b, "z", "o", "y");
    output(b, "y", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    check_input(q, "Add", "bq", 1, "pq");
    check_input(q, "Add", "bq", 0, "bq_corrected");
    check_input(q, "Relu", "rk", 0, "k0");
    check_input(q, "MatMul", "weigh", 0, "p_DequantizeLinear_Output");
    check_input(q, "MatMul", "weigh", 1, "v_DequantizeLinear_Output");
    CHECK_INT(integer_nodes(q, "MatMul"), masked ? 5 : 6);
    CHECK_INT(integer_nodes(q, "Div"), masked ? 0 : 1);
    CHECK_INT(integer_nodes(q, "Add"), 4);
    qsim_model_free(q);
    const qsim_quantize_options operators = {.struct_size = sizeof(operators),
                                             .format = QSIM_FORMAT_QOPERATOR};
    q = quantized(m, c, &operators);
    CHECK_INT(net_count(q, "QLinearMatMul"), masked ? 5 : 6);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

enum { SMALL, CAUSAL, COMPUTED, CHOSEN };

/* Puts a mask over the scores `d`: e. */
static void mask(qsim_builder *b, int kind, float masked) {
    float values[64];
    const float zero = 0, high = 0.9f; /* no row is masked as a whole */
    const int64_t dims[2] = {8, 8};
    for (int i = 0; i < 64; i++)
        values[i] = i % 8 > i / 8 ? masked : 0;
    const qsim_tensor causal = {QSIM_FLOAT, 2, dims, values, sizeof(values)};
    const qsim_tensor fill = {QSIM_FLOAT, 0, NULL, &masked, sizeof(masked)};
    const qsim_tensor none = {QSIM_FLOAT, 0, NULL, (void *)(uintptr_t)&zero, sizeof(zero)};
    const qsim_tensor bound = {QSIM_FLOAT, 0, NULL, (void *)(uintptr_t)&high, sizeof(high)};
    qsim_builder_constant(b, "bound", &bound);
    qsim_builder_constant(b, "causal", &causal);
    qsim_builder_constant(b, "fill", &fill);
    qsim_builder_constant(b, "zero", &none);
    qsim_builder_node(b, "", "Greater", "late", "x,bound", "hidden");
    qsim_builder_node(b, "", "Where", "masks", "hidden,fill,zero", "m");
    if (kind == COMPUTED)
        qsim_builder_node(b, "", "Add", "hide", "m,d", "e");
    else if (kind == CHOSEN)
        qsim_builder_node(b, "", "Where", "hide", "hidden,fill,d", "e");
    else
        qsim_builder_node(b, "", "Add", "hide", "d,causal", "e");
}

/*
 * A mask before Softmax, and scores with it, get no scale, whatever rules say, and their numbers,
 * even infinities, are no values of a calibration; a bias of scores may get one.
 */
static void test_mask(int kind, float masked) {
    qsim_builder *b = begin();
    linear(b, "q", "x", "q");
    linear(b, "v", "x", "v");
    qsim_builder_node(b, "", "MatMul", "scores", "q,x", "s");
    qsim_builder_node(b, "", "Relu", "scale", "s", "d");
    mask(b, kind, masked);
    qsim_builder_node(b, "", "Softmax", "soft", "e", "p");
    qsim_builder_attr_int(b, "axis", -1);
    qsim_builder_node(b, "", "MatMul", "weigh", "p,v", "o");
    linear(b, "z", "o", "y");
    output(b, "y", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    const qsim_rule all = {.struct_size = sizeof(all), .pattern = "*", .action = QSIM_RULE_INT8};
    qsim_recipe *decided = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &decided, NULL), QSIM_OK);
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .rules = &all, .rule_count = 1, .decided = decided};
    float low = 0, high = 0;
    static const char *const masks[] = {"m", "e"};
    for (int i = 0; i < 2; i++)
        CHECK_INT(
            qsim_calibration_range(c, masks[i], QSIM_METHOD_MINMAX, 0, QSIM_UINT8, 0, &low, &high),
            i == 1 && kind == SMALL ? QSIM_OK : QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_calibration_range(c, "d", QSIM_METHOD_MINMAX, 0, QSIM_UINT8, 0, &low, &high),
              QSIM_OK);
    qsim_model *q = quantized(m, c, &o);
    CHECK_INT(integer_nodes(q, "Add"), kind == SMALL ? 4 : 3);
    CHECK_INT(integer_nodes(q, "Relu"), 1);
    CHECK_INT(qsim_recipe_find(decided, QSIM_RECIPE_LAYER, "scale") >= 0, 1);
    CHECK_INT(qsim_recipe_find(decided, QSIM_RECIPE_LAYER, "hide") >= 0, kind == SMALL);
    qsim_recipe_free(decided);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Squares that a mean in float alone reads stay float, in front of layers too; others do not. */
static void test_squares(void) {
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    qsim_builder_node(b, "", "Mul", "squares", "ca,ca", "q");
    qsim_builder_node(b, "", "ReduceMean", "mean", "q", "e");
    qsim_builder_attr_ints(b, "axes", one, 1);
    qsim_builder_node(b, "", "Div", "share", "ca,e", "d");
    conv(b, "b", "d", "cb");
    qsim_builder_node(b, "", "Mul", "others", "cb,cb", "o");
    conv(b, "c", "o", "y");
    output(b, "y", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = net_quantize(m, c, NULL);
    check_input(q, "ReduceMean", "mean", 0, "q");
    check_input(q, "Mul", "squares", 0, "ca_DequantizeLinear_Output");
    check_input(q, "Conv", "c", 0, "o_DequantizeLinear_Output");
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A Clip to the first and the last code is left out: the layer writes its result. Others stay. */
static void test_clips(void) {
    qsim_builder *b = begin();
    conv(b, "a", "x", "ca");
    qsim_builder_constant_as(b, "low", "float[]", &(float){-0.75f});
    qsim_builder_constant_as(b, "high", "float[]", &(float){0.5f});
    qsim_builder_node(b, "", "Clip", "clip", "ca,low,high", "c");
    conv(b, "b", "c", "y");
    output(b, "y", 4, 4, 8, 8);
    qsim_model *m = net_finish(b);
    qsim_calibration *c = calibrate(m, 99);
    qsim_model *q = quantized(m, c, NULL);
    CHECK_INT(net_count(q, "Clip"), 0);
    check_input(q, "QuantizeLinear", "c_QuantizeLinear", 0, "c");
    qsim_model_free(q);
    qsim_quantize_options o = {.struct_size = sizeof(o), .activation_symmetric = 1};
    q = quantized(m, c, &o);
    CHECK_INT(net_count(q, "Clip"), 1);
    check_input(q, "Clip", "clip", 0, "ca");
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    for (int kind = CAUSAL; kind <= CHOSEN; kind++) {
        test_mask(kind, -INFINITY);
        test_mask(kind, -1e4f);
    }
    test_mask(SMALL, -2.0f);
    test_attention(0);
    test_attention(1);
    test_bias();
    test_residual();
    test_concat_and_head();
    test_pad();
    test_constants();
    test_commented();
    test_no_data();
    test_left_alone();
    test_gemm_forms();
    test_mean();
    test_squares();
    test_clips();
    return test_done();
}
