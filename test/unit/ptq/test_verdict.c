/* SPDX-License-Identifier: MIT */
/* Grades, layers and warnings of verdicts. Expected values are worked out by hand. */
#include <math.h>

#include "verdicts.h"

enum { ROWS = 40, CLASSES = 3 };

/* `y` = x `op` c over [N, ...]: c is one value for each place of the last axis. */
static qsim_model *make_named(const char *y, const char *op, int rank, const int64_t *dims,
                              const float *c) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N", NULL, NULL, NULL};
    const int64_t n = dims[rank - 1];
    qsim_tensor t = {QSIM_FLOAT, 1, &n, (void *)(uintptr_t)c, (size_t)n * sizeof(*c)};
    CHECK_INT(qsim_builder_create(NULL, 13, "one", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, rank, dims, symbol);
    qsim_builder_output(b, y, QSIM_FLOAT, rank, dims, symbol);
    CHECK_INT(qsim_builder_constant(b, "c", &t), QSIM_OK);
    qsim_builder_node(b, "", op, "node", "x,c", y);
    return net_finish(b);
}

static qsim_model *make(const char *op, int rank, const int64_t *dims, const float *c) {
    return make_named("y", op, rank, dims, c);
}

static qsim_verdict_info output(const qsim_verdict *v) {
    qsim_verdict_info info = {.struct_size = sizeof(info)};
    CHECK_INT(qsim_verdict_output_count(v), 1);
    CHECK_INT(qsim_verdict_output(v, 0, &info), QSIM_OK);
    return info;
}

/* A factor f gives noise (f - 1)^2 of the signal: 1.05 26.0 dB, 1.2 14.0 dB, 2 0 dB. */
static void test_sqnr(void) {
    const struct {
        float factor;
        double db;
        int32_t grade;
    } cases[] = {{1.05f, 26.0206, QSIM_GRADE_GOOD},
                 {1.2f, 13.9794, QSIM_GRADE_DOUBTFUL},
                 {2, 0, QSIM_GRADE_BAD}};
    const int64_t free_dims[3] = {-1, 2, 3}, dims[3] = {10, 2, 3};
    float x[60], one[3] = {1, 1, 1};
    uint64_t seed = 1;
    for (int i = 0; i < 60; i++)
        x[i] = (float)test_random(&seed) / 4294967296.0f;
    const qsim_tensor in = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    qsim_model *a = make("Mul", 3, free_dims, one);
    for (int k = 0; k < 3; k++) {
        const float f = cases[k].factor, all[3] = {f, f, f};
        qsim_model *b = make("Mul", 3, free_dims, all);
        qsim_verdict *v = judge(a, b, NULL, &in);
        const qsim_verdict_info o = output(v);
        CHECK(strcmp(o.name, "y") == 0);
        CHECK_INT(o.measure, QSIM_MEASURE_SQNR);
        CHECK_NEAR(o.sqnr, cases[k].db, 1e-4);
        CHECK_NEAR(o.cosine, 1, 1e-6);
        CHECK(isnan(o.agreement));
        CHECK_INT(o.grade, cases[k].grade);
        CHECK_INT(qsim_verdict_grade(v), cases[k].grade);
        CHECK_INT(qsim_verdict_samples(v), 10);
        CHECK(!qsim_verdict_warning(v, 0, NULL));
        qsim_verdict_free(v);
        qsim_model_free(b);
    }
    qsim_model_free(a);
}

/* Rows [1, 0.95, 0] change their class when 0.1 is added to the second score, rows [1, 0, 0] do
 * not. */
