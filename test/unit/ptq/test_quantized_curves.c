/* SPDX-License-Identifier: MIT */
/* Curves: functions of single elements in several nodes, which are rounded once, and their ranges.
 */
#include "ptq_nets.h"

enum { CHANNELS = 4, SIDE = 8, SAMPLES = 8, VALUES = SAMPLES * CHANNELS * SIDE * SIDE };
static const int64_t dims[4] = {SAMPLES, CHANNELS, SIDE, SIDE};

/* x * clip(x + 3, 0, 6) / 6, scaled and shifted: what exporters write for HardSwish. */
static const net_step hard_swish[] = {{"Add", "c,three", "a"}, {"Clip", "a,zero,six", "k"},
                                      {"Mul", "c,k", "m"},     {"Div", "m,six", "h"},
                                      {"Mul", "half,h", "g"},  {"Add", "g,half", "r"},
                                      {NULL, NULL, NULL}};

static qsim_tensor samples(void) {
    static float x[VALUES];
    uint64_t seed = 5;
    for (int i = 0; i < VALUES; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    return (qsim_tensor){QSIM_FLOAT, 4, dims, x, sizeof(x)};
}

/* Calibrates for all quantizations, or for that of the options. */
static qsim_calibration *calibrate(const qsim_model *m, const qsim_quantize_options *o) {
    const qsim_calibration_options own = {.struct_size = sizeof(own), .quantize = o};
    const qsim_tensor x = samples();
    qsim_calibration *c = NULL;
    CHECK_INT(qsim_calibration_create(m, o ? &own : NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &x, 1, NULL), QSIM_OK);
    return c;
}

static qsim_model *quantize(const qsim_model *m, const qsim_quantize_options *o) {
    qsim_calibration *c = calibrate(m, o);
    qsim_model *q = net_quantize(m, c, o);
    qsim_calibration_free(c);
    return q;
}

static void check_input(const qsim_model *q, const char *node, int index, const char *expected) {
    int32_t found = 0;
    for (int32_t i = 0; i < qsim_model_node_count(q); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(q, i, &n), QSIM_OK);
        if (strcmp(n.name, node) == 0) {
            CHECK_STR(n.inputs[index], expected);
            found++;
        }
    }
    CHECK_INT(found, 1);
}

/* Noise by signal of the quantized network. */
static double noise(const qsim_model *m, const qsim_model *q) {
    static float y[VALUES], z[VALUES];
    qsim_tensor x = samples();
    double sum = 0, all = 0;
    CHECK_INT(net_run(m, &x, y, VALUES), VALUES);
    CHECK_INT(net_run(q, &x, z, VALUES), VALUES);
    for (int i = 0; i < VALUES; i++) {
        sum += ((double)y[i] - (double)z[i]) * ((double)y[i] - (double)z[i]);
        all += (double)y[i] * (double)y[i];
    }
    return sum / all;
}

/* Nothing is rounded inside, constants stay floats, and a session runs one step. */
static void test_whole(void) {
    qsim_model *m = net_between(hard_swish, NULL);
    qsim_model *q = quantize(m, NULL);
    CHECK_INT(net_count(q, "QuantizeLinear"), 4); /* x c r y */
    check_input(q, "a", 0, "c_DequantizeLinear_Output");
    check_input(q, "a", 1, "three");
    check_input(q, "k", 0, "a");
    check_input(q, "m", 0, "c_DequantizeLinear_Output");
    check_input(q, "m", 1, "k");
    check_input(q, "g", 0, "half");
    check_input(q, "second", 0, "r_DequantizeLinear_Output");
    qsim_session *s = NULL;
    CHECK_INT(qsim_session_create(q, NULL, &s, NULL), QSIM_OK);
    for (int32_t i = 0; i < qsim_model_node_count(q); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(q, i, &n), QSIM_OK);
        CHECK(n.integer || strcmp(n.name, "x_QuantizeLinear") == 0 ||
              strcmp(n.name, "y_DequantizeLinear") == 0);
    }
    qsim_session_free(s);
    qsim_model_free(q);
    qsim_model_free(m);
}

