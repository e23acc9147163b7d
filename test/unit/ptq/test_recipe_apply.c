/* SPDX-License-Identifier: MIT */
/* Recipes in quantization: decisions that are applied again give the same bytes. */
#include "ptq_nets.h"

static qsim_recipe *empty(void) {
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &r, NULL), QSIM_OK);
    return r;
}

static qsim_recipe *load(const char *text) {
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_load_memory(NULL, text, strlen(text), NULL, &r, NULL), QSIM_OK);
    return r;
}

/* Copies a recipe by writing and loading its text. */
static qsim_recipe *copy(const qsim_recipe *r) {
    static char text[16384];
    size_t n = 0;
    qsim_recipe *out = NULL;
    CHECK_INT(qsim_recipe_text(r, text, sizeof(text), &n, NULL), QSIM_OK);
    CHECK(n <= sizeof(text));
    CHECK_INT(qsim_recipe_load_memory(NULL, text, n, NULL, &out, NULL), QSIM_OK);
    return out;
}

/* A recipe whose first layer is corrected: without a calibration only where nothing is. */
static void check_needs_means(const qsim_model *m, qsim_quantize_options o, const char *message) {
    qsim_model *q = NULL;
    qsim_error e = {0};
    o.decided = NULL;
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, &e), QSIM_E_ARGUMENT);
    CHECK(!q && strstr(e.message, message));
    CHECK_STR(e.hint, "give --data or --calibration, or --no-bias-correction");
    o.no_bias_correction = 1;
    qsim_model_free(net_quantize(m, NULL, &o));
}

static void check_again(const qsim_model *m, const qsim_calibration *c, qsim_quantize_options o) {
    qsim_recipe *first = empty(), *second = empty();
    o.struct_size = sizeof(o);
    o.decided = first;
    qsim_model *q = net_quantize(m, c, &o), *again;
    qsim_recipe *read = copy(first);
    const qsim_quantize_options plain = {.struct_size = sizeof(plain),
                                         .recipe = read,
                                         .decided = second,
                                         .mode = o.mode,
                                         .format = o.format,
                                         .per_row = o.per_row};
    again = net_quantize(m, c, &plain);
    CHECK(net_same_bytes(q, again));
    qsim_model_free(again);
    if (o.no_bias_correction || !c) { /* the recipe has all ranges */
        again = net_quantize(m, NULL, &plain);
        CHECK(net_same_bytes(q, again));
        qsim_model_free(again);
    } else { /* but no means */
        check_needs_means(m, plain, "'conv1' has bias-correction on, which needs a calibration");
    }
    CHECK_INT(qsim_recipe_count(first), qsim_recipe_count(second));
    CHECK_STR(qsim_recipe_model(second), qsim_recipe_model(first));
    qsim_model_free(q);
    qsim_recipe_free(first);
    qsim_recipe_free(second);
    qsim_recipe_free(read);
}

static void test_same_bytes(const qsim_model *m, const qsim_calibration *c) {
    static const qsim_rule rules[] = {{sizeof(qsim_rule), "fc1", QSIM_RULE_FLOAT, 0},
                                      {sizeof(qsim_rule), "pool1", QSIM_RULE_FLOAT, 0},
                                      {sizeof(qsim_rule), "flat", QSIM_RULE_INT8, 0}};
    check_again(m, c, (qsim_quantize_options){0});
    check_again(m, c, (qsim_quantize_options){.no_bias_correction = 1});
    check_again(m, c, (qsim_quantize_options){.mode = QSIM_MODE_DYNAMIC});
    check_again(m, c, (qsim_quantize_options){.mode = QSIM_MODE_WEIGHTS});
    check_again(m, c, (qsim_quantize_options){.format = QSIM_FORMAT_QOPERATOR});
    check_again(m, c, (qsim_quantize_options){.rules = rules, .rule_count = 3});
    for (int32_t method = 0; method < 4; method++)
        check_again(m, c,
                    (qsim_quantize_options){.method = method,
                                            .percentile = method == 1 ? 99.7 : 0,
                                            .activation_type = method % 2 ? QSIM_INT8 : 0,
                                            .activation_symmetric = method > 1});
    for (int32_t scheme = 0; scheme < 3; scheme++)
        for (int32_t mode = 0; mode < 3; mode++)
            check_again(m, mode ? NULL : c,
                        (qsim_quantize_options){.weight_scheme = scheme,
                                                .mode = mode,
                                                .reduce_range = scheme == 1,
                                                .per_row = mode == QSIM_MODE_DYNAMIC,
                                                .weight_type = scheme == 2 ? QSIM_UINT8 : 0});
}

