/* SPDX-License-Identifier: MIT */
/* Models with lists in Loops, and runs of them, for tests. */
#ifndef LISTS_H
#define LISTS_H

#include <stdbool.h>
#include <stdio.h>

#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>

enum { MOST = 4, ROWS = 2, COLUMNS = 3, PART = ROWS * COLUMNS };

static const int64_t any[] = {-1, -1, -1}, none = 0;

/* A node with up to three attributes that are integers, whose names end the list with NULL. */
static inline void node(proto *g, const char *op, const char *const *in, const char *out,
                        const char *const *names, const int64_t *values) {
    proto n = {0};
    for (int i = 0; in[i]; i++)
        proto_text(&n, 1, in[i]);
    proto_text(&n, 2, out);
    proto_text(&n, 4, op);
    for (int i = 0; names && names[i]; i++)
        proto_integer(&n, names[i], values[i]);
    proto_take(g, 1, &n);
    proto_free(&n);
}

#define IN(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define NAMES(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

/* Adds a node with one subgraph or two; names of inputs and outputs end with NULL. */
static inline void control(proto *g, const char *op, const char *const *in, const char *const *out,
                           const char *const *names, proto *graphs) {
    proto n = {0};
    for (int i = 0; in[i]; i++)
        proto_text(&n, 1, in[i]);
    for (int i = 0; out[i]; i++)
        proto_text(&n, 2, out[i]);
    proto_text(&n, 4, op);
    for (int i = 0; names[i]; i++) {
        proto_graph(&n, names[i], &graphs[i]);
        proto_free(&graphs[i]);
    }
    proto_take(g, 1, &n);
    proto_free(&n);
}

/* Begins a body whose iteration is `trip`, and gives it the condition it was given. */
static inline proto body_begin(const char *trip, const char *go, const char *more) {
    proto b = {0};
    proto_name(&b, 11, trip);
    proto_name(&b, 11, go);
    node(&b, "Identity", IN(go), more, NULL, NULL);
    proto_name(&b, 12, more);
    return b;
}

static inline int load(proto *g, qsim_model **m, qsim_error *e) {
    proto model = {0};
    proto_text(g, 2, "g");
    proto_model(&model, g);
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_COPY};
    const int code = qsim_model_load_memory(NULL, model.data, model.size, &o, m, e);
    proto_free(&model);
    proto_free(g);
    return code;
}

/* The inputs of every model here: a trip count, parts, a state and a position. */
static inline void inputs(proto *g) {
    proto_value(g, 11, "m", QSIM_INT64, NULL, 0);
    proto_value(g, 11, "x", QSIM_FLOAT, any, 3);
    proto_value(g, 11, "h", QSIM_FLOAT, any, 2);
    proto_value(g, 11, "p", QSIM_INT64, NULL, 0);
}

/* The body: s, a sequence, gets the part of x at `trip`, or the indices of its numbers above 0. */
static inline void body(proto *b, bool ragged) {
    proto_name(b, 11, "trip");
    proto_name(b, 11, "go");
    proto_name(b, 11, "s");
    proto_name(b, 11, "h");
    node(b, "Gather", IN("x", "trip"), "part", NULL, NULL);
    if (ragged) {
        node(b, "Relu", IN("part"), "above", NULL, NULL);
        node(b, "NonZero", IN("above"), "at", NULL, NULL);
        node(b, "Transpose", IN("at"), "v", NULL, NULL);
    } else {
        node(b, "Identity", IN("part"), "v", NULL, NULL);
    }
    node(b, "SequenceInsert", IN("s", "v"), "grown", NULL, NULL);
    node(b, "Identity", IN("go"), "more", NULL, NULL);
    node(b, "Add", IN("h", "part"), "sum", NULL, NULL);
    proto_name(b, 12, "more");
    proto_name(b, 12, "grown");
    proto_name(b, 12, "sum");
    proto_name(b, 12, "part");
}

/* s = a Loop of m times over x, beside a state and a scan output; `first`: it begins with `h`. */
static inline void loop(proto *g, bool ragged, bool first) {
    proto b = {0}, n = {0};
    body(&b, ragged);
    inputs(g);
    if (first)
        node(g, "SequenceConstruct", IN("h"), "begin", NULL, NULL);
    else if (ragged)
        node(g, "SequenceEmpty", (const char *const[]){NULL}, "begin", NAMES("dtype"),
             VALUES(QSIM_INT64));
    else
        node(g, "SequenceEmpty", (const char *const[]){NULL}, "begin", NULL, NULL);
    proto_text(&n, 1, "m");
    proto_text(&n, 1, "");
    proto_text(&n, 1, "begin");
    proto_text(&n, 1, "h");
    proto_text(&n, 2, "s");
    proto_text(&n, 2, "total");
    proto_text(&n, 2, "parts");
    proto_text(&n, 4, "Loop");
    proto_graph(&n, "body", &b);
    proto_take(g, 1, &n);
    proto_free(&b);
    proto_free(&n);
}

typedef struct live {
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
} live;

static inline int begin(live *l, proto *g, int32_t level, qsim_error *e) {
    const qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    *l = (live){0};
    int code = load(g, &l->model, e);
    if (!code)
        code = qsim_session_create(l->model, &o, &l->session, e);
    return code ? code : qsim_run_create(l->session, &l->run, e);
}

static inline void end(live *l) {
    qsim_run_free(l->run);
    qsim_session_free(l->session);
    qsim_model_free(l->model);
}

static float x[MOST * PART], h[PART];

/* Runs the Loop `m` times; p is a position. */
static inline int run(live *l, int64_t m, int64_t p, qsim_tensor *out, size_t count,
                      qsim_error *e) {
    static const int64_t all[] = {MOST, ROWS, COLUMNS};
    const qsim_tensor in[4] = {{QSIM_INT64, 0, NULL, &m, sizeof(m)},
                               {QSIM_FLOAT, 3, all, x, sizeof(x)},
                               {QSIM_FLOAT, 2, all + 1, h, sizeof(h)},
                               {QSIM_INT64, 0, NULL, &p, sizeof(p)}};
    memset(out, 0, count * sizeof(*out));
    return qsim_run_execute(l->run, in, 4, out, count, e);
}

/* Fills x and h. */
static inline void lists_fill(void) {
    for (int i = 0; i < MOST * PART; i++)
        x[i] = (float)((i * 7 + i / PART) % 11 - 5);
    for (int i = 0; i < PART; i++)
        h[i] = (float)(i + 100);
}

#endif
