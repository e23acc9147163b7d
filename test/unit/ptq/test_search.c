/* SPDX-License-Identifier: MIT */
/* Searches for weight schemes and percentiles. */
#include <math.h>

#include "ptq_nets.h"

enum { BATCHES = 2 };

static float data[BATCHES][144 * 8];
static const int64_t batch_dims[4] = {8, 1, 12, 12};
static qsim_tensor batches[BATCHES];

static void make_batches(void) {
    for (int i = 0; i < BATCHES; i++) {
        net_batch(data[i], 8, 50 + (uint64_t)i);
        batches[i] = (qsim_tensor){QSIM_FLOAT, 4, batch_dims, data[i], sizeof(data[i])};
    }
}

static qsim_recipe *make_recipe(void) {
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_create(NULL, &r, NULL), QSIM_OK);
    return r;
}

static int same_text(const qsim_recipe *a, const qsim_recipe *b) {
    static char x[8192], y[8192];
    size_t n = 0, m = 0;
    CHECK_INT(qsim_recipe_text(a, x, sizeof(x), &n, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_text(b, y, sizeof(y), &m, NULL), QSIM_OK);
    CHECK(n <= sizeof(x));
    return n == m && memcmp(x, y, n) == 0;
}

static qsim_recipe_entry entry(const qsim_recipe *r, int32_t kind, const char *name) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_get(r, qsim_recipe_find(r, kind, name), &e), QSIM_OK);
    return e;
}

/* Mean KL of a quantized model's outputs to those of the float model. */
static double loss_of(const qsim_model *m, const qsim_calibration *c, const qsim_recipe *r) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .recipe = r};
    qsim_model *q = NULL;
    double sum = 0;
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++) {
        float y[40], z[40];
        CHECK_INT(net_run(m, &batches[b], y, 40), 40);
        CHECK_INT(net_run(q, &batches[b], z, 40), 40);
        for (int i = 0; i < 40; i += 5)
            sum += net_kl(y + i, z + i) / (8 * BATCHES);
    }
    qsim_model_free(q);
    return sum;
}

/* Greedy's last step compares all schemes of the last layer; the test repeats that comparison. */
static void test_greedy(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    qsim_recipe *found = make_recipe(), *again = make_recipe();
    double score = 0;
    qsim_search_options o = {
        .struct_size = sizeof(o), .inputs = batches, .input_count = BATCHES, .methods = "greedy"};
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, NULL, &o, again, &score, NULL), QSIM_OK);
    CHECK(same_text(found, again));
    const double chosen = loss_of(m, c, found);
    CHECK_NEAR(-score, chosen, 1e-9);
    CHECK(chosen <= loss_of(m, c, NULL));
    for (int k = 0; k < 4; k++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e),
                               .name = "fc2",
                               .kind = QSIM_RECIPE_LAYER,
                               .dtype = QSIM_INT8,
                               .granularity =
                                   k % 3 ? QSIM_GRANULARITY_TENSOR : QSIM_GRANULARITY_CHANNEL,
                               .symmetric = k < 2};
        CHECK_INT(qsim_recipe_set(again, &e, NULL), QSIM_OK);
        CHECK(chosen <= loss_of(m, c, again) + 1e-9);
    }
    qsim_recipe_free(found);
    qsim_recipe_free(again);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Size times *user: corrected biases take bytes in dynamic mode. */
static int score_size(void *user, const qsim_model *m, double *out) {
    *out = (double)qsim_model_bytes(m) * *(const int *)user;
    return 0;
}

