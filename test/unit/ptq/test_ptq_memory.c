/* SPDX-License-Identifier: MIT */
/* Calibrating and quantizing when the n-th allocation fails: an error, nothing lost, no crash. */
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

/* Given, so that what is tried does not depend on how fast the machine is just now. */
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

/* The whole way; the first error, or OK. */
static int work(qsim_ctx *ctx, const qsim_model *m) {
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
                              .methods = "greedy,anneal,auto",
                              .steps = 2,
                              .cost = cost};
    qsim_quantize_options qo = {.struct_size = sizeof(qo), .format = QSIM_FORMAT_QOPERATOR};
    int code = qsim_calibration_create(m, NULL, &c, NULL);
    if (!code)
        code = qsim_calibration_feed(c, &t, 1, NULL);
    if (!code)
        code = qsim_calibration_load_memory(ctx, text, strlen(text), NULL, &d, NULL);
    if (!code)
        code = qsim_recipe_create(ctx, &found, NULL);
    if (!code)
        code = qsim_recipe_create(ctx, &decided, NULL);
    if (!code)
        code = qsim_search(m, c, NULL, &so, found, NULL, NULL);
    if (!code)
        code = qsim_sensitivity(m, c, NULL, &so, NULL, NULL, NULL, NULL);
    code = code > 0 ? QSIM_OK : code;
    qo.recipe = found;
    qo.decided = decided;
    if (!code)
        code = qsim_quantize(m, c, &qo, &q, NULL);
    qsim_model_free(q);
    qsim_recipe_free(found);
    qsim_recipe_free(decided);
    qsim_calibration_free(c);
    qsim_calibration_free(d);
    return code;
}

int main(void) {
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    qsim_model *m = small_net(ctx);
    h.calls = 0;
    CHECK_INT(work(ctx, m), QSIM_OK);
    long calls = h.calls, live = h.live, wrong = 0, lost = 0;
    CHECK(calls > 100);
    for (long n = 1; n <= calls; n += STEP) {
        h.calls = 0;
        h.fail_at = n;
        int code = work(ctx, m);
        wrong += code != QSIM_E_NOMEM;
        lost += h.live != live;
        if (code != QSIM_E_NOMEM || h.live != live)
            fprintf(stderr, "allocation %ld: %d, %ld blocks lost\n", n, code, h.live - live);
        live = h.live;
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(lost, 0);
    h.fail_at = 0;
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
    return test_done();
}
