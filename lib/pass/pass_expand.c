/* SPDX-License-Identifier: MIT */
/*
 * Expands operators: replaces each node whose row has `expand` by the nodes that it stands for,
 * until none is left. So other passes have to match fewer operators.
 */
#include "op/expand.h"
#include "pass/pass.h"

/* Replaces the node by Identity nodes from the new values to its outputs. */
static int replace(qs_pass *p, qs_expand *e) {
    qs_graph *g = p->graph;
    const qs_node n = g->nodes[e->node_id];
    qs_graph_remove_node(g, e->node_id);
    for (int32_t i = 0; i < n.output_count; i++) {
        if (n.outputs[i] == QS_NONE || e->out[i] == QS_NONE)
            continue;
        const qs_id id =
            qs_pass_node(p, "", "Identity", n.name, 0, &e->out[i], 1, &n.outputs[i], 1);
        if (id < 0)
            return id;
    }
    return QSIM_OK;
}

static int expand(qs_pass *p, qs_id id, bool *changed) {
    qs_expand e = {.graph = p->graph,
                   .node_id = id,
                   .node = &p->graph->nodes[id],
                   .standard = p->standard,
                   .only_onnx = p->only_onnx,
                   .model = p->model,
                   .error = p->error};
    for (size_t i = 0; i < QS_COUNT(e.out); i++)
        e.out[i] = QS_NONE;
    e.node->op->expand(&e);
    *changed = *changed || e.changed;
    if (e.code || e.out[0] == QS_NONE)
        return e.code;
    *changed = true;
    return replace(p, &e);
}

/* With only_onnx, operators of ONNX stay as they are. */
static bool is_wanted(const qs_pass *p, const qs_node *n) {
    return !n->removed && n->op && n->op->expand && (!p->only_onnx || !qs_node_in_onnx(n));
}

int qs_pass_expand(qs_pass *p) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t k = 0; k < p->graph->order_count; k++) {
            const qs_node *n = &p->graph->nodes[p->graph->order[k]];
            const int code = is_wanted(p, n) ? expand(p, p->graph->order[k], &changed) : QSIM_OK;
            if (code)
                return code;
        }
        const int code = changed ? qs_pass_finish(p) : QSIM_OK;
        if (code)
            return code;
    }
    return QSIM_OK;
}
