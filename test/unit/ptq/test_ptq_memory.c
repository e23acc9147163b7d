/* SPDX-License-Identifier: MIT */
/* Calibrating and quantizing when the n-th allocation fails: an error, no leak, no crash. */
#include "heap.h"
#include "ptq_nets.h"

static qsim_model *small_net(qsim_ctx *ctx) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(ctx, 13, "small", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){1, 2, 4, 4}, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){1, 3}, NULL);
    net_constant(b, "w", 4, (int64_t[]){2, 2, 1, 1}, 1, 1);
    net_constant(b, "b", 1, (int64_t[]){2}, 1, 2);
    net_constant(b, "v", 2, (int64_t[]){32, 3}, 1, 3);
    qsim_builder_node(b, "", "Conv", "conv", "x,w,b", "c");
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "Flatten", "flat", "r", "f");
    qsim_builder_node(b, "", "MatMul", "fc", "f,v", "y");
    return net_finish(b);
}

/* small_net with a layer in between, which gets 4 bits where weights may have them. */
static qsim_model *deep_net(qsim_ctx *ctx) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(ctx, 13, "deep", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){1, 2, 4, 4}, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){1, 3}, NULL);
    net_constant(b, "w", 4, (int64_t[]){2, 2, 1, 1}, 1, 1);
    net_constant(b, "u", 4, (int64_t[]){2, 2, 1, 1}, 0.1f, 2);
    net_constant(b, "v", 2, (int64_t[]){32, 3}, 1, 3);
    qsim_builder_node(b, "", "Conv", "conv", "x,w", "c");
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "Conv", "next", "r,u", "n");
    qsim_builder_node(b, "", "Flatten", "flat", "n", "f");
    qsim_builder_node(b, "", "MatMul", "fc", "f,v", "y");
    return net_finish(b);
}

/* A given cost, so that attempts do not depend on the machine's speed. */
static void cost(void *user, const char *unit, double *in_float, double *in_integers) {
    (void)user;
    (void)unit;
    *in_float = 1;
    *in_integers = 2;
}

/* Every allocation fails once; under AddressSanitizer, ten times as slow, each seventh does. */
#if defined(__SANITIZE_ADDRESS__)
#define STEP 7
#else
#define STEP 1
#endif

/* Time grows with the square of a way's allocations: each search is a way of its own. */
#define WORKS   4
#define NARROWS 5

#define BINS 128 /* the least: a search for a range takes as long as there are many */

static qsim_error failure; /* of the call that failed */

