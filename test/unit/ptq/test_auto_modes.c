/* SPDX-License-Identifier: MIT */
/*
 * The search `auto` chooses another mode where scales that are known before lose too much: a
 * network whose inputs differ in size from batch to batch, before a normalization.
 */
#include <math.h>
#include <stdbool.h>

#include "ptq_nets.h"

enum { BATCHES = 8, ROWS = 16, IN = 32, CLASSES = 8, MOST = 200 };

/* x (32) -> first -> LayerNormalization -> second (8) */
static qsim_model *make_net(void) {
    static float gamma[IN], beta[IN];
    const int64_t channels[1] = {IN};
    const char *symbol[2] = {"N", NULL};
    qsim_builder *b = NULL;
    for (int i = 0; i < IN; i++)
        gamma[i] = 2;
    const qsim_tensor g = {QSIM_FLOAT, 1, channels, gamma, sizeof(gamma)};
    const qsim_tensor z = {QSIM_FLOAT, 1, channels, beta, sizeof(beta)};
    CHECK_INT(qsim_builder_create(NULL, 17, "sizes", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, (int64_t[]){-1, IN}, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){-1, CLASSES}, symbol);
    net_constant(b, "w1", 2, (int64_t[]){IN, IN}, 0.5f, 3);
    net_constant(b, "w2", 2, (int64_t[]){IN, CLASSES}, 0.5f, 4);
    qsim_builder_constant(b, "g", &g);
    qsim_builder_constant(b, "z", &z);
    qsim_builder_node(b, "", "MatMul", "first", "x,w1", "h");
    qsim_builder_node(b, "", "LayerNormalization", "norm", "h,g,z", "n");
    qsim_builder_attr_float(b, "epsilon", 1e-12f);
    qsim_builder_node(b, "", "MatMul", "second", "n,w2", "y");
    return net_finish(b);
}

/* What a search tried, in order. */
typedef struct trace {
    int32_t mode[MOST], floats[MOST], kept[MOST], met[MOST];
    int count;
    void *file; /* the model that was kept last, saved */
    size_t size;
} trace;

static int32_t note(void *user, const qsim_attempt *a) {
    trace *t = user;
    CHECK(t->count < MOST);
    if (t->count == MOST)
        return 1;
    t->mode[t->count] = a->mode;
    t->floats[t->count] = a->floats;
    t->kept[t->count] = a->kept;
    t->met[t->count++] = a->met;
    if (a->kept) {
        free(t->file);
        CHECK_INT(qsim_model_save_memory(a->model, NULL, 0, &t->size, NULL), QSIM_OK);
        t->file = malloc(t->size);
        CHECK_INT(qsim_model_save_memory(a->model, t->file, t->size, &t->size, NULL), QSIM_OK);
    }
    return 0;
}

static bool tried(const trace *t, int32_t mode) {
    bool any = false;
    for (int i = 0; i < t->count; i++)
        any |= t->mode[i] == mode;
    return any;
}

/* The index of the attempt that was kept last. */
static int last_kept(const trace *t) {
    int i = t->count - 1;
    while (i > 0 && !t->kept[i])
        i--;
    return i;
}

/* One cost for all units, so that no time is measured. */
static void cost(void *user, const char *unit, double *in_float, double *in_integers) {
    (void)user, (void)unit;
    *in_float = 2;
    *in_integers = 1;
}

typedef struct things {
    qsim_model *m;
    qsim_calibration *c;
    qsim_tensor batches[BATCHES];
} things;

/* Searches, and checks that the mode of the last attempt that was kept makes its model. */
static void search(const things *t, int32_t mode, int32_t bits, int32_t goal, double max_drop,
                   trace *out) {
    qsim_quantize_options base = {.struct_size = sizeof(base), .mode = mode};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = t->batches,
                                   .input_count = BATCHES,
                                   .bits = bits,
                                   .goal = goal,
                                   .max_drop = max_drop,
                                   .attempt = note,
                                   .attempt_user = out,
                                   .cost = cost};
    qsim_recipe *found = NULL;
    qsim_model *q = NULL;
    size_t size = 0;
    *out = (trace){0};
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(t->m, t->c, &base, &o, found, NULL, NULL), QSIM_OK);
    base.recipe = found;
    base.mode = out->mode[last_kept(out)];
    CHECK_INT(qsim_quantize(t->m, t->c, &base, &q, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(q, NULL, 0, &size, NULL), QSIM_OK);
    void *file = malloc(size);
    CHECK_INT(qsim_model_save_memory(q, file, size, &size, NULL), QSIM_OK);
    CHECK(size == out->size && memcmp(file, out->file, size) == 0);
    free(file);
    free(out->file);
    qsim_model_free(q);
    qsim_recipe_free(found);
}