/* Biases of all layers stay as they are where that has the better score, and nowhere else. */
static void test_correction(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    const qsim_quantize_options base = {.struct_size = sizeof(base), .mode = QSIM_MODE_DYNAMIC};
    for (int sign = -1; sign <= 1; sign += 2) {
        int32_t off = 0;
        qsim_recipe *found = make_recipe();
        const qsim_search_options o = {.struct_size = sizeof(o),
                                       .methods = "correction",
                                       .score = score_size,
                                       .score_user = &sign};
        CHECK_INT(qsim_search(m, c, &base, &o, found, NULL, NULL), QSIM_OK);
        for (int32_t i = 0; i < qsim_recipe_count(found); i++) {
            qsim_recipe_entry e = {.struct_size = sizeof(e)};
            CHECK_INT(qsim_recipe_get(found, i, &e), QSIM_OK);
            CHECK_INT(e.kind, QSIM_RECIPE_LAYER);
            off += e.bias_correction == QSIM_BIAS_CORRECTION_OFF;
        }
        CHECK_INT(off, sign < 0 ? 4 : 0);
        qsim_recipe_free(found);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* A product of [2, 4, 8] with weights for 5 classes, called `output`. */
static qsim_model *positions_model(const char *output, float w[40]) {
    static const int64_t in[3] = {2, 4, 8}, out[3] = {2, 4, 5}, dims[2] = {8, 5};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, in, NULL);
    qsim_builder_output(b, output, QSIM_FLOAT, 3, out, NULL);
    qsim_builder_constant(b, "w", &(qsim_tensor){QSIM_FLOAT, 2, dims, w, 40 * sizeof(*w)});
    qsim_builder_node(b, "", "MatMul", "mm", "x,w", output);
    return net_finish(b);
}

/* Logits of positions are judged by KL of each position's classes, other names by noise. */
static void test_positions(void) {
    static const int64_t in[3] = {2, 4, 8};
    float w[40], x[64];
    for (int i = 0; i < 40; i++)
        w[i] = (float)((i * 37 % 41) - 20) / 7;
    for (int i = 0; i < 64; i++)
        x[i] = (float)((i * 29 % 53) - 26) / 11;
    qsim_tensor t = {QSIM_FLOAT, 3, in, x, sizeof(x)};
    for (int named = 0; named < 2; named++) {
        qsim_model *m = positions_model(named ? "logits" : "states", w), *q = NULL;
        qsim_calibration *c = NULL;
        qsim_recipe *found = make_recipe();
        double score = 0, want = 0, signal = 0, noise = 0;
        float y[40], z[40];
        CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
        const qsim_search_options o = {
            .struct_size = sizeof(o), .inputs = &t, .input_count = 1, .methods = "ranges"};
        CHECK_INT(qsim_search(m, c, NULL, &o, found, &score, NULL), QSIM_OK);
        const qsim_quantize_options by = {.struct_size = sizeof(by), .recipe = found};
        CHECK_INT(qsim_quantize(m, c, &by, &q, NULL), QSIM_OK);
        CHECK_INT(net_run(m, &t, y, 40), 40);
        CHECK_INT(net_run(q, &t, z, 40), 40);
        for (int i = 0; i < 40; i++) {
            const double a = (double)y[i], b = (double)z[i];
            signal += a * a;
            noise += (a - b) * (a - b);
            want += i % 5 == 0 ? net_kl(y + i, z + i) / 8 : 0;
        }
        CHECK(noise > 0);
        CHECK_NEAR(-score, named ? want : noise / signal, 1e-9);
        qsim_recipe_free(found);
        qsim_calibration_free(c);
        qsim_model_free(q);
        qsim_model_free(m);
    }
}

/* The sum of two products, each of an input of its own, as logits of 5 classes. */
static qsim_model *two_inputs(const float *w, const float *v) {
    static const int64_t in[2] = {8, 6}, out[2] = {8, 5}, dims[2] = {6, 5};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "a", QSIM_FLOAT, 2, in, NULL);
    qsim_builder_input(b, "b", QSIM_FLOAT, 2, in, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, out, NULL);
    for (int k = 0; k < 2; k++) {
        void *weights = (void *)(uintptr_t)(k ? v : w);
        const qsim_tensor t = {QSIM_FLOAT, 2, dims, weights, 30 * sizeof(*w)};
        qsim_builder_constant(b, k ? "v" : "w", &t);
    }
    qsim_builder_node(b, "", "MatMul", "first", "a,w", "p");
    qsim_builder_node(b, "", "MatMul", "second", "b,v", "q");
    qsim_builder_node(b, "", "Add", "sum", "p,q", "y");
    return net_finish(b);
}

