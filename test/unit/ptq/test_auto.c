/* SPDX-License-Identifier: MIT */
/* Sensitivity of units, and attempts of auto, on a network with one layer that 8 bits degrade. */
#include <math.h>

#include "ptq_nets.h"

enum { BATCHES = 6, ROWS = 16, IN = 96, CLASSES = 16 };

static float data[BATCHES][ROWS * IN];
static const int64_t batch_dims[2] = {ROWS, IN};
static qsim_tensor batches[BATCHES];

static void make_batches(void) {
    uint64_t seed = 11;
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < ROWS * IN; i++)
            data[b][i] = (float)(test_random(&seed) % 2000) / 1000 - 1;
        batches[b] = (qsim_tensor){QSIM_FLOAT, 2, batch_dims, data[b], sizeof(data[b])};
    }
}

/*
 * x (96) -> good (96) -> Relu -> bad (96) -> Relu -> + -> head (16), where + adds what `bad` reads,
 * so that factors cannot move. Per tensor, the one weight of `worst` in `bad` leaves the others, of
 * 0.5, a few steps: of 100 one or none.
 */
static qsim_model *make_net_of(qsim_ctx *ctx, float worst) {
    qsim_builder *b = NULL;
    static float bad[IN * IN];
    uint64_t seed = 5;
    const char *symbol[2] = {"N", NULL};
    const int64_t square[2] = {IN, IN};
    for (int i = 0; i < IN * IN; i++)
        bad[i] = (float)(test_random(&seed) % 1000) / 1000 - 0.5f;
    bad[0] = worst;
    qsim_tensor w = {QSIM_FLOAT, 2, square, bad, sizeof(bad)};
    CHECK_INT(qsim_builder_create(ctx, 13, "spoiled", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, IN}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, CLASSES}, symbol);
    net_constant(b, "w1", 2, square, 0.5f, 1);
    net_constant(b, "b1", 1, (int64_t[]){IN}, 0.3f, 2);
    net_constant(b, "b2", 1, (int64_t[]){IN}, 0.3f, 3);
    qsim_builder_constant(b, "w2", &w);
    net_constant(b, "w3", 2, (int64_t[]){IN, CLASSES}, 0.5f, 4);
    net_constant(b, "b3", 1, (int64_t[]){CLASSES}, 0.3f, 5);
    qsim_builder_node(b, "", "Gemm", "good", "x,w1,b1", "g");
    qsim_builder_node(b, "", "Relu", "good_relu", "g", "gr");
    qsim_builder_node(b, "", "Gemm", "bad", "gr,w2,b2", "m");
    qsim_builder_node(b, "", "Relu", "bad_relu", "m", "mr");
    qsim_builder_node(b, "", "Add", "sum", "mr,gr", "s");
    qsim_builder_node(b, "", "Gemm", "head", "s,w3,b3", "y");
    return net_finish(b);
}

static qsim_model *make_net(float worst) {
    return make_net_of(NULL, worst);
}

static qsim_calibration *calibrate(const qsim_model *m) {
    qsim_calibration *c = NULL;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++)
        CHECK_INT(qsim_calibration_feed(c, &batches[b], 1, NULL), QSIM_OK);
    return c;
}

static const qsim_quantize_options spoiling = {.struct_size = sizeof(spoiling),
                                               .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC,
                                               .no_bias_correction = 1};

/* ---- sensitivity ---- */

typedef struct seen {
    int count;
    qsim_unit units[8];
    char names[8][32], takes[8][32];
} seen;

static int32_t on_unit(void *user, const qsim_unit *u) {
    seen *s = user;
    s->units[s->count] = *u;
    snprintf(s->names[s->count], 32, "%s", u->name);
    snprintf(s->takes[s->count], 32, "%s", u->takes ? u->takes : "");
    s->count++;
    return 0;
}

static int find(const seen *s, const char *name) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->names[i], name) == 0)
            return i;
    CHECK(0);
    return 0;
}

