/* SPDX-License-Identifier: MIT */
/*
 * How much of a thread's stack calls use: written over before, looked at after. base.h promises
 * 128 KiB, for graphs however deep, and for all instruction sets. With an argument: the figures.
 */
#include "process_memory.h"
#include "proto.h"
#include "ptq_nets.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#define PROMISED 131072
#define STACK    ((size_t)1 << (SANITIZED ? 24 : 20)) /* sanitizers want more */
#define UNUSED   0xa5
#define SIDE     48
#define DEPTH    16 /* Loops in Loops: as deep as they may be */
#define LONG     20000

static bool tells;

/* ---- work ---- */

typedef struct job {
    const char *name;
    void (*work)(struct job *);
    qsim_ctx *ctx;
} job;

/* Appends to a graph what makes y from x: a product's softmax, `depth` Loops down. */
static void layer(proto *graph, int depth, const char *x, const char *y) {
    const int64_t none[1] = {1}, sides[2] = {SIDE, SIDE};
    proto node = {0}, body = {0}, attribute = {0};
    char names[5][16];
    if (depth == 0) {
        proto_node(graph, "MatMul", NULL, x, x, "product");
        proto_node(graph, "Softmax", NULL, "product", NULL, y);
        return;
    }
    for (int i = 0; i < 5; i++)
        snprintf(names[i], sizeof(names[i]), "%c%d", "icxdy"[i], depth);
    layer(&body, depth - 1, names[2], names[4]);
    proto_node(&body, "Identity", NULL, names[1], NULL, names[3]);
    proto_text(&body, 2, "body");
    proto_value(&body, 11, names[0], QSIM_INT64, none, 0);
    proto_value(&body, 11, names[1], QSIM_BOOL, none, 0);
    proto_value(&body, 11, names[2], QSIM_FLOAT, sides, 2);
    proto_value(&body, 12, names[3], QSIM_BOOL, none, 0);
    proto_value(&body, 12, names[4], QSIM_FLOAT, sides, 2);
    proto_text(&attribute, 1, "body");
    proto_take(&attribute, 6, &body);
    proto_int(&attribute, 20, 5);
    proto_text(&node, 1, "trips");
    proto_text(&node, 1, "");
    proto_text(&node, 1, x);
    proto_text(&node, 2, y);
    proto_text(&node, 4, "Loop");
    proto_take(&node, 5, &attribute);
    proto_take(graph, 1, &node);
    proto_free(&body);
    proto_free(&attribute);
    proto_free(&node);
}

/* Loops in Loops: read, compiled, executed, written. */
static void nested(job *j) {
    static float x[SIDE * SIDE];
    const int64_t none[1] = {1}, sides[2] = {SIDE, SIDE};
    int64_t trips = 1;
    proto graph = {0}, file = {0};
    qsim_model *m = NULL, *better = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    size_t size = 0;
    qsim_tensor y = {0}, in[2] = {{QSIM_INT64, 0, NULL, &trips, sizeof(trips)},
                                  {QSIM_FLOAT, 2, sides, x, sizeof(x)}};
    layer(&graph, DEPTH, "x", "y");
    proto_text(&graph, 2, "g");
    proto_value(&graph, 11, "trips", QSIM_INT64, none, 0);
    proto_value(&graph, 11, "x", QSIM_FLOAT, sides, 2);
    proto_value(&graph, 12, "y", QSIM_FLOAT, sides, 2);
    proto_model(&file, &graph);
    CHECK_INT(qsim_model_load_memory(j->ctx, file.data, file.size, NULL, &m, &e), QSIM_OK);
    CHECK_INT(qsim_model_optimize(m, QSIM_LEVEL_EXTENDED, &better, &e), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(better, NULL, 0, &size, &e), QSIM_OK);
    CHECK_INT(qsim_session_create(m, NULL, &s, &e), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &r, &e), QSIM_OK);
    CHECK_INT(qsim_run_execute(r, in, 2, &y, 1, &e), QSIM_OK);
    CHECK(y.data && fabsf(*(float *)y.data - 1.0f / SIDE) < 1e-6f);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(better);
    qsim_model_free(m);
    proto_free(&graph);
    proto_free(&file);
}

