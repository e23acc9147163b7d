/* SPDX-License-Identifier: MIT */
/*
 * Every allocation can fail. The whole job - build a model, write and read it, run it, calibrate,
 * quantize, run the result - is repeated with the first, second, … n-th allocation failing, until
 * one pass gets through. Each failing pass must end with QSIM_E_NOMEM and give back every byte.
 */
#include "heap.h"
#include "proto.h"

#include <qsim/qsim.h>

static float samples[4][64];

static int build(qsim_ctx *ctx, qsim_model **model, qsim_error *e) {
    static float w1[4 * 1 * 3 * 3], b1[4], w2[5 * 64], b2[5];
    uint64_t seed = 42;
    for (size_t i = 0; i < 36; i++)
        w1[i] = (float)(test_random(&seed) % 200) / 100.0f - 1.0f;
    for (size_t i = 0; i < 320; i++)
        w2[i] = (float)(test_random(&seed) % 200) / 100.0f - 1.0f;
    const int64_t x[] = {-1, 1, 8, 8}, y[] = {-1, 5}, dw1[] = {4, 1, 3, 3}, db1[] = {4};
    const int64_t dw2[] = {5, 64}, db2[] = {5}, pads[] = {1, 1, 1, 1}, two[] = {2, 2};
    const char *const names[] = {"N", NULL, NULL, NULL};
    qsim_tensor t[] = {{QSIM_FLOAT, 4, dw1, w1, sizeof(w1)},
                       {QSIM_FLOAT, 1, db1, b1, sizeof(b1)},
                       {QSIM_FLOAT, 2, dw2, w2, sizeof(w2)},
                       {QSIM_FLOAT, 1, db2, b2, sizeof(b2)}};
    qsim_builder *b = NULL;
    int code = qsim_builder_create(ctx, 13, "g", &b, e);
    if (code)
        return code;
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, x, names);
    qsim_builder_constant(b, "w1", &t[0]);
    qsim_builder_constant(b, "b1", &t[1]);
    qsim_builder_constant(b, "w2", &t[2]);
    qsim_builder_constant(b, "b2", &t[3]);
    qsim_builder_node(b, "", "Conv", "conv", "x,w1,b1", "c");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "MaxPool", "pool", "r", "p");
    qsim_builder_attr_ints(b, "kernel_shape", two, 2);
    qsim_builder_attr_ints(b, "strides", two, 2);
    qsim_builder_node(b, "", "Flatten", "flat", "p", "f");
    qsim_builder_node(b, "", "Gemm", "fc", "f,w2,b2", "y");
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, y, names);
    code = qsim_builder_finish(b, model, e);
    qsim_builder_free(b);
    return code;
}

static int execute(const qsim_model *m, qsim_error *e) {
    const int64_t dims[] = {2, 1, 8, 8};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, samples, 2 * 64 * sizeof(float)}, out = {0};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &in, 1, &out, 1, e);
    if (!code)
        CHECK(out.rank == 2 && out.dims[0] == 2 && out.dims[1] == 5);
    qsim_session_free(s);
    qsim_run_free(r);
    return code;
}

static int round_trip(qsim_ctx *ctx, const qsim_model *m, char *file, size_t capacity, size_t *size,
                      qsim_error *e) {
    qsim_model *again = NULL;
    int code = qsim_model_save_memory(m, file, capacity, size, e);
    if (!code)
        code = qsim_model_load_memory(ctx, file, *size, NULL, &again, e);
    qsim_model_free(again);
    return code;
}

static int quantize(const qsim_model *m, qsim_model **q, qsim_error *e) {
    const int64_t dims[] = {4, 1, 8, 8};
    qsim_tensor in = {QSIM_FLOAT, 4, dims, samples, sizeof(samples)};
    qsim_calibration *c = NULL;
    int code = qsim_calibration_create(m, NULL, &c, e);
    if (!code)
        code = qsim_calibration_feed(c, &in, 1, e);
    if (!code)
        code = qsim_quantize(m, c, NULL, q, e);
    qsim_calibration_free(c);
    return code;
}

