/* SPDX-License-Identifier: MIT */
/*
 * Layers inside of If and Loop are quantized like those of the main graph. The branches give
 * different sizes, so that the If stays; they and the main graph share a weight, and two values of
 * the branches have one name.
 */
#include <math.h>
#include <stdbool.h>

#include "heap.h"
#include "proto.h"
#include "test.h"

#include <qsim/ptq.h>
#include <qsim/qsim.h>
#include <qsim/recipe.h>

#define WIDTH 64
#define ROWS  3

static void weights(proto *graph, const char *name, int64_t columns, uint64_t seed) {
    static float data[WIDTH * WIDTH];
    const size_t count = WIDTH * (size_t)columns;
    proto t = {0};
    for (size_t i = 0; i < count; i++)
        data[i] = ((float)test_random(&seed) / 2147483648.0f - 1) * 0.2f;
    proto_int(&t, 1, WIDTH);
    proto_int(&t, 1, columns);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, data, count * sizeof(float));
    proto_take(graph, 5, &t);
    proto_free(&t);
}

/* Adds a node of com.microsoft. */
static void contributed(proto *graph, const char *op, const char *a, const char *b, const char *y) {
    proto node = {0};
    proto_text(&node, 1, a);
    proto_text(&node, 1, b);
    proto_text(&node, 2, y);
    proto_text(&node, 4, op);
    proto_text(&node, 7, "com.microsoft");
    proto_take(graph, 1, &node);
    proto_free(&node);
}

/* y = If(c) { Relu(h w) } else { h v }, with h = x w; or with com.microsoft's FusedMatMul and
 * FastGelu. */
static void add_if(proto *g, bool foreign) {
    proto then = {0}, other = {0};
    proto_node(g, "MatMul", "outer", "x", "w", "h");
    if (foreign) {
        contributed(&then, "FusedMatMul", "h", "w", "t");
        contributed(&then, "FastGelu", "t", "", "r");
    } else {
        proto_node(&then, "MatMul", "same", "h", "w", "t");
        proto_node(&then, "Relu", "relu", "t", NULL, "r");
    }
    proto_name(&then, 12, "r");
    weights(&other, "v", 5, 2);
    proto_node(&other, "MatMul", "other", "h", "v", "t");
    proto_name(&other, 12, "t");
    proto_if(g, "choice", "c", &then, &other, "y");
    proto_free(&then);
    proto_free(&other);
}

/* z: three times s = Tanh(s u), from x; the weight is the main graph's. */
static void add_loop(proto *g) {
    static const int64_t times = 3;
    proto body = {0}, node = {0}, t = {0};
    proto_name(&body, 11, "i");
    proto_name(&body, 11, "go");
    proto_name(&body, 11, "s");
    proto_node(&body, "MatMul", "step", "s", "u", "k");
    proto_node(&body, "Tanh", "tanh", "k", NULL, "next");
    proto_node(&body, "Identity", "again", "go", NULL, "more");
    proto_name(&body, 12, "more");
    proto_name(&body, 12, "next");
    proto_int(&t, 2, QSIM_INT64);
    proto_text(&t, 8, "n");
    proto_bytes(&t, 9, &times, sizeof(times));
    proto_take(g, 5, &t);
    proto_text(&node, 1, "n");
    proto_text(&node, 1, "");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "z");
    proto_text(&node, 3, "loop");
    proto_text(&node, 4, "Loop");
    proto_graph(&node, "body", &body);
    proto_take(g, 1, &node);
    proto_free(&body);
    proto_free(&node);
    proto_free(&t);
}

static qsim_model *load(qsim_ctx *ctx, const void *data, size_t size) {
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_COPY};
    qsim_model *m = NULL;
    qsim_error e = {0};
    if (qsim_model_load_memory(ctx, data, size, &o, &m, &e))
        CHECK_FAIL(e.message);
    return m;
}

static qsim_model *nested(qsim_ctx *ctx, bool foreign) {
    const int64_t rows[] = {-1, WIDTH}, any[] = {-1, -1};
    proto g = {0}, model = {0};
    proto_text(&g, 2, "nested");
    weights(&g, "w", WIDTH, 1);
    weights(&g, "u", WIDTH, 3);
    proto_value(&g, 11, "c", QSIM_BOOL, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, rows, 2);
    add_if(&g, foreign);
    add_loop(&g);
    proto_value(&g, 12, "y", QSIM_FLOAT, any, 2);
    proto_value(&g, 12, "z", QSIM_FLOAT, rows, 2);
    proto_model(&model, &g);
    qsim_model *m = load(ctx, model.data, model.size);
    proto_free(&g);
    proto_free(&model);
    return m;
}