/* Mean KL, in libm, of the model with these rules. */
static double loss_with(const qsim_model *m, const qsim_calibration *c, const qsim_rule *rules,
                        size_t count) {
    qsim_quantize_options o = spoiling;
    qsim_model *q = NULL;
    double sum = 0;
    o.rules = rules;
    o.rule_count = count;
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++) {
        float y[2][ROWS * CLASSES];
        CHECK_INT(net_run(m, &batches[b], y[0], ROWS * CLASSES), ROWS * CLASSES);
        CHECK_INT(net_run(q, &batches[b], y[1], ROWS * CLASSES), ROWS * CLASSES);
        for (int r = 0; r < ROWS * CLASSES; r += CLASSES) {
            double total[2] = {0, 0};
            for (int k = 0; k < 2; k++)
                for (int i = 0; i < CLASSES; i++)
                    total[k] += exp((double)y[k][r + i]);
            for (int i = 0; i < CLASSES; i++) {
                const double p = (double)y[0][r + i] - log(total[0]);
                const double q_ = (double)y[1][r + i] - log(total[1]);
                sum += exp(p) * (p - q_) / (BATCHES * ROWS);
            }
        }
    }
    qsim_model_free(q);
    return sum;
}

static qsim_rule rule(const char *pattern, int32_t action) {
    return (qsim_rule){.struct_size = sizeof(qsim_rule), .pattern = pattern, .action = action};
}

static int32_t stop_third(void *user, const char *what, uint64_t done, uint64_t total) {
    (void)user;
    (void)what;
    (void)total;
    return done == 2;
}