static void check_modes(const things *t) {
    const int32_t modes = QSIM_BITS_DYNAMIC | QSIM_BITS_WEIGHTS;
    trace r;
    /* Other modes only if they are allowed, and if 8 bits with known scales lose too much. */
    search(t, QSIM_MODE_STATIC, QSIM_BITS_8, QSIM_GOAL_ACCURACY, 15, &r);
    CHECK(!tried(&r, QSIM_MODE_DYNAMIC) && !tried(&r, QSIM_MODE_WEIGHTS));
    CHECK(!r.met[last_kept(&r)]);
    search(t, QSIM_MODE_STATIC, modes, QSIM_GOAL_ACCURACY, 95, &r);
    CHECK(!tried(&r, QSIM_MODE_DYNAMIC) && !tried(&r, QSIM_MODE_WEIGHTS));
    search(t, QSIM_MODE_DYNAMIC, modes, QSIM_GOAL_ACCURACY, 1e-9, &r);
    CHECK(!tried(&r, QSIM_MODE_WEIGHTS));
    /* Weights alone are tried for ACCURACY only if the mode before does not meet max_drop. */
    search(t, QSIM_MODE_STATIC, modes, QSIM_GOAL_ACCURACY, 15, &r);
    CHECK(!tried(&r, QSIM_MODE_WEIGHTS));
    CHECK_INT(r.mode[last_kept(&r)], QSIM_MODE_DYNAMIC);
    CHECK(r.met[last_kept(&r)]);
    search(t, QSIM_MODE_STATIC, QSIM_BITS_WEIGHTS, QSIM_GOAL_ACCURACY, 15, &r);
    CHECK(!tried(&r, QSIM_MODE_DYNAMIC));
    CHECK_INT(r.mode[last_kept(&r)], QSIM_MODE_WEIGHTS);
    search(t, QSIM_MODE_STATIC, modes, QSIM_GOAL_SIZE, 15, &r);
    CHECK(tried(&r, QSIM_MODE_DYNAMIC) && tried(&r, QSIM_MODE_WEIGHTS));
    CHECK(r.mode[last_kept(&r)] != QSIM_MODE_STATIC && r.met[last_kept(&r)]);
}

/* Units in float that meet max_drop, and other modes beside them. */
static void check_floats(const things *t) {
    const int32_t bits = QSIM_BITS_FLOAT | QSIM_BITS_DYNAMIC;
    trace r;
    search(t, QSIM_MODE_STATIC, bits, QSIM_GOAL_ACCURACY, 15, &r);
    CHECK(!tried(&r, QSIM_MODE_DYNAMIC));
    CHECK(r.met[last_kept(&r)] && r.floats[last_kept(&r)] > 0);
    search(t, QSIM_MODE_STATIC, bits, QSIM_GOAL_SIZE, 15, &r); /* no weights in float: smaller */
    CHECK_INT(r.mode[last_kept(&r)], QSIM_MODE_DYNAMIC);
    CHECK_INT(r.floats[last_kept(&r)], 0);
    /* Nothing meets this: the search goes on after other modes, and keeps the least loss. */
    search(t, QSIM_MODE_STATIC, bits, QSIM_GOAL_ACCURACY, 1e-9, &r);
    CHECK(tried(&r, QSIM_MODE_DYNAMIC));
    CHECK(r.mode[r.count - 1] == QSIM_MODE_STATIC && !r.met[last_kept(&r)]);
    search(t, QSIM_MODE_STATIC, QSIM_BITS_DYNAMIC, QSIM_GOAL_ACCURACY, 1e-9, &r);
    CHECK(r.mode[last_kept(&r)] == QSIM_MODE_DYNAMIC && !r.met[last_kept(&r)]);
}