/* Saves a model and loads it again. *size: of the file. */
static qsim_model *reloaded(const qsim_model *m, size_t *size) {
    qsim_error e = {0};
    *size = 0;
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, size, &e), QSIM_OK);
    void *file = malloc(*size);
    CHECK_INT(qsim_model_save_memory(m, file, *size, size, &e), QSIM_OK);
    qsim_model *again = load(NULL, file, *size);
    free(file);
    return again;
}

static qsim_model *quantize(const qsim_model *m, const qsim_calibration *c,
                            const qsim_quantize_options *o) {
    qsim_model *q = NULL;
    qsim_error e = {0};
    if (qsim_quantize(m, c, o, &q, &e))
        CHECK_FAIL(e.message);
    return q;
}

/* ---- results ---- */

typedef struct results {
    float y[ROWS * WIDTH], z[ROWS * WIDTH];
    size_t count; /* of y */
} results;

static void make_input(float *x, uint64_t seed) {
    for (size_t i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)test_random(&seed) / 2147483648.0f - 1;
}

static void run(const qsim_model *m, bool condition, results *out) {
    static const int64_t dims[] = {ROWS, WIDTH};
    float x[ROWS * WIDTH];
    uint8_t c = condition;
    const qsim_tensor in[2] = {{QSIM_BOOL, 0, NULL, &c, 1}, {QSIM_FLOAT, 2, dims, x, sizeof(x)}};
    qsim_tensor y[2] = {{0}};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    make_input(x, 9);
    memset(out, 0, sizeof(*out));
    if (qsim_session_create(m, NULL, &s, &e) || qsim_run_create(s, &r, &e) ||
        qsim_run_execute(r, in, 2, y, 2, &e)) {
        CHECK_FAIL(e.message);
    } else {
        out->count = y[0].bytes / sizeof(float);
        memcpy(out->y, y[0].data, y[0].bytes);
        memcpy(out->z, y[1].data, y[1].bytes);
    }
    qsim_run_free(r);
    qsim_session_free(s);
}

/* The largest difference, as a share of the largest value. */
static float apart(const float *a, const float *b, size_t count) {
    float most = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(a[i] - b[i]));
        largest = fmaxf(largest, fabsf(a[i]));
    }
    return most / largest;
}

/* Whether both outputs are nearly the float model's, and not the same. */
static void check_close(const qsim_model *m, const qsim_model *q) {
    for (int c = 0; c < 2; c++) {
        results a, b;
        run(m, c, &a);
        run(q, c, &b);
        CHECK_INT(a.count, ROWS * (c ? WIDTH : 5));
        CHECK_INT(b.count, a.count);
        CHECK(apart(a.y, b.y, a.count) > 0 && apart(a.y, b.y, a.count) < 0.04f);
        CHECK(apart(a.z, b.z, ROWS * WIDTH) > 0 && apart(a.z, b.z, ROWS * WIDTH) < 0.04f);
    }
}

/* ---- checks ---- */

typedef struct listed {
    int integer, floats;
    char names[64];
} listed;

static int list(void *user, const qsim_layer_info *info) {
    listed *l = user;
    l->integer += info->scheme >= 0;
    l->floats += info->scheme < 0;
    snprintf(l->names + strlen(l->names), sizeof(l->names) - strlen(l->names), "%s ", info->name);
    return 0;
}

static listed layers(const qsim_model *m, const qsim_quantize_options *o) {
    listed l = {0};
    qsim_error e = {0};
    CHECK_INT(qsim_quantize_layers(m, NULL, o, list, &l, &e), 4);
    return l;
}

/* A file holds no float weight: all four take some 49 KB, in 8 bits a quarter of it. */
#define SMALL (4 * WIDTH * WIDTH + 12000)

