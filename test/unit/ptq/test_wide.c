/* SPDX-License-Identifier: MIT */
/* 16-bit activations: of all tensors, of a unit, of tensors that a recipe names. */
#include <math.h>

#include "ptq_nets.h"

/* Type of a tensor's zero point; 0: it has none. */
static int32_t type_of(const qsim_model *q, const char *tensor) {
    char name[40];
    qsim_value_info v;
    snprintf(name, sizeof(name), "%s_zero_point", tensor);
    return net_value(q, name, &v) ? v.dtype : 0;
}

static double noise_of(const qsim_model *m, const qsim_model *q) {
    static float x[144 * 8], y[40], z[40];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    double noise = 0;
    net_batch(x, 8, 100); /* calibrated on: nothing is cut off */
    CHECK_INT(net_run(m, &t, y, 40), 40);
    CHECK_INT(net_run(q, &t, z, 40), 40);
    for (int i = 0; i < 40; i++)
        noise += pow((double)(y[i] - z[i]), 2);
    return noise;
}

/* All tensors: scale of the range over 65535 steps, int32 biases, weights as they are with 8. */
static void test_all(const qsim_model *m, const qsim_calibration *c) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .no_bias_correction = 1};
    qsim_model *plain = net_quantize(m, c, &o);
    o.activation_type = QSIM_UINT16;
    qsim_model *wide = net_quantize(m, c, &o);
    o.activation_type = QSIM_INT16;
    o.activation_symmetric = 1;
    qsim_model *even = net_quantize(m, c, &o);
    o.method = QSIM_METHOD_MSE; /* the range by MSE is that of minmax */
    qsim_model *mse = net_quantize(m, c, &o);
    qsim_value_info a, b;
    float low, high;
    CHECK_INT(qsim_model_opset(plain, ""), 13);
    CHECK_INT(qsim_model_opset(wide, ""), 21);
    CHECK_INT(net_count(wide, "QuantizeLinear"), net_count(plain, "QuantizeLinear"));
    CHECK(type_of(wide, "x") == QSIM_UINT16 && type_of(wide, "r3") == QSIM_UINT16);
    CHECK(type_of(even, "x") == QSIM_INT16 && type_of(even, "y") == QSIM_INT16);
    CHECK_INT(qsim_calibration_range(c, "r1", QSIM_METHOD_MINMAX, 0, QSIM_UINT16, 0, &low, &high),
              QSIM_OK);
    CHECK(net_value(wide, "r1_scale", &a));
    CHECK(*(const float *)a.data == (float)((double)high / 65535));
    CHECK(net_value(even, "r1_scale", &a) && net_value(mse, "r1_scale", &b));
    CHECK(*(const float *)a.data == (float)((double)high / 32767));
    CHECK(*(const float *)a.data == *(const float *)b.data);
    CHECK(net_value(plain, "w2_scale", &a) && net_value(wide, "w2_scale", &b));
    CHECK(a.bytes == b.bytes && memcmp(a.data, b.data, a.bytes) == 0);
    CHECK(net_value(plain, "w2_quantized", &a) && net_value(wide, "w2_quantized", &b));
    CHECK(b.dtype == QSIM_INT8 && memcmp(a.data, b.data, a.bytes) == 0);
    CHECK(net_value(wide, "b2_quantized", &b) && b.dtype == QSIM_INT32);
    CHECK(noise_of(m, wide) < noise_of(m, plain) / 2);
    CHECK(noise_of(m, even) < noise_of(m, plain) / 2);
    qsim_model_free(mse);
    qsim_model_free(even);
    qsim_model_free(wide);
    qsim_model_free(plain);
}

/* A unit: its inputs, what shares their scale, and its output; other layers keep 8 bits. */
static void test_unit(const qsim_model *m, const qsim_calibration *c) {
    static char text[4000];
    size_t need;
    const qsim_rule rules[2] = {{sizeof(*rules), "conv2", QSIM_RULE_INT16, 0},
                                {sizeof(*rules), "fc1", QSIM_RULE_INT8, 0}};
    qsim_recipe *decided = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &decided, NULL), QSIM_OK);
    qsim_quantize_options o = {
        .struct_size = sizeof(o), .rules = rules, .rule_count = 2, .decided = decided};
    qsim_model *q = net_quantize(m, c, &o);
    CHECK_INT(type_of(q, "x"), QSIM_UINT8);
    CHECK_INT(type_of(q, "r1"), QSIM_UINT16); /* the pool moves it to conv2 */
    CHECK_INT(type_of(q, "r2"), QSIM_UINT16);
    CHECK_INT(type_of(q, "r3"), QSIM_UINT8);
    CHECK_INT(type_of(q, "y"), QSIM_UINT8);
    /* The decided recipe contains it, and gives the same bytes without the rule. */
    CHECK_INT(qsim_recipe_text(decided, text, sizeof(text) - 1, &need, NULL), QSIM_OK);
    CHECK(strstr(text, "tensor \"r2\" uint16 asymmetric range") != NULL);
    CHECK(strstr(text, "tensor \"r3\" uint8 asymmetric range") != NULL);
    const qsim_quantize_options same = {.struct_size = sizeof(same), .recipe = decided};
    qsim_model *again = net_quantize(m, c, &same);
    CHECK(net_same_bytes(q, again));
    qsim_model_free(again);
    qsim_model_free(q);
    o.decided = NULL;
    o.activation_type = QSIM_INT8;
    q = net_quantize(m, c, &o);
    CHECK(type_of(q, "r2") == QSIM_INT16 && type_of(q, "r3") == QSIM_INT8);
    qsim_model_free(q);
    /* In the other modes activations have no type: as int8. */
    for (o.mode = QSIM_MODE_DYNAMIC; o.mode <= QSIM_MODE_WEIGHTS; o.mode++) {
        q = net_quantize(m, c, &o);
        CHECK_INT(qsim_model_opset(q, ""), 13);
        qsim_model_free(q);
    }
    qsim_recipe_free(decided);
}