/* Batches of two tensors: no search ends with a greater loss than it begins with. */
static void test_two_inputs(void) {
    static const int64_t in[2] = {8, 6};
    static const char *const methods[] = {"", "greedy", "anneal", "greedy,anneal"};
    float w[30], v[30], x[2][48];
    for (int i = 0; i < 30; i++) {
        w[i] = (float)(i * 37 % 41 - 20) / 7;
        v[i] = (float)(i * 23 % 31 - 15) / (i % 5 == 0 ? 9.0f : 90.0f);
    }
    for (int i = 0; i < 48; i++) {
        x[0][i] = (float)(i * 29 % 53 - 26) / 11;
        x[1][i] = (float)(i * 31 % 59 - 29) / 13;
    }
    const qsim_tensor t[2] = {{QSIM_FLOAT, 2, in, x[0], sizeof(x[0])},
                              {QSIM_FLOAT, 2, in, x[1], sizeof(x[1])}};
    qsim_model *m = two_inputs(w, v);
    qsim_calibration *c = NULL;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, t, 2, NULL), QSIM_OK);
    double plain = 0;
    for (size_t k = 0; k < sizeof(methods) / sizeof(*methods); k++) {
        qsim_recipe *found = make_recipe();
        const qsim_search_options o = {.struct_size = sizeof(o),
                                       .inputs = t,
                                       .input_count = 2,
                                       .inputs_per_batch = 2,
                                       .steps = 10,
                                       .methods = methods[k]};
        double score = NAN;
        CHECK_INT(qsim_search(m, c, NULL, &o, found, &score, NULL), QSIM_OK);
        plain = k == 0 ? score : plain;
        CHECK(score < 0 && score >= plain);
        qsim_recipe_free(found);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* What greedy chooses for a product of 32 rows with `w`. */
static qsim_recipe_entry choice_for(float *w, const int64_t *dims, float *x) {
    qsim_builder *b = NULL;
    qsim_tensor weights = {QSIM_FLOAT, 2, dims, w, (size_t)(dims[0] * dims[1]) * sizeof(*w)};
    const int64_t rows[2] = {32, dims[0]}, out[2] = {32, dims[1]};
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, rows, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, out, NULL);
    qsim_builder_constant(b, "w", &weights);
    qsim_builder_node(b, "", "MatMul", "mm", "x,w", "y");
    qsim_model *m = net_finish(b);
    qsim_tensor t = {QSIM_FLOAT, 2, rows, x, (size_t)(32 * rows[1]) * sizeof(*x)};
    qsim_calibration *c = NULL;
    qsim_recipe *found = make_recipe();
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &t, 1, NULL), QSIM_OK);
    qsim_search_options o = {
        .struct_size = sizeof(o), .inputs = &t, .input_count = 1, .methods = "greedy"};
    /* A corrected bias would hide most of a scheme's loss. */
    const qsim_quantize_options base = {.struct_size = sizeof(base), .no_bias_correction = 1};
    CHECK_INT(qsim_search(m, c, &base, &o, found, NULL, NULL), QSIM_OK);
    qsim_recipe_entry e = {.granularity = QSIM_GRANULARITY_CHANNEL, .symmetric = 1};
    if (qsim_recipe_count(found) > 0) /* none: the options' scheme */
        e = entry(found, QSIM_RECIPE_LAYER, "mm");
    e.name = NULL;
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
    return e;
}

/* Two layers whose best scheme is known: one-sided weights; channels a thousandfold apart. */
static void test_greedy_knows(void) {
    static float one_sided[16 * 8], uneven[8 * 4], x[32 * 16];
    uint64_t seed = 77;
    for (int i = 0; i < 128; i++)
        one_sided[i] = (float)(test_random(&seed) % 1000) / 1000;
    for (int i = 0; i < 32; i++)
        uneven[i] = ((float)(test_random(&seed) % 2000) / 1000 - 1) * (i % 4 ? 0.001f : 1);
    for (int i = 0; i < 32 * 16; i++)
        x[i] = (float)(test_random(&seed) % 1000) / 1000;
    qsim_recipe_entry e = choice_for(one_sided, (int64_t[]){16, 8}, x);
    CHECK(e.granularity == QSIM_GRANULARITY_CHANNEL || !e.symmetric);
    e = choice_for(uneven, (int64_t[]){8, 4}, x);
    CHECK_INT(e.granularity, QSIM_GRANULARITY_CHANNEL);
}

/* A score with a known optimum: some cut on r1, little elsewhere. Also counts and cancels. */
typedef struct judge {
    int calls, stop_at;
    float wanted;
} judge;

static int score(void *user, const qsim_model *m, double *out) {
    judge *j = user;
    qsim_value_info v;
    float s = 0;
    if (++j->calls == j->stop_at)
        return 1;
    CHECK(net_value(m, "r1_scale", &v));
    memcpy(&s, v.data, 4);
    *out = 90 - 100 * fabs((double)(s / j->wanted) - 1);
    return 0;
}

/* The score of a model quantized with a recipe, or with one percentile for all. */
static double score_with(judge *j, const qsim_model *m, const qsim_calibration *c,
                         const qsim_recipe *r, double percentile) {
    qsim_quantize_options o = {.struct_size = sizeof(o),
                               .recipe = r,
                               .method = QSIM_METHOD_PERCENTILE,
                               .percentile = percentile};
    qsim_model *q = NULL;
    double result = 0;
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_OK);
    CHECK_INT(score(j, q, &result), 0);
    qsim_model_free(q);
    return result;
}