static void test_sensitivity(void) {
    qsim_model *m = make_net(100);
    qsim_calibration *c = calibrate(m);
    seen s = {0};
    qsim_judgement plain = {.struct_size = sizeof(plain)};
    qsim_search_options o = {.struct_size = sizeof(o), .inputs = batches, .input_count = BATCHES};
    CHECK_INT(qsim_sensitivity(m, c, &spoiling, &o, on_unit, &s, &plain, NULL), 4);
    CHECK_INT(s.count, 4);
    CHECK_STR(s.names[0], "bad"); /* the greatest gain first */
    CHECK_STR(s.takes[0], "bad_relu");
    CHECK(s.units[0].before_knee && !s.units[3].before_knee);
    CHECK_INT(s.units[0].float_bytes, 4 * (IN * IN + IN));
    CHECK_INT(s.units[0].bytes, IN * IN + 4 * IN);
    CHECK(s.units[0].float_us > 0 && s.units[0].us > 0);
    CHECK_INT(plain.rows, BATCHES * ROWS);
    CHECK(isnan(plain.top1));
    const double all = loss_with(m, c, NULL, 0);
    CHECK_NEAR(plain.loss, all, 1e-7);
    const qsim_rule bad = rule("bad", QSIM_RULE_FLOAT);
    CHECK_NEAR(s.units[0].loss_gained, all - loss_with(m, c, &bad, 1), 1e-7);
    const qsim_rule alone[] = {rule("good", QSIM_RULE_FLOAT), rule("head", QSIM_RULE_FLOAT),
                               rule("sum", QSIM_RULE_FLOAT)};
    CHECK_NEAR(s.units[0].loss_alone, loss_with(m, c, alone, 3), 1e-7);
    const qsim_rule others[] = {rule("good", QSIM_RULE_FLOAT), bad, rule("sum", QSIM_RULE_FLOAT)};
    CHECK_NEAR(s.units[find(&s, "head")].loss_alone, loss_with(m, c, others, 3), 1e-7);
    /* A rule for a layer covers its activation, too, whatever an earlier rule says of that. */
    const qsim_rule trap[] = {rule("*", QSIM_RULE_FLOAT), rule("bad", QSIM_RULE_INT8)};
    CHECK_NEAR(loss_with(m, c, trap, 2), loss_with(m, c, alone, 3), 1e-12);
    CHECK_INT(qsim_sensitivity(m, c, &spoiling, NULL, NULL, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    /* Cancelled among the gains: what else was to be measured is not known. */
    s = (seen){0};
    o.progress = stop_third;
    CHECK_INT(qsim_sensitivity(m, c, &spoiling, &o, on_unit, &s, NULL, NULL), QSIM_E_CANCELLED);
    CHECK_INT(s.count, 2);
    CHECK(isfinite(s.units[0].loss_gained) && isfinite(s.units[1].loss_gained));
    CHECK(isnan(s.units[0].loss_alone) && isnan(s.units[1].agreement));
    qsim_quantize_options dynamic = {.struct_size = sizeof(dynamic), .mode = QSIM_MODE_DYNAMIC};
    CHECK_INT(qsim_sensitivity(m, c, &dynamic, &o, NULL, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- the ladder ---- */

typedef struct ladder {
    int attempts, kept, floats, stop_at, met, begun;
    double losses[64], best; /* of attempts that were kept */
    char last[128];
} ladder;

static int32_t on_attempt(void *user, const qsim_attempt *a) {
    ladder *l = user;
    CHECK(l->attempts < 64 && a->model && a->recipe && a->bytes > 0 && a->microseconds > 0);
    l->losses[l->attempts++] = a->kept ? a->judgement->loss : INFINITY;
    l->begun += strstr(a->what, "in float, 1 unit in all") != NULL;
    if (a->kept) {
        CHECK(a->met || !l->met); /* the bound has priority over the loss */
        l->met = a->met;
        l->kept++;
        l->floats = a->floats;
        l->best = a->judgement->loss;
        snprintf(l->last, sizeof(l->last), "%s", a->what);
    }
    return l->attempts == l->stop_at;
}

static qsim_recipe *search_from(const qsim_model *m, const qsim_calibration *c,
                                const qsim_quantize_options *base, qsim_search_options *o,
                                ladder *l, int expected) {
    qsim_recipe *found = NULL;
    double score = NAN;
    *l = (ladder){.stop_at = l->stop_at};
    o->methods = "auto";
    o->attempt = on_attempt;
    o->attempt_user = l;
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, base, o, found, &score, NULL), expected);
    CHECK_NEAR(-score, l->best, 0);
    CHECK(l->best <= l->losses[0]); /* never worse than the first attempt, the plain model */
    return found;
}

static qsim_recipe *search(const qsim_model *m, const qsim_calibration *c, qsim_search_options *o,
                           ladder *l, int expected) {
    return search_from(m, c, &spoiling, o, l, expected);
}

static int32_t action_of(const qsim_recipe *r, const char *layer) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    const int32_t at = qsim_recipe_find(r, QSIM_RECIPE_LAYER, layer);
    if (at < 0)
        return QSIM_RECIPE_QUANTIZE;
    CHECK_INT(qsim_recipe_get(r, at, &e), QSIM_OK);
    return e.action;
}

/* A machine on which `head` is slower in integers. */
static void cost(void *user, const char *unit, double *in_float, double *in_integers) {
    (void)user;
    *in_float = 2;
    *in_integers = strcmp(unit, "head") == 0 ? 3 : 1;
}

static void test_ladder(void) {
    qsim_model *m = make_net(100);
    qsim_calibration *c = calibrate(m);
    ladder l = {0};
    qsim_search_options o = {.struct_size = sizeof(o),
                             .inputs = batches,
                             .input_count = BATCHES,
                             .goal = QSIM_GOAL_SIZE,
                             .max_drop = 15};
    /* The one degraded layer is float, the others are not. */
    qsim_recipe *found = search(m, c, &o, &l, QSIM_OK);
    CHECK_INT(action_of(found, "bad"), QSIM_RECIPE_FLOAT);
    CHECK_INT(action_of(found, "good"), QSIM_RECIPE_QUANTIZE);
    CHECK_INT(action_of(found, "head"), QSIM_RECIPE_QUANTIZE);
    CHECK_INT(l.floats, 1);
    qsim_recipe_free(found);
    /* A drop that the plain model does not exceed: no layer is float. */
    o.max_drop = 150;
    found = search(m, c, &o, &l, QSIM_OK);
    CHECK_INT(l.floats, 0);
    qsim_recipe_free(found);
    /* A unit that is slower in 8 bits, by the given table, is tried in float. */
    o.goal = QSIM_GOAL_ACCURACY;
    o.max_drop = 15;
    o.cost = cost;
    found = search(m, c, &o, &l, QSIM_OK);
    CHECK_INT(action_of(found, "bad"), QSIM_RECIPE_FLOAT);
    CHECK(strstr(l.last, "slower") != NULL || action_of(found, "head") == QSIM_RECIPE_FLOAT ||
          l.best <= 1e-6);
    qsim_recipe_free(found);
    /* Interrupted after an attempt: the best recipe so far. */
    l.stop_at = 2;
    found = search(m, c, &o, &l, QSIM_E_CANCELLED);
    CHECK_INT(l.attempts, 2);
    qsim_recipe_free(found);
    /* No time at all: the plain model. */
    l.stop_at = 0;
    o.seconds = 1e-9;
    found = search(m, c, &o, &l, QSIM_OK);
    CHECK_INT(l.attempts, 1);
    CHECK_INT(qsim_recipe_count(found), 0);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/*
 * Where the bound is out of reach, units are put in float twice: behind refined biases, and without
 * them. Wherever that ends, what is found is the best attempt, and the last, of those kept.
 */
static void test_two_ways(void) {
    qsim_model *m = make_net(40);
    qsim_calibration *c = calibrate(m);
    const qsim_quantize_options tensor = {.struct_size = sizeof(tensor),
                                          .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    ladder l = {0};
    qsim_search_options o = {.struct_size = sizeof(o),
                             .inputs = batches,
                             .input_count = BATCHES,
                             .goal = QSIM_GOAL_ACCURACY,
                             .cost = cost,
                             .max_drop = 1e-9};
    qsim_recipe_free(search_from(m, c, &tensor, &o, &l, QSIM_OK));
    CHECK(l.begun > 1);
    const int all = l.attempts;
    for (l.stop_at = 1; l.stop_at < all; l.stop_at++) {
        qsim_recipe_free(search_from(m, c, &tensor, &o, &l, QSIM_E_CANCELLED));
        for (int k = 0; k < l.attempts; k++)
            CHECK(l.best <= l.losses[k]);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- a table of costs, and four bits ---- */

static int32_t on_cost(void *user, const qsim_attempt *a) {
    double *us = user;
    int n = 0;
    while (us[n] > 0)
        n++;
    us[n] = a->microseconds;
    return 0;
}

/* With a table no time is measured: an attempt's time is the sum of its units' entries. */
static void test_costs(void) {
    qsim_model *m = make_net(100);
    qsim_calibration *c = calibrate(m);
    qsim_recipe *found = NULL;
    double us[64] = {0};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = batches,
                                   .input_count = BATCHES,
                                   .goal = QSIM_GOAL_LATENCY,
                                   .max_drop = 15,
                                   .attempt = on_cost,
                                   .attempt_user = us,
                                   .cost = cost};
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, &spoiling, &o, found, NULL, NULL), QSIM_OK);
    CHECK(us[0] == 1 + 1 + 3 + 1); /* all in integers */
    int floats = 0;
    for (int i = 0; us[i] > 0; i++) {
        CHECK(us[i] == floor(us[i]) && us[i] >= 5 && us[i] <= 9);
        floats += us[i] == 1 + 2 + 2 + 1 + 3; /* `bad` in float, and so is its ReLU */
    }
    CHECK(floats > 0);
    CHECK_INT(action_of(found, "head"), QSIM_RECIPE_FLOAT);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

static int32_t dtype_of(const qsim_recipe *r, const char *layer) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    const int32_t at = qsim_recipe_find(r, QSIM_RECIPE_LAYER, layer);
    if (at < 0)
        return 0;
    CHECK_INT(qsim_recipe_get(r, at, &e), QSIM_OK);
    return e.dtype;
}

/* The layer between the first and the last one gets 4 bits where they are allowed. */
static void test_four_bits(void) {
    qsim_model *m = make_net(100);
    qsim_calibration *c = calibrate(m);
    const qsim_quantize_options plain = {.struct_size = sizeof(plain)};
    for (int32_t four = 0; four < 2; four++) {
        qsim_recipe *found = NULL;
        qsim_model *q = NULL, *eight = NULL;
        const qsim_search_options o = {.struct_size = sizeof(o),
                                       .methods = "auto",
                                       .inputs = batches,
                                       .input_count = BATCHES,
                                       .goal = QSIM_GOAL_SIZE,
                                       .max_drop = 100,
                                       .bits = four ? QSIM_BITS_4 : QSIM_BITS_8};
        CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
        CHECK_INT(qsim_search(m, c, &plain, &o, found, NULL, NULL), QSIM_OK);
        CHECK((dtype_of(found, "bad") == QSIM_INT4) == (four == 1));
        CHECK(dtype_of(found, "good") != QSIM_INT4 && dtype_of(found, "head") != QSIM_INT4);
        CHECK_INT(action_of(found, "bad"), QSIM_RECIPE_QUANTIZE); /* float was not allowed */
        qsim_quantize_options by = plain;
        CHECK_INT(qsim_quantize(m, c, &by, &eight, NULL), QSIM_OK);
        by.recipe = found;
        CHECK_INT(qsim_quantize(m, c, &by, &q, NULL), QSIM_OK);
        if (four)
            CHECK(qsim_model_bytes(q) < qsim_model_bytes(eight) - IN * IN / 2 + 512);
        qsim_model_free(q);
        qsim_model_free(eight);
        qsim_recipe_free(found);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Activations in 16 bits where they are allowed and float is not: no layer leaves integers. */
static void test_sixteen_bits(void) {
    qsim_model *m = make_net(100);
    qsim_calibration *c = calibrate(m);
    const qsim_quantize_options plain = {.struct_size = sizeof(plain)};
    double score[2];
    for (int32_t wide = 0; wide < 2; wide++) {
        qsim_recipe *found = NULL;
        qsim_model *q = NULL;
        int32_t count = 0;
        const qsim_search_options o = {.struct_size = sizeof(o),
                                       .methods = "auto",
                                       .inputs = batches,
                                       .input_count = BATCHES,
                                       .max_drop = 1e-3,
                                       .bits = QSIM_BITS_8 | (wide ? QSIM_BITS_16 : 0)};
        CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
        CHECK_INT(qsim_search(m, c, &plain, &o, found, &score[wide], NULL), QSIM_OK);
        for (int32_t i = 0; i < qsim_recipe_count(found); i++) {
            qsim_recipe_entry e = {.struct_size = sizeof(e)};
            CHECK_INT(qsim_recipe_get(found, i, &e), QSIM_OK);
            CHECK(e.action == QSIM_RECIPE_QUANTIZE || e.action == QSIM_RECIPE_INTEGER);
            count += e.kind == QSIM_RECIPE_TENSOR && e.dtype == QSIM_UINT16;
        }
        CHECK((count > 0) == (wide == 1));
        qsim_quantize_options by = plain;
        by.recipe = found;
        CHECK_INT(qsim_quantize(m, c, &by, &q, NULL), QSIM_OK);
        qsim_model_free(q);
        qsim_recipe_free(found);
    }
    CHECK(score[1] > score[0]);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Every set of forms: units get those that it has and no others. */
static void search_bits(const qsim_model *m, const qsim_calibration *c, int32_t bits,
                        double max_drop, int counts[3]) {
    const qsim_quantize_options plain = {.struct_size = sizeof(plain)};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = batches,
                                   .input_count = BATCHES,
                                   .goal = QSIM_GOAL_SIZE,
                                   .max_drop = max_drop,
                                   .bits = bits};
    qsim_recipe *found = NULL;
    memset(counts, 0, 3 * sizeof(*counts));
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, &plain, &o, found, NULL, NULL), QSIM_OK);
    for (int32_t i = 0; i < qsim_recipe_count(found); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        CHECK_INT(qsim_recipe_get(found, i, &e), QSIM_OK);
        counts[0] += e.action == QSIM_RECIPE_FLOAT;
        counts[1] += e.dtype == QSIM_INT4;
        counts[2] += e.dtype == QSIM_UINT16;
    }
    qsim_recipe_free(found);
}

static void test_every_bits(void) {
    qsim_model *m = make_net(100);
    qsim_calibration *c = calibrate(m);
    int counts[3]; /* in float, of 4 bits, of 16 */
    for (int32_t bits = 0; bits < 16; bits++) {
        const int floats = bits == 0 || (bits & QSIM_BITS_FLOAT), wide = (bits & QSIM_BITS_16) != 0;
        search_bits(m, c, bits, 1e-3, counts);
        CHECK((counts[2] > 0) == wide);
        CHECK(floats || counts[0] == 0);
        CHECK(!floats || wide || counts[0] > 0);
        search_bits(m, c, bits, 100, counts); /* nothing has to leave integers */
        CHECK(counts[0] == 0 && counts[2] == 0 && (counts[1] > 0) == ((bits & QSIM_BITS_4) != 0));
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* Rounding and biases are one attempt, reported once, where correction is allowed. */
static int32_t on_refined(void *user, const qsim_attempt *a) {
    int *told = user;
    *told += strncmp(a->what, "refined", 7) == 0 && a->kept && a->bytes > 0;
    CHECK(a->bytes > 0); /* not a step of a single layer */
    return 0;
}

static void test_refined(void) {
    qsim_model *m = make_net(40);
    qsim_calibration *c = calibrate(m);
    const qsim_quantize_options tensor = {.struct_size = sizeof(tensor),
                                          .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    qsim_recipe *found = NULL;
    int told = 0;
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = batches,
                                   .input_count = BATCHES,
                                   .max_drop = 0.001,
                                   .attempt = on_refined,
                                   .attempt_user = &told};
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, &tensor, &o, found, NULL, NULL), QSIM_OK);
    CHECK_INT(told, 1);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- interrupted ---- */

typedef struct stopping {
    int calls, stop_at, partial;
    qsim_ctx *ctx; /* cancelled as well, as the command does for Ctrl-C; or NULL */
    double loss;
    size_t size;
    char text[16384]; /* the recipe of the last attempt that was kept */
} stopping;

static int32_t on_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    stopping *s = user;
    (void)what, (void)done, (void)total;
    if (++s->calls != s->stop_at)
        return 0;
    qsim_ctx_cancel(s->ctx, 1);
    return 1;
}

static int32_t on_kept(void *user, const qsim_attempt *a) {
    stopping *s = user;
    if (!a->kept)
        return 0;
    s->partial += strstr(a->what, "stopped early") != NULL;
    s->loss = a->judgement->loss;
    CHECK_INT(qsim_recipe_text(a->recipe, s->text, sizeof(s->text), &s->size, NULL), QSIM_OK);
    CHECK(s->size <= sizeof(s->text) && a->bytes > 0 && a->model);
    return 0;
}

/* Wherever a search is cancelled, the last attempt that it told of is what it found. */
static void test_interrupted(qsim_ctx *ctx) {
    static stopping s;
    static char text[sizeof(s.text)];
    qsim_model *m = make_net_of(ctx, 40);
    qsim_calibration *c = calibrate(m);
    const qsim_quantize_options tensor = {.struct_size = sizeof(tensor),
                                          .weight_scheme = QSIM_WEIGHT_TENSOR_SYMMETRIC};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = batches,
                                   .input_count = BATCHES,
                                   .max_drop = 0.001,
                                   .progress = on_progress,
                                   .progress_user = &s,
                                   .attempt = on_kept,
                                   .attempt_user = &s};
    int all = 0, partial = 0;
    for (int k = 0; k <= all; k += ctx && k ? 3 : 1) {
        qsim_recipe *found = NULL;
        double score = NAN;
        size_t size = 0;
        s = (stopping){.stop_at = k, .ctx = ctx};
        CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
        CHECK_INT(qsim_search(m, c, &tensor, &o, found, &score, NULL),
                  k ? QSIM_E_CANCELLED : QSIM_OK);
        qsim_ctx_cancel(ctx, 0);
        all = k ? all : s.calls;
        partial += s.partial;
        CHECK_INT(qsim_recipe_text(found, text, sizeof(text), &size, NULL), QSIM_OK);
        if (s.size > 0) {
            CHECK(size == s.size && memcmp(text, s.text, size) == 0);
            CHECK_NEAR(-score, s.loss, 0);
        }
        qsim_recipe_free(found);
    }
    CHECK(all > 40 && (ctx || partial > 0));
    qsim_calibration_free(c);
    qsim_model_free(m);
}

int main(void) {
    qsim_ctx *ctx = NULL;
    make_batches();
    test_interrupted(NULL);
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    test_interrupted(ctx);
    qsim_ctx_free(ctx);
    test_sensitivity();
    test_ladder();
    test_two_ways();
    test_costs();
    test_four_bits();
    test_sixteen_bits();
    test_every_bits();
    test_refined();
    return test_done();
}
