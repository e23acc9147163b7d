/* SPDX-License-Identifier: MIT */
/* Graphs inside nodes: branches of If, bodies of Loop and Scan. */
#include "graph/subgraph.h"
#include "base/ctx.h"
#include "graph/names.h"

int qs_graph_own(qs_graph *g, qs_graph *inner) {
    if (!qs_grow(g->arena.ctx, (void **)&g->owned, &g->owned_capacity, g->owned_count,
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
    return a->type == QSIM_ATTR_GRAPH && a->u.graph;
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

int qs_subgraphs_clone(qs_graph *g, qs_node *n) {
    int code = QSIM_OK;
    for (int32_t i = 0; i < n->attr_count && !code; i++) {
        if (!is_subgraph(&n->attrs[i]))
            continue;
        const qs_subgraph *from = n->attrs[i].u.graph;
        qs_subgraph *to = qs_arena_copy(&g->arena, from, sizeof(*from));
        if (!to)
            return QSIM_E_NOMEM;
        to->captures = qs_arena_copy(&g->arena, from->captures,
                                     (size_t)from->capture_count * sizeof(*from->captures));
        code = to->captures ? qs_graph_clone(from->graph, g->arena.ctx, &to->graph) : QSIM_E_NOMEM;
        if (!code)
            code = qs_graph_own(g, to->graph);
        n->attrs[i].u.graph = to;
    }
    return code;
}

int qs_subgraphs_visit(qs_graph *g, qs_subgraph_fn visit, void *user) {
    int code = QSIM_OK;
    for (size_t k = 0; k < g->order_count; k++) {
        qs_node *n = &g->nodes[g->order[k]];
        for (int32_t i = 0; i < n->attr_count && !n->removed && !code; i++)
            if (is_subgraph(&n->attrs[i]))
                code = visit(user, g, n, n->attrs[i].u.graph);
    }
    return code;
}

typedef struct visiting {
    qs_graph_fn visit;
    void *user;
} visiting;

static int visit_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    const visiting *v = user;
    (void)g, (void)n;
    return qs_graphs_visit(sub->graph, v->visit, v->user);
}

int qs_graphs_visit(qs_graph *g, qs_graph_fn visit, void *user) {
    visiting v = {visit, user};
    const int code = visit(user, g);
    return code ? code : qs_subgraphs_visit(g, visit_inside, &v);
}

/* Renames the values of a graph whose names are taken, and takes the names of all. */
static int take_names(struct qs_names *taken, qs_graph *g) {
    for (size_t v = 0; v < g->value_count; v++) {
        const char *name = g->values[v].name;
        const int code = qs_go_on_at(g->arena.ctx, v, "", NULL);
        if (code)
            return code;
        if (!name[0] || !qs_value_exists(&g->values[v]))
            continue;
        while (name && (qs_names_find(taken, name) != QS_NONE ||
                        (name != g->values[v].name && qs_graph_find(g, name) != QS_NONE)))
            name = qs_names_unused(taken, &g->arena, g->values[v].name, 2);
        if (!name || (name != g->values[v].name && qs_graph_rename(g, (qs_id)v, name)) ||
            qs_names_put(g->arena.ctx, taken, name, (qs_id)v))
            return QSIM_E_NOMEM;
    }
    return QSIM_OK;
}

static int name_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    for (int32_t i = 0; i < sub->capture_count; i++)
        sub->graph->values[sub->captures[i].inner].name = "";
    const int code = take_names(user, sub->graph);
    for (int32_t i = 0; i < sub->capture_count; i++)
        sub->graph->values[sub->captures[i].inner].name =
            g->values[n->inputs[sub->captures[i].input]].name;
    return code ? code : qs_subgraphs_visit(sub->graph, name_inside, user);
}

int qs_graph_name_inside(qs_graph *g) {
    struct qs_names *taken = qs_names_create(g->arena.ctx);
    int code = taken ? take_names(taken, g) : QSIM_E_NOMEM;
    if (!code)
        code = qs_subgraphs_visit(g, name_inside, taken);
    if (taken)
        qs_names_free(g->arena.ctx, taken);
    return code;
}

int qs_subgraph_bind(const qs_graph *g, const qs_node *n, const qs_subgraph *sub, qs_graph *inner) {
    for (int32_t i = 0; i < sub->capture_count; i++) {
        const qs_value *outer = &g->values[n->inputs[sub->captures[i].input]];
        qs_value *v = &inner->values[sub->captures[i].inner];
        if (!outer->data)
            continue;
        v->data = outer->data;
        if (qs_value_set_shape(inner, sub->captures[i].inner, outer->dtype, outer->rank,
                               outer->dims))
            return QSIM_E_NOMEM;
    }
    size_t kept = (size_t)sub->fed;
    for (size_t i = kept; i < inner->input_count; i++)
        if (!inner->values[inner->inputs[i]].data)
            inner->inputs[kept++] = inner->inputs[i];
    inner->input_count = kept;
    return QSIM_OK;
}

int qs_subgraph_release(qs_node *n, qs_subgraph *sub) {
    qs_graph *g = sub->graph;
    qs_uses uses;
    int32_t kept = 0;
    if (qs_graph_uses(g, &uses))
        return QSIM_E_NOMEM;
    for (int32_t i = 0; i < sub->capture_count; i++) {
        const qs_capture c = sub->captures[i];
        const qs_value *v = &g->values[c.inner];
        if (v->data && !v->is_output && uses.start[c.inner + 1] == uses.start[c.inner])
            n->inputs[c.input] = QS_NONE;
        else
            sub->captures[kept++] = c;
    }
    sub->capture_count = kept;
    for (size_t v = 0; v < g->value_count; v++)
        if (!g->values[v].is_output && uses.start[v + 1] == uses.start[v])
            g->values[v].data = NULL;
    qs_uses_free(g, &uses);
    return QSIM_OK;
}
