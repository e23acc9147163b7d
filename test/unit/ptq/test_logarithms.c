/* SPDX-License-Identifier: MIT */
/* Layers whose results' logarithm is taken stay in float. */
#include "ptq_nets.h"

typedef struct step {
    const char *op, *inputs, *output;
} step;

/* x -> Conv first -> c -> steps -> r -> Conv second -> y. */
static qsim_model *net_of(const step *steps) {
    static const float numbers[2] = {1e-6f, 1};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "spectrum", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[8,4,8,8]");
    qsim_builder_output(b, "y", QSIM_FLOAT, -1, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        qsim_tensor t = {QSIM_FLOAT, 0, NULL, (void *)(uintptr_t)&numbers[i], 4};
        CHECK_INT(qsim_builder_constant(b, i ? "one" : "least", &t), QSIM_OK);
    }
    net_constant(b, "w", 4, (int64_t[]){4, 4, 1, 1}, 1, 1);
    net_constant(b, "v", 4, (int64_t[]){4, 4, 1, 1}, 1, 2);
    qsim_builder_node(b, "", "Conv", "first", "x,w", "c");
    for (; steps->op; steps++)
        qsim_builder_node(b, "", steps->op, steps->output, steps->inputs, steps->output);
    qsim_builder_node(b, "", "Conv", "second", "r,v", "y");
    return net_finish(b);
}

/* The codes of a quantized model's weights: 1 for those of "first", 2 for those of "second". */
static int quantized(const step *steps, qsim_quantize_options *o) {
    static float x[8 * 4 * 64];
    const int64_t dims[4] = {8, 4, 8, 8};
    const qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_value_info info;
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    o->struct_size = sizeof(*o);
    qsim_model *m = net_of(steps);
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
    qsim_model *q = net_quantize(m, c, o);
    const int found =
        (net_value(q, "w_quantized", &info) ? 1 : 0) + (net_value(q, "v_quantized", &info) ? 2 : 0);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
    return found;
}

int main(void) {
    static const step energies[] = {
        {"Mul", "c,c", "s"},      {"Sqrt", "s", "t"}, {"Neg", "t", "n"}, {"Abs", "n", "u"},
        {"Clip", "u,least", "k"}, {"Log", "k", "r"},  {NULL, NULL, NULL}};
    static const step bounded[] = {{"Sigmoid", "c", "s"}, {"Log", "s", "r"}, {NULL, NULL, NULL}};
    static const step rectified[] = {
        {"Relu", "c", "s"}, {"Add", "s,one", "t"}, {"Log", "t", "r"}, {NULL, NULL, NULL}};
    static const step exponents[] = {
        {"Exp", "c", "s"}, {"Add", "s,one", "t"}, {"Log", "t", "r"}, {NULL, NULL, NULL}};
    qsim_rule rule = {sizeof(rule), "first", QSIM_RULE_INT8, 0};
    CHECK_INT(quantized(energies, &(qsim_quantize_options){0}), 2);
    CHECK_INT(quantized(energies, &(qsim_quantize_options){.mode = QSIM_MODE_DYNAMIC}), 2);
    CHECK_INT(quantized(energies, &(qsim_quantize_options){.mode = QSIM_MODE_WEIGHTS}), 3);
    CHECK_INT(quantized(energies, &(qsim_quantize_options){.rules = &rule, .rule_count = 1}), 3);
    CHECK_INT(quantized(bounded, &(qsim_quantize_options){0}), 3);
    CHECK_INT(quantized(rectified, &(qsim_quantize_options){0}), 3);
    CHECK_INT(quantized(exponents, &(qsim_quantize_options){0}), 3);
    return test_done();
}