static qsim_verdict *judge_rows(int rows, int flipped, const qsim_verdict_options *options) {
    static float x[ROWS * CLASSES];
    const int64_t free_dims[2] = {-1, CLASSES}, dims[2] = {rows, CLASSES};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, (size_t)rows * CLASSES * sizeof(*x)};
    for (int i = 0; i < rows; i++) {
        x[i * CLASSES] = i == rows - 1 ? 0.5f : 1; /* the last one is of class 2 */
        x[i * CLASSES + 1] = i < flipped ? 0.95f : 0;
        x[i * CLASSES + 2] = i == rows - 1 ? 1 : 0;
    }
    qsim_model *a = make("Add", 2, free_dims, (float[]){0, 0, 0});
    qsim_model *b = make("Add", 2, free_dims, (float[]){0, 0.1f, 0});
    qsim_verdict *v = judge(a, b, options, &in);
    qsim_model_free(a);
    qsim_model_free(b);
    return v;
}

static void test_agreement(void) {
    const struct {
        int rows, flipped;
        int32_t grade;
    } cases[] = {{40, 1, QSIM_GRADE_GOOD},     /* 97.5 % */
                 {40, 3, QSIM_GRADE_DOUBTFUL}, /* 92.5 % */
                 {40, 6, QSIM_GRADE_BAD},      /* 85 % */
                 {10, 0, QSIM_GRADE_GOOD},     /* SQNR 10 log10(10.25 / 0.1) = 20.1 dB */
                 {10, 1, QSIM_GRADE_DOUBTFUL}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
        qsim_verdict *v = judge_rows(cases[k].rows, cases[k].flipped, NULL);
        const qsim_verdict_info o = output(v);
        CHECK_INT(o.measure, QSIM_MEASURE_AGREEMENT);
        CHECK_INT(o.rows, cases[k].rows);
        CHECK_NEAR(o.agreement, 100.0 * (cases[k].rows - cases[k].flipped) / cases[k].rows, 1e-9);
        CHECK_INT(o.grade, cases[k].grade);
        CHECK_INT(qsim_verdict_grade(v), cases[k].grade);
        qsim_verdict_free(v);
    }
}

/* Outputs without elements, as some models give for some inputs, are no classes. */
static void test_empty(void) {
    const int64_t dims[2] = {2, 0};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, NULL, 0};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "empty", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[N,0]");
    qsim_builder_node(b, "", "Neg", "neg", "x", "y");
    qsim_builder_output_as(b, "y", "float[N,0]");
    qsim_model *a = net_finish(b);
    qsim_verdict *v = judge(a, a, NULL, &in);
    CHECK_INT(qsim_verdict_samples(v), 2);
    const qsim_verdict_info o = output(v);
    CHECK_INT(o.grade, QSIM_GRADE_NONE);
    CHECK(isnan(o.agreement));
    qsim_verdict_free(v);
    qsim_model_free(a);
}

/* 20 samples of 2 positions: classes where the name says so, else numbers. */
static void test_positions(void) {
    const int64_t free_dims[3] = {-1, 2, CLASSES}, dims[3] = {ROWS / 2, 2, CLASSES};
    float x[ROWS * CLASSES] = {0};
    const qsim_tensor in = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    for (int i = 0; i < ROWS; i++) {
        x[i * CLASSES + i % 2] = 1;
        x[i * CLASSES + 2] = i < 3 ? 0.95f : 0;
    }
    for (int named = 0; named < 2; named++) {
        const char *name = named ? "logits" : "states";
        qsim_model *a = make_named(name, "Add", 3, free_dims, (float[]){0, 0, 0});
        qsim_model *b = make_named(name, "Add", 3, free_dims, (float[]){0, 0, 0.1f});
        qsim_verdict *v = judge(a, b, NULL, &in);
        const qsim_verdict_info o = output(v);
        CHECK_INT(o.measure, named ? QSIM_MEASURE_AGREEMENT : QSIM_MEASURE_SQNR);
        CHECK_INT(o.rows, named ? ROWS : ROWS * CLASSES);
        if (named)
            CHECK_NEAR(o.agreement, 100.0 * (ROWS - 3) / ROWS, 1e-9);
        else
            CHECK(isnan(o.agreement));
        qsim_verdict_free(v);
        qsim_model_free(a);
        qsim_model_free(b);
    }
}