/* Modes that have nothing to quantize are left out: a product of two inputs has no weights. */
static void check_no_weights(const things *t) {
    qsim_builder *b = NULL;
    const char *symbol[4] = {"N"};
    const int64_t image[4] = {-1, 1, 4, 8}, sizes[4] = {ROWS, 1, 4, 8};
    things no = {.m = NULL};
    qsim_tensor pairs[2 * BATCHES];
    qsim_recipe *found = NULL;
    trace r = {0};
    qsim_error e = {0};
    CHECK_INT(qsim_builder_create(NULL, 13, "product", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "a", QSIM_FLOAT, 4, image, symbol);
    qsim_builder_input(b, "b", QSIM_FLOAT, 4, image, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, image, symbol);
    qsim_builder_node(b, "", "Mul", "times", "a,b", "y");
    no.m = net_finish(b);
    CHECK_INT(qsim_calibration_create(no.m, NULL, &no.c, NULL), QSIM_OK);
    for (int i = 0; i < BATCHES; i++) {
        pairs[2 * i] = t->batches[i];
        pairs[2 * i].rank = 4;
        pairs[2 * i].dims = sizes;
        pairs[2 * i + 1] = pairs[2 * i];
        CHECK_INT(qsim_calibration_feed(no.c, pairs + 2 * i, 2, NULL), QSIM_OK);
    }
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = pairs,
                                   .input_count = 2 * BATCHES,
                                   .inputs_per_batch = 2,
                                   .bits = QSIM_BITS_DYNAMIC | QSIM_BITS_WEIGHTS,
                                   .max_drop = 1e-9,
                                   .attempt = note,
                                   .attempt_user = &r,
                                   .cost = cost};
    const qsim_rule times = {
        .struct_size = sizeof(times), .pattern = "times", .action = QSIM_RULE_INT8};
    const qsim_quantize_options base = {
        .struct_size = sizeof(base), .rules = &times, .rule_count = 1};
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(no.m, no.c, &base, &o, found, NULL, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK(r.count > 0 && !tried(&r, QSIM_MODE_DYNAMIC) && !tried(&r, QSIM_MODE_WEIGHTS));
    free(r.file);
    qsim_recipe_free(found);
    qsim_calibration_free(no.c);
    qsim_model_free(no.m);
}

/* So are modes that cannot do what the recipe says: GPTQ's rounding is for mode STATIC. */
static void check_recipe(const things *t) {
    const qsim_quantize_options keep = {.struct_size = sizeof(keep), .keep_moments = 1};
    const qsim_calibration_options co = {.struct_size = sizeof(co), .quantize = &keep};
    const qsim_recipe_entry rounded = {.struct_size = sizeof(rounded),
                                       .kind = QSIM_RECIPE_LAYER,
                                       .name = "second",
                                       .dtype = QSIM_INT8,
                                       .symmetric = 1,
                                       .rounding = QSIM_ROUNDING_GPTQ};
    qsim_calibration *c = NULL;
    qsim_recipe *given = NULL, *found = NULL;
    qsim_error e = {0};
    trace r = {0};
    CHECK_INT(qsim_calibration_create(t->m, &co, &c, NULL), QSIM_OK);
    for (int i = 0; i < BATCHES; i++)
        CHECK_INT(qsim_calibration_feed(c, &t->batches[i], 1, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_create(NULL, &given, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_set(given, &rounded, NULL), QSIM_OK);
    const qsim_quantize_options base = {.struct_size = sizeof(base), .recipe = given};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = "auto",
                                   .inputs = t->batches,
                                   .input_count = BATCHES,
                                   .bits = QSIM_BITS_DYNAMIC,
                                   .attempt = note,
                                   .attempt_user = &r,
                                   .cost = cost};
    CHECK_INT(qsim_search(t->m, c, &base, &o, found, NULL, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK(r.count > 0 && !tried(&r, QSIM_MODE_DYNAMIC) && !r.met[last_kept(&r)]);
    free(r.file);
    qsim_recipe_free(given);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
}

int main(void) {
    static float data[BATCHES][ROWS * IN];
    static const int64_t dims[2] = {ROWS, IN};
    things t = {.m = make_net()};
    uint64_t seed = 11;
    qsim_recipe *found = NULL;
    CHECK_INT(qsim_calibration_create(t.m, NULL, &t.c, NULL), QSIM_OK);
    for (int b = 0; b < BATCHES; b++) {
        const float size = b % 2 ? 1e-3f : 1;
        for (int i = 0; i < ROWS * IN; i++)
            data[b][i] = ((float)(test_random(&seed) % 2000) / 1000 - 1) * size;
        t.batches[b] = (qsim_tensor){QSIM_FLOAT, 2, dims, data[b], sizeof(data[b])};
        CHECK_INT(qsim_calibration_feed(t.c, &t.batches[b], 1, NULL), QSIM_OK);
    }
    check_modes(&t);
    check_floats(&t);
    check_no_weights(&t);
    check_recipe(&t);
    const qsim_search_options unknown = {.struct_size = sizeof(unknown),
                                         .methods = "auto",
                                         .inputs = t.batches,
                                         .input_count = BATCHES,
                                         .bits = 64};
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(t.m, t.c, NULL, &unknown, found, NULL, NULL), QSIM_E_VERSION);
    qsim_recipe_free(found);
    qsim_calibration_free(t.c);
    qsim_model_free(t.m);
    return test_done();
}
