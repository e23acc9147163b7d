/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "op/expand.h"

#define MEAN_AXES     18 /* first version of ReduceMean whose axes are an input */
#define PLAIN_VERSION 13 /* opset of the forms that are made if the graph's own is older */

static qs_id failed(qs_expand *e, int code) {
    if (!e->code)
        e->code = qs_fail(e->error, code, "%s: out of memory", e->model);
    return QS_NONE;
}

qs_id qs_expand_in(const qs_expand *e, int32_t index) {
    return qs_node_input(&e->graph->nodes[e->node_id], index);
}

const qs_value *qs_expand_value(const qs_expand *e, int32_t index) {
    const qs_id id = qs_expand_in(e, index);
    return id == QS_NONE ? NULL : &e->graph->values[id];
}

qs_infer qs_expand_view(const qs_expand *e) {
    qs_infer x = {.graph = e->graph,
                  .node = &e->graph->nodes[e->node_id],
                  .node_id = e->node_id,
                  .values = e->graph->values,
                  .model = e->model,
                  .error = e->error};
    for (int32_t i = 0; i < x.node->input_count && i < (int32_t)QS_COUNT(x.in); i++)
        x.in[i] = qs_expand_value(e, i);
    return x;
}

qs_id qs_expand_no_memory(qs_expand *e) {
    return failed(e, QSIM_E_NOMEM);
}

static qs_id add_node(qs_expand *e, const char *domain, const char *op_type, const qs_id *in,
                      int32_t count, int32_t outputs) {
    qs_graph *g = e->graph;
    qs_id out[16] = {QS_NONE};
    for (int32_t i = 0; i < outputs && !e->code; i++) {
        out[i] = qs_graph_add_value(g, NULL);
        if (out[i] < 0)
            return failed(e, out[i]);
    }
    if (e->code)
        return QS_NONE;
    const char *name = g->nodes[e->node_id].name;
    const qs_id id = qs_graph_add_node(g, domain, op_type, name, in, count, out, outputs);
    e->node = &g->nodes[e->node_id]; /* the nodes may have moved, even if memory ran out then */
    if (id < 0)
        return failed(e, id);
    if (!*domain && !e->standard)
        g->nodes[id].version = QS_OPSET_NEWEST;
    else if (!*domain && g->nodes[id].version < PLAIN_VERSION)
        g->nodes[id].version = PLAIN_VERSION;
    const int code = qs_op_resolve(g, id, e->model, e->error);
    if (code && !e->code)
        e->code = code;
    return out[0];
}

qs_id qs_expand_many(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                     int32_t outputs) {
    return add_node(e, "", op_type, in, count, outputs);
}

qs_id qs_expand_ms(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                   int32_t outputs) {
    return add_node(e, "com.microsoft", op_type, in, count, outputs);
}

qs_id qs_expand_own(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                    int32_t outputs) {
    return add_node(e, "qsim", op_type, in, count, outputs);
}

qs_id qs_expand_concat(qs_expand *e, const qs_id *in, int32_t count, int64_t axis) {
    const qs_id y = add_node(e, "", "Concat", in, count, 1);
    qs_expand_int(e, y, "axis", axis);
    return y;
}

qs_id qs_expand_split(qs_expand *e, qs_id x, int64_t axis, const int64_t *sizes, int32_t n) {
    const qs_id in[2] = {x, qs_expand_list(e, sizes, n)};
    const qs_id y = add_node(e, "", "Split", in, 2, n);
    qs_expand_int(e, y, "axis", axis);
    return y;
}

qs_id qs_expand_add(qs_expand *e, const char *op_type, qs_id a, qs_id b, qs_id c) {
    const qs_id in[3] = {a, b, c};
    return add_node(e, "", op_type, in, b == QS_NONE ? 1 : c == QS_NONE ? 2 : 3, 1);
}

qs_id qs_expand_two(qs_expand *e, const char *op_type, qs_id a, qs_id b) {
    return qs_expand_add(e, op_type, a, b, QS_NONE);
}

qs_id qs_expand_one(qs_expand *e, const char *op_type, qs_id a) {
    return qs_expand_two(e, op_type, a, QS_NONE);
}

static void set(qs_expand *e, int code) {
    if (code)
        failed(e, code);
}

void qs_expand_int(qs_expand *e, qs_id made, const char *name, int64_t v) {
    if (!e->code)
        set(e, qs_node_set_int(e->graph, e->graph->values[made].producer, name, v));
}

void qs_expand_float(qs_expand *e, qs_id made, const char *name, float v) {
    if (!e->code)
        set(e, qs_node_set_float(e->graph, e->graph->values[made].producer, name, v));
}

void qs_expand_ints(qs_expand *e, qs_id made, const char *name, const int64_t *v, int32_t n) {
    if (!e->code)
        set(e, qs_node_set_ints(e->graph, e->graph->values[made].producer, name, v, n));
}