static void test_anneal(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    qsim_recipe *found[2] = {make_recipe(), make_recipe()};
    double best[2] = {0};
    float low, high;
    CHECK_INT(
        qsim_calibration_range(c, "r1", QSIM_METHOD_PERCENTILE, 99.7, QSIM_UINT8, 0, &low, &high),
        QSIM_OK);
    judge j = {.wanted = high / 255};
    qsim_search_options o = {.struct_size = sizeof(o),
                             .methods = "anneal",
                             .score = score,
                             .score_user = &j,
                             .seed = 5,
                             .float_score = 90,
                             .max_drop = 60,
                             .steps = 60};
    for (int k = 0; k < 2; k++)
        CHECK_INT(qsim_search(m, c, NULL, &o, found[k], &best[k], NULL), QSIM_OK);
    CHECK(best[0] == best[1] && same_text(found[0], found[1]));
    CHECK_INT(j.calls, 2 * 63); /* plain, two percentiles for all, the steps */
    /* The result is better than the start, and has the score that is reported. */
    const double start = score_with(&j, m, c, NULL, 100);
    CHECK(best[0] > start);
    CHECK(best[0] == score_with(&j, m, c, found[0], 99));
    /* A limit that no recipe meets: only steps up. */
    o.float_score = 500;
    o.max_drop = 1;
    CHECK_INT(qsim_search(m, c, NULL, &o, found[1], &best[1], NULL), QSIM_OK);
    CHECK(best[1] > start);
    /* Stopped in the middle: cancelled, with the best recipe so far. */
    qsim_error e;
    j.calls = 0;
    j.stop_at = 5;
    o.float_score = 90;
    o.max_drop = 60;
    best[1] = NAN;
    CHECK_INT(qsim_search(m, c, NULL, &o, found[1], &best[1], &e), QSIM_E_CANCELLED);
    CHECK(best[1] >= start);
    j.stop_at = 0;
    CHECK(best[1] == score_with(&j, m, c, found[1], 99));
    qsim_recipe_free(found[0]);
    qsim_recipe_free(found[1]);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Mean error of each of the 5 outputs over 64 samples, in steps of the greatest range. */
static double worst_mean(const qsim_model *m, const qsim_model *q, qsim_tensor *x) {
    float y[320], z[320], low = 0, high = 0;
    double worst = 0;
    net_run(m, x, y, 320);
    net_run(q, x, z, 320);
    for (int c = 0; c < 5; c++) {
        double sum = 0;
        for (int i = c; i < 320; i += 5) {
            sum += (double)z[i] - (double)y[i];
            low = y[i] < low ? y[i] : low;
            high = y[i] > high ? y[i] : high;
        }
        worst = fmax(worst, fabs(sum) / 64);
    }
    return worst * 255 / (double)(high - low);
}

/*
 * y = x W + b where one scale for all of W rounds coarsely: with the correction of refine the means
 * of the answers are those of the float network, whether the calibration kept moments or not. Some
 * samples of the calibration are of another kind, so that its means alone are wrong.
 */
static void test_refine(void) {
    static float x[64 * 8], w[8 * 5], other[64 * 8];
    const int64_t dims[2] = {64, 8}, shape[2] = {8, 5};
    qsim_builder *b = NULL;
    uint64_t seed = 9;
    for (int i = 0; i < 512; i++) {
        x[i] = (float)test_random(&seed) / 2147483648.0f + 0.5f;
        other[i] = 4 * x[i];
    }
    for (int i = 0; i < 40; i++)
        w[i] = i == 17 ? 4 : (float)test_random(&seed) / 4294967296.0f - 0.5f;
    CHECK_INT(qsim_builder_create(NULL, 13, "product", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, dims, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){64, 5}, NULL);
    const qsim_tensor weights = {QSIM_FLOAT, 2, shape, w, sizeof(w)};
    CHECK_INT(qsim_builder_constant(b, "w", &weights), QSIM_OK);
    net_constant(b, "b", 1, (int64_t[]){5}, 0.1f, 2);
    qsim_builder_node(b, "", "Gemm", "fc", "x,w,b", "y");
    qsim_model *m = net_finish(b);
    qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    const qsim_tensor far = {QSIM_FLOAT, 2, dims, other, sizeof(other)};
    for (int32_t keep = 0; keep < 2; keep++) {
        qsim_quantize_options by = {.struct_size = sizeof(by),
                                    .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC,
                                    .keep_moments = keep};
        const qsim_calibration_options co = {.struct_size = sizeof(co), .quantize = &by};
        const qsim_search_options o = {
            .struct_size = sizeof(o), .inputs = &in, .input_count = 1, .methods = "refine"};
        qsim_calibration *c = NULL;
        qsim_recipe *found = make_recipe();
        qsim_model *plain = NULL, *refined = NULL;
        CHECK_INT(qsim_calibration_create(m, &co, &c, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &in, 1, NULL), QSIM_OK);
        CHECK_INT(qsim_calibration_feed(c, &far, 1, NULL), QSIM_OK);
        CHECK_INT(qsim_quantize(m, c, &by, &plain, NULL), QSIM_OK);
        CHECK_INT(qsim_search(m, c, &by, &o, found, NULL, NULL), QSIM_OK);
        by.recipe = found;
        CHECK_INT(qsim_quantize(m, c, &by, &refined, NULL), QSIM_OK);
        const qsim_recipe_entry e = entry(found, QSIM_RECIPE_LAYER, "fc");
        CHECK_INT(e.bias_correction, QSIM_BIAS_CORRECTION_GIVEN);
        CHECK_INT(e.shift_count, 5);
        CHECK(worst_mean(m, refined, &in) < 0.25);
        CHECK(worst_mean(m, plain, &in) > worst_mean(m, refined, &in));
        qsim_model_free(plain);
        qsim_model_free(refined);
        qsim_recipe_free(found);
        qsim_calibration_free(c);
    }
    qsim_model_free(m);
}

static void test_refused(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 1);
    qsim_recipe *found = make_recipe();
    qsim_error e;
    qsim_search_options o = {.struct_size = sizeof(o), .methods = "greedy"};
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_E_ARGUMENT);
    o.methods = "anneal";
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_E_ARGUMENT);
    o.methods = "anneal,sorcery";
    o.score = score;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, &e), QSIM_E_ARGUMENT);
    CHECK(strstr(e.message, "sorcery") != NULL);
    o.methods = NULL;
    o.steps = -1;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_search(m, c, NULL, NULL, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    static const char *const names[] = {"greedy",   "anneal", "ranges",     "auto",    "refine",
                                        "equalize", "smooth", "correction", "fallback"};
    for (int32_t i = 0; i < 9; i++) {
        CHECK_STR(qsim_search_method(i), names[i]);
        CHECK_INT(qsim_search_method_needs_inputs(i), (i >= 3 && i < 7) || i == 8);
    }
    CHECK(!qsim_search_method(9) && !qsim_search_method(-1));
    /* auto scores by inputs; labels are classes of all rows. */
    o = (qsim_search_options){.struct_size = sizeof(o), .methods = "auto", .score = score};
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_E_ARGUMENT);
    o.inputs = batches;
    o.input_count = BATCHES;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_E_ARGUMENT);
    static const int64_t labels[16] = {0, 1, 2, 3, 4, 5};
    o.score = NULL;
    o.labels = labels;
    o.label_count = 3;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, &e), QSIM_E_ARGUMENT);
    CHECK(strstr(e.message, "3 labels for 16 rows") != NULL);
    o.label_count = 16;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, &e), QSIM_E_VALUE);
    CHECK(strstr(e.message, "label 5 of sample 5, of 5 classes") != NULL);
    o.labels = NULL;
    o.inputs_per_batch = 2;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, &e), QSIM_E_ARGUMENT);
    o.inputs_per_batch = 0;
    o.goal = 3;
    CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, &e), QSIM_E_ARGUMENT);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Counts calls while the float model runs, and cancels at the one that is wanted. */
static int32_t stop_float(void *user, const char *what, uint64_t done, uint64_t total) {
    int *left = user;
    CHECK(done < total);
    return strcmp(what, "float model") == 0 && --*left == 0;
}

/* The float model's answers are long work, too: each of its batches can be the last. */
static void test_stopped_at_once(void) {
    qsim_model *m = net_lenet();
    qsim_calibration *c = net_calibrate(m, 4);
    for (int k = 1; k <= 2 * BATCHES; k++) {
        int left = k;
        qsim_recipe *found = make_recipe();
        const qsim_search_options o = {.struct_size = sizeof(o),
                                       .inputs = batches,
                                       .input_count = BATCHES,
                                       .methods = "greedy",
                                       .progress = stop_float,
                                       .progress_user = &left};
        CHECK_INT(qsim_search(m, c, NULL, &o, found, NULL, NULL), QSIM_E_CANCELLED);
        CHECK_INT(left, 0);
        qsim_recipe_free(found);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    make_batches();
    test_stopped_at_once();
    test_greedy();
    test_greedy_knows();
    test_positions();
    test_two_inputs();
    test_correction();
    test_anneal();
    test_refine();
    test_refused();
    return test_done();
}