/* One node behind the other, and each a neighbour of the first. */
static void chain(job *j) {
    float x[4] = {1, 2, 3, 4}, y[4] = {0};
    const int64_t dims[1] = {4};
    qsim_tensor t = {QSIM_FLOAT, 1, dims, x, sizeof(x)};
    char from[24] = "x", in[48], to[24];
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(j->ctx, 13, "chain", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 1, dims, NULL);
    for (int i = 0; i < LONG; i++) {
        snprintf(in, sizeof(in), i % 2 ? "%s,x" : "%s", from);
        snprintf(to, sizeof(to), "t%d", i);
        qsim_builder_node(b, "", i % 2 ? "Max" : "Neg", "", in, to);
        memcpy(from, to, sizeof(to));
    }
    qsim_builder_output(b, from, QSIM_FLOAT, 1, dims, NULL);
    qsim_model *m = net_finish(b);
    CHECK_INT((int)net_run(m, &t, y, 4), 4);
    CHECK(y[0] == 1 && y[3] == 4);
    qsim_model_free(m);
}

/* Calibrated and quantized in every way, written, packed, read, executed. */
static void whole_way(job *j) {
    static float x[144], y[8];
    static char file[1 << 16], quantized[1 << 16];
    const int64_t dims[4] = {1, 1, 12, 12};
    qsim_tensor t = {QSIM_FLOAT, 4, dims, x, sizeof(x)};
    size_t size = 0;
    qsim_model *made = net_lenet(), *m = NULL;
    CHECK_INT(qsim_model_save_memory(made, file, sizeof(file), &size, NULL), QSIM_OK);
    CHECK_INT(qsim_model_load_memory(j->ctx, file, size, NULL, &m, NULL), QSIM_OK);
    qsim_calibration *c = net_calibrate(m, 2);
    for (int32_t i = 0; i < 8; i++) {
        const qsim_quantize_options o = {.struct_size = sizeof(o),
                                         .method = i % 4,
                                         .weight_type = i == 5 ? QSIM_INT4 : 0,
                                         .mode = i == 6   ? QSIM_MODE_DYNAMIC
                                                 : i == 7 ? QSIM_MODE_WEIGHTS
                                                          : 0};
        qsim_model *q = net_quantize(m, c, &o);
        CHECK_INT(qsim_model_save_memory(q, quantized, sizeof(quantized), &size, NULL), QSIM_OK);
        CHECK_INT((int)net_run(q, &t, y, 8), 5);
        qsim_model_free(q);
    }
    qsim_calibration_free(c);
    qsim_model_free(m);
    qsim_model_free(made);
}

/* ---- measured ---- */

static void *begin(void *arg) {
    job *j = arg;
    j->work(j);
    return NULL;
}

static void measure(job *j) {
    pthread_attr_t a;
    pthread_t t;
    uint8_t *stack = aligned_alloc(4096, STACK);
    size_t left = 0;
    CHECK(stack != NULL);
    if (!stack)
        return;
    memset(stack, UNUSED, STACK);
    CHECK_INT(pthread_attr_init(&a), 0);
    CHECK_INT(pthread_attr_setstack(&a, stack, STACK), 0);
    const int created = pthread_create(&t, &a, begin, j); /* checked when no thread checks */
    CHECK_INT(created ? created : pthread_join(t, NULL), 0);
    while (left < STACK && stack[left] == UNUSED)
        left++;
    if (tells || (!SANITIZED && STACK - left > PROMISED))
        fprintf(stderr, "%s, %s: %zu bytes of stack\n", j->name,
                qsim_isa_name(qsim_ctx_isa(j->ctx)), STACK - left);
    CHECK(SANITIZED || STACK - left <= PROMISED);
    pthread_attr_destroy(&a);
    free(stack);
}

int main(int argc, char **argv) {
    (void)argv;
    tells = argc > 1;
    for (int32_t isa = 1; qsim_isa_name(isa); isa++) {
        qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = isa};
        job jobs[] = {
            {"nested", nested, NULL}, {"chain", chain, NULL}, {"quantized", whole_way, NULL}};
        qsim_ctx *ctx = NULL;
        if (!qsim_isa_available(isa) || qsim_ctx_create(&o, &ctx, NULL))
            continue;
        for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
            jobs[i].ctx = ctx;
            measure(&jobs[i]);
        }
        qsim_ctx_free(ctx);
    }
    return test_done();
}
