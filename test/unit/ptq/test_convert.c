/* SPDX-License-Identifier: MIT */
/* Quantized models as pairs of QuantizeLinear and DequantizeLinear, and in floats. */
#include <math.h>

#include "ptq_nets.h"

enum { SAMPLES = 8, PIXELS = 144, MOST = 4096 };

static const int64_t image_dims[4] = {SAMPLES, 1, 12, 12};

/* Saved and loaded again. */
static qsim_model *reload(const qsim_model *m) {
    static char bytes[1 << 18];
    qsim_model *loaded = NULL;
    qsim_error e = {0};
    size_t size = 0;
    CHECK_INT(qsim_model_save_memory(m, bytes, sizeof(bytes), &size, &e), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(NULL, bytes, size, NULL, &loaded, &e), QSIM_OK);
    return loaded;
}

/* Nodes that are neither of ai.onnx on floats nor QuantizeLinear or DequantizeLinear. */
static int count_integer(const qsim_model *m) {
    int count = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
        count += n.domain[0] || !strncmp(n.op_type, "QLinear", 7) || strstr(n.op_type, "Integer");
    }
    return count;
}

static int count_pairs(const qsim_model *m) {
    return net_count(m, "QuantizeLinear") + net_count(m, "DequantizeLinear");
}

/* ---- networks that the quantizer writes ---- */

/* Two branches: conv relu pool conv, and their sum, its sigmoid and a concatenation, a product. */
static qsim_model *net_branches(void) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    CHECK_INT(qsim_builder_create(NULL, 13, "branches", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){-1, 1, 12, 12}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 5}, symbol);
    net_constant(b, "w1", 4, (int64_t[]){4, 1, 3, 3}, 0.5f, 1);
    net_constant(b, "b1", 1, (int64_t[]){4}, 0.3f, 2);
    net_constant(b, "w2", 4, (int64_t[]){4, 4, 1, 1}, 0.3f, 3);
    net_constant(b, "b2", 1, (int64_t[]){4}, 0.3f, 4);
    net_constant(b, "w3", 2, (int64_t[]){5, 8}, 0.4f, 5);
    net_constant(b, "b3", 1, (int64_t[]){5}, 0.3f, 6);
    qsim_builder_node(b, "", "Conv", "conv1", "x,w1,b1", "c1");
    qsim_builder_node(b, "", "Relu", "relu1", "c1", "r1");
    qsim_builder_node(b, "", "MaxPool", "pool1", "r1", "p1");
    qsim_builder_attr_ints(b, "kernel_shape", (int64_t[]){2, 2}, 2);
    qsim_builder_node(b, "", "Conv", "conv2", "p1,w2,b2", "c2");
    qsim_builder_node(b, "", "Add", "add", "p1,c2", "a");
    qsim_builder_node(b, "", "Sigmoid", "sigmoid", "a", "s");
    qsim_builder_node(b, "", "Concat", "concat", "a,s", "t");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_node(b, "", "AveragePool", "average", "t", "v");
    qsim_builder_attr_ints(b, "kernel_shape", (int64_t[]){3, 3}, 2);
    qsim_builder_node(b, "", "GlobalAveragePool", "mean", "v", "g");
    qsim_builder_node(b, "", "Flatten", "flat", "g", "f");
    qsim_builder_node(b, "", "Gemm", "fc", "f,w3,b3", "y");
    qsim_builder_attr_int(b, "transB", 1);
    return net_finish(b);
}

