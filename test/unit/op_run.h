/* SPDX-License-Identifier: MIT */
/* One operator on any context, described by a struct, for tests of many shapes and kernels. */
#ifndef OP_RUN_H
#define OP_RUN_H

#include "kernel/table.h"
#include "op_harness.h"

typedef struct or_tensor {
    int32_t dtype, rank;
    int64_t dims[6];
    void *data; /* with 64 bytes after the last element; NULL: no such input */
    bool constant;
} or_tensor;

typedef struct or_attr {
    const char *name;
    int32_t type; /* QSIM_ATTR_INT, FLOAT, INTS, STRING, STRINGS */
    int64_t i;
    float f;
    const char *s, *strings[6];
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

/* The result. or_free frees data. */
typedef struct or_result {
    int code;
    qsim_error error;
    or_tensor out[3];
    const char *kernel;
} or_result;

static inline or_attr or_int(const char *name, int64_t i) {
    return (or_attr){.name = name, .type = QSIM_ATTR_INT, .i = i};
}
static inline or_attr or_float(const char *name, float f) {
    return (or_attr){.name = name, .type = QSIM_ATTR_FLOAT, .f = f};
}
static inline or_attr or_string(const char *name, const char *s) {
    return (or_attr){.name = name, .type = QSIM_ATTR_STRING, .s = s};
}
static inline or_attr or_pair(const char *name, int64_t a, int64_t b) {
    return (or_attr){.name = name, .type = QSIM_ATTR_INTS, .ints = {a, b}, .count = 2};
}
static inline or_attr or_four(const char *name, int64_t a, int64_t b, int64_t c, int64_t d) {
    return (or_attr){.name = name, .type = QSIM_ATTR_INTS, .ints = {a, b, c, d}, .count = 4};
}

static inline size_t or_elements(const or_tensor *t) {
    size_t n = 1;
    for (int32_t i = 0; i < t->rank; i++)
        n *= (size_t)t->dims[i];
    return n;
}

/* A tensor's memory: zeroed, followed by the 64 bytes that kernels may read. */
static inline void *or_memory(size_t bytes) {
    void *p = bytes < PTRDIFF_MAX / 2 ? aligned_alloc(64, (bytes + 64 + 63) & ~(size_t)63) : NULL;
    if (!p)
        abort();
    memset(p, 0, bytes + 64);
    return p;
}

static inline void or_set_strings(qs_graph *g, qs_id node, const or_attr *a) {
    qs_span *list = qs_arena_alloc(&g->arena, 6, sizeof(*list));
    for (int32_t i = 0; i < a->count; i++)
        list[i] = (qs_span){(const uint8_t *)a->strings[i], strlen(a->strings[i])};
    const qs_attr attr = {
        .name = a->name, .type = QSIM_ATTR_STRINGS, .count = a->count, .u.strings = list};
    qs_node_set_attr(g, node, &attr);
}

static inline void or_set_attr(qs_graph *g, qs_id node, const or_attr *a) {
    if (a->type == QSIM_ATTR_INT)
        qs_node_set_int(g, node, a->name, a->i);
    else if (a->type == QSIM_ATTR_FLOAT)
        qs_node_set_float(g, node, a->name, a->f);
    else if (a->type == QSIM_ATTR_INTS)
        qs_node_set_ints(g, node, a->name, a->ints, a->count);
    else if (a->type == QSIM_ATTR_STRINGS)
        or_set_strings(g, node, a);
    else
        qs_node_set_attr(g, node,
                         &(qs_attr){.name = a->name,
                                    .type = QSIM_ATTR_STRING,
                                    .u.s = {(const uint8_t *)a->s, strlen(a->s)}});
}

/* infer_only: only applies the rules; outputs have shapes but no data. */
static inline or_result or_run(qsim_ctx *ctx, const or_case *c, bool infer_only) {
    or_result r = {0};
    op_case *k = case_on(ctx, c->domain, c->op, c->version);
    for (int32_t i = 0; i < c->inputs; i++) {
        const or_tensor *t = &c->in[i];
        if (!t->data)
            case_absent(k);
        else if (t->constant)
            case_const(k, t->dtype, t->rank, t->dims, t->data);
        else
            case_input(k, t->dtype, t->rank, t->dims, infer_only ? NULL : t->data);
    }
    case_node(k, c->outputs);
    for (int32_t i = 0; i < c->attr_count; i++)
        or_set_attr(k->g, k->node, &c->attrs[i]);
    r.code = infer_only ? case_infer(k) : case_run(k);
    r.error = k->error;
    r.kernel = k->kernel;
    for (int32_t i = 0; i < c->outputs && !r.code; i++) {
        const qs_value *v = case_out(k, i);
        r.out[i].dtype = v->dtype;
        r.out[i].rank = v->rank;
        for (int32_t d = 0; d < v->rank; d++)
            r.out[i].dims[d] = v->dims[d].size;
        r.out[i].data = k->data[k->out[i]];
        k->data[k->out[i]] = NULL;
    }
    case_free(k);
    return r;
}

static inline void or_free(or_result *r) {
    for (size_t i = 0; i < QS_COUNT(r->out); i++)
        free(r->out[i].data);
}

/* Contexts of all instruction sets on this machine, with `threads` threads. */
static inline int or_contexts(qsim_ctx **list, int32_t threads) {
    int n = 0;
    for (int32_t isa = QSIM_ISA_C; isa < QS_ISA_COUNT; isa++) {
        qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads, .isa = isa};
        const qk_table *tables[] = {qk_table_get(isa), qk_table_two_ports(isa)};
        for (size_t i = 0; i < QS_COUNT(tables); i++) {
            if (!tables[i] || !qsim_isa_available(isa) ||
                qsim_ctx_create(&o, &list[n], NULL) != QSIM_OK)
                continue;
            list[n++]->kernels = tables[i]; /* whichever table the CPU would take */
        }
    }
    return n;
}

#endif