/* All calls from calibration to quantized model, with one search; the first error, or OK. */
static int work(qsim_ctx *ctx, const qsim_model *m, int part) {
    static const char *const methods[WORKS - 1] = {"greedy", "anneal", "auto"};
    static const char text[] =
        "qsim-calibration 1\n"
        "model 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
        "samples 1\ntensor \"z\" 0x0p+0 0x0p+0 -160 0 1 7\n";
    static float x[32];
    const int64_t dims[4] = {1, 2, 4, 4};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_calibration *c = NULL, *d = NULL;
    qsim_model *q = NULL;
    qsim_recipe *found = NULL, *decided = NULL;
    uint64_t seed = 3;
    for (int i = 0; i < 32; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    qsim_search_options so = {.struct_size = sizeof(so),
                              .inputs = &t,
                              .input_count = 1,
                              .methods = part < WORKS - 1 ? methods[part] : NULL,
                              .steps = 2,
                              .cost = cost};
    qsim_quantize_options qo = {.struct_size = sizeof(qo), .format = QSIM_FORMAT_QOPERATOR};
    const qsim_calibration_options co = {.struct_size = sizeof(co), .bins = BINS};
    int code = qsim_calibration_create(m, &co, &c, &failure);
    if (!code)
        code = qsim_calibration_feed(c, &t, 1, &failure);
    if (!code)
        code = qsim_calibration_load_memory(ctx, text, strlen(text), NULL, &d, &failure);
    if (!code)
        code = qsim_recipe_create(ctx, &found, &failure);
    if (!code)
        code = qsim_recipe_create(ctx, &decided, &failure);
    if (!code && so.methods)
        code = qsim_search(m, c, &qo, &so, found, NULL, &failure);
    else if (!code)
        code = qsim_sensitivity(m, c, NULL, &so, NULL, NULL, NULL, &failure);
    code = code > 0 ? QSIM_OK : code;
    qo.recipe = found;
    qo.decided = decided;
    if (!code)
        code = qsim_quantize(m, c, &qo, &q, &failure);
    qsim_model_free(q);
    qsim_recipe_free(found);
    qsim_recipe_free(decided);
    qsim_calibration_free(c);
    qsim_calibration_free(d);
    return code;
}

/* 4-bit weights: GPTQ, equalized by a recipe; in blocks. */
static int quantize_narrow(qsim_ctx *ctx, const qsim_model *m, const qsim_calibration *c,
                           qsim_quantize_options *qo) {
    static const char text[] = "qsim-recipe 1\nequalize \"c\" 2 2 0.5\n";
    const qsim_rule all = {.struct_size = sizeof(all), .pattern = "fc", .action = QSIM_RULE_INT4};
    qsim_model *q = NULL;
    qsim_recipe *given = NULL;
    int code = qsim_recipe_load_memory(ctx, text, strlen(text), NULL, &given, &failure);
    qo->recipe = given;
    if (!code)
        code = qsim_quantize(m, c, qo, &q, &failure);
    qsim_model_free(q);
    q = NULL;
    qo->mode = QSIM_MODE_DYNAMIC;
    qo->weight_block = 16;
    qo->rules = &all;
    qo->rule_count = 1;
    if (!code)
        code = qsim_quantize(m, c, qo, &q, &failure);
    qsim_model_free(q);
    qsim_recipe_free(given);
    return code;
}

/* Calibrates for them, and searches by one method or quantizes in both forms. */
static int narrow(qsim_ctx *ctx, const qsim_model *m, int part) {
    static const char *const methods[NARROWS - 1] = {"equalize", "smooth", "refine", "auto"};
    static float x[32];
    const int64_t dims[4] = {1, 2, 4, 4};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    qsim_calibration *c = NULL;
    qsim_recipe *found = NULL;
    uint64_t seed = 3;
    for (int i = 0; i < 32; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
    qsim_quantize_options qo = {
        .struct_size = sizeof(qo), .weight_type = QSIM_INT4, .keep_moments = 1};
    const qsim_calibration_options co = {.struct_size = sizeof(co), .bins = BINS, .quantize = &qo};
    const qsim_quantize_options eight = {.struct_size = sizeof(eight)};
    qsim_search_options so = {.struct_size = sizeof(so),
                              .inputs = &t,
                              .input_count = 1,
                              .methods = part < NARROWS - 1 ? methods[part] : NULL,
                              .goal = QSIM_GOAL_SIZE,
                              .max_drop = 100,
                              .bits = QSIM_BITS_4,
                              .cost = cost};
    int code = qsim_calibration_create(m, &co, &c, &failure);
    if (!code)
        code = qsim_calibration_feed(c, &t, 1, &failure);
    if (!code)
        code = qsim_recipe_create(ctx, &found, &failure);
    if (!code)
        code = so.methods ? qsim_search(m, c, &eight, &so, found, NULL, &failure)
                          : quantize_narrow(ctx, m, c, &qo);
    qsim_recipe_free(found);
    qsim_calibration_free(c);
    return code;
}

/* Lets each `step`th allocation of `way` fail. */
static void sweep_part(test_heap *h, qsim_ctx *ctx, const qsim_model *m, long step,
                       int (*way)(qsim_ctx *ctx, const qsim_model *m, int part), int part) {
    h->calls = h->fail_at = 0;
    CHECK_INT(way(ctx, m, part), QSIM_OK);
    long calls = h->calls, live = h->live, wrong = 0, lost = 0;
    CHECK(calls > 100);
    for (long n = 1; n <= calls; n += step) {
        h->calls = 0;
        h->fail_at = n;
        int code = way(ctx, m, part);
        const bool said = code == QSIM_E_NOMEM && strstr(failure.message, "out of memory");
        wrong += !said;
        lost += h->live != live;
        if (!said || h->live != live)
            fprintf(stderr, "allocation %ld: %d '%s', %ld blocks lost\n", n, code, failure.message,
                    h->live - live);
        live = h->live;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(lost, 0);
    h->fail_at = 0;
    fprintf(stderr, "%d: %ld allocations\n", part, calls);
}

static void sweep(test_heap *h, qsim_ctx *ctx, qsim_model *m, long step,
                  int (*way)(qsim_ctx *ctx, const qsim_model *m, int part), int parts) {
    for (int part = 0; part < parts; part++)
        sweep_part(h, ctx, m, step, way, part);
    qsim_model_free(m);
}

int main(void) {
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    sweep(&h, ctx, small_net(ctx), STEP, work, WORKS);
    sweep(&h, ctx, deep_net(ctx), 7 * STEP, narrow, NARROWS); /* three times as many, each slower */
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
    return test_done();
}