/* The greatest difference of two results. */
static double differ(const float *a, const float *b, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

/* Of both forms of a quantized model; `plain`: the float network. */
static void check_forms(const qsim_model *q, const qsim_model *plain, const float *x) {
    static float wanted[MOST], y[MOST], z[MOST];
    qsim_tensor given = {QSIM_FLOAT, 4, image_dims, (void *)(uintptr_t)x,
                         SAMPLES * PIXELS * sizeof(*x)};
    const size_t n = net_run(q, &given, wanted, MOST);
    qsim_model *pairs = net_convert(q, QSIM_FORMAT_QDQ), *again = reload(pairs);
    CHECK_INT(count_integer(pairs), 0);
    CHECK_INT(net_run(pairs, &given, y, MOST), n);
    CHECK(memcmp(y, wanted, n * sizeof(*y)) == 0); /* a session makes integer operators of pairs */
    CHECK_INT(net_run(again, &given, y, MOST), n);
    CHECK(memcmp(y, wanted, n * sizeof(*y)) == 0);
    qsim_model *floats = net_convert(q, QSIM_FORMAT_FLOAT),
               *others = net_convert(again, QSIM_FORMAT_FLOAT);
    CHECK_INT(count_integer(floats) + count_pairs(floats), 0);
    CHECK_INT(net_run(floats, &given, y, MOST), n);
    CHECK_INT(net_run(others, &given, z, MOST), n);
    CHECK(memcmp(y, z, n * sizeof(*y)) == 0);
    /* Weights have 8 bits and activations are not rounded: closer than the quantized model. */
    CHECK_INT(net_run(plain, &given, z, MOST), n);
    CHECK(differ(y, z, n) < 0.02 && differ(y, z, n) < differ(wanted, z, n));
    qsim_calibration *c = net_calibrate(floats, 1);
    qsim_model *anew = net_quantize(floats, c, NULL);
    CHECK(count_pairs(anew) > 0);
    qsim_model_free(anew);
    qsim_calibration_free(c);
    qsim_model_free(others);
    qsim_model_free(floats);
    qsim_model_free(again);
    qsim_model_free(pairs);
}

static void test_forms(void) {
    static const int32_t schemes[] = {QSIM_WEIGHT_CHANNEL_SYMMETRIC, QSIM_WEIGHT_TENSOR_SYMMETRIC};
    static float x[SAMPLES * PIXELS];
    net_batch(x, SAMPLES, 100); /* the batch that calibrates, whose ranges hold all values */
    for (int net = 0; net < 2; net++) {
        qsim_model *m = net ? net_branches() : net_lenet();
        qsim_calibration *c = net_calibrate(m, 1);
        for (int i = 0; i < 4; i++) {
            const qsim_quantize_options o = {.struct_size = sizeof(o),
                                             .activation_type = i % 2 ? QSIM_INT8 : QSIM_UINT8,
                                             .weight_scheme = schemes[i / 2],
                                             .no_bias_correction = 1,
                                             .format = QSIM_FORMAT_QOPERATOR};
            qsim_model *q = net_quantize(m, c, &o), *all = NULL;
            CHECK_INT(qsim_model_optimize(q, QSIM_LEVEL_ALL, &all, NULL), QSIM_OK);
            CHECK(count_integer(all) >= (net ? 5 : 2));
            check_forms(q, m, x);
            check_forms(all, m, x);
            qsim_model_free(all);
            qsim_model_free(q);
        }
        qsim_calibration_free(c);
        qsim_model_free(m);
    }
}

/* ---- single operators ---- */

/* x, floats of [2,3,4,4], is quantized to "q" by s and z; t and u are other numbers. */
static qsim_builder *begin(void) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "one", &b, NULL), QSIM_OK);
    CHECK_INT(qsim_builder_import(b, "com.microsoft", 1), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,3,4,4]");
    net_scale(b, "s", "z", 0.03125f, 100);
    net_scale(b, "t", "u", 0.0625f, 90);
    qsim_builder_node(b, "", "QuantizeLinear", "first", "x,s,z", "q");
    return b;
}

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int)(i * 37 % 101) - 50) / 20.0f;
}

/* Checks a model of one operator that makes r, which stands for t and u; ends it with output y. */
static qsim_model *end(qsim_builder *b, const char *type) {
    qsim_builder_node(b, "", "DequantizeLinear", "last", "r,t,u", "y");
    qsim_builder_output_as(b, "y", type);
    return net_finish(b);
}