/* Options that lower a good grade. */
static void test_options(void) {
    const qsim_verdict_options seen = {.struct_size = sizeof(seen), .seen = 1};
    const qsim_verdict_options noise = {.struct_size = sizeof(noise), .made_up = 1};
    qsim_verdict *v = judge_rows(40, 0, &seen);
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_DOUBTFUL);
    CHECK(warns(v, "seen") && !warns(v, "few-judged"));
    qsim_verdict_free(v);
    v = judge_rows(7, 0, &noise);
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_DOUBTFUL);
    CHECK(warns(v, "made-up") && warns(v, "few-judged"));
    qsim_verdict_free(v);
    const qsim_verdict_options points = {.struct_size = sizeof(points), .no_classes = 1};
    v = judge_rows(40, 6, &points);
    const qsim_verdict_info o = output(v);
    CHECK_INT(o.measure, QSIM_MEASURE_SQNR);
    CHECK(isnan(o.agreement) && o.rows == 40 * CLASSES);
    qsim_verdict_free(v);
    CHECK(strcmp(qsim_grade_name(QSIM_GRADE_DOUBTFUL), "doubtful") == 0);
    CHECK(qsim_grade_name(-1) == NULL && qsim_grade_name(4) == NULL);
}

/* ---- data ---- */

static qsim_verdict *judge_data(float *x, int rows) {
    const int64_t free_dims[2] = {-1, CLASSES}, dims[2] = {rows, CLASSES};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, (size_t)rows * CLASSES * sizeof(*x)};
    qsim_model *a = make("Add", 2, free_dims, (float[]){0, 0, 0});
    qsim_verdict *v = judge(a, a, NULL, &in);
    qsim_model_free(a);
    return v;
}

static void test_data(void) {
    float x[10 * CLASSES] = {0};
    qsim_verdict *v = judge_data(x, 10);
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_BAD);
    CHECK(warns(v, "constant-input") && !warns(v, "same-samples") && !warns(v, "one-class"));
    qsim_verdict_input_info in = {.struct_size = sizeof(in)};
    CHECK_INT(qsim_verdict_input(v, &in), QSIM_OK);
    CHECK_INT(in.fits, -1);
    qsim_verdict_free(v);
    for (int i = 0; i < 10; i++)
        x[i * CLASSES + 1] = 0.5f;
    v = judge_data(x, 10);
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_DOUBTFUL);
    CHECK(warns(v, "same-samples") && !warns(v, "constant-input"));
    qsim_verdict_free(v);
    x[1] = 0.75f;
    v = judge_data(x, 10);
    CHECK(warns(v, "one-class") && !warns(v, "same-samples"));
    qsim_verdict_free(v);
    x[2] = 0.875f;
    v = judge_data(x, 10);
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_GOOD);
    CHECK(!qsim_verdict_warning(v, 0, NULL));
    qsim_verdict_free(v);
    for (int i = 0; i < 10 * CLASSES; i++)
        x[i] = i % CLASSES == i / CLASSES % CLASSES ? 255 : 0; /* margins of 255 */
    v = judge_data(x, 10);
    CHECK(warns(v, "raw-pixels"));
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_DOUBTFUL);
    qsim_verdict_free(v);
}

/* ---- a network ---- */

static qsim_verdict *judge_lenet(const qsim_model *m, const qsim_calibration *c,
                                 const qsim_verdict_options *options) {
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    const qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *q = NULL;
    net_batch(x, 8, 500);
    CHECK_INT(qsim_quantize(m, c, NULL, &q, NULL), QSIM_OK);
    qsim_verdict *v = judge(m, q, options, &in);
    qsim_model_free(q);
    return v;
}

