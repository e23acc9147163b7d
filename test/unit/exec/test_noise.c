/* SPDX-License-Identifier: MIT */
/*
 * Random operators in models: what their numbers depend on (seed, node, iteration of a Loop) and
 * what not (runs, instruction sets, threads, levels, the file it came from, quantization).
 */
#include <stdbool.h>

#include <qsim/qsim.h>

#include "proto.h"
#include "test.h"

enum { SIZE = 3000 };

/* Outputs: noise like x, noise of a fixed shape, noise with a seed of its own, x plus noise. */
static qsim_model *make_model(void) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    const float half = 0.5f;
    CHECK_INT(qsim_builder_create(NULL, 15, "noise", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,N]");
    qsim_builder_constant_as(b, "half", "float[1]", &half);
    qsim_builder_node(b, "", "RandomNormalLike", "like", "x", "a");
    qsim_builder_node(b, "", "RandomNormal", "", "", "fixed");
    qsim_builder_attr_ints(b, "shape", (int64_t[]){2, SIZE}, 2);
    qsim_builder_node(b, "", "Identity", "", "fixed", "b");
    qsim_builder_node(b, "", "RandomUniformLike", "seeded", "x", "c");
    qsim_builder_attr_float(b, "seed", 3);
    qsim_builder_node(b, "", "Bernoulli", "coin", "half", "toss");
    qsim_builder_node(b, "", "Mul", "", "toss,half", "t");
    qsim_builder_node(b, "", "Add", "", "x,a", "s");
    qsim_builder_node(b, "", "Add", "", "s,t", "d");
    for (const char *y = "abcd"; *y; y++)
        qsim_builder_output_as(b, (char[]){*y, 0}, NULL);
    qsim_error e = {0};
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    if (!m)
        fprintf(stderr, "%s\n", e.message);
    qsim_builder_free(b);
    return m;
}

typedef struct result {
    float y[4][2 * SIZE];
} result;

typedef struct setting {
    int32_t isa, threads, level;
    uint64_t seed, later; /* of the session; of the second run */
    int runs;
} setting;

static void run_with(const qsim_model *m, const setting *how, result *out) {
    qsim_ctx_options co = {.struct_size = sizeof(co), .isa = how->isa, .threads = how->threads};
    qsim_ctx *ctx = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    static float x[2 * SIZE];
    const int64_t dims[] = {2, SIZE};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    CHECK_INT(qsim_ctx_create(&co, &ctx, NULL), 0);
    const qsim_session_options o = {
        .struct_size = sizeof(o), .ctx = ctx, .level = how->level, .seed = how->seed};
    CHECK_INT(qsim_session_create(m, &o, &s, NULL), 0);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    for (int k = 0; k < how->runs; k++) {
        qsim_tensor y[4];
        for (int i = 0; i < 4; i++)
            y[i] = (qsim_tensor){.data = out->y[i], .bytes = sizeof(out->y[i])};
        if (k)
            qsim_run_set_seed(r, how->later);
        CHECK_INT(qsim_run_execute(r, &in, 1, y, 4, NULL), 0);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_ctx_free(ctx);
}

static bool same(const result *a, const result *b, int i) {
    return memcmp(a->y[i], b->y[i], sizeof(a->y[i])) == 0;
}

static result first, other;

static void test_seeds(const qsim_model *m) {
    run_with(m, &(setting){.runs = 1}, &first);
    CHECK(memcmp(first.y[0], first.y[1], sizeof(first.y[0])) != 0); /* two nodes differ */
    run_with(m, &(setting){.runs = 3}, &other); /* the same input, the same noise */
    for (int i = 0; i < 4; i++)
        CHECK(same(&first, &other, i));
    static const setting seeds[] = {
        {.seed = 1, .runs = 1}, {.seed = UINT64_C(1) << 40, .runs = 1}, {.later = 5, .runs = 2}};
    for (size_t k = 0; k < sizeof(seeds) / sizeof(*seeds); k++) {
        run_with(m, &seeds[k], &other);
        for (int i = 0; i < 4; i++)
            CHECK(same(&first, &other, i) == (i == 2)); /* which has a seed of its own */
    }
    run_with(m, &(setting){.seed = 9, .later = 0, .runs = 2}, &other);
    for (int i = 0; i < 4; i++)
        CHECK(same(&first, &other, i));
}

/* Also: no level folds them, though inputs are constants or missing. */
static void test_settings(const qsim_model *m) {
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa); isa++) {
        qsim_ctx_options o = {.struct_size = sizeof(o), .isa = isa};
        qsim_ctx *ctx = NULL;
        if (qsim_ctx_create(&o, &ctx, NULL))
            continue;
        qsim_ctx_free(ctx);
        run_with(m, &(setting){.isa = isa, .threads = 1, .runs = 1}, &other);
        for (int i = 0; i < 4; i++)
            CHECK(same(&first, &other, i));
    }
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        run_with(m, &(setting){.level = level, .threads = 3, .seed = 4, .later = 0, .runs = 2},
                 &other);
        for (int i = 0; i < 4; i++)
            CHECK(same(&first, &other, i));
    }
}