/* `float_op` takes the place of the operator; results differ by one code at most, of rounding. */
static void check_one(qsim_model *m, const char *float_op) {
    static float x[96], wanted[192], y[192];
    const int64_t dims[4] = {2, 3, 4, 4};
    fill(x, 96);
    qsim_tensor given = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *pairs = net_convert(m, QSIM_FORMAT_QDQ),
               *floats = net_convert(m, QSIM_FORMAT_FLOAT);
    const size_t n = net_run(m, &given, wanted, 192);
    CHECK(n > 0);
    CHECK_INT(count_integer(pairs), 0);
    CHECK_INT(net_count(pairs, float_op), 1);
    CHECK_INT(net_run(pairs, &given, y, 192), n);
    CHECK(differ(y, wanted, n) <= 0.0625);
    CHECK_INT(count_integer(floats) + count_pairs(floats), 0);
    CHECK_INT(net_count(floats, float_op), 1);
    CHECK_INT(net_run(floats, &given, y, 192), n);
    CHECK(differ(y, wanted, n) <= 0.0625); /* half a step of s, at most doubled, and half of t's */
    qsim_model_free(floats);
    qsim_model_free(pairs);
    qsim_model_free(m);
}

static void test_operators(void) {
    static const struct {
        const char *op, *inputs, *float_op;
    } list[] = {{"QLinearAdd", "q,s,z,q,s,z,t,u", "Add"},
                {"QLinearMul", "q,s,z,k,t,u,t,u", "Mul"},
                {"QLinearSigmoid", "q,s,z,t,u", "Sigmoid"},
                {"QLinearLeakyRelu", "q,s,z,t,u", "LeakyRelu"},
                {"QLinearWhere", "if,q,s,z,k,t,u,t,u", "Where"}};
    const uint8_t half[1] = {98};
    uint8_t which[4] = {1, 0, 0, 1};
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
        qsim_builder *b = begin();
        CHECK_INT(qsim_builder_constant_as(b, "k", "uint8[1]", half), QSIM_OK);
        CHECK_INT(qsim_builder_constant_as(b, "if", "bool[4]", which), QSIM_OK);
        qsim_builder_node(b, "com.microsoft", list[i].op, "op", list[i].inputs, "r");
        check_one(end(b, "float[2,3,4,4]"), list[i].float_op);
    }
    for (int i = 0; i < 3; i++) { /* before opset 13 the last axis alone, by both of its numbers */
        qsim_builder *b = begin();
        qsim_builder_node(b, "com.microsoft", "QLinearSoftmax", "op", "q,s,z,t,u", "r");
        qsim_builder_attr_int(b, "axis", i == 1 ? 3 : -1);
        qsim_builder_attr_int(b, "opset", i == 0 ? 13 : 12);
        check_one(end(b, "float[2,3,4,4]"), "Softmax");
    }
    qsim_builder *b = begin();
    qsim_builder_node(b, "com.microsoft", "QLinearGlobalAveragePool", "op", "q,s,z,t,u", "r");
    qsim_builder_attr_int(b, "channels_last", 0);
    check_one(end(b, "float[2,3,1,1]"), "GlobalAveragePool");
    b = begin();
    qsim_builder_node(b, "com.microsoft", "QLinearReduceMean", "op", "q,s,z,t,u", "r");
    qsim_builder_attr_ints(b, "axes", (int64_t[]){2, 3}, 2);
    check_one(end(b, "float[2,3,1,1]"), "ReduceMean");
    b = begin();
    qsim_builder_node(b, "com.microsoft", "QLinearConcat", "op", "t,u,q,s,z,q,s,z", "r");
    qsim_builder_attr_int(b, "axis", 2);
    check_one(end(b, "float[2,3,8,4]"), "Concat");
    b = begin(); /* repeats integers, and fills with none */
    CHECK_INT(qsim_builder_constant_as(b, "pads", "int64[8]", (int64_t[8]){[3] = 1, [7] = 1}),
              QSIM_OK);
    qsim_builder_node(b, "", "Pad", "pad", "q,pads", "p");
    qsim_builder_attr_string(b, "mode", "reflect");
    qsim_builder_node(b, "com.microsoft", "QLinearSigmoid", "op", "p,s,z,t,u", "r");
    check_one(end(b, "float[2,3,4,6]"), "Pad");
}

/* ---- sums with weights ---- */

