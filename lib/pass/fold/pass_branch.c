/* SPDX-License-Identifier: MIT */
/*
 * Replaces an If whose condition is constant by the nodes of the branch that it takes. Values of
 * the outer graph that the branch reads are inputs of the If; the branch's constants become the
 * graph's.
 */
#include "pass/pass.h"

/*
 * Maps values of the branch to values of the graph: captured ones to inputs of the If, others to
 * new ones.
 */
static int map_values(qs_pass *p, qs_id node, const qs_subgraph *sub, qs_id *map) {
    const qs_graph *inner = sub->graph;
    for (size_t v = 0; v < inner->value_count; v++)
        map[v] = QS_NONE;
    for (int32_t i = 0; i < sub->capture_count; i++)
        map[sub->captures[i].inner] = p->graph->nodes[node].inputs[sub->captures[i].input];
    for (size_t v = 0; v < inner->value_count; v++) {
        const qs_value *from = &inner->values[v];
        if (map[v] != QS_NONE)
            continue;
        map[v] = qs_graph_add_value(p->graph, NULL);
        if (map[v] < 0)
            return qs_pass_no_memory(p);
        qs_value *to = &p->graph->values[map[v]];
        to->dtype = from->dtype;
        to->rank = from->rank;
        to->dims = from->dims;
        to->data = from->data;
    }
    return QSIM_OK;
}

static int copy_node(qs_pass *p, const qs_node *from, const qs_id *map) {
    const size_t count = (size_t)from->input_count + (size_t)from->output_count;
    qs_id *ids = qs_alloc(p->ctx, count + 1, sizeof(*ids));
    if (!ids)
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < count; i++) {
        const size_t in = (size_t)from->input_count;
        const qs_id id = i < in ? from->inputs[i] : from->outputs[i - in];
        ids[i] = id == QS_NONE ? QS_NONE : map[id];
    }
    const qs_id id = qs_graph_add_like(p->graph, from, ids, ids + from->input_count);
    qs_free(p->ctx, ids);
    return id < 0 ? qs_pass_no_memory(p) : QSIM_OK;
}

static int inline_branch(qs_pass *p, qs_id node, const qs_subgraph *sub) {
    const qs_graph *inner = sub->graph;
    const qs_node n = p->graph->nodes[node];
    qs_id *map = qs_alloc(p->ctx, inner->value_count + 1, sizeof(*map));
    int code = map ? map_values(p, node, sub, map) : qs_pass_no_memory(p);
    for (size_t i = 0; i < inner->order_count && !code; i++)
        code = copy_node(p, &inner->nodes[inner->order[i]], map);
    if (!code)
        qs_graph_remove_node(p->graph, node);
    for (int32_t i = 0; i < n.output_count && !code; i++) {
        if (n.outputs[i] == QS_NONE)
            continue;
        const qs_id from = map[inner->outputs[i]];
        const qs_id made = qs_pass_node(p, "", "Identity", n.name, 0, &from, 1, &n.outputs[i], 1);
        code = made < 0 ? made : QSIM_OK;
    }
    qs_free(p->ctx, map);
    return code;
}

int qs_pass_branches(qs_pass *p, bool *changed) {
    qs_graph *g = p->graph;
    bool any = false;
    int code = QSIM_OK;
    for (size_t i = 0, count = g->order_count; i < count && !code; i++) {
        const qs_id id = g->order[i];
        const qs_node *n = &g->nodes[id];
        const qs_const *c = qs_node_is(n, "", "If") ? qs_node_const(g, n, 0) : NULL;
        if (!c || c->elements != 1 || c->dtype != QSIM_BOOL)
            continue;
        const bool yes = *(const uint8_t *)c->data != 0;
        const qs_subgraph *sub = qs_node_subgraph(n, yes ? "then_branch" : "else_branch");
        if (!sub || (int32_t)sub->graph->output_count != n->output_count)
            continue;
        code = inline_branch(p, id, sub);
        any = true;
    }
    *changed = *changed || any;
    return code || !any ? code : qs_pass_finish(p);
}
