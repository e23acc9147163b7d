/* SPDX-License-Identifier: MIT */
/*
 * A sum or product of two tables of the same bytes becomes one table: HardSwish and SiLU, for
 * instance, written as x * g(x) with a quantized g. So does a table of a table. The operator itself
 * computes the new table.
 */
#include "pass/pass.h"

/* An operand as a table of the bytes of `value`. */
typedef struct lookup {
    qs_id value;
    uint8_t table[256];
} lookup;

static bool is_bytes(const qs_graph *g, qs_id v) {
    return v != QS_NONE && g->values[v].dtype == QSIM_UINT8 && !g->values[v].data;
}

/* `v` as a table: that of the QTable that makes it, else the identity. */
static lookup find_table(const qs_graph *g, qs_id v) {
    lookup w = {.value = v};
    qs_id producer = v == QS_NONE ? QS_NONE : g->values[v].producer;
    const qs_node *n = producer == QS_NONE ? NULL : &g->nodes[producer];
    const qs_const *c = n && qs_node_is(n, "qsim", "QTable") ? g->values[n->inputs[1]].data : NULL;
    for (int i = 0; i < 256; i++)
        w.table[i] = (uint8_t)i;
    if (c && c->dtype == QSIM_UINT8 && is_bytes(g, n->inputs[0])) {
        memcpy(w.table, c->data, 256);
        w.value = n->inputs[0];
    }
    return w;
}

/* Runs the node on all 256 values of its operands. */
static int compute(qs_pass *p, qs_id node, const lookup *a, const lookup *b, uint8_t *table) {
    const qs_node *n = &p->graph->nodes[node];
    const int64_t dims = 256;
    qs_graph *g;
    qs_id in[8], out = 0;
    bool done = false;
    if (qs_graph_create(p->ctx, &g))
        return qs_pass_no_memory(p);
    for (int32_t i = 0; i < n->input_count && out >= 0; i++) {
        const qs_const *c = qs_node_const(p->graph, n, i);
        if (i == 0 || i == 3)
            out = qs_graph_add_const(g, NULL, QSIM_UINT8, 1, &dims, (i ? b : a)->table, true);
        else if (c)
            out = qs_graph_add_const(g, NULL, c->dtype, c->rank, c->dims, c->data, true);
        in[i] = i == 0 || i == 3 || c ? out : QS_NONE;
    }
    if (out >= 0)
        out = qs_graph_add_value(g, NULL);
    const qs_id id = out < 0 ? out : qs_graph_add_like(g, n, in, &out);
    int code = id < 0 ? qs_pass_no_memory(p) : QSIM_OK;
    qs_eval e = {.ctx = p->ctx, .graph = g, .arena = &g->arena, .model = p->model};
    if (!code) {
        e.values = g->values;
        e.error = p->error;
        e.address = qs_eval_addresses(&g->arena, g);
        code = e.address ? qs_eval_const(&e, id, NULL, 4096, &done) : qs_pass_no_memory(p);
    }
    if (!code && done)
        memcpy(table, g->values[out].data->data, 256);
    qs_graph_free(g);
    return code || done ? code : qs_fail(p->error, QSIM_E_INTERNAL, "%s: no table", p->model);
}

/* Whether the node is a sum or product of bytes whose parameters are all constant. */
static bool is_pair(const qs_graph *g, const qs_node *n) {
    if (!qs_same(n->op_type, "QLinearMul") && !qs_same(n->op_type, "QLinearAdd"))
        return false;
    for (int32_t i = 0; i < n->input_count; i++)
        if (i != 0 && i != 3 && n->inputs[i] != QS_NONE && !g->values[n->inputs[i]].data)
            return false;
    return n->input_count <= 8 && is_bytes(g, n->inputs[0]) && is_bytes(g, n->inputs[3]) &&
           is_bytes(g, n->outputs[0]);
}

static int fuse_at(qs_pass *p, qs_id node, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    const bool table = qs_node_is(n, "qsim", "QTable"), pair = is_pair(g, n);
    uint8_t made[256];
    if (!pair && !(table && g->values[n->inputs[1]].data))
        return QSIM_OK;
    lookup a = find_table(g, n->inputs[0]), b = pair ? find_table(g, n->inputs[3]) : a;
    if (a.value != b.value || (table && a.value == n->inputs[0]))
        return QSIM_OK;
    int code = pair ? compute(p, node, &a, &b, made) : QSIM_OK;
    for (int i = 0; i < 256 && table; i++)
        made[i] = ((const uint8_t *)g->values[n->inputs[1]].data->data)[a.table[i]];
    if (code)
        return code;
    qs_id c = qs_pass_const_table(p, made), y = g->nodes[node].outputs[0];
    if (c < 0)
        return c;
    const qs_id in[2] = {a.value, c};
    const char *name = g->nodes[node].name;
    qs_graph_remove_node(g, node);
    qs_id id = qs_pass_node(p, "qsim", "QTable", name, 1, in, 2, &y, 1);
    *changed = true;
    return id < 0 ? id : QSIM_OK;
}

int qs_pass_table(qs_pass *p) {
    bool changed = false;
    int code = QSIM_OK;
    for (size_t i = 0; i < p->graph->order_count && !code; i++)
        code = fuse_at(p, p->graph->order[i], &changed);
    return code || !changed ? code : qs_pass_finish(p);
}
