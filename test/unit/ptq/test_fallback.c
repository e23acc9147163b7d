/* SPDX-License-Identifier: MIT */
/* The search `fallback` on a chain of layers, two of which share a tensor that 8 bits spoil. */
#include "ptq_nets.h"

#include <qsim/recipe.h>

#include "heap.h"

enum { LAYERS = 32, WIDTH = 16, ROWS = 32 };

static float data[ROWS * WIDTH];
static const qsim_tensor input = {QSIM_FLOAT, 2, (const int64_t[]){ROWS, WIDTH}, data,
                                  sizeof(data)};

/*
 * x -> fc0 -> curve -> ... -> fc31 -> y, where the curve is Relu or Elu. Of the result of layer
 * `spoiled`, channel 0 is `factor` times as large, and the next layer takes it so many times
 * smaller: the network is the same, but the tensor's other channels have few of the 256 steps.
 * spoiled -1: none is.
 */
static qsim_model *chain(qsim_ctx *ctx, const char *curve, int spoiled, float factor) {
    qsim_builder *b = NULL;
    const int64_t square[2] = {WIDTH, WIDTH};
    uint64_t seed = 3;
    CHECK_INT(qsim_builder_create(ctx, 13, "chain", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "t0", "float[N,16]");
    qsim_builder_output(b, "y", QSIM_FLOAT, -1, NULL, NULL);
    for (int i = 0; i < LAYERS; i++) {
        static float w[WIDTH * WIDTH];
        char weights[16], node[16], reads[32], makes[16], shape[24], next[16];
        for (int k = 0; k < WIDTH * WIDTH; k++) { /* near a permutation: values keep their size */
            const float noise = ((float)test_random(&seed) / 4294967296.0f - 0.5f) / 4;
            w[k] = (k % WIDTH == (k / WIDTH + 5) % WIDTH) + noise;
        }
        for (int k = 0; k < WIDTH; k++) {
            w[k * WIDTH] *= i == spoiled ? factor : 1;
            w[k] /= i == spoiled + 1 && i > 0 ? factor : 1;
        }
        snprintf(weights, sizeof(weights), "w%d", i);
        snprintf(node, sizeof(node), "fc%d", i);
        snprintf(reads, sizeof(reads), "t%d,w%d", i, i);
        snprintf(makes, sizeof(makes), i == LAYERS - 1 ? "y" : "p%d", i);
        snprintf(shape, sizeof(shape), "curve%d", i);
        snprintf(next, sizeof(next), "t%d", i + 1);
        const qsim_tensor t = {QSIM_FLOAT, 2, square, w, sizeof(w)};
        CHECK_INT(qsim_builder_constant(b, weights, &t), QSIM_OK);
        qsim_builder_node(b, "", "MatMul", node, reads, makes);
        if (i < LAYERS - 1)
            qsim_builder_node(b, "", curve, shape, makes, next);
    }
    return net_finish(b);
}

typedef struct seen {
    int measured, until, kept, met; /* until: measured until the first candidate was kept */
    double plain, best;
    int32_t floats;
} seen;

static int32_t on_progress(void *user, const char *what, uint64_t done, uint64_t total) {
    seen *s = user;
    s->measured++;
    CHECK(what && done <= total);
    return 0;
}

static int32_t on_attempt(void *user, const qsim_attempt *a) {
    seen *s = user;
    if (strcmp(a->what, "as the options say") == 0) {
        s->plain = a->judgement->loss;
        s->met = a->met;
    } else if (a->kept) {
        s->until = s->kept++ ? s->until : s->measured;
        s->best = a->judgement->loss;
        s->floats = a->floats;
    }
    return 0;
}

/* Searches; the names of the units in float go to `names`, separated by spaces. */
static seen search(const qsim_model *m, const char *methods, char names[256]) {
    seen s = {0};
    qsim_calibration *c = NULL;
    qsim_recipe *found = NULL;
    const qsim_quantize_options base = {.struct_size = sizeof(base)};
    const qsim_search_options o = {.struct_size = sizeof(o),
                                   .methods = methods,
                                   .inputs = &input,
                                   .input_count = 1,
                                   .progress = on_progress,
                                   .progress_user = &s,
                                   .attempt = on_attempt,
                                   .attempt_user = &s};
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &input, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_create(NULL, &found, NULL), QSIM_OK);
    CHECK_INT(qsim_search(m, c, &base, &o, found, NULL, NULL), QSIM_OK);
    names[0] = 0;
    for (int32_t i = 0; i < qsim_recipe_count(found); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        CHECK_INT(qsim_recipe_get(found, i, &e), QSIM_OK);
        if (e.kind == QSIM_RECIPE_LAYER && e.action == QSIM_RECIPE_FLOAT)
            snprintf(names + strlen(names), 256 - strlen(names), "%s ", e.name);
    }
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    return s;
}