static void check_mode(const qsim_model *m, const qsim_quantize_options *o) {
    const listed l = layers(m, o);
    size_t size, before;
    qsim_model *q = quantize(m, NULL, o), *again = reloaded(q, &size), *twice = NULL;
    qsim_model *same = reloaded(m, &before);
    qsim_error e = {0};
    CHECK_INT(l.integer, 4);
    CHECK_INT(l.floats, 0);
    CHECK(strstr(l.names, "same ") && strstr(l.names, "other ") && strstr(l.names, "step "));
    CHECK(size < SMALL && size < before);
    check_close(m, again);
    CHECK_INT(qsim_quantize(again, NULL, o, &twice, &e), QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "is already quantized"));
    qsim_model_free(q);
    qsim_model_free(again);
    qsim_model_free(same);
}

static void check_modes(const qsim_model *m) {
    const qsim_quantize_options modes[] = {
        {.struct_size = sizeof(*modes), .mode = QSIM_MODE_WEIGHTS},
        {.struct_size = sizeof(*modes), .mode = QSIM_MODE_DYNAMIC},
        {.struct_size = sizeof(*modes), .mode = QSIM_MODE_DYNAMIC, .per_row = 1},
    };
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        check_mode(m, &modes[i]);
}

/* Rules and recipes reach the layers inside, by name. */
static void check_settings(const qsim_model *m) {
    const qsim_rule rule = {sizeof(rule), "step", QSIM_RULE_FLOAT, 0},
                    wrong = {sizeof(wrong), "nowhere", QSIM_RULE_FLOAT, 0};
    qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    qsim_model *none = NULL;
    qsim_error e = {0};
    o.rules = &wrong;
    o.rule_count = 1;
    CHECK_INT(qsim_quantize(m, NULL, &o, &none, &e), QSIM_E_NOT_FOUND);
    o.rules = &rule;
    CHECK_INT(layers(m, &o).integer, 3);
    CHECK_INT(qsim_recipe_create(NULL, &o.decided, &e), QSIM_OK);
    qsim_model *q = quantize(m, NULL, &o);
    CHECK_INT(qsim_recipe_count(o.decided), 4);
    const qsim_quantize_options by = {
        .struct_size = sizeof(by), .mode = QSIM_MODE_DYNAMIC, .recipe = o.decided};
    CHECK_INT(layers(m, &by).integer, 3);
    qsim_model_free(quantize(m, NULL, &by));
    results a, b;
    run(m, true, &a);
    run(q, true, &b);
    CHECK(memcmp(a.z, b.z, sizeof(a.z)) == 0);
    CHECK(memcmp(a.y, b.y, sizeof(a.y)) != 0);
    qsim_model_free(q);
    qsim_recipe_free(o.decided);
}

/* MatMulNBits inside: the model imports its domain. */
static void check_narrow(const qsim_model *m) {
    const qsim_rule rule = {sizeof(rule), "step", QSIM_RULE_INT4, 0};
    const qsim_quantize_options o = {
        .struct_size = sizeof(o), .rules = &rule, .rule_count = 1, .mode = QSIM_MODE_DYNAMIC};
    size_t size;
    qsim_model *q = quantize(m, NULL, &o), *again = reloaded(q, &size);
    results a, b;
    run(m, true, &a);
    run(again, true, &b);
    CHECK(apart(a.z, b.z, ROWS * WIDTH) > 0 && apart(a.z, b.z, ROWS * WIDTH) < 0.3f);
    qsim_model_free(q);
    qsim_model_free(again);
}

/* Other forms of a layer of the main graph; graphs inside that are quantized are refused. */
static void check_converted(const qsim_model *m) {
    const qsim_rule rules[] = {{sizeof(*rules), "*", QSIM_RULE_FLOAT, 0},
                               {sizeof(*rules), "outer", QSIM_RULE_INT8, 0}};
    qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    qsim_model *all = quantize(m, NULL, &o), *made = NULL;
    qsim_error e = {0};
    o.rules = rules;
    o.rule_count = 2;
    qsim_model *q = quantize(m, NULL, &o);
    for (int32_t format = QSIM_FORMAT_QDQ; format <= QSIM_FORMAT_FLOAT; format += 2) {
        CHECK_INT(qsim_model_convert_to(all, format, &made, &e), QSIM_E_UNSUPPORTED);
        CHECK(strstr(e.message, "it is inside of another node"));
        CHECK_INT(qsim_model_convert_to(q, format, &made, &e), QSIM_OK);
        for (int c = 0; c < 2; c++) {
            results a, b;
            run(m, c, &a);
            run(made, c, &b);
            CHECK_INT(b.count, a.count);
            CHECK(apart(a.y, b.y, a.count) > 0 && apart(a.y, b.y, a.count) < 0.01f);
            CHECK(memcmp(a.z, b.z, sizeof(a.z)) == 0);
        }
        qsim_model_free(made);
    }
    qsim_model_free(all);
    qsim_model_free(q);
}