/* A part of a recipe decides only on the names in it. */
static void test_part(const qsim_model *m, const qsim_calibration *c) {
    qsim_recipe *r = load("qsim-recipe 1\nlayer \"conv2\" weights uint8 tensor asymmetric\n"
                          "layer \"fc1\" float\ntensor \"r1\" uint8 range 0 2\n"
                          "tensor \"x\" uint8 method percentile 99\n");
    qsim_recipe *decided = empty();
    const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r, .decided = decided};
    qsim_model *q = net_quantize(m, c, &o);
    qsim_value_info v;
    qsim_node_info n;
    float scale = 0, low, high;
    CHECK(net_value(q, "r1_scale", &v));
    memcpy(&scale, v.data, sizeof(scale));
    CHECK(scale == 2.0f / 255);
    CHECK(net_value(q, "x_scale", &v));
    memcpy(&scale, v.data, sizeof(scale));
    CHECK_INT(
        qsim_calibration_range(c, "x", QSIM_METHOD_PERCENTILE, 99, QSIM_UINT8, 0, &low, &high),
        QSIM_OK);
    CHECK(scale == high / 255);
    CHECK(net_value(q, "w2_scale", &v) && v.rank == 0 && v.bytes == 4);
    CHECK(net_value(q, "w1_scale", &v) && v.rank == 1 && v.bytes == 16);
    CHECK(net_find(q, "Gemm", "fc1", &n));
    CHECK_STR(n.inputs[1], "w3");
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_get(decided, qsim_recipe_find(decided, QSIM_RECIPE_LAYER, "conv1"), &e),
              QSIM_OK);
    CHECK(e.dtype == QSIM_INT8 && e.granularity == QSIM_GRANULARITY_CHANNEL && e.symmetric);
    qsim_model_free(q);
    qsim_recipe_free(decided);
    /* Its tensors without a calibration are not enough. */
    qsim_error error;
    q = NULL;
    CHECK_INT(qsim_quantize(m, NULL, &o, &q, &error), QSIM_E_NOT_FOUND);
    qsim_recipe_free(r);
}

static void test_refused(const qsim_model *m, const qsim_calibration *c) {
    static const struct {
        const char *line, *message;
        int code;
    } cases[] = {
        {"layer \"conv9\" float", "layer 'conv9' does not exist", QSIM_E_NOT_FOUND},
        {"tensor \"conv1\" float", "tensor 'conv1' does not exist", QSIM_E_NOT_FOUND},
        {"layer \"fc1\" weights int4 tensor", "'int4 tensor' is not supported", QSIM_E_UNSUPPORTED},
        {"layer \"fc1\" weights int4 reduced", "'int4 reduced' is not", QSIM_E_UNSUPPORTED},
        {"layer \"fc1\" weights int4 block 32", "'block' is not supported", QSIM_E_UNSUPPORTED},
        {"layer \"fc1\" weights int8 block 32", "'block' is not supported", QSIM_E_UNSUPPORTED},
        {"tensor \"x\" uint8\ntensor \"r1\" int8", "tensor 'x' in uint8 and 'r1' in int8",
         QSIM_E_UNSUPPORTED},
        {"model 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
         "the recipe belongs to another model", QSIM_E_MISMATCH},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[256];
        qsim_error e;
        qsim_model *q = NULL;
        snprintf(text, sizeof(text), "qsim-recipe 1\n%s\n", cases[i].line);
        qsim_recipe *r = load(text), *decided = empty();
        const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r, .decided = decided};
        CHECK_INT(qsim_quantize(m, c, &o, &q, &e), cases[i].code);
        CHECK(strstr(e.message, cases[i].message) != NULL);
        CHECK_INT(qsim_recipe_count(decided), 0); /* no decisions where no model was made */
        CHECK(qsim_quantize_layers(m, c, &o, NULL, NULL, NULL) == cases[i].code);
        qsim_recipe_free(r);
        qsim_recipe_free(decided);
    }
}

/* The calibration's text without means and extremes. */
static qsim_calibration *without_means(const qsim_calibration *c) {
    static char text[1 << 20];
    const char *path = "test_recipe_apply.qcal";
    qsim_calibration *out = NULL;
    size_t size = 0;
    CHECK_INT(qsim_calibration_save(c, path, 1, NULL), QSIM_OK);
    FILE *f = fopen(path, "rb");
    while (f && size + 4096 < sizeof(text) && fgets(text + size, 4096, f))
        if (strncmp(text + size, "means ", 6) != 0 && strncmp(text + size, "extremes ", 9) != 0)
            size += strlen(text + size);
    if (f)
        fclose(f);
    remove(path);
    CHECK_INT(qsim_calibration_load_memory(NULL, text, size, NULL, &out, NULL), QSIM_OK);
    return out;
}