/* Tensors inside integer operators can be neither compared nor read as outputs. */
static void test_integer_operators(const qsim_model *m, const qsim_calibration *c) {
    const qsim_quantize_options o = {.struct_size = sizeof(o), .format = QSIM_FORMAT_QOPERATOR};
    static float x[144 * 8];
    const int64_t dims[4] = {8, 1, 12, 12};
    const qsim_tensor in = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_model *q = NULL;
    qsim_session *s = NULL;
    const char *gone[] = {NULL};
    net_batch(x, 8, 500);
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_OK);
    qsim_verdict_free(judge(m, q, NULL, &in));
    for (int32_t i = 0; i < qsim_model_node_count(m) && !gone[0]; i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
        if (strcmp(n.op_type, "Conv") == 0)
            gone[0] = n.outputs[0];
    }
    const qsim_session_options given = {
        .struct_size = sizeof(given), .outputs = gone, .output_count = 1};
    CHECK_INT(qsim_session_create(q, &given, &s, NULL), QSIM_E_NOT_FOUND);
    qsim_model_free(q);
}

static void test_layers(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    const qsim_verdict_options o = {.struct_size = sizeof(o), .calibration = c};
    qsim_verdict *v = judge_lenet(m, c, &o);
    double last = INFINITY;
    const int32_t n = qsim_verdict_layer_count(v);
    CHECK(n >= 4);
    for (int32_t i = 0; i < n; i++) {
        qsim_verdict_info l = {.struct_size = sizeof(l)};
        CHECK_INT(qsim_verdict_layer(v, i, &l), QSIM_OK);
        const double added = pow(10, -l.sqnr / 10) - pow(10, -l.before / 10);
        CHECK(added <= last * (1 + 1e-9) + 1e-12);
        last = added;
        /* Rules find layers by that name. */
        const qsim_rule rule = {sizeof(rule), l.name, QSIM_RULE_FLOAT, 0};
        const qsim_quantize_options q = {.struct_size = sizeof(q), .rules = &rule, .rule_count = 1};
        CHECK_INT(qsim_quantize_layers(m, c, &q, NULL, NULL, NULL), 4);
    }
    CHECK(!warns(v, "one-sample") && !warns(v, "few-samples"));
    qsim_verdict_free(v);
    const qsim_verdict_options none = {.struct_size = sizeof(none), .no_layers = 1};
    v = judge_lenet(m, c, &none);
    qsim_verdict_free(v);
    test_integer_operators(m, c);
    qsim_calibration_free(c);
    c = net_calibrate(m, 1);
    const qsim_verdict_options few = {.struct_size = sizeof(few), .calibration = c};
    v = judge_lenet(m, c, &few);
    CHECK(warns(v, "few-samples"));
    qsim_verdict_free(v);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- counterparts ---- */

typedef struct found {
    int r1, c1, same, most;
} found;

static int32_t look(void *user, const char *tensor, const char *counterpart) {
    found *f = user;
    f->r1 += strcmp(tensor, "r1") == 0 && strcmp(counterpart, "r1_DequantizeLinear_Output") == 0;
    f->c1 += strcmp(tensor, "c1") == 0;
    f->same += strcmp(tensor, counterpart) == 0;
    return --f->most == 0;
}

/*
 * conv1 and relu1 become one operator: r1 is dequantized, c1 is inside. Each tensor of a
 * model is compared with itself.
 */
static void test_pairs(void) {
    qsim_model *m = net_lenet(), *q = NULL;
    qsim_calibration *c = net_calibrate(m, 4);
    qsim_error e;
    found f = {.most = 100};
    CHECK_INT(qsim_quantize(m, c, NULL, &q, NULL), QSIM_OK);
    CHECK(qsim_model_pairs(m, q, look, &f, &e) >= 4);
    CHECK_INT(f.r1, 1);
    CHECK_INT(f.c1, 0);
    f = (found){.most = 100};
    CHECK_INT(qsim_model_pairs(m, m, look, &f, &e), qsim_model_node_count(m));
    CHECK_INT(f.same, qsim_model_node_count(m));
    f = (found){.most = 2};
    CHECK_INT(qsim_model_pairs(m, m, look, &f, &e), QSIM_E_CANCELLED);
    CHECK_INT(f.same, 2);
    CHECK_INT(qsim_model_pairs(m, m, NULL, NULL, NULL), qsim_model_node_count(m));
    CHECK_INT(qsim_model_pairs(m, NULL, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    qsim_model_free(q);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- types of floats ---- */

/* y = x + c in float16; c is 0 or (0, 1, 0). */
static qsim_model *make_half(int moved) {
    const uint16_t c[CLASSES] = {0, moved ? 0x3c00 : 0, 0};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "half", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float16[N,3]");
    qsim_builder_output_as(b, "y", "float16[N,3]");
    CHECK_INT(qsim_builder_constant_as(b, "c", "float16[3]", c), QSIM_OK);
    qsim_builder_node(b, "", "Add", "node", "x,c", "y");
    return net_finish(b);
}

/*
 * Each model runs in its own type. Rows [2, 1.5, 0] change their class when 1 is added to the
 * second score: 10 of 40 here. Noise is 1 in each row, signal 4 + 2.25 or 4.
 */
static void test_half(void) {
    const int64_t free_dims[2] = {-1, CLASSES}, dims[2] = {ROWS, CLASSES};
    const double db = 10 * log10((10 * 6.25 + 30 * 4) / 40);
    float x[ROWS * CLASSES] = {0};
    for (size_t i = 0; i < ROWS; i++) {
        x[i * CLASSES] = 2;
        x[i * CLASSES + 1] = i < 10 ? 1.5f : 0;
    }
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    for (int floats = 0; floats < 3; floats++) { /* the float model: none, the first, the second */
        const float one[CLASSES] = {0, floats == 2 ? 1 : 0, 0};
        qsim_model *a = floats == 1 ? make("Add", 2, free_dims, one) : make_half(0);
        qsim_model *b = floats == 2 ? make("Add", 2, free_dims, one) : make_half(1);
        qsim_verdict *v = judge(a, b, NULL, &in);
        const qsim_verdict_info o = output(v);
        CHECK_INT(o.measure, QSIM_MEASURE_AGREEMENT);
        CHECK_NEAR(o.agreement, 75, 1e-9);
        CHECK_INT(o.rows, ROWS);
        CHECK_NEAR(o.sqnr, db, 1e-9);
        qsim_verdict_free(v);
        qsim_model_free(a);
        qsim_model_free(b);
    }
}

/* ---- refused comparisons ---- */

static void test_refused(void) {
    const int64_t free_dims[2] = {-1, CLASSES};
    qsim_model *a = make("Add", 2, free_dims, (float[]){0, 0, 0}), *m = net_lenet();
    qsim_verdict *v = NULL;
    qsim_verdict_info info = {.struct_size = sizeof(info)};
    CHECK_INT(qsim_verdict_create(a, NULL, NULL, &v, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_verdict_create(a, a, NULL, &v, NULL), QSIM_OK);
    CHECK_INT(qsim_verdict_feed(v, NULL, 1, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_verdict_output(v, 1, &info), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_verdict_layer(v, 0, &info), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_verdict_output(v, 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_verdict_samples(NULL), 0);
    qsim_verdict_input_info input = {.struct_size = sizeof(input)};
    CHECK_INT(qsim_verdict_input(v, &input), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_verdict_input(v, NULL), QSIM_E_ARGUMENT);
    qsim_verdict_free(v);
    qsim_verdict_free(NULL);
    qsim_model_free(a);
    qsim_model_free(m);
}

int main(void) {
    test_sqnr();
    test_agreement();
    test_positions();
    test_empty();
    test_options();
    test_data();
    test_layers();
    test_pairs();
    test_half();
    test_refused();
    return test_done();
}