/* Operators of com.microsoft inside of a node are replaced, too; new values have names. */
static void check_foreign(void) {
    qsim_model *m = nested(NULL, true), *made = NULL;
    qsim_error e = {0};
    size_t size;
    CHECK_INT(qsim_model_convert_to(m, QSIM_FORMAT_ONNX, &made, &e), QSIM_OK);
    qsim_model *again = reloaded(made, &size);
    CHECK_INT(qsim_model_opset(m, "com.microsoft"), 1);
    CHECK_INT(qsim_model_opset(again, "com.microsoft"), 0);
    for (int c = 0; c < 2; c++) {
        results a, b;
        run(m, c, &a);
        run(again, c, &b);
        CHECK(memcmp(&a, &b, sizeof(a)) == 0);
    }
    qsim_model_free(again);
    qsim_model_free(made);
    qsim_model_free(m);
}

/* ---- static ---- */

/* How the file says that it was quantized. */
static const char *options_of(const qsim_model *m) {
    for (int32_t i = 0; i < qsim_model_metadata_count(m); i++)
        if (strcmp(qsim_model_metadata_key(m, i), "qsim.options") == 0)
            return qsim_model_metadata_value(m, i);
    return "";
}

/* Calibrates on samples of four rows that take the branches in `taken`: 1, 2 or 3 for both. */
static qsim_calibration *calibrate(const qsim_model *m, int taken) {
    static const int64_t dims[] = {ROWS, WIDTH};
    qsim_calibration *c = NULL;
    qsim_error e = {0};
    float x[ROWS * WIDTH];
    CHECK_INT(qsim_calibration_create(m, NULL, &c, &e), QSIM_OK);
    for (uint64_t seed = 9; seed < 13; seed++)
        for (uint8_t on = 0; on < 2; on++) {
            const qsim_tensor in[2] = {{QSIM_BOOL, 0, NULL, &on, 1},
                                       {QSIM_FLOAT, 2, dims, x, sizeof(x)}};
            make_input(x, seed);
            if ((taken & (on ? 1 : 2)) && qsim_calibration_feed(c, in, 2, &e))
                CHECK_FAIL(e.message);
        }
    return c;
}

static const qsim_observer *seen(const qsim_calibration *c, const char *name) {
    for (int32_t i = 0; i < qsim_calibration_count(c); i++)
        if (strcmp(qsim_calibration_name(c, i), name) == 0)
            return qsim_calibration_observer(c, i);
    CHECK_FAIL(name);
    return NULL;
}

/* An inner tensor is seen as often as its graph runs: a Loop's of three iterations three times. */
static void check_seen(const qsim_model *m) {
    const size_t size = 4 * ROWS * WIDTH;
    qsim_calibration *c = calibrate(m, 1);
    results a;
    float low = 0, high = 0;
    run(m, true, &a);
    for (size_t i = 0; i < a.count; i++)
        high = fmaxf(high, a.y[i]);
    CHECK_INT(qsim_observer_count(seen(c, "r")), size);
    CHECK(qsim_observer_min(seen(c, "r")) == 0);
    CHECK(qsim_observer_max(seen(c, "r")) >= high);
    CHECK_INT(qsim_observer_count(seen(c, "h")), size);
    CHECK_INT(qsim_observer_count(seen(c, "s")), 3 * size);
    CHECK_INT(qsim_observer_count(seen(c, "k")), 3 * size);
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        low = fminf(low, a.z[i]);
        CHECK(a.z[i] <= qsim_observer_max(seen(c, "s")));
    }
    /* States after an iteration are tanh of a sum; the first one is the input, nearly +-1. */
    CHECK(qsim_observer_max(seen(c, "s")) > 0.99f && qsim_observer_max(seen(c, "s")) <= 1);
    CHECK(tanhf(qsim_observer_min(seen(c, "k"))) <= low + 1e-6f);
    qsim_calibration_free(c);
}

