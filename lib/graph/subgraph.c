/* SPDX-License-Identifier: MIT */
/* Graphs inside nodes: branches of If, bodies of Loop and Scan. */
#include "graph/subgraph.h"

int qs_graph_own(qs_graph *g, qs_graph *inner) {
    if (!qs_grow(g->arena.ctx, (void **)&g->owned, &g->owned_capacity, g->owned_count + 1,
                 sizeof(qs_graph *))) {
        qs_graph_free(inner);
        return QSIM_E_NOMEM;
    }
    g->owned[g->owned_count++] = inner;
    return QSIM_OK;
}

int qs_graph_capture(qs_graph *g, qs_id node, const qs_id *values, int32_t count) {
    const int32_t own = g->nodes[node].input_count;
    if (count > INT32_MAX - own || qs_node_grow_inputs(g, node, own + count))
        return QSIM_E_NOMEM;
    for (int32_t i = 0; i < count; i++)
        g->nodes[node].inputs[own + i] = values[i];
    g->nodes[node].captured = count;
    return QSIM_OK;
}

static bool is_subgraph(const qs_attr *a) {
    return a->type == QS_ATTR_GRAPH && a->u.graph;
}

qs_subgraph *qs_node_subgraph(const qs_node *n, const char *name) {
    const qs_attr *a = qs_node_attr(n, name);
    return a && is_subgraph(a) ? a->u.graph : NULL;
}

bool qs_node_has_subgraph(const qs_node *n) {
    for (int32_t i = 0; i < n->attr_count; i++)
        if (is_subgraph(&n->attrs[i]))
            return true;
    return false;
}

bool qs_subgraphs_clone(qs_graph *g, qs_node *n) {
    for (int32_t i = 0; i < n->attr_count; i++) {
        if (!is_subgraph(&n->attrs[i]))
            continue;
        const qs_subgraph *from = n->attrs[i].u.graph;
        qs_subgraph *to = qs_arena_copy(&g->arena, from, sizeof(*from));
        if (!to)
            return false;
        to->captures = qs_arena_copy(&g->arena, from->captures,
                                     (size_t)from->capture_count * sizeof(*from->captures));
        if (!to->captures || qs_graph_clone(from->graph, g->arena.ctx, &to->graph) ||
            qs_graph_own(g, to->graph))
            return false;
        n->attrs[i].u.graph = to;
    }
    return true;
}

static void name_captures(const qs_graph *g, const qs_node *n, const qs_subgraph *sub) {
    for (int32_t i = 0; i < sub->capture_count; i++) {
        const qs_id outer = n->inputs[sub->captures[i].input];
        if (outer != QS_NONE)
            sub->graph->values[sub->captures[i].inner].name = g->values[outer].name;
    }
    qs_graph_name_captures(sub->graph);
}

void qs_graph_name_captures(qs_graph *g) {
    for (size_t i = 0; i < g->node_count; i++)
        for (int32_t k = 0; !g->nodes[i].removed && k < g->nodes[i].attr_count; k++)
            if (is_subgraph(&g->nodes[i].attrs[k]))
                name_captures(g, &g->nodes[i], g->nodes[i].attrs[k].u.graph);
}