void qs_expand_attr(qs_expand *e, qs_id made, const qs_attr *a) {
    if (!e->code)
        set(e, qs_node_set_attr(e->graph, e->graph->values[made].producer, a));
}

void qs_expand_copy(qs_expand *e, qs_id made, const char *name, const char *as) {
    const qs_attr *a = qs_node_attr(&e->graph->nodes[e->node_id], name);
    if (!a || e->code)
        return;
    qs_attr copy = *a;
    copy.name = as;
    copy.source = (qs_span){NULL, 0};
    set(e, qs_node_set_attr(e->graph, e->graph->values[made].producer, &copy));
}

static qs_id constant(qs_expand *e, int32_t dtype, int32_t rank, const int64_t *dims,
                      const void *data) {
    const qs_id id =
        e->code ? QS_NONE : qs_graph_add_const(e->graph, NULL, dtype, rank, dims, data, true);
    return id < 0 ? failed(e, e->code ? e->code : id) : id;
}

qs_id qs_expand_number(qs_expand *e, int32_t dtype, double v) {
    const float f = (float)v;
    const int64_t l = (int64_t)v;
    const int32_t i = (int32_t)l;
    const uint8_t b = (uint8_t)l;
    const void *data = dtype == QSIM_FLOAT    ? (const void *)&f
                       : dtype == QSIM_DOUBLE ? (const void *)&v
                       : dtype == QSIM_INT64  ? (const void *)&l
                       : dtype == QSIM_INT32  ? (const void *)&i
                                              : (const void *)&b;
    return constant(e, dtype, 0, NULL, data);
}

qs_id qs_expand_list(qs_expand *e, const int64_t *v, int32_t n) {
    const int64_t count = n;
    return constant(e, QSIM_INT64, 1, &count, v);
}

qs_id qs_expand_mean(qs_expand *e, qs_id x, const int64_t *axes, int32_t n, bool keep) {
    const bool as_input = !e->standard || qs_graph_import(e->graph, "") >= MEAN_AXES;
    const qs_id y =
        qs_expand_add(e, "ReduceMean", x, as_input ? qs_expand_list(e, axes, n) : QS_NONE, QS_NONE);
    if (!as_input)
        qs_expand_ints(e, y, "axes", axes, n);
    if (!keep)
        qs_expand_int(e, y, "keepdims", 0);
    return y;
}

qs_id qs_expand_cast(qs_expand *e, qs_id x, int32_t dtype) {
    const qs_id y = qs_expand_add(e, "Cast", x, QS_NONE, QS_NONE);
    qs_expand_int(e, y, "to", dtype);
    return y;
}

qs_id qs_expand_as(qs_expand *e, int32_t index, int32_t dtype) {
    const qs_node n = *e->node;
    qs_id in[4];
    assert(n.input_count <= (int32_t)QS_COUNT(in));
    for (int32_t i = 0; i < n.input_count; i++)
        in[i] = n.inputs[i];
    in[index] = qs_expand_cast(e, in[index], dtype);
    const qs_id y = qs_expand_many(e, n.op_type, in, n.input_count, 1);
    for (int32_t i = 0; i < n.attr_count; i++)
        qs_expand_copy(e, y, n.attrs[i].name, n.attrs[i].name);
    return y;
}

qs_id qs_expand_reshape(qs_expand *e, qs_id x, const int64_t *shape, int32_t n) {
    return qs_expand_add(e, "Reshape", x, qs_expand_list(e, shape, n), QS_NONE);
}

qs_id qs_expand_transpose(qs_expand *e, qs_id x, const int64_t *perm, int32_t n) {
    const qs_id y = qs_expand_add(e, "Transpose", x, QS_NONE, QS_NONE);
    qs_expand_ints(e, y, "perm", perm, n);
    return y;
}

int qs_expand_infer(qs_infer *x, const char *op_type, const qs_value *in, int32_t count) {
    const qs_op *op = qs_op_find("", op_type, PLAIN_VERSION, NULL);
    qs_node node = *x->node;
    qs_infer own = *x;
    node.domain = "";
    node.op_type = op_type;
    node.version = PLAIN_VERSION;
    if (!op) {
        op = qs_op_find("", op_type, QS_OPSET_NEWEST, NULL);
#ifdef QS_OPERATORS /* listed.py has kept the row of a name that code spells */
        if (!op)
            return qs_infer_fail(x, QSIM_E_INTERNAL, "this build has no operator %s", op_type);
#endif
        node.version = op->since;
    }
    own.node = &node;
    for (int32_t i = 0; i < count; i++)
        own.in[i] = own.in[i] ? &in[i] : NULL;
    return op->infer(&own);
}