static void test_two_neighbours(void) {
    char names[256];
    static const int spoiled[] = {0, 9, 15, 29};
    for (size_t i = 0; i < sizeof(spoiled) / sizeof(*spoiled); i++) {
        char wanted[2][16];
        qsim_model *m = chain(NULL, "Relu", spoiled[i], 400);
        const seen s = search(m, "fallback", names);
        for (int k = 0; k < 2; k++)
            snprintf(wanted[k], sizeof(wanted[k]), "fc%d ", spoiled[i] + k);
        CHECK(strstr(names, wanted[0]) && strstr(names, wanted[1]));
        CHECK_INT(strlen(names), strlen(wanted[0]) + strlen(wanted[1]));
        CHECK_INT(s.kept, 1);
        CHECK_INT(s.floats, 2);
        CHECK(s.best < s.plain / 4);
        /* Each unit alone in integers, and alone in float, would be twice the layers. */
        CHECK(s.until < 2 * LAYERS);
        qsim_model_free(m);
    }
}

/* More than max_drop is lost, but by no layer more than by others: none is kept in float. */
static void test_no_exceptions(void) {
    char names[256];
    qsim_model *m = chain(NULL, "Relu", -1, 1);
    const seen s = search(m, "fallback", names);
    CHECK_STR(names, "");
    CHECK_INT(s.kept, 0);
    CHECK(!s.met);
    qsim_model_free(m);
}

/* `auto` does it where equalization, which needs a Relu, cannot help. */
static void test_in_auto(void) {
    char names[256];
    qsim_model *m = chain(NULL, "Elu", 9, 400);
    const seen s = search(m, "auto", names);
    CHECK(strstr(names, "fc9 ") && strstr(names, "fc10 "));
    CHECK(s.floats >= 2 && s.best < s.plain / 4);
    qsim_model_free(m);
}

/* A refused request of memory ends the search with NOMEM; it leaves nothing. */
static void test_memory(void) {
    test_heap heap = {0};
    const qsim_allocator a = test_heap_allocator(&heap);
    const qsim_ctx_options co = {.struct_size = sizeof(co), .threads = 1, .allocator = &a};
    qsim_ctx *ctx = NULL;
    qsim_calibration *c = NULL;
    CHECK_INT(qsim_ctx_create(&co, &ctx, NULL), QSIM_OK);
    const long empty = heap.live;
    qsim_model *m = chain(ctx, "Relu", 9, 400);
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &input, 1, NULL), QSIM_OK);
    const qsim_quantize_options base = {.struct_size = sizeof(base)};
    const qsim_search_options o = {
        .struct_size = sizeof(o), .methods = "fallback", .inputs = &input, .input_count = 1};
    int code = QSIM_E_NOMEM;
    /* Some thousand requests; most are those of a quantization, which other tests refuse. */
    for (long at = 1; code; at += 1 + at / 8) {
        qsim_recipe *found = NULL;
        qsim_error e = {0};
        heap.fail_at = 0;
        CHECK_INT(qsim_recipe_create(ctx, &found, NULL), QSIM_OK);
        heap.failed = 0;
        heap.fail_at = heap.calls + at;
        code = qsim_search(m, c, &base, &o, found, NULL, &e);
        CHECK_INT(code, heap.failed ? QSIM_E_NOMEM : QSIM_OK);
        CHECK(!code || strstr(e.message, "memory"));
        qsim_recipe_free(found);
    }
    heap.fail_at = 0;
    qsim_calibration_free(c);
    qsim_model_free(m);
    CHECK_INT(heap.live, empty);
    qsim_ctx_free(ctx);
    CHECK_INT(heap.live, 0);
}

int main(void) {
    uint64_t seed = 1;
    for (int i = 0; i < ROWS * WIDTH; i++)
        data[i] = (float)test_random(&seed) / 4294967296.0f;
    test_two_neighbours();
    test_no_exceptions();
    test_in_auto();
    test_memory();
    return test_done();
}
