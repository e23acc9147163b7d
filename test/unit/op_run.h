/* SPDX-License-Identifier: MIT */
/* Runs one operator by itself: its rules, packing, lowering and step, without lib/exec. */
#ifndef OP_RUN_H
#define OP_RUN_H

#include "op/op.h"
#include "op/step.h"
#include "test.h"

#include <qsim/base.h>

typedef struct or_tensor {
    int32_t dtype, rank;
    int64_t dims[6];
    void *data; /* with 64 bytes behind the last element; NULL: this input is left out */
    bool constant;
} or_tensor;

typedef struct or_attr {
    const char *name;
    int32_t type; /* QS_ATTR_INT, FLOAT, INTS, STRING */
    int64_t i;
    float f;
    const char *s;
    int64_t ints[6];
    int32_t count;
} or_attr;

typedef struct or_case {
    const char *domain, *op;
    int32_t version;
    or_tensor in[9];
    int32_t inputs, outputs;
    or_attr attrs[12];
    int32_t attr_count;
} or_case;

/* What came out. data is freed by or_free. */
typedef struct or_result {
    int code;
    qsim_error error;
    or_tensor out[2];
    const char *kernel;
} or_result;

static inline or_attr or_int(const char *name, int64_t i) {
    return (or_attr){.name = name, .type = QS_ATTR_INT, .i = i};
}
static inline or_attr or_float(const char *name, float f) {
    return (or_attr){.name = name, .type = QS_ATTR_FLOAT, .f = f};
}
static inline or_attr or_string(const char *name, const char *s) {
    return (or_attr){.name = name, .type = QS_ATTR_STRING, .s = s};
}
static inline or_attr or_pair(const char *name, int64_t a, int64_t b) {
    return (or_attr){.name = name, .type = QS_ATTR_INTS, .ints = {a, b}, .count = 2};
}
static inline or_attr or_four(const char *name, int64_t a, int64_t b, int64_t c, int64_t d) {
    return (or_attr){.name = name, .type = QS_ATTR_INTS, .ints = {a, b, c, d}, .count = 4};
}

static inline size_t or_elements(const or_tensor *t) {
    size_t n = 1;
    for (int32_t i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}
static inline size_t or_bytes(const or_tensor *t) {
    return or_elements(t) * (size_t)qsim_dtype_bits(t->dtype) / 8;
}
/* A tensor's memory: zeroed, with the 64 bytes behind that kernels may read. */
static inline void *or_memory(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 64 + 63) & ~(size_t)63);
    memset(p, 0, bytes + 64);
    return p;
}

static inline void or_set_attr(qs_graph *g, qs_id node, const or_attr *a) {
    if (a->type == QS_ATTR_INT)
        qs_node_set_int(g, node, a->name, a->i);
    else if (a->type == QS_ATTR_FLOAT)
        qs_node_set_float(g, node, a->name, a->f);
    else if (a->type == QS_ATTR_INTS)
        qs_node_set_ints(g, node, a->name, a->ints, a->count);
    else
        qs_node_set_attr(g, node,
                         &(qs_attr){.name = a->name,
                                    .type = QS_ATTR_STRING,
                                    .u.s = {(const uint8_t *)a->s, strlen(a->s)}});
}

static inline qs_id or_input(qs_graph *g, const or_tensor *t, int32_t i) {
    char name[8] = "in0";
    name[2] = (char)('0' + i);
    if (!t->data)
        return QS_NONE;
    if (t->constant)
        return qs_graph_add_const(g, name, t->dtype, t->rank, t->dims, t->data, false);
    qs_dim dims[6] = {{0, NULL}};
    for (int32_t k = 0; k < t->rank; k++)
        dims[k].size = t->dims[k];
    qs_id id = qs_graph_add_value(g, name);
    qs_value_set_shape(g, id, t->dtype, t->rank, dims);
    return id;
}

