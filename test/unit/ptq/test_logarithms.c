/* SPDX-License-Identifier: MIT */
/* Layers whose results' logarithm is taken stay in float. */
#include "ptq_nets.h"

/* The codes of a quantized model's weights: 1 for those of "first", 2 for those of "second". */
static int quantized(const net_step *steps, qsim_quantize_options *o) {
    static float x[8 * 4 * 64];
    const int64_t dims[4] = {8, 4, 8, 8};
    const qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_value_info info;
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    o->struct_size = sizeof(*o);
    qsim_model *m = net_between(steps, NULL);
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
    static const net_step energies[] = {
        {"Mul", "c,c", "s"},      {"Sqrt", "s", "t"}, {"Neg", "t", "n"}, {"Abs", "n", "u"},
        {"Clip", "u,least", "k"}, {"Log", "k", "r"},  {NULL, NULL, NULL}};
    static const net_step bounded[] = {
        {"Sigmoid", "c", "s"}, {"Log", "s", "r"}, {NULL, NULL, NULL}};
    static const net_step rectified[] = {
        {"Relu", "c", "s"}, {"Add", "s,one", "t"}, {"Log", "t", "r"}, {NULL, NULL, NULL}};
    static const net_step exponents[] = {
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