/* With split_curves each node is rounded, which adds noise; its recipe asks for that, too. */
static void test_split(void) {
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &r, NULL), QSIM_OK);
    const qsim_quantize_options split = {
        .struct_size = sizeof(split), .split_curves = 1, .decided = r};
    qsim_quantize_options again = {.struct_size = sizeof(again), .recipe = r};
    qsim_model *m = net_between(hard_swish, NULL);
    qsim_model *whole = quantize(m, NULL), *parts = quantize(m, &split);
    qsim_model *same = quantize(m, &again);
    CHECK_INT(net_count(parts, "QuantizeLinear"), 8); /* x c k m h g r y: Clip bounds a */
    check_input(parts, "m", 1, "k_DequantizeLinear_Output");
    CHECK(noise(m, whole) < 0.9 * noise(m, parts));
    CHECK_INT(net_count(same, "QuantizeLinear"), 8);
    qsim_model_free(same);
    again.split_curves = 1;
    same = quantize(m, &again);
    CHECK(net_same_bytes(parts, same));
    qsim_model_free(same);
    qsim_model_free(parts);
    qsim_model_free(whole);
    qsim_model_free(m);
    qsim_recipe_free(r);
}

/* Rounded pairs of the network for these steps with these rules. */
static int pairs(const net_step *steps, const char *output, qsim_rule *rules, size_t count) {
    for (size_t i = 0; i < count; i++)
        rules[i].struct_size = sizeof(rules[i]);
    const qsim_quantize_options o = {.struct_size = sizeof(o), .rules = rules, .rule_count = count};
    qsim_model *m = net_between(steps, output), *q = quantize(m, &o);
    const int found = net_count(q, "QuantizeLinear");
    qsim_model_free(q);
    qsim_model_free(m);
    return found;
}

static void test_forms(void) {
    static const net_step gelu[] = {{"Div", "c,root", "d"}, {"Erf", "d", "e"},
                                    {"Add", "e,one", "a"},  {"Mul", "c,a", "m"},
                                    {"Mul", "m,half", "r"}, {NULL, NULL, NULL}};
    static const net_step silu[] = {{"Sigmoid", "c", "s"}, {"Mul", "c,s", "r"}, {NULL, NULL, NULL}};
    static const net_step exponent[] = {
        {"Exp", "c", "e"}, {"Mul", "e,half", "r"}, {NULL, NULL, NULL}};
    static const net_step residual[] = {{"Mul", "x,half", "g"},
                                        {"Sigmoid", "c", "s"},
                                        {"Mul", "s,half", "t"},
                                        {"Add", "t,g", "r"},
                                        {NULL, NULL, NULL}};
    static const net_step shared[] = {{"Sigmoid", "c", "a"}, {"Mul", "a,half", "m"},
                                      {"Add", "m,one", "n"}, {"GlobalAveragePool", "a", "u"},
                                      {"Add", "n,u", "r"},   {NULL, NULL, NULL}};
    static const net_step energy[] = {{"Mul", "c,c", "s"},
                                      {"Mul", "s,half", "t"},
                                      {"ReduceMean", "t", "u"},
                                      {"Add", "c,u", "r"},
                                      {NULL, NULL, NULL}};
    CHECK_INT(pairs(gelu, NULL, NULL, 0), 4); /* x c r y */
    CHECK_INT(pairs(silu, NULL, NULL, 0), 4);
    CHECK_INT(pairs(exponent, NULL, NULL, 0), 4);  /* Exp needs more than 8 bits: x c r y */
    CHECK_INT(pairs(residual, NULL, NULL, 0), 6);  /* x c t g r y: two tensors are added */
    CHECK_INT(pairs(shared, NULL, NULL, 0), 7);    /* others read a, too: x c a n u r y */
    CHECK_INT(pairs(energy, NULL, NULL, 0), 5);    /* a sum in float reads t: x c u r y */
    CHECK_INT(pairs(hard_swish, "h", NULL, 0), 5); /* an output is a result: x c h r y */
}