/*
 * A QLinearConv whose range begins at zero, so that it cuts off as Relu does, and a QGemm; both
 * with scales per channel and a bias. Weights of the Conv are 2 x 3, those of the QGemm 2 x 2.
 */
static const int8_t conv_w[6] = {5, -100, 27, 127, -3, 60}, conv_z[2] = {0, 0};
static const float conv_s[2] = {0.01f, 0.02f}, gemm_s[2] = {0.125f, 0.03f};
static const int32_t conv_b[2] = {300, -800}, gemm_b[2] = {-900, 4000};
static const uint8_t gemm_w[4] = {130, 0, 255, 120}, gemm_z[2] = {128, 100};

static qsim_model *net_sums(void) {
    qsim_builder *b = begin();
    CHECK_INT(qsim_builder_constant_as(b, "w_quantized", "int8[2,3,1,1]", conv_w), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "ws", "float[2]", conv_s), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "wz", "int8[2]", conv_z), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "b", "int32[2]", conv_b), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "gw", "uint8[2,2]", gemm_w), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "gs", "float[2]", gemm_s), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "gz", "uint8[2]", gemm_z), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "gb", "int32[2]", gemm_b), QSIM_OK);
    net_scale(b, "cs", "cz", 0.02f, 0);
    qsim_builder_node(b, "", "QLinearConv", "conv", "q,s,z,w_quantized,ws,wz,cs,cz,b", "c");
    qsim_builder_node(b, "", "MaxPool", "pool", "c", "p");
    qsim_builder_attr_ints(b, "kernel_shape", (int64_t[]){4, 4}, 2);
    qsim_builder_node(b, "", "Flatten", "flat", "p", "f");
    qsim_builder_node(b, "com.microsoft", "QGemm", "gemm", "f,cs,cz,gw,gs,gz,gb,t,u", "r");
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_attr_float(b, "alpha", 0.5f);
    return end(b, "float[2,2]");
}

/* The same in floats, by hand. */
static void sums_of(const float *x, double *y) {
    double pooled[2];
    for (int n = 0; n < 2; n++) {
        for (int c = 0; c < 2; c++) {
            pooled[c] = 0; /* the greatest, and at least 0 */
            for (int i = 0; i < 16; i++) {
                double sum = (double)conv_s[c] * 0.03125 * conv_b[c];
                for (int k = 0; k < 3; k++)
                    sum += (double)conv_s[c] * conv_w[3 * c + k] * (double)x[48 * n + 16 * k + i];
                pooled[c] = fmax(pooled[c], fmin(sum, 255 * 0.02));
            }
        }
        for (int c = 0; c < 2; c++) {
            double sum = (double)gemm_s[c] * (double)0.02f * gemm_b[c];
            for (int k = 0; k < 2; k++)
                sum += (double)gemm_s[c] * (gemm_w[2 * c + k] - gemm_z[c]) * pooled[k];
            y[2 * n + c] = sum / 2;
        }
    }
}

static void test_sums(void) {
    const int64_t dims[4] = {2, 3, 4, 4};
    qsim_model *m = net_sums();
    qsim_model *pairs = net_convert(m, QSIM_FORMAT_QDQ),
               *floats = net_convert(m, QSIM_FORMAT_FLOAT);
    qsim_value_info v;
    float x[96], wanted[4], y[4];
    double by_hand[4];
    fill(x, 96);
    x[5] = 3.5f; /* the sums of both signs, one beyond the range */
    qsim_tensor given = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    sums_of(x, by_hand);
    CHECK_INT(net_run(m, &given, wanted, 4), 4);
    CHECK_INT(net_run(pairs, &given, y, 4), 4);
    CHECK(differ(wanted, y, 4) <= 0.0625); /* the order of float sums: a code of t */
    CHECK_INT(net_run(floats, &given, y, 4), 4);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR((double)y[i], by_hand[i], 1e-5 * fmax(1, fabs(by_hand[i])));
    CHECK_INT(net_count(floats, "Clip"), 1); /* in place of the Relu, not behind the MaxPool */
    CHECK_INT(net_count(pairs, "MaxPool") + net_count(pairs, "Flatten"), 2);
    CHECK_INT(count_pairs(pairs), 2 + 3 + 2 + 2 + 3 + 2);
    CHECK(net_value(pairs, "w_quantized", &v) && v.dtype == QSIM_INT8);
    CHECK(net_value(pairs, "gw", &v) && v.dtype == QSIM_UINT8);
    CHECK(net_value(floats, "w", &v) && v.dtype == QSIM_FLOAT);
    CHECK(net_find(floats, "Conv", "conv", &(qsim_node_info){0}));
    qsim_model_free(floats);
    qsim_model_free(pairs);
    qsim_model_free(m);
}

