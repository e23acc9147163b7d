/* SPDX-License-Identifier: MIT */
/* Weights stored in float16, in mode WEIGHTS. */
#include "ptq_nets.h"

#include <qsim/recipe.h>

static const qsim_quantize_options half = {
    .struct_size = sizeof(half), .mode = QSIM_MODE_WEIGHTS, .weight_type = QSIM_FLOAT16};

/* The value of a float16, by the format's definition. */
static double value_of(uint16_t h) {
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -v : v;
}

/* No float16 is nearer to w than h. */
static void check_nearest(float w, uint16_t h) {
    const double error = fabs(value_of(h) - (double)w);
    CHECK((h & 0x7c00) != 0x7c00);
    CHECK(error <= fabs(value_of((uint16_t)(h + 1)) - (double)w));
    CHECK((h & 0x7fff) == 0 || error <= fabs(value_of((uint16_t)(h - 1)) - (double)w));
}

/* Every weight is behind a Cast, rounded to the nearest; biases stay as they are. */
static void test_file(void) {
    static const char *const weights[] = {"w1", "w2", "w3", "w4"};
    static float x[144 * 8], y[40], z[40];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *m = net_lenet(), *q = net_quantize(m, NULL, &half);
    CHECK_INT(net_count(q, "Cast"), 4);
    CHECK_INT(net_count(q, "DequantizeLinear"), 0);
    for (size_t i = 0; i < 4; i++) {
        qsim_value_info from, to;
        char name[32];
        snprintf(name, sizeof(name), "%s_float16", weights[i]);
        CHECK(net_value(m, weights[i], &from) && net_value(q, name, &to));
        CHECK(to.dtype == QSIM_FLOAT16 && 2 * to.bytes == from.bytes);
        for (size_t k = 0; k < from.bytes / 4; k++) {
            float w;
            uint16_t h;
            memcpy(&w, (const char *)from.data + 4 * k, 4);
            memcpy(&h, (const char *)to.data + 2 * k, 2);
            check_nearest(w, h);
        }
    }
    net_batch(x, 8, 3);
    CHECK_INT(net_run(m, &in, y, 40), 40);
    CHECK_INT(net_run(q, &in, z, 40), 40);
    for (int i = 0; i < 40; i++)
        CHECK(fabs((double)y[i] - (double)z[i]) <= 2e-3 * fmax(1, fabs((double)y[i])));
    qsim_model_free(m);
    qsim_model_free(q);
}

/* What the layers are said to become, and a recipe that says the same. */
static void test_layers(void) {
    qsim_model *m = net_lenet();
    const qsim_rule rule = {sizeof(rule), "fc1", QSIM_RULE_INT8, 0};
    qsim_quantize_options o = half;
    qsim_recipe *decided = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &decided, NULL), QSIM_OK);
    net_layers conv = net_layer(m, NULL, &o, 1);
    CHECK(conv.info.dtype == QSIM_FLOAT16 && conv.info.scheme == -1);
    CHECK_INT(conv.info.float_bytes, 4 * (6 * 4 * 9 + 6));
    CHECK_INT(conv.info.bytes, 2 * 6 * 4 * 9 + 4 * 6);
    o.rules = &rule;
    o.rule_count = 1;
    o.decided = decided;
    qsim_model *q = net_quantize(m, NULL, &o);
    CHECK(net_count(q, "Cast") == 3 && net_count(q, "DequantizeLinear") == 1);
    char text[1024] = "";
    size_t need = 0;
    CHECK_INT(qsim_recipe_text(decided, text, sizeof(text), &need, NULL), QSIM_OK);
    CHECK(strstr(text, "layer \"conv1\" weights float16\n") != NULL);
    qsim_recipe *read = NULL;
    CHECK_INT(qsim_recipe_load_memory(NULL, text, need, "t", &read, NULL), QSIM_OK);
    const qsim_quantize_options by = {
        .struct_size = sizeof(by), .mode = QSIM_MODE_WEIGHTS, .recipe = read};
    qsim_model *again = net_quantize(m, NULL, &by);
    CHECK(net_same_bytes(q, again));
    qsim_model_free(m);
    qsim_model_free(q);
    qsim_model_free(again);
    qsim_recipe_free(decided);
    qsim_recipe_free(read);
}

static void test_refused(void) {
    static const float w[4] = {1, 65519, -2, 3};
    for (int i = 0; i < 2; i++) { /* 65520 is halfway to what would be the next number */
        const float high[4] = {1, 65520, -2, 3};
        qsim_builder *b = NULL;
        CHECK_INT(qsim_builder_create(NULL, 13, "large", &b, NULL), QSIM_OK);
        qsim_builder_input_as(b, "x", "float[3,2]");
        qsim_builder_constant_as(b, "w", "float[2,2]", i ? high : w);
        qsim_builder_node(b, "", "MatMul", "fc", "x,w", "y");
        qsim_builder_output_as(b, "y", NULL);
        qsim_model *m = net_finish(b);
        if (i)
            net_refused(
                m, NULL, &half, QSIM_E_VALUE,
                "large: the weights 'w' hold a number that float16 has not (node 'fc', MatMul)");
        else
            qsim_model_free(net_quantize(m, NULL, &half));
        qsim_model_free(m);
    }
    qsim_model *m = net_lenet();
    qsim_recipe *r = NULL;
    static const char text[] = "qsim-recipe 1\nlayer \"conv1\" weights float16\n";
    CHECK_INT(qsim_recipe_load_memory(NULL, text, strlen(text), "t", &r, NULL), QSIM_OK);
    qsim_quantize_options o = half;
    o.mode = QSIM_MODE_DYNAMIC;
    net_refused(m, NULL, &o, QSIM_E_UNSUPPORTED, "weights of float16 go with the mode weights");
    o.weight_type = QSIM_INT8;
    o.recipe = r;
    net_refused(m, NULL, &o, QSIM_E_UNSUPPORTED,
                "the recipe's layer 'conv1': 'float16' is not supported");
    qsim_recipe_free(r);
    qsim_model_free(m);
}

int main(void) {
    test_file();
    test_layers();
    test_refused();
    return test_done();
}