/* A model optimized, saved and loaded again has the same numbers. */
static void test_files(const qsim_model *m) {
    static uint8_t file[1 << 16];
    size_t size = 0;
    qsim_model *better = NULL, *again = NULL;
    CHECK_INT(qsim_model_optimize(m, QSIM_LEVEL_ALL, &better, NULL), 0);
    CHECK_INT(qsim_model_save_memory(better, file, sizeof(file), &size, NULL), 0);
    CHECK_INT(qsim_model_load_memory(NULL, file, size, NULL, &again, NULL), 0);
    run_with(again, &(setting){.runs = 1}, &other);
    for (int i = 0; i < 4; i++)
        CHECK(same(&first, &other, i));
    run_with(again, &(setting){.seed = 1, .runs = 1}, &other);
    CHECK(!same(&first, &other, 0) && !same(&first, &other, 1));
    qsim_model_free(again);
    qsim_model_free(better);
}

/* ---- Loop ---- */

/* Eight iterations, each of which gives out noise of one node, and of one with a seed. */
static qsim_model *make_loop(void) {
    proto b = {0}, g = {0}, node = {0}, model = {0}, shape = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    proto_value(&b, 11, "i", QSIM_INT64, NULL, 0);
    proto_value(&b, 11, "go", QSIM_BOOL, NULL, 0);
    proto_node(&b, "Identity", "keep", "go", NULL, "on");
    proto_node(&b, "RandomNormalLike", "", "x", NULL, "z");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "w");
    proto_text(&node, 4, "RandomNormalLike");
    proto_text(&shape, 1, "seed");
    proto_tag(&shape, 2, 5);
    proto_raw(&shape, &(float){7}, 4);
    proto_int(&shape, 20, 1);
    proto_take(&node, 5, &shape);
    proto_take(&b, 1, &node);
    proto_value(&b, 12, "on", QSIM_BOOL, NULL, 0);
    proto_value(&b, 12, "z", QSIM_FLOAT, (int64_t[]){16}, 1);
    proto_value(&b, 12, "w", QSIM_FLOAT, (int64_t[]){16}, 1);
    proto_value(&g, 11, "trips", QSIM_INT64, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, (int64_t[]){16}, 1);
    proto_text(&node, 1, "trips");
    proto_text(&node, 1, "");
    proto_text(&node, 2, "zs");
    proto_text(&node, 2, "ws");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &b);
    proto_take(&g, 1, &node);
    proto_value(&g, 12, "zs", QSIM_FLOAT, (int64_t[]){-1, 16}, 2);
    proto_value(&g, 12, "ws", QSIM_FLOAT, (int64_t[]){-1, 16}, 2);
    proto_model(&model, &g);
    const qsim_load_options copy = {.struct_size = sizeof(copy), .flags = QSIM_LOAD_COPY};
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &copy, &m, &e), 0);
    if (!m)
        fprintf(stderr, "%s\n", e.message);
    proto_free(&b);
    proto_free(&g);
    proto_free(&node);
    proto_free(&model);
    proto_free(&shape);
    return m;
}

static void run_loop(const qsim_session *s, uint64_t seed, float zs[2][8][16]) {
    int64_t trips = 8;
    float x[16] = {0};
    const int64_t dims[] = {16};
    const qsim_tensor in[] = {{QSIM_INT64, 0, NULL, &trips, 8}, {QSIM_FLOAT, 1, dims, x, 64}};
    qsim_run *r = NULL;
    qsim_tensor y[2] = {{.data = zs[0], .bytes = 512}, {.data = zs[1], .bytes = 512}};
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    qsim_run_set_seed(r, seed);
    CHECK_INT(qsim_run_execute(r, in, 2, y, 2, NULL), 0);
    qsim_run_free(r);
}