static int whole_job(test_heap *h, qsim_error *e) {
    static char file[1 << 20];
    qsim_allocator a = test_heap_allocator(h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL, *q = NULL;
    size_t size = 0;
    int code = qsim_ctx_create(&o, &ctx, e);
    if (!code)
        code = build(ctx, &m, e);
    if (!code)
        code = round_trip(ctx, m, file, sizeof(file), &size, e);
    if (!code)
        code = execute(m, e);
    if (!code)
        code = quantize(m, &q, e);
    if (!code)
        code = round_trip(ctx, q, file, sizeof(file), &size, e);
    if (!code)
        code = execute(q, e);
    qsim_ctx_free(ctx); /* any order is valid */
    qsim_model_free(m);
    qsim_model_free(q);
    return code;
}

/* A model file with a node whose attribute is a list of strings. */
static proto recurrent_file(void) {
    const int64_t x[] = {2, 1, 2}, y[] = {2, 1, 1, 2};
    const char *const names[] = {"w", "r"};
    proto file = {0}, g = {0}, node = {0}, attr = {0};
    for (int i = 0; i < 2; i++) {
        proto t = {0};
        proto_int(&t, 1, 1);
        proto_int(&t, 1, 2);
        proto_int(&t, 1, 2);
        proto_int(&t, 2, QSIM_FLOAT);
        proto_text(&t, 8, names[i]);
        proto_bytes(&t, 9, samples, 16);
        proto_take(&g, 5, &t);
        proto_free(&t);
    }
    for (int i = 0; i < 3; i++)
        proto_text(&node, 1, i == 0 ? "x" : names[i - 1]);
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "RNN");
    proto_text(&attr, 1, "hidden_size");
    proto_int(&attr, 3, 2);
    proto_int(&attr, 20, 2);
    proto_take(&node, 5, &attr);
    proto_text(&attr, 1, "activations");
    proto_text(&attr, 9, "Tanh");
    proto_int(&attr, 20, 8);
    proto_take(&node, 5, &attr);
    proto_take(&g, 1, &node);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "x", QSIM_FLOAT, x, 3);
    proto_value(&g, 12, "y", QSIM_FLOAT, y, 4);
    proto_model(&file, &g);
    proto_free(&attr);
    proto_free(&node);
    proto_free(&g);
    return file;
}

/* An odd number of 4-bit elements, more than a block of an arena holds, with bits after the last.
 */
static proto nibble_file(void) {
    static uint8_t bytes[100001];
    const int64_t dims[] = {2 * sizeof(bytes) - 1};
    proto file = {0}, g = {0}, t = {0};
    memset(bytes, 0xff, sizeof(bytes));
    proto_int(&t, 1, dims[0]);
    proto_int(&t, 2, QSIM_INT4);
    proto_text(&t, 8, "w");
    proto_bytes(&t, 9, bytes, sizeof(bytes));
    proto_take(&g, 5, &t);
    proto_node(&g, "Identity", NULL, "w", NULL, "y");
    proto_value(&g, 12, "y", QSIM_INT4, dims, 1);
    proto_model(&file, &g);
    proto_free(&t);
    proto_free(&g);
    return file;
}

static int load(qsim_ctx *ctx, const proto *file, qsim_error *e) {
    qsim_model *m = NULL;
    const int code = qsim_model_load_memory(ctx, file->data, file->size, NULL, &m, e);
    qsim_model_free(m);
    return code;
}

/* Builds a node of a name that is longer than a block of an arena. */
static int build_named(qsim_ctx *ctx, const proto *name, qsim_error *e) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    int code = qsim_builder_create(ctx, 21, "g", &b, e);
    if (code)
        return code;
    qsim_builder_input_as(b, "x", "float[3]");
    qsim_builder_node(b, "", "Relu", (const char *)name->data, "x", "y");
    qsim_builder_output_as(b, "y", "float[3]");
    code = qsim_builder_finish(b, &m, e);
    qsim_builder_free(b);
    qsim_model_free(m);
    return code;
}

/* Repeats a job with each allocation failing, alone and with all after it; takes `given`. */
static void repeat(int (*job)(qsim_ctx *, const proto *, qsim_error *), proto given) {
    long n = 0;
    for (bool failed = true; failed && n < 100000; n++) {
        test_heap h = {.fail_at = n / 2 + 1, .fail_after = n % 2};
        qsim_allocator a = test_heap_allocator(&h);
        qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
        qsim_ctx *ctx = NULL;
        qsim_error e = {0};
        int code = qsim_ctx_create(&o, &ctx, &e);
        if (!code)
            code = job(ctx, &given, &e);
        failed = h.failed > 0;
        CHECK_INT(code, failed ? QSIM_E_NOMEM : QSIM_OK);
        CHECK_INT(e.code, code);
        qsim_ctx_free(ctx);
        CHECK_INT(h.live, 0);
    }
    CHECK(n > 10);
    proto_free(&given);
}

int main(void) {
    uint64_t seed = 1;
    for (size_t i = 0; i < 4 * 64; i++)
        samples[i / 64][i % 64] = (float)(test_random(&seed) % 1000) / 1000.0f;
    long n = 0;
    for (;; n++) {
        test_heap h = {.fail_at = n + 1, .fail_after = true};
        qsim_error e;
        memset(&e, 0, sizeof(e));
        int code = whole_job(&h, &e);
        CHECK_INT(h.live, 0);
        CHECK_INT(h.bytes, 0);
        if (code == QSIM_OK)
            break;
        CHECK_INT(code, QSIM_E_NOMEM);
        CHECK_INT(e.code, QSIM_E_NOMEM);
        if (test_failures > 20 || n > 1000000)
            break;
    }
    CHECK(n > 20); /* requests did fail */
    repeat(load, recurrent_file());
    repeat(load, nibble_file());
    proto name = {0};
    for (int i = 0; i < 100000; i++)
        proto_raw(&name, i < 99999 ? "n" : "", 1);
    repeat(build_named, name);
    fprintf(stderr, "%ld allocations\n", n);
    return test_done();
}
