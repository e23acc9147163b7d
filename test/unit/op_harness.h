/* SPDX-License-Identifier: MIT */
/*
 * Runs one operator without a session: a graph of one node is built in memory, resolved, inferred,
 * lowered, and its step executed on hand-made frames. Constants go through the packing; inputs
 * become graph inputs.
 */
#ifndef QS_OP_HARNESS_H
#define QS_OP_HARNESS_H

#include "test.h"

#include "kernel/context.h"
#include "op/op.h"
#include "op/step.h"

#define CASE_VALUES 16

typedef struct op_case {
    qsim_ctx *ctx;
    qs_graph *g;
    const char *domain, *op_type;
    qs_id in[CASE_VALUES], out[CASE_VALUES];
    int32_t ins, outs;
    qs_id node;
    void *data[2 * CASE_VALUES]; /* by value id */
    size_t bytes[2 * CASE_VALUES];
    const char *kernel; /* kernel of the executed step */
    qs_fault fault;     /* fault of the executed step */
    qsim_error error;
} op_case;

static inline op_case *case_on(qsim_ctx *ctx, const char *domain, const char *op_type,
                               int64_t version) {
    op_case *c = calloc(1, sizeof(*c));
    CHECK_INT(qs_ctx_hold(ctx, &c->ctx, NULL), 0);
    CHECK_INT(qs_graph_create(c->ctx, &c->g), 0);
    CHECK_INT(qs_graph_set_import(c->g, domain, version), 0);
    c->domain = domain;
    c->op_type = op_type;
    return c;
}

static inline op_case *case_new(const char *domain, const char *op_type, int64_t version) {
    qsim_ctx_options options = {.struct_size = sizeof(options), .threads = 2};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&options, &ctx, NULL), 0);
    op_case *c = case_on(ctx, domain, op_type, version);
    qsim_ctx_free(ctx);
    return c;
}

static inline void case_free(op_case *c) {
    for (size_t i = 0; i < QS_COUNT(c->data); i++)
        free(c->data[i]);
    qs_graph_free(c->g);
    qsim_ctx_free(c->ctx);
    free(c);
}

static inline void *case_buffer(op_case *c, qs_id id, size_t bytes) {
    c->bytes[id] = bytes;
    c->data[id] = aligned_alloc(64, qs_align(bytes + 64, 64));
    memset(c->data[id], 0xcd, qs_align(bytes + 64, 64));
    return c->data[id];
}

/* A graph input. Negative sizes: known only at run time (case_size sets them). */
static inline qs_id case_input(op_case *c, int32_t dtype, int32_t rank, const int64_t *dims,
                               const void *data) {
    char name[16];
    qs_dim d[QSIM_MAX_RANK];
    size_t bytes = 0;
    for (int32_t i = 0; i < rank; i++)
        d[i] = (qs_dim){dims[i], NULL};
    snprintf(name, sizeof(name), "in%d", (int)c->ins);
    qs_id id = qs_graph_add_value(c->g, name);
    CHECK_INT(qs_value_set_shape(c->g, id, dtype, rank, d), 0);
    CHECK_INT(qs_graph_push_input(c->g, id), 0);
    if (data && qsim_tensor_size(dtype, rank, dims, NULL, &bytes) == 0)
        memcpy(case_buffer(c, id, bytes), data, bytes);
    c->in[c->ins++] = id;
    return id;
}

static inline qs_id case_const(op_case *c, int32_t dtype, int32_t rank, const int64_t *dims,
                               const void *data) {
    char name[16];
    size_t bytes = 0;
    snprintf(name, sizeof(name), "in%d", (int)c->ins);
    CHECK_INT(qsim_tensor_size(dtype, rank, dims, NULL, &bytes), 0);
    qs_id id = qs_graph_add_const(c->g, name, dtype, rank, dims, data, true);
    CHECK(id >= 0);
    memcpy(case_buffer(c, id, bytes), data, bytes);
    c->in[c->ins++] = id;
    return id;
}

static inline void case_ints(op_case *c, int64_t count, const int64_t *values) {
    case_const(c, QSIM_INT64, 1, &count, values);
}

static inline void case_absent(op_case *c) {
    c->in[c->ins++] = QS_NONE;
}

/* Adds the node, after all inputs. */
static inline void case_node(op_case *c, int32_t outputs) {
    for (int32_t i = 0; i < outputs; i++) {
        char name[16];
        snprintf(name, sizeof(name), "out%d", (int)i);
        c->out[i] = qs_graph_add_value(c->g, name);
        CHECK_INT(qs_graph_push_output(c->g, c->out[i]), 0);
    }
    c->outs = outputs;
    c->node = qs_graph_add_node(c->g, c->domain, c->op_type, "n", c->in, c->ins, c->out, outputs);
    CHECK(c->node >= 0);
}

