/* SPDX-License-Identifier: MIT */
/* Small networks for tests of passes, sessions and runs, built as graphs in memory. */
#ifndef TEST_NET_H
#define TEST_NET_H

#include "test.h"

#include "exec/exec.h"
#include "pass/pass.h"

typedef struct net {
    qsim_ctx *ctx;
    qsim_model *model;
    qs_graph *g;
    qsim_error error;
} net;

static inline void net_begin(net *n, qsim_ctx *ctx, int64_t opset) {
    memset(n, 0, sizeof(*n));
    CHECK_INT(qs_model_create(ctx, &n->model, &n->error), 0);
    n->ctx = n->model->ctx;
    n->g = n->model->graph;
    n->model->name = "net";
    CHECK_INT(qs_graph_set_import(n->g, "", opset), 0);
}

/* The value of this name, added if there is none. */
static inline qs_id net_value(net *n, const char *name) {
    qs_id id = qs_graph_find(n->g, name);
    return id == QS_NONE ? qs_graph_add_value(n->g, name) : id;
}

#define NET_DIMS(...)                                                                              \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) {             \
        __VA_ARGS__                                                                                \
    }

static inline void net_input(net *n, const char *name, int32_t dtype, int32_t rank,
                             const int64_t *dims) {
    qs_dim d[QSIM_MAX_RANK] = {{0}};
    qs_id id = net_value(n, name);
    for (int32_t i = 0; i < rank; i++)
        d[i].size = dims[i];
    qs_value_set_shape(n->g, id, dtype, rank, d);
    n->g->values[id].declared = true;
    qs_graph_push_input(n->g, id);
}

static inline void net_const(net *n, const char *name, int32_t dtype, int32_t rank,
                             const int64_t *dims, const void *data) {
    CHECK(qs_graph_add_const(n->g, name, dtype, rank, dims, data, true) >= 0);
}

static inline void net_float(net *n, const char *name, float v) {
    net_const(n, name, QSIM_FLOAT, 0, NULL, &v);
}

static inline void net_byte(net *n, const char *name, int32_t dtype, int v) {
    uint8_t b = (uint8_t)v;
    net_const(n, name, dtype, 0, NULL, &b);
}

/* Values in [-1, 1) of a seeded generator. */
static inline void net_random(net *n, const char *name, int32_t rank, const int64_t *dims,
                              uint64_t seed, float scale) {
    size_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    float *v = malloc(count * sizeof(float) + 1);
    uint64_t state = seed * 77777 + 1;
    for (size_t i = 0; i < count; i++)
        v[i] = ((float)(test_random(&state) >> 8) * (2.0f / 16777216.0f) - 1) * scale;
    net_const(n, name, QSIM_FLOAT, rank, dims, v);
    free(v);
}

/* "a,,b" -> ids; an empty name is QS_NONE. */
static inline int32_t net_names(net *n, const char *names, qs_id *ids) {
    int32_t count = 0;
    char one[64];
    while (*names) {
        size_t length = strcspn(names, ",");
        snprintf(one, sizeof(one), "%.*s", (int)length, names);
        ids[count++] = length ? net_value(n, one) : QS_NONE;
        names += length + (names[length] == ',');
    }
    return count;
}

static inline qs_id net_node(net *n, const char *domain, const char *op, const char *inputs,
                             const char *outputs) {
    qs_id in[64], out[64];
    int32_t ins = net_names(n, inputs, in), outs = net_names(n, outputs, out);
    qs_id id = qs_graph_add_node(n->g, domain, op, "", in, ins, out, outs);
    CHECK(id >= 0);
    n->g->nodes[id].name = n->g->values[out[0]].name;
    return id;
}

/*
 * "t" -> QuantizeLinear -> "t_q" -> DequantizeLinear -> "t_d", with "t_s" and "t_z" of one element
 * and `rank` axes, 0 or 1.
 */
static inline void net_pair(net *n, const char *t, int32_t dtype, float scale, int zero_point,
                            int32_t rank) {
    char s[32], z[32], q[32], d[32], in[100];
    const int64_t one = 1;
    const uint8_t zero = (uint8_t)zero_point;
    snprintf(s, sizeof(s), "%s_s", t);
    snprintf(z, sizeof(z), "%s_z", t);
    snprintf(q, sizeof(q), "%s_q", t);
    snprintf(d, sizeof(d), "%s_d", t);
    net_const(n, s, QSIM_FLOAT, rank, &one, &scale);
    net_const(n, z, dtype, rank, &one, &zero);
    snprintf(in, sizeof(in), "%s,%s,%s", t, s, z);
    net_node(n, "", "QuantizeLinear", in, q);
    snprintf(in, sizeof(in), "%s,%s,%s", q, s, z);
    net_node(n, "", "DequantizeLinear", in, d);
}

static inline void net_ints(net *n, qs_id node, const char *name, int32_t count, const int64_t *v) {
    qs_node_set_ints(n->g, node, name, v, count);
}

static inline void net_string(net *n, qs_id node, const char *name, const char *v) {
    const qs_attr attr = {
        .name = name, .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)v, strlen(v)}};
    CHECK_INT(qs_node_set_attr(n->g, node, &attr), 0);
}

static inline void net_output(net *n, const char *name) {
    qs_graph_push_output(n->g, net_value(n, name));
}

/* Checks the graph like loading. */
static inline int net_end(net *n) {
    for (size_t i = 0; i < n->g->node_count; i++) {
        int code = qs_op_resolve(n->g, (qs_id)i, "net", &n->error);
        if (code)
            return code;
    }
    int code = qs_graph_sort(n->g, &n->error);
    return code ? code : qs_op_infer_graph(n->g, "net", &n->error);
}

#define NET_OK(net, call)                                                                          \
    do {                                                                                           \
        int net_code = (call);                                                                     \
        CHECK_INT(net_code, 0);                                                                    \
        if (net_code)                                                                              \
            fprintf(stderr, "  %s\n", (net)->error.message);                                       \
    } while (0)

static inline qs_pass net_pass(net *n) {
    return (qs_pass){.ctx = n->ctx, .graph = n->g, .model = "net", .error = &n->error};
}

static inline int net_count(const net *n, const char *op) {
    int count = 0;
    for (size_t i = 0; i < n->g->order_count; i++)
        count += strcmp(n->g->nodes[n->g->order[i]].op_type, op) == 0;
    return count;
}

static inline void net_free(net *n) {
    qsim_model_free(n->model);
}

/* Creates a session and a run, executes once, frees; y must have room. Returns the code. */
static inline int net_run(net *n, int32_t level, bool literal, const qsim_tensor *x, size_t inputs,
                          qsim_tensor *y, size_t outputs) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qs_session_compile(n->model, &o, literal ? QS_COMPILE_LITERAL : 0, &s, &n->error);
    if (!code)
        code = qsim_run_create(s, &r, &n->error);
    if (!code)
        code = qsim_run_execute(r, x, inputs, y, outputs, &n->error);
    for (size_t i = 0; i < outputs; i++)
        y[i].dims = NULL;
    qsim_run_free(r);
    qsim_session_free(s);
    return code;
}

static inline qsim_tensor net_tensor(int32_t dtype, int32_t rank, const int64_t *dims, void *data) {
    qsim_tensor t = {.dtype = dtype, .rank = rank, .dims = dims, .data = data};
    if (dims || rank == 0)
        qsim_tensor_size(dtype, rank, dims, NULL, &t.bytes);
    return t;
}

#endif