/* A curve is one unit: all of it is in float if a node is. Rules for single nodes split it. */
static void test_rules(void) {
    qsim_rule in_float[] = {{.pattern = "k", .action = QSIM_RULE_FLOAT}};
    qsim_rule one[] = {{.pattern = "h", .action = QSIM_RULE_INT8}};
    qsim_rule all[] = {{.pattern = "[akmhgr]", .action = QSIM_RULE_INT8}};
    qsim_rule mixed[] = {{.pattern = "*", .action = QSIM_RULE_FLOAT},
                         {.pattern = "first", .action = QSIM_RULE_INT8},
                         {.pattern = "h", .action = QSIM_RULE_INT8}};
    CHECK_INT(pairs(hard_swish, NULL, in_float, 1), 4); /* x c, and r y of the layer */
    CHECK_INT(pairs(hard_swish, NULL, one, 1), 7);      /* x c m h g r y: up to m it is one */
    CHECK_INT(pairs(hard_swish, NULL, all, 1), 4);
    CHECK_INT(pairs(hard_swish, NULL, mixed, 3), 4); /* x c m h */
}

/* More nodes than a session puts into one table. */
static void test_long(void) {
    enum { NODES = 40 };
    static net_step steps[NODES + 1];
    static char names[NODES][16], inputs[NODES][32];
    for (int i = 0; i < NODES; i++) {
        snprintf(names[i], sizeof(names[i]), i + 1 < NODES ? "t%d" : "r", i);
        snprintf(inputs[i], sizeof(inputs[i]), "%s,half", i ? names[i - 1] : "c");
        steps[i] = (net_step){i % 8 == 7 ? "Mul" : "Add", inputs[i], names[i]};
    }
    steps[0].inputs = "c"; /* an Add would become a part of the bias */
    steps[0].op = "Sigmoid";
    qsim_model *m = net_between(steps, NULL), *q = quantize(m, NULL);
    CHECK_INT(net_count(q, "QuantizeLinear"), 6); /* x c, two inside, r y */
    CHECK(noise(m, q) < 1e-3);
    qsim_model_free(q);
    qsim_model_free(m);
}

/* ---- ranges ---- */

/* The range of "c" by the recipe of a quantization, with a range for it or without. */
static qsim_recipe_entry range_of(const net_step *steps, const char *output, const char *given) {
    char text[256];
    qsim_recipe *r = NULL, *read = NULL;
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_create(NULL, &r, NULL), QSIM_OK);
    snprintf(text, sizeof(text), "qsim-recipe 1\n%s", given ? given : "");
    CHECK_INT(qsim_recipe_load_memory(NULL, text, strlen(text), NULL, &read, NULL), QSIM_OK);
    const qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = read, .decided = r};
    qsim_model *m = net_between(steps, output), *q = quantize(m, &o);
    const int32_t at = qsim_recipe_find(r, QSIM_RECIPE_TENSOR, "c");
    CHECK(at >= 0 && qsim_recipe_get(r, at, &e) == QSIM_OK);
    qsim_model_free(q);
    qsim_model_free(m);
    qsim_recipe_free(read);
    e.name = NULL; /* of the recipe */
    qsim_recipe_free(r);
    return e;
}

