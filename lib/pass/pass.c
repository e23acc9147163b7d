/* SPDX-License-Identifier: MIT */
/* Functions that passes share. */
#include "op/rules.h"
#include "pass/pass.h"

int qs_pass_no_memory(const qs_pass *p) {
    return qs_fail(p->error, QSIM_E_NOMEM, "%s: out of memory", p->model);
}

int qs_pass_finish(qs_pass *p) {
    int code = qs_graph_sort(p->graph, p->error);
    if (!code && qs_graph_prune(p->graph))
        code = qs_pass_no_memory(p);
    return code ? code : qs_op_infer_graph(p->graph, p->model, p->error);
}

int qs_pass_nodes(qs_pass *p,
                  int (*rewrite)(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed)) {
    const size_t count = p->graph->order_count;
    bool changed = false;
    int code = QSIM_OK;
    qs_uses uses;
    if (qs_graph_uses(p->graph, &uses))
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < count && !code; i++) {
        code = qs_go_on_at(p->ctx, i, p->model, p->error);
        if (!code)
            code = rewrite(p, &uses, p->graph->order[i], &changed);
    }
    qs_uses_free(p->graph, &uses);
    return code || !changed ? code : qs_pass_finish(p);
}

bool qs_pass_same_sizes(const qs_graph *g, qs_id a, qs_id b) {
    const qs_value *x = &g->values[a], *y = &g->values[b];
    bool same = x->rank >= 0 && x->rank == y->rank;
    for (int32_t i = 0; same && i < x->rank; i++)
        same = x->dims[i].size >= 0 && x->dims[i].size == y->dims[i].size;
    return same;
}

qs_id qs_pass_value(qs_pass *p, qs_id like) {
    qs_id id = qs_graph_add_value(p->graph, NULL);
    if (id < 0)
        return qs_pass_no_memory(p);
    const qs_value *from = &p->graph->values[like];
    qs_value *v = &p->graph->values[id];
    v->dtype = from->dtype;
    v->rank = from->rank;
    v->dims = from->dims;
    return id;
}

qs_id qs_pass_const(qs_pass *p, int32_t dtype, int32_t rank, const int64_t *dims,
                    const void *data) {
    qs_id id = qs_graph_add_const(p->graph, NULL, dtype, rank, dims, data, true);
    return id < 0 ? qs_pass_no_memory(p) : id;
}

qs_id qs_pass_placed_const(qs_pass *p, int32_t dtype, int32_t rank, const int64_t *dims,
                           const void *data) {
    qs_id id = qs_graph_add_const(p->graph, NULL, dtype, rank, dims, data, false);
    return id < 0 ? qs_pass_no_memory(p) : id;
}

qs_id qs_pass_const_u8(qs_pass *p, int32_t dtype, uint8_t value) {
    return qs_pass_const(p, dtype, 0, NULL, &value);
}

qs_id qs_pass_const_table(qs_pass *p, const uint8_t *table) {
    const int64_t count = 256;
    return qs_pass_const(p, QSIM_UINT8, 1, &count, table);
}

int qs_pass_resolve(qs_pass *p, qs_id node) {
    return qs_op_resolve(p->graph, node, p->model, p->error);
}

qs_id qs_pass_node(qs_pass *p, const char *domain, const char *op_type, const char *name,
                   int32_t version, const qs_id *inputs, int32_t input_count, const qs_id *outputs,
                   int32_t output_count) {
    qs_id id = qs_graph_add_node(p->graph, domain, op_type, name, inputs, input_count, outputs,
                                 output_count);
    if (id < 0)
        return qs_pass_no_memory(p);
    if (version > 0)
        p->graph->nodes[id].version = version;
    int code = qs_pass_resolve(p, id);
    return code ? code : id;
}

int qs_pass_reshape(qs_pass *p, qs_id from, const int64_t *shape, int32_t count, qs_id to) {
    const int64_t n = count;
    const qs_id in[2] = {from, qs_pass_const(p, QSIM_INT64, 1, &n, shape)};
    const qs_id id = in[1] < 0 ? in[1] : qs_pass_node(p, "", "Reshape", "", 13, in, 2, &to, 1);
    return id < 0 ? id : QSIM_OK;
}

int qs_pass_transpose(qs_pass *p, qs_id from, const int64_t *perm, int32_t count, qs_id to) {
    const qs_id id = qs_pass_node(p, "", "Transpose", "", 13, &from, 1, &to, 1);
    if (id < 0)
        return id;
    return qs_node_set_ints(p->graph, id, "perm", perm, count) ? qs_pass_no_memory(p) : QSIM_OK;
}