static inline void case_string(op_case *c, const char *name, const char *text) {
    qs_attr a = {.name = name, .type = QSIM_ATTR_STRING};
    a.u.s = (qs_span){(const uint8_t *)text, strlen(text)};
    CHECK_INT(qs_node_set_attr(c->g, c->node, &a), 0);
}

/* Resolves and infers. */
static inline int case_infer(op_case *c) {
    memset(&c->error, 0, sizeof(c->error));
    int code = qs_graph_sort(c->g, &c->error);
    if (!code)
        code = qs_op_resolve(c->g, c->node, "m", &c->error);
    return code ? code : qs_op_infer_graph(c->g, "m", &c->error);
}

static inline const qs_value *case_out(const op_case *c, int32_t index) {
    return &c->g->values[c->out[index]];
}

/* "f32[2,-1]" of an output. */
static inline const char *case_shape(const op_case *c, int32_t index) {
    static char text[256];
    const qs_value *v = case_out(c, index);
    size_t n = (size_t)snprintf(text, sizeof(text), "%s", qsim_dtype_name(v->dtype));
    if (v->rank < 0)
        return text;
    n += (size_t)snprintf(text + n, sizeof(text) - n, "[");
    for (int32_t i = 0; i < v->rank; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%lld", i ? "," : "",
                              v->dims[i].size < 0 && v->dims[i].symbol ? v->dims[i].symbol : "",
                              (long long)v->dims[i].size);
    snprintf(text + n, sizeof(text) - n, "]");
    return text;
}

static inline int case_pack(op_case *c, qs_arena *arena, const void **packed) {
    const qs_node *n = &c->g->nodes[c->node];
    qs_pack p = {.ctx = c->ctx,
                 .graph = c->g,
                 .node_id = c->node,
                 .node = n,
                 .arena = arena,
                 .model = "m",
                 .error = &c->error};
    int (*pack)(qs_pack * p) = qs_op_more_of(n->op)->pack;
    int code = pack ? pack(&p) : QSIM_OK;
    *packed = p.result;
    return code;
}

static inline void case_execute(op_case *c, const qs_step *step) {
    c->fault = (qs_fault){0};
    void *scratch = aligned_alloc(64, qs_align(step->scratch + 64, 64));
    const qs_frame frame = {
        .ctx = c->ctx, .address = c->data, .scratch = scratch, .fault = &c->fault};
    step->run(step, &frame);
    free(scratch);
}

/* Infers, packs, lowers and executes; outputs are in case_data. */
static inline int case_run(op_case *c) {
    int code = case_infer(c);
    if (code)
        return code;
    qs_arena session, plan;
    qs_arena_init(&session, c->ctx);
    qs_arena_init(&plan, c->ctx);
    const qs_node *n = &c->g->nodes[c->node];
    qs_step step = {.in = n->inputs, .out = n->outputs, .node = c->node};
    qs_lower l = {.ctx = c->ctx,
                  .graph = c->g,
                  .values = c->g->values,
                  .node = n,
                  .node_id = c->node,
                  .arena = &plan,
                  .model = "m",
                  .error = &c->error,
                  .step = &step};
    code = case_pack(c, &session, &l.packed);
    if (!code)
        code = n->op->lower(&l);
    c->kernel = step.kernel;
    for (int32_t i = 0; i < c->outs && !code; i++) {
        const qs_value *v = case_out(c, i);
        int64_t dims[QSIM_MAX_RANK];
        size_t bytes = 0;
        for (int32_t k = 0; k < v->rank; k++)
            dims[k] = v->dims[k].size;
        code = qsim_tensor_size(v->dtype, v->rank, dims, NULL, &bytes);
        if (!code && !c->data[c->out[i]])
            case_buffer(c, c->out[i], bytes);
    }
    if (!code && l.alias)
        memcpy(c->data[c->out[0]], c->data[c->in[0]], c->bytes[c->out[0]]);
    else if (!code)
        case_execute(c, &step);
    for (int32_t i = 0; i < c->outs && !code; i++) /* nothing is written after an output */
        CHECK_INT(((uint8_t *)c->data[c->out[i]])[c->bytes[c->out[i]]], 0xcd);
    qs_arena_free(&plan);
    qs_arena_free(&session);
    return code;
}

static inline const void *case_data(const op_case *c, int32_t index) {
    return c->data[c->out[index]];
}

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define RANK(...) ((int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
/* case_input(c, dtype, SHAPE(2, 3), data) */
#define SHAPE(...) RANK(__VA_ARGS__), DIMS(__VA_ARGS__)

#endif