/* Ranges end where curves are flat; the observed one is -11.5 to 11.3. */
static void test_ranges(void) {
    static const net_step sigmoid[] = {{"Sigmoid", "c", "r"}, {NULL, NULL, NULL}};
    static const net_step tanhs[] = {
        {"Tanh", "c", "t"}, {"Sigmoid", "c", "s"}, {"Add", "t,s", "r"}, {NULL, NULL, NULL}};
    static const net_step read_twice[] = {
        {"Sigmoid", "c", "s"}, {"Add", "s,c", "t"}, {"Mul", "t,half", "r"}, {NULL, NULL, NULL}};
    static const net_step two[] = {{"Sigmoid", "c", "s"},
                                   {"GlobalAveragePool", "c", "u"},
                                   {"Add", "s,u", "r"},
                                   {NULL, NULL, NULL}};
    /* Below -ln(4 * 255) a sigmoid is less than a quarter of its step, 1 / 255; above it likewise.
     */
    const float end = logf(4 * 255 - 1), grid = 23.0f / 1023;
    qsim_recipe_entry e = range_of(sigmoid, NULL, NULL);
    CHECK(fabsf(e.low + end) < 2 * grid && fabsf(e.high - end) < 2 * grid);
    e = range_of(hard_swish, NULL, NULL);
    CHECK(e.low >= -3.1f && e.low <= -2.9f && e.high > 11); /* exactly flat below -3 */
    /* Sum of tanh and sigmoid: one curve. */
    e = range_of(tanhs, NULL, NULL);
    CHECK(e.low < -4 && e.low > -8 && e.high > 4 && e.high < 8);
    e = range_of(read_twice, NULL, NULL); /* c + sigmoid(c) is nowhere flat */
    CHECK(e.low < -11 && e.high > 11);
    e = range_of(two, NULL, NULL); /* others read it */
    CHECK(e.low < -11 && e.high > 11);
    e = range_of(sigmoid, "c", NULL); /* an output */
    CHECK(e.low < -11 && e.high > 11);
    e = range_of(sigmoid, NULL, "tensor \"c\" uint8 asymmetric range -10 11\n");
    CHECK(e.low == -10 && e.high == 11);
}

/* The finer range is worth it. */
static void test_gain(void) {
    static const net_step sigmoid[] = {{"Sigmoid", "c", "r"}, {NULL, NULL, NULL}};
    const char text[] = "qsim-recipe 1\ntensor \"c\" uint8 asymmetric range -11.5 11.3\n";
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_load_memory(NULL, text, sizeof(text) - 1, NULL, &r, NULL), QSIM_OK);
    const qsim_quantize_options given = {.struct_size = sizeof(given), .recipe = r};
    qsim_model *m = net_between(sigmoid, NULL);
    qsim_model *narrow = quantize(m, NULL), *wide = quantize(m, &given);
    CHECK(noise(m, narrow) < 0.8 * noise(m, wide));
    qsim_model_free(wide);
    qsim_model_free(narrow);
    qsim_model_free(m);
    qsim_recipe_free(r);
}

/* ---- what is compared ---- */

static int32_t note_pair(void *user, const char *tensor, const char *counterpart) {
    CHECK(counterpart != NULL);
    strcat(strcat(user, tensor), " ");
    return 0;
}

/* A cut range is no loss: pairs have the curve's result in place of what it reads. */
static void test_pairs(void) {
    char seen[256] = "";
    qsim_model *m = net_between(hard_swish, NULL), *q = quantize(m, NULL);
    CHECK_INT(qsim_model_pairs(m, q, note_pair, seen, NULL), 2);
    CHECK_STR(seen, "r y ");
    qsim_model_free(q);
    qsim_model_free(m);
}

/* A curve is one unit, called like its first node; `takes` is its last one. */
static int32_t note_unit(void *user, const qsim_unit *u) {
    strcat(strcat(user, u->name), u->takes ? "-" : " ");
    if (u->takes)
        strcat(strcat(user, u->takes), " ");
    return 0;
}

static void test_unit(void) {
    char seen[256] = "";
    const qsim_tensor x = samples();
    const qsim_search_options o = {.struct_size = sizeof(o), .inputs = &x, .input_count = 1};
    qsim_model *m = net_between(hard_swish, NULL);
    qsim_calibration *c = calibrate(m, NULL);
    CHECK_INT(qsim_sensitivity(m, c, NULL, &o, note_unit, seen, NULL, NULL), 3);
    CHECK(strstr(seen, "first ") && strstr(seen, "a-r ") && strstr(seen, "second "));
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    test_whole();
    test_split();
    test_forms();
    test_rules();
    test_long();
    test_ranges();
    test_gain();
    test_pairs();
    test_unit();
    return test_done();
}