/* One tensor by a handwritten recipe. */
static void test_tensor(const qsim_model *m, const qsim_calibration *c) {
    static const char text[] = "qsim-recipe 1\ntensor \"r3\" int16 symmetric\ntensor \"x\" int8\n";
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_load_memory(NULL, text, sizeof(text) - 1, "r", &r, NULL), QSIM_OK);
    const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r};
    qsim_model *q = net_quantize(m, c, &o);
    CHECK(type_of(q, "r3") == QSIM_INT16 && type_of(q, "x") == QSIM_INT8);
    CHECK_INT(type_of(q, "r1"), QSIM_INT8);
    qsim_model_free(q);
    qsim_recipe_free(r);
}

/* Added constants have the type of the other operand. */
static void test_constant(void) {
    qsim_builder *b = NULL;
    const char *symbol[2] = {"N", NULL};
    CHECK_INT(qsim_builder_create(NULL, 13, "sum", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, 144}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, 5}, symbol);
    net_constant(b, "w1", 2, (int64_t[]){144, 8}, 0.5f, 1);
    net_constant(b, "k", 2, (int64_t[]){1, 8}, 3, 2);
    net_constant(b, "w2", 2, (int64_t[]){8, 5}, 0.5f, 3);
    qsim_builder_node(b, "", "MatMul", "first", "x,w1", "a");
    qsim_builder_node(b, "", "Mul", "times", "a,k", "s");
    qsim_builder_node(b, "", "MatMul", "last", "s,w2", "y");
    qsim_model *m = net_finish(b);
    static float x[144 * 8];
    const int64_t dims[2] = {8, 144};
    const qsim_tensor t = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    qsim_calibration *c = NULL;
    net_batch(x, 8, 3);
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
    const qsim_rule rule = {sizeof(rule), "times", QSIM_RULE_INT16, 0};
    const qsim_quantize_options o = {.struct_size = sizeof(o), .rules = &rule, .rule_count = 1};
    qsim_model *q = net_quantize(m, c, &o);
    qsim_value_info k, codes, scale, zero;
    CHECK(type_of(q, "k") == QSIM_UINT16 && type_of(q, "s") == QSIM_UINT16);
    CHECK_INT(type_of(q, "y"), QSIM_UINT8);
    CHECK(net_value(m, "k", &k) && net_value(q, "k_quantized", &codes) && codes.bytes == 16);
    CHECK(net_value(q, "k_scale", &scale) && net_value(q, "k_zero_point", &zero));
    for (int i = 0; i < 8; i++) {
        const int code = ((const uint16_t *)codes.data)[i] - *(const uint16_t *)zero.data;
        CHECK_NEAR((float)code * *(const float *)scale.data, ((const float *)k.data)[i], 1e-4);
    }
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A calibration made with other rules: refused by name, not left in float silently. */
static void test_unseen(const qsim_model *m) {
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    const qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    const qsim_rule rules[3] = {{sizeof(*rules), "conv*", QSIM_RULE_FLOAT, 0},
                                {sizeof(*rules), "relu*", QSIM_RULE_FLOAT, 0},
                                {sizeof(*rules), "conv1", QSIM_RULE_INT8, 0}};
    qsim_quantize_options o = {.struct_size = sizeof(o), .rules = rules, .rule_count = 2};
    const qsim_calibration_options co = {.struct_size = sizeof(co), .quantize = &o};
    static const char text[] = "qsim-recipe 1\nlayer \"conv1\" weights int8\n";
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    qsim_recipe *r = NULL;
    qsim_error e = {0};
    net_batch(x, 8, 5);
    CHECK_INT(qsim_calibration_create(m, &co, &c, &e), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_OK);
    o.rule_count = 3;
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_NOT_FOUND);
    CHECK(strstr(e.message, "the layer 'conv1' is to be in integers, but its tensor 'r1' was not "
                            "calibrated") != NULL);
    CHECK_INT(qsim_recipe_load_memory(NULL, text, sizeof(text) - 1, "r", &r, NULL), QSIM_OK);
    o.rule_count = 0;
    o.recipe = r;
    CHECK_INT(qsim_quantize(m, c, &o, &q, &e), QSIM_E_NOT_FOUND);
    CHECK(strstr(e.message, "the layer 'conv1'") != NULL);
    /* A calibration made with these rules is accepted. */
    qsim_calibration_free(c);
    o.recipe = NULL;
    o.rule_count = 3;
    CHECK_INT(qsim_calibration_create(m, &co, &c, &e), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, &e), QSIM_OK);
    q = net_quantize(m, c, &o);
    CHECK_INT(type_of(q, "r1"), QSIM_UINT8);
    qsim_model_free(q);
    qsim_recipe_free(r);
    qsim_calibration_free(c);
}

int main(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    test_all(m, c);
    test_unit(m, c);
    test_tensor(m, c);
    test_constant();
    test_unseen(m);
    qsim_calibration_free(c);
    qsim_model_free(m);
    return test_done();
}