/* A correction that the recipe asks for but cannot be made; with the option, none is made. */
static void test_correction_refused(const qsim_model *m, const qsim_calibration *c) {
    qsim_calibration *bare = without_means(c);
    const struct {
        const char *layer, *message;
        const qsim_calibration *c;
        int code;
    } cases[] = {
        {"pool1", "'bias-correction on' is not supported for MaxPool", c, QSIM_E_UNSUPPORTED},
        {"fc2", "'fc2' has bias-correction on: the calibration has no means of 'r3'", bare,
         QSIM_E_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[128];
        qsim_error e = {0};
        qsim_model *q = NULL;
        snprintf(text, sizeof(text), "qsim-recipe 1\nlayer \"%s\" weights int8 %s\n",
                 cases[i].layer, "bias-correction on");
        qsim_recipe *r = load(text);
        qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r};
        CHECK_INT(qsim_quantize(m, cases[i].c, &o, &q, &e), cases[i].code);
        CHECK(strstr(e.message, cases[i].message) != NULL);
        o.no_bias_correction = 1;
        qsim_model_free(net_quantize(m, cases[i].c, &o));
        qsim_recipe_free(r);
    }
    qsim_calibration_free(bare);
}

/* Corrections given by the recipe are added to the outputs, within a step of 8 bits. */
static void test_given(const qsim_model *m, const qsim_calibration *c) {
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    const float shift[5] = {0.5f, -0.25f, 0, 1, -1};
    float plain[40], given[40], low, high;
    net_batch(x, 8, 3);
    for (int k = 0; k < 2; k++) {
        qsim_recipe *r =
            load(k ? "qsim-recipe 1\nlayer \"fc2\" weights int8 bias-correction given "
                     "5 0.5 -0.25 0 0x1p+0 -1\n"
                   : "qsim-recipe 1\nlayer \"fc2\" weights int8 bias-correction off\n");
        qsim_recipe *decided = empty();
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r, .decided = decided};
        qsim_model *q = net_quantize(m, c, &o);
        net_run(q, &in, k ? given : plain, 40);
        CHECK_INT(qsim_recipe_get(decided, qsim_recipe_find(decided, QSIM_RECIPE_LAYER, "fc2"), &e),
                  QSIM_OK);
        CHECK_INT(e.shift_count, k ? 5 : 0);
        CHECK(!k || memcmp(e.shift, shift, sizeof(shift)) == 0);
        qsim_model_free(q);
        qsim_recipe_free(r);
        qsim_recipe_free(decided);
    }
    CHECK_INT(qsim_calibration_range(c, "y", QSIM_METHOD_MINMAX, 0, QSIM_UINT8, 0, &low, &high),
              QSIM_OK);
    for (int i = 0; i < 40; i++) { /* the range of y may cut shifted values */
        const float want = plain[i] + shift[i % 5], step = (high - low) / 255;
        const float kept = want < low ? low : want > high ? high : want;
        CHECK_NEAR(given[i], kept, 1.01f * step);
    }
    const char *const wrong[] = {"fc2\" weights int8 bias-correction given 4 1 2 3 4",
                                 "pool1\" weights int8 bias-correction given 1 1"};
    for (int i = 0; i < 2; i++) {
        char text[128];
        qsim_error error = {0};
        qsim_model *q = NULL;
        snprintf(text, sizeof(text), "qsim-recipe 1\nlayer \"%s\n", wrong[i]);
        qsim_recipe *r = load(text);
        const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r};
        CHECK_INT(qsim_quantize(m, c, &o, &q, &error), i ? QSIM_E_UNSUPPORTED : QSIM_E_MISMATCH);
        CHECK(strstr(error.message, i ? "'bias-correction given' is not supported for MaxPool"
                                      : "'fc2' has 4 numbers of bias correction, not 5") != NULL);
        qsim_recipe_free(r);
    }
}

/* Rules of a caller whose qsim_rule is larger than the library's. */
static void test_rules_of_a_newer_caller(const qsim_model *m, const qsim_calibration *c) {
    struct {
        qsim_rule rule;
        size_t newer;
    } rules[2] = {{{sizeof(rules[0]), "*", QSIM_RULE_FLOAT, 0}, 0},
                  {{sizeof(rules[0]), "fc2", QSIM_RULE_INT8, 0}, 0}};
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .rules = &rules[0].rule, .rule_count = 2};
    CHECK_INT(net_layer(m, c, &o, 2).info.scheme, -1);
    CHECK_INT(net_layer(m, c, &o, 3).info.scheme, 0);
    rules[1].newer = 1;
    CHECK_INT(qsim_quantize_layers(m, c, &o, NULL, NULL, NULL), QSIM_E_VERSION);
    rules[1].newer = 0;
    rules[1].rule.struct_size = sizeof(qsim_rule);
    CHECK_INT(qsim_quantize_layers(m, c, &o, NULL, NULL, NULL), QSIM_E_ARGUMENT);
}

int main(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    test_same_bytes(m, c);
    test_part(m, c);
    test_refused(m, c);
    test_correction_refused(m, c);
    test_given(m, c);
    test_rules_of_a_newer_caller(m, c);
    qsim_calibration_free(c);
    qsim_model_free(m);
    return test_done();
}