static void check_static(const qsim_model *m) {
    qsim_calibration *both = calibrate(m, 3), *one = calibrate(m, 1);
    qsim_quantize_options o = {.struct_size = sizeof(o)};
    qsim_error e = {0};
    size_t size;
    for (o.format = QSIM_FORMAT_QDQ; o.format <= QSIM_FORMAT_QOPERATOR; o.format++) {
        listed l = {0};
        CHECK_INT(qsim_quantize_layers(m, both, &o, list, &l, &e), 4);
        CHECK_INT(l.integer, 4);
        qsim_model *q = quantize(m, both, &o), *again = reloaded(q, &size);
        CHECK(size < SMALL);
        CHECK(strstr(options_of(q), "bias-corrected=4") || o.format == QSIM_FORMAT_QOPERATOR);
        check_close(m, again);
        qsim_model_free(q);
        qsim_model_free(again);
    }
    /* The other branch stays in floats: its tensors were not seen. */
    listed l = {0};
    o.format = QSIM_FORMAT_QDQ;
    CHECK_INT(qsim_quantize_layers(m, one, &o, list, &l, &e), 4);
    CHECK_INT(l.integer, 3);
    qsim_calibration_free(both);
    qsim_calibration_free(one);
}

/* The means of a Loop's states correct its biases: the mean of a result is nearly the float one. */
static void check_corrected(const qsim_model *m) {
    qsim_calibration *c = calibrate(m, 3);
    qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    qsim_model *q = quantize(m, c, &o);
    CHECK(strstr(options_of(q), "bias-corrected=4") != NULL);
    check_close(m, q);
    qsim_model_free(q);
    qsim_calibration_free(c);
}

/* ---- without memory ---- */

/* Calibrates on one sample of each branch, and quantizes in all modes. */
static int all_modes(const qsim_model *m, qsim_error *e) {
    static const int64_t dims[] = {ROWS, WIDTH};
    static float x[ROWS * WIDTH];
    qsim_calibration *c = NULL;
    qsim_quantize_options o = {.struct_size = sizeof(o)};
    int code = qsim_calibration_create(m, NULL, &c, e);
    make_input(x, 9);
    for (uint8_t on = 0; on < 2 && !code; on++) {
        const qsim_tensor in[2] = {{QSIM_BOOL, 0, NULL, &on, 1},
                                   {QSIM_FLOAT, 2, dims, x, sizeof(x)}};
        code = qsim_calibration_feed(c, in, 2, e);
    }
    for (; o.mode <= QSIM_MODE_WEIGHTS && !code; o.mode++) {
        qsim_model *q = NULL;
        code = qsim_quantize(m, c, &o, &q, e);
        qsim_model_free(q);
    }
    if (!code && qsim_quantize_layers(m, c, NULL, NULL, NULL, e) != 4)
        code = e->code ? e->code : QSIM_E_INTERNAL;
    qsim_calibration_free(c);
    return code;
}

/*
 * Each fifth allocation fails: an error with a message, no leak, no crash. It fails once, or, where
 * a run frees what no value has and succeeds when it asks again, from then on.
 */
static void check_memory(void) {
    test_heap h = {0};
    const qsim_allocator a = test_heap_allocator(&h);
    const qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    qsim_model *m = nested(ctx, false);
    h.calls = 0;
    CHECK_INT(all_modes(m, &e), QSIM_OK);
    const long calls = h.calls;
    for (long n = 1; n <= calls; n += 5) {
        const long live = h.live;
        h.calls = 0;
        h.fail_at = n;
        int code = all_modes(m, &e);
        if (!code) {
            h.calls = 0;
            h.fail_after = true;
            code = all_modes(m, &e);
            h.fail_after = false;
        }
        if (code != QSIM_E_NOMEM || !strstr(e.message, "out of memory") || h.live != live)
            fprintf(stderr, "allocation %ld: %d '%s', %ld blocks lost\n", n, code, e.message,
                    h.live - live);
        CHECK_INT(code, QSIM_E_NOMEM);
        CHECK(strstr(e.message, "out of memory") != NULL);
        CHECK_INT(h.live, live);
    }
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
}

int main(void) {
    qsim_model *m = nested(NULL, false);
    if (m) {
        check_seen(m);
        check_static(m);
        check_corrected(m);
        check_modes(m);
        check_settings(m);
        check_converted(m);
        check_narrow(m);
    }
    qsim_model_free(m);
    check_foreign();
    check_memory();
    return test_done();
}