qs_id qs_pass_clone(qs_pass *p, qs_id like, const char *domain, const qs_id *inputs,
                    int32_t input_count, const qs_id *outputs, int32_t output_count) {
    qs_graph *g = p->graph;
    qs_id id = qs_graph_add_node(g, domain, g->nodes[like].op_type, g->nodes[like].name, inputs,
                                 input_count, outputs, output_count);
    if (id < 0)
        return qs_pass_no_memory(p);
    const qs_node *from = &g->nodes[like];
    qs_node *n = &g->nodes[id];
    n->attr_count = from->attr_count;
    n->attrs = qs_arena_copy(&g->arena, from->attrs, (size_t)from->attr_count * sizeof(qs_attr));
    n->version = from->version;
    return n->attrs ? id : qs_pass_no_memory(p);
}

void qs_pass_set_output(qs_pass *p, qs_id node, int32_t index, qs_id value) {
    qs_graph *g = p->graph;
    qs_node *n = &g->nodes[node];
    if (n->outputs[index] != QS_NONE && g->values[n->outputs[index]].producer == node)
        g->values[n->outputs[index]].producer = QS_NONE;
    n->outputs[index] = value;
    n->changed = true;
    g->values[value].producer = node;
}

qs_id qs_pass_producer(const qs_graph *g, qs_id value, const char *op_type) {
    qs_id id = value < 0 ? QS_NONE : g->values[value].producer;
    return id != QS_NONE && qs_node_is_onnx(&g->nodes[id], op_type) ? id : QS_NONE;
}

qs_id qs_pass_reader(const qs_graph *g, const qs_uses *uses, qs_id value, const char *op_type) {
    const qs_id id = qs_only_reader(g, uses, value);
    return id != QS_NONE && qs_node_is_onnx(&g->nodes[id], op_type) ? id : QS_NONE;
}

bool qs_node_is_constant(const qs_graph *g, const qs_node *n, int32_t first, int32_t end) {
    for (int32_t i = first; i < end && i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && !g->values[n->inputs[i]].data)
            return false;
    return true;
}

const qs_const *qs_node_floats(const qs_graph *g, const qs_node *n, int32_t index) {
    const qs_const *c = qs_node_const(g, n, index);
    return c && c->dtype == QSIM_FLOAT ? c : NULL;
}

bool qs_node_zero(const qs_graph *g, const qs_node *n, int32_t index) {
    const qs_const *z = qs_node_const(g, n, index);
    for (size_t i = 0; z && i < z->elements; i++)
        if (qs_const_at(z, i) != 0)
            return false;
    return z || qs_node_input(n, index) == QS_NONE;
}

bool qs_node_perm_is(const qs_node *n, const int64_t *perm, int32_t rank) {
    const qs_attr *a = qs_node_attr(n, "perm");
    return a && a->count == rank && memcmp(a->u.ints, perm, (size_t)rank * sizeof(*perm)) == 0;
}

bool qs_node_perm(const qs_node *n, int32_t rank, int64_t *perm) {
    const qs_attr *a = qs_node_attr(n, "perm");
    if (a && a->count != rank)
        return false;
    for (int32_t i = 0; i < rank; i++) {
        perm[i] = a ? a->u.ints[i] : rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= rank)
            return false;
    }
    return true;
}

static bool is_number(const qs_const *c) {
    switch (c->dtype) {
    case QSIM_FLOAT:
    case QSIM_DOUBLE:
    case QSIM_UINT8:
    case QSIM_INT8:
    case QSIM_UINT16:
    case QSIM_INT16:
    case QSIM_INT32:
    case QSIM_INT64: return true;
    default: return false;
    }
}

bool qs_const_scalar(const qs_graph *g, qs_id value, double *out) {
    const qs_const *c = value < 0 ? NULL : g->values[value].data;
    if (!c || c->elements != 1 || !is_number(c))
        return false;
    *out = qs_const_at(c, 0);
    return true;
}

uint8_t qs_const_code4(const qs_const *c, size_t i) {
    return ((const uint8_t *)c->data)[i / 2] >> (i % 2 * 4) & 15;
}

int32_t qs_const_ints(const qs_const *c, int64_t *out, int32_t capacity) {
    if (!c || c->elements > (size_t)capacity || (c->dtype != QSIM_INT64 && c->dtype != QSIM_INT32))
        return -1;
    for (size_t i = 0; i < c->elements; i++)
        if (c->dtype == QSIM_INT64) /* a double does not hold all of them */
            memcpy(&out[i], (const uint8_t *)c->data + i * sizeof(*out), sizeof(*out));
        else
            out[i] = (int64_t)qs_const_at(c, i);
    return (int32_t)c->elements;
}

uint32_t qs_node_axes(const qs_graph *g, const qs_node *n, int32_t rank) {
    const qs_attr *a = qs_node_attr(n, "axes");
    int64_t list[QSIM_MAX_RANK];
    const int32_t count = a ? a->count : qs_const_ints(qs_node_const(g, n, 1), list, QSIM_MAX_RANK);
    uint32_t mask = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t axis = a ? a->u.ints[i] : list[i];
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank)
            return 0;
        mask |= 1u << axis;
    }
    return mask;
}