static void test_loop(void) {
    qsim_model *m = make_loop();
    qsim_session *s = NULL;
    float a[2][8][16], b[2][8][16];
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), 0);
    run_loop(s, 0, a);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < i; k++)
            CHECK(memcmp(a[i / 8][i % 8], a[k / 8][k % 8], 64) != 0);
    run_loop(s, 0, b);
    CHECK(memcmp(a, b, sizeof(a)) == 0);
    run_loop(s, 1, b);
    CHECK(memcmp(a[0], b[0], sizeof(a[0])) != 0 && memcmp(a[1], b[1], sizeof(a[1])) == 0);
    qsim_session_free(s);
    qsim_model_free(m);
}

/* ---- quantization ---- */

enum { WIDE = 32 };

/* x W + noise, times 3, through a second product: a layer before the noise and one after it. */
static qsim_model *make_layers(void) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    static float w[WIDE * WIDE];
    uint64_t state = 5;
    for (int i = 0; i < WIDE * WIDE; i++)
        w[i] = (float)test_random(&state) / 2147483648.0f - 1;
    CHECK_INT(qsim_builder_create(NULL, 13, "layers", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[N,32]");
    qsim_builder_constant_as(b, "w", "float[32,32]", w);
    qsim_builder_node(b, "", "MatMul", "one", "x,w", "h");
    qsim_builder_node(b, "", "RandomNormalLike", "noise", "h", "z");
    qsim_builder_attr_float(b, "scale", 3);
    qsim_builder_node(b, "", "Add", "", "h,z", "s");
    qsim_builder_node(b, "", "MatMul", "two", "s,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    qsim_builder_free(b);
    return m;
}

/* The noise is most of the signal: another one would leave no likeness. */
static void test_quantized(void) {
    qsim_model *m = make_layers(), *q = NULL;
    qsim_calibration *c = NULL;
    qsim_error e = {0};
    static float x[8 * WIDE], zs[2][8 * WIDE];
    const char *tap[] = {"z"};
    const int64_t dims[] = {8, WIDE};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    uint64_t state = 6;
    for (int i = 0; i < 8 * WIDE; i++)
        x[i] = (float)test_random(&state) / 2147483648.0f - 1;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), 0);
    CHECK_INT(qsim_calibration_feed(c, &in, 1, &e), 0);
    CHECK_INT(qsim_quantize(m, c, NULL, &q, &e), 0);
    if (e.code)
        fprintf(stderr, "%s\n", e.message);
    for (int k = 0; k < 2; k++) {
        const qsim_session_options o = {
            .struct_size = sizeof(o), .outputs = tap, .output_count = 1};
        qsim_session *s = NULL;
        qsim_run *r = NULL;
        qsim_tensor y = {.data = zs[k], .bytes = sizeof(zs[k])};
        CHECK_INT(qsim_session_create(k ? q : m, &o, &s, &e), 0);
        CHECK_INT(qsim_run_create(s, &r, NULL), 0);
        CHECK_INT(qsim_run_execute(r, &in, 1, &y, 1, NULL), 0);
        qsim_run_free(r);
        qsim_session_free(s);
    }
    CHECK(memcmp(zs[0], zs[1], sizeof(zs[0])) == 0);
    qsim_verdict *v = NULL;
    qsim_verdict_info info = {.struct_size = sizeof(info)};
    CHECK_INT(qsim_verdict_create(m, q, NULL, &v, &e), 0);
    CHECK_INT(qsim_verdict_feed(v, &in, 1, &e), 0);
    CHECK_INT(qsim_verdict_output(v, 0, &info), 0);
    CHECK(info.sqnr > 20);
    qsim_verdict_free(v);
    qsim_calibration_free(c);
    qsim_model_free(q);
    qsim_model_free(m);
}

int main(void) {
    qsim_model *m = make_model();
    test_seeds(m);
    test_settings(m);
    test_files(m);
    qsim_model_free(m);
    test_loop();
    test_quantized();
    return test_done();
}