static inline qs_id or_build(qs_graph *g, const or_case *c, qs_id *in, qs_id *out) {
    for (int32_t i = 0; i < c->inputs; i++)
        in[i] = or_input(g, &c->in[i], i);
    for (int32_t i = 0; i < c->outputs; i++)
        out[i] = qs_graph_add_value(g, i ? "out1" : "out0");
    qs_id node = qs_graph_add_node(g, c->domain, c->op, "n", in, c->inputs, out, c->outputs);
    g->nodes[node].version = c->version;
    for (int32_t i = 0; i < c->attr_count; i++)
        or_set_attr(g, node, &c->attrs[i]);
    return node;
}

/* Packs, lowers and executes a node whose shapes are known. */
static inline int or_execute(qsim_ctx *ctx, qs_graph *g, qs_id node, const or_case *c,
                             or_result *r) {
    const qs_node *n = &g->nodes[node];
    qs_arena arena;
    qs_arena_init(&arena, ctx);
    qs_pack pack = {ctx, g, node, n, &arena, "test", &r->error, NULL};
    if (n->op->pack && n->op->pack(&pack)) {
        qs_arena_free(&arena);
        return r->error.code;
    }
    qs_step step = {.in = n->inputs, .out = n->outputs, .node = node};
    qs_lower lower = {.ctx = ctx,
                      .graph = g,
                      .values = g->values,
                      .node = n,
                      .node_id = node,
                      .packed = pack.result,
                      .arena = &arena,
                      .model = "test",
                      .error = &r->error,
                      .step = &step};
    int code = n->op->lower(&lower);
    if (!code) {
        void *address[32] = {0};
        for (int32_t i = 0; i < c->inputs; i++)
            if (n->inputs[i] != QS_NONE)
                address[n->inputs[i]] = c->in[i].data;
        for (int32_t i = 0; i < c->outputs; i++)
            address[n->outputs[i]] = r->out[i].data;
        qs_frame frame = {.ctx = ctx, .address = address, .scratch = or_memory(step.scratch)};
        step.run(&step, &frame);
        r->kernel = step.kernel;
        free(frame.scratch);
    }
    qs_arena_free(&arena);
    return code;
}

/* infer_only: stops after the rules; the outputs have shapes and no data. */
static inline or_result or_run(qsim_ctx *ctx, const or_case *c, bool infer_only) {
    or_result r = {0};
    qs_graph *g = NULL;
    qs_id in[9], out[2];
    if (qs_graph_create(ctx, &g))
        abort();
    qs_id node = or_build(g, c, in, out);
    r.code = qs_graph_sort(g, &r.error);
    if (!r.code)
        r.code = qs_op_resolve(g, node, "test", &r.error);
    if (!r.code)
        r.code = qs_op_infer_graph(g, "test", &r.error);
    for (int32_t i = 0; i < c->outputs && !r.code; i++) {
        const qs_value *v = &g->values[out[i]];
        r.out[i].dtype = v->dtype;
        r.out[i].rank = v->rank;
        for (int32_t k = 0; k < v->rank; k++)
            r.out[i].dims[k] = v->dims[k].size;
        if (!infer_only)
            r.out[i].data = or_memory(or_bytes(&r.out[i]));
    }
    if (!r.code && !infer_only)
        r.code = or_execute(ctx, g, node, c, &r);
    qs_graph_free(g);
    return r;
}

static inline void or_free(or_result *r) {
    free(r->out[0].data);
    free(r->out[1].data);
}

/* Contexts of every instruction set here, with `threads` threads. */
static inline int or_contexts(qsim_ctx **list, int32_t threads) {
    int n = 0;
    for (int32_t isa = QSIM_ISA_C; isa < QSIM_ISA_COUNT; isa++) {
        qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads, .isa = isa};
        if (qsim_isa_available(isa) && qsim_ctx_create(&o, &list[n], NULL) == QSIM_OK)
            n++;
    }
    return n;
}

#endif