/* Constants of every form that DequantizeLinear has: 16 bits, 4 bits, blocks, channels. */
static void test_constants(void) {
    const uint8_t codes[4] = {0x21, 0xf8, 0x07, 0x9e}; /* int4, the first in the low half */
    const float by_block[4] = {0.5f, 2, 4, 0.25f}, wide = 0.001f, x[8] = {0};
    const int16_t words[2] = {-30000, 7};
    const float wanted[8] = {0.5f - 30,   1 - 30, -16 - 30,       -2 - 30,
                             28 + 0.007f, 0.007f, -0.5f + 0.007f, -1.75f + 0.007f};
    const int64_t dims[2] = {2, 4};
    qsim_builder *b = NULL;
    qsim_tensor w = {QSIM_INT4, 2, dims, (void *)(uintptr_t)codes, sizeof(codes)};
    CHECK_INT(qsim_builder_create(NULL, 21, "constants", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,4]");
    CHECK_INT(qsim_builder_constant(b, "w", &w), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "ws", "float[2,2]", by_block), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "v", "int16[2,1]", words), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "vs", "float[]", &wide), QSIM_OK);
    qsim_builder_node(b, "", "DequantizeLinear", "d1", "w,ws", "wf");
    qsim_builder_attr_int(b, "axis", 1);
    qsim_builder_attr_int(b, "block_size", 2);
    qsim_builder_node(b, "", "DequantizeLinear", "d2", "v,vs", "vf");
    qsim_builder_node(b, "", "Add", "a1", "wf,vf", "a");
    qsim_builder_node(b, "", "Add", "a2", "a,x", "y");
    qsim_builder_output_as(b, "y", "float[2,4]");
    qsim_model *m = net_finish(b), *floats = net_convert(m, QSIM_FORMAT_FLOAT);
    qsim_tensor given = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x, sizeof(x)};
    float y[8];
    CHECK_INT(net_run(floats, &given, y, 8), 8);
    for (int i = 0; i < 8; i++)
        CHECK_NEAR((double)y[i], (double)wanted[i], 1e-5);
    CHECK_INT(net_count(floats, "Add"), 2);
    CHECK_INT(qsim_model_node_count(floats), 2);
    qsim_model_free(floats);
    qsim_model_free(m);
}

/* Integers stay at inputs and outputs. */
static void test_integers(void) {
    qsim_model *q = net_sums(), *m = NULL;
    qsim_value_info v = {.struct_size = sizeof(v)};
    CHECK_INT(qsim_model_integer_io(q, QSIM_INTEGER_INPUTS | QSIM_INTEGER_OUTPUTS, &m, NULL),
              QSIM_OK);
    for (int32_t format = 0; format <= 2; format += 2) {
        qsim_model *made = net_convert(m, format);
        CHECK_INT(qsim_model_input(made, 0, &v), QSIM_OK);
        CHECK(v.dtype == QSIM_UINT8 && strcmp(v.name, "x") == 0);
        CHECK_INT(qsim_model_output(made, 0, &v), QSIM_OK);
        CHECK(v.dtype == QSIM_UINT8 && strcmp(v.name, "y") == 0);
        CHECK_INT(count_integer(made), 0);
        if (format)
            CHECK_INT(count_pairs(made), 2);
        qsim_model_free(made);
    }
    qsim_model_free(m);
    qsim_model_free(q);
}

/* ---- dynamic quantization ---- */

/* The quantized model computes with weights of 8 bits; both forms of it do, without rounding more.
 */
