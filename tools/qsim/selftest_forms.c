/* SPDX-License-Identifier: MIT */
#include "selftest.h"

#include <qsim/ptq.h>

/* Quantized forms of a network. */
static const struct form {
    const char *name;
    qsim_quantize_options options;
} forms[] = {
    {"uint8", {.mode = QSIM_MODE_STATIC}},
    {"int8", {.mode = QSIM_MODE_STATIC, .activation_type = QSIM_INT8}},
    {"dynamic", {.mode = QSIM_MODE_DYNAMIC}},
    {"per row", {.mode = QSIM_MODE_DYNAMIC, .per_row = 1}},
    {"4 bits",
     {.mode = QSIM_MODE_DYNAMIC, .weight_type = QSIM_INT4, .weight_block = 32, .no_gptq = 1}},
    {"4 bits, floats",
     {.mode = QSIM_MODE_WEIGHTS, .weight_type = QSIM_INT4, .format = QSIM_FORMAT_QOPERATOR}},
};

#define FORMS (sizeof(forms) / sizeof(*forms))

static int quantize(const tool *t, const char *name, const selftest_network *n,
                    const qsim_quantize_options *form, qsim_model **out) {
    static const qsim_rule all[] = {{sizeof(qsim_rule), "*", QSIM_RULE_INT4, 0}};
    qsim_quantize_options options = *form;
    qsim_calibration_options observed = {.struct_size = sizeof(observed), .quantize = &options};
    qsim_calibration *c = NULL;
    qsim_error e;
    int code = QSIM_OK;
    options.struct_size = sizeof(options);
    if (options.weight_type == QSIM_INT4) {
        options.rules = all;
        options.rule_count = 1;
    }
    if (options.mode == QSIM_MODE_STATIC) {
        code = qsim_calibration_create(n->model, &observed, &c, &e);
        if (code == QSIM_OK)
            code = qsim_calibration_feed(c, &n->input, 1, &e);
    }
    if (code == QSIM_OK)
        code = qsim_quantize(n->model, c, &options, out, &e);
    qsim_calibration_free(c);
    return code ? tool_error(t, name, &e) : EXIT_OK;
}

static int test_form(selftest *s, uint64_t seed, const selftest_network *n, const struct form *f) {
    qsim_model *quantized = NULL;
    char name[64];
    snprintf(name, sizeof(name), "network %llu, %s", (unsigned long long)seed, f->name);
    int code = quantize(s->t, name, n, &f->options, &quantized);
    if (code == EXIT_OK)
        code = selftest_model(s, name, quantized, &n->input, 1);
    qsim_model_free(quantized);
    return code;
}

int selftest_network_forms(selftest *s, uint64_t seed) {
    selftest_network n;
    char name[64];
    tool plain = *s->t;
    plain.ctx = s->plain;
    snprintf(name, sizeof(name), "network %llu", (unsigned long long)seed);
    int code = selftest_draw(&plain, seed, &n);
    if (code == EXIT_OK)
        code = selftest_model(s, name, n.model, &n.input, 1);
    for (size_t i = 0; i < FORMS && code == EXIT_OK; i++)
        code = test_form(s, seed, &n, &forms[i]);
    selftest_network_free(&n);
    return code;
}