static void check_dynamic(const qsim_model *q, const qsim_model *plain, const float *x) {
    static float wanted[MOST], y[MOST], z[MOST];
    qsim_tensor given = {QSIM_FLOAT, 4, image_dims, (void *)(uintptr_t)x,
                         SAMPLES * PIXELS * sizeof(*x)};
    const size_t n = net_run(plain, &given, wanted, MOST);
    qsim_model *pairs = net_convert(q, QSIM_FORMAT_QDQ), *again = reload(pairs);
    qsim_model *floats = net_convert(q, QSIM_FORMAT_FLOAT);
    CHECK(count_integer(q) > 0);
    CHECK_INT(count_integer(again) + net_count(again, "DynamicQuantizeLinear"), 0);
    CHECK(net_count(again, "DequantizeLinear") > 0);
    CHECK_INT(net_count(again, "QuantizeLinear"), 0);
    CHECK_INT(count_integer(floats) + count_pairs(floats), 0);
    CHECK_INT(net_count(floats, "DynamicQuantizeLinear"), 0);
    CHECK_INT(net_run(again, &given, y, MOST), n);
    CHECK_INT(net_run(floats, &given, z, MOST), n);
    CHECK(differ(y, z, n) < 1e-5);
    CHECK(differ(z, wanted, n) < 0.02);
    CHECK_INT(net_run(q, &given, y, MOST), n);
    CHECK(differ(y, z, n) > 1e-4); /* it is rounded */
    qsim_model_free(floats);
    qsim_model_free(again);
    qsim_model_free(pairs);
}

static void test_dynamic(void) {
    static const int32_t schemes[] = {QSIM_WEIGHT_CHANNEL_SYMMETRIC, QSIM_WEIGHT_TENSOR_ASYMMETRIC,
                                      QSIM_WEIGHT_CHANNEL_ASYMMETRIC};
    static float x[SAMPLES * PIXELS];
    net_batch(x, SAMPLES, 100);
    for (int net = 0; net < 2; net++) {
        qsim_model *m = net ? net_branches() : net_lenet();
        for (int i = 0; i < 6; i++) {
            const qsim_quantize_options o = {.struct_size = sizeof(o),
                                             .mode = QSIM_MODE_DYNAMIC,
                                             .weight_type = i == 1 ? QSIM_UINT8 : QSIM_INT8,
                                             .weight_scheme = schemes[i / 2],
                                             .per_row = i % 2};
            qsim_model *q = net_quantize(m, NULL, &o);
            check_dynamic(q, m, x);
            qsim_model_free(q);
        }
        qsim_model_free(m);
    }
}

/* Operators of com.microsoft that no form on floats replaces become those of ONNX first. */
static void test_contributed(void) {
    const uint8_t codes[12] = {128, 130, 120, 0, 255, 128, 128, 1, 90, 100, 110, 127};
    const float scale[3] = {0.5f, 0.25f, 1}, bias[3] = {1, 2, 3}, x[8] = {1, 0, 0, 0, 0, 1, 0, -1};
    const uint8_t zero[3] = {128, 120, 128};
    const float wanted[6] = {1, 4.5f, -5, -64 + 14 + 1, 33.75f + 2.5f + 2, 1 + 3};
    const int64_t dims[2] = {2, 4};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "dynamic", &b, NULL), QSIM_OK);
    CHECK_INT(qsim_builder_import(b, "com.microsoft", 1), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,4]");
    CHECK_INT(qsim_builder_constant_as(b, "w_quantized", "uint8[4,3]", codes), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "s", "float[3]", scale), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "z", "uint8[3]", zero), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "b", "float[3]", bias), QSIM_OK);
    qsim_builder_node(b, "com.microsoft", "DynamicQuantizeMatMul", "fc", "x,w_quantized,s,z,b",
                      "y");
    qsim_builder_output_as(b, "y", "float[2,3]");
    qsim_model *m = net_finish(b);
    qsim_tensor given = {QSIM_FLOAT, 2, dims, (void *)(uintptr_t)x, sizeof(x)};
    for (int32_t format = 0; format <= 2; format += 2) {
        qsim_model *made = net_convert(m, format);
        float y[6];
        CHECK_INT(count_integer(made), 0);
        CHECK_INT(net_count(made, "DequantizeLinear"), format == 0);
        CHECK_INT(net_run(made, &given, y, 6), 6);
        for (int i = 0; i < 6; i++)
            CHECK_NEAR((double)y[i], (double)wanted[i], 1e-5);
        qsim_model_free(made);
    }
    qsim_model_free(m);
}

/* ---- refusals ---- */

static void refused(qsim_model *m, int32_t format, const char *node, const char *why) {
    qsim_model *made = m;
    qsim_error e = {0};
    CHECK_INT(qsim_model_convert_to(m, format, &made, &e), QSIM_E_UNSUPPORTED);
    CHECK(made == NULL);
    if (!strstr(e.message, node) || !strstr(e.message, why))
        fprintf(stderr, "%s\n", e.message);
    CHECK(strstr(e.message, node) && strstr(e.message, why));
    qsim_model_free(m);
}

static void test_refusals(void) {
    const int8_t weights[16] = {1, 2, 3};
    for (int32_t format = 0; format <= 2; format += 2) {
        qsim_builder *b = begin();
        CHECK_INT(qsim_builder_constant_as(b, "w", "int8[4,4]", weights), QSIM_OK);
        qsim_builder_node(b, "", "MatMulInteger", "product", "q,w,z", "i");
        qsim_builder_output_as(b, "i", "int32[2,3,4,4]");
        refused(net_finish(b), format, "node 'product', MatMulInteger", "no form on floats");
        b = begin(); /* integers and a scale that the caller gives */
        CHECK_INT(qsim_builder_constant_as(b, "w", "int8[4,4]", weights), QSIM_OK);
        CHECK_INT(qsim_builder_constant_as(b, "ws", "float[]", (float[]){0.5f}), QSIM_OK);
        qsim_builder_input_as(b, "given", "uint8[2,4]");
        qsim_builder_input_as(b, "xs", "float[]");
        qsim_builder_node(b, "", "MatMulInteger", "product", "given,w,z", "i");
        qsim_builder_node(b, "", "Cast", "", "i", "f");
        qsim_builder_attr_int(b, "to", QSIM_FLOAT);
        qsim_builder_node(b, "", "Mul", "", "xs,ws", "scale");
        qsim_builder_node(b, "", "Mul", "", "f,scale", "y");
        qsim_builder_output_as(b, "y", "float[2,4]");
        refused(net_finish(b), format, "node 'product', MatMulInteger", "quantized while it runs");
        b = begin();
        qsim_builder_node(b, "com.microsoft", "QLinearGlobalAveragePool", "last", "q,s,z,t,u", "r");
        qsim_builder_attr_int(b, "channels_last", 1);
        refused(end(b, "float[2,1,1,4]"), format, "'last'", "channels_last is 1");
        b = begin();
        qsim_builder_node(b, "com.microsoft", "QLinearSoftmax", "soft", "q,s,z,t,u", "r");
        qsim_builder_attr_int(b, "axis", 2);
        qsim_builder_attr_int(b, "opset", 12);
        refused(end(b, "float[2,3,4,4]"), format, "'soft'", "its axis has to be the last");
    }
    qsim_builder *b = begin(); /* integers that are read by another scale than theirs */
    qsim_builder_node(b, "", "DequantizeLinear", "other", "q,t,u", "y");
    qsim_builder_output_as(b, "y", "float[2,3,4,4]");
    refused(net_finish(b), QSIM_FORMAT_FLOAT, "node 'other'", "compute the integers");
    refused(net_sums(), QSIM_FORMAT_QOPERATOR, "QOPERATOR", "no form to convert to");
    qsim_model *m = net_lenet(), *made = NULL;
    CHECK_INT(qsim_model_convert_to(m, -1, &made, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_convert_to(m, 4, &made, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_convert_to(NULL, 0, &made, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_convert_to(m, 0, NULL, NULL), QSIM_E_ARGUMENT);
    qsim_model_free(m);
}

int main(void) {
    test_forms();
    test_operators();
    test_sums();
    test_constants();
    test_integers();
    test_dynamic();
    test_contributed();
    test_refusals();
    return test_done();
}
