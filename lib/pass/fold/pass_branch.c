/* SPDX-License-Identifier: MIT */
/*
 * Copies subgraphs into the graph: the branch that an If with a constant condition takes, and the
 * body of a Loop that carries sequences, once for each iteration if their number is known. Values
 * of the outer graph that a subgraph reads are inputs of the node; its constants become the
 * graph's.
 */
#include "op/rules.h"
#include "pass/pass.h"
#include "graph/subgraph.h"

/* Most nodes that the iterations of a Loop become. */
#define UNROLL_MOST 4096

/* A node, its subgraph that is copied, and the graph's value for each value of the subgraph. */
typedef struct copying {
    qs_pass *p;
    qs_node n;
    const qs_subgraph *sub;
    qs_id *map;
} copying;

static int begin(copying *c, qs_pass *p, qs_id node, const qs_subgraph *sub) {
    *c = (copying){.p = p, .n = p->graph->nodes[node], .sub = sub};
    c->map = qs_alloc(p->ctx, sub->graph->value_count + 1, sizeof(*c->map));
    return c->map ? QSIM_OK : qs_pass_no_memory(p);
}

/* Fills the map: captured values are inputs of the node, fed ones are in `fed`, others are new. */
static int map_values(const copying *c, const qs_id *fed) {
    const qs_graph *inner = c->sub->graph;
    for (size_t v = 0; v < inner->value_count; v++)
        c->map[v] = QS_NONE;
    for (int32_t i = 0; i < c->sub->capture_count; i++)
        c->map[c->sub->captures[i].inner] = c->n.inputs[c->sub->captures[i].input];
    for (int32_t i = 0; fed && i < c->sub->fed; i++)
        c->map[inner->inputs[i]] = fed[i];
    for (size_t v = 0; v < inner->value_count; v++) {
        const qs_value *from = &inner->values[v];
        if (c->map[v] != QS_NONE)
            continue;
        const qs_id id = qs_graph_add_value(c->p->graph, NULL);
        if (id < 0)
            return qs_pass_no_memory(c->p);
        c->map[v] = id;
        qs_value *to = &c->p->graph->values[id];
        to->dtype = from->dtype;
        to->rank = from->rank;
        to->dims = from->dims;
        to->data = from->data;
    }
    return QSIM_OK;
}

/* Each copy has subgraphs of its own, whose shapes may differ. */
static int copy_node(const copying *c, const qs_node *from) {
    qs_graph *g = c->p->graph;
    const size_t count = (size_t)from->input_count + (size_t)from->output_count;
    qs_id *ids = qs_alloc(c->p->ctx, count + 1, sizeof(*ids));
    if (!ids)
        return qs_pass_no_memory(c->p);
    for (size_t i = 0; i < count; i++) {
        const size_t in = (size_t)from->input_count;
        const qs_id id = i < in ? from->inputs[i] : from->outputs[i - in];
        ids[i] = id == QS_NONE ? QS_NONE : c->map[id];
    }
    const qs_id id = qs_graph_add_like(g, from, ids, ids + from->input_count);
    qs_free(c->p->ctx, ids);
    if (id < 0)
        return qs_pass_no_memory(c->p);
    qs_node *n = &g->nodes[id];
    if (!qs_node_has_subgraph(n))
        return QSIM_OK;
    n->attrs = qs_arena_copy(&g->arena, n->attrs, (size_t)n->attr_count * sizeof(*n->attrs));
    const int code = n->attrs ? qs_subgraphs_clone(g, n) : QSIM_E_NOMEM;
    return qs_stop_fail(c->p->ctx, code, c->p->model, c->p->error);
}

static int copy_nodes(const copying *c, const qs_id *fed) {
    const qs_graph *inner = c->sub->graph;
    int code = map_values(c, fed);
    for (size_t i = 0; i < inner->order_count && !code; i++)
        code = copy_node(c, &inner->nodes[inner->order[i]]);
    return code;
}

/* The graph's value for output `index` of the subgraph. */
static qs_id result(const copying *c, int32_t index) {
    return c->map[c->sub->graph->outputs[index]];
}

/* Makes output `index` of the node that is replaced. */
static int make_output(const copying *c, int32_t index, qs_id from) {
    const qs_id y = c->n.outputs[index];
    const qs_id id =
        y == QS_NONE ? QSIM_OK : qs_pass_node(c->p, "", "Identity", c->n.name, 0, &from, 1, &y, 1);
    return id < 0 ? id : QSIM_OK;
}

/* ---- If ---- */

static int inline_branch(qs_pass *p, qs_id node, const qs_subgraph *sub) {
    copying c;
    int code = begin(&c, p, node, sub);
    if (!code)
        code = copy_nodes(&c, NULL);
    if (!code)
        qs_graph_remove_node(p->graph, node);
    for (int32_t i = 0; i < c.n.output_count && !code; i++)
        code = make_output(&c, i, result(&c, i));
    qs_free(p->ctx, c.map);
    return code;
}

/* The branch that an If with a constant condition takes; NULL: other nodes. */
static const qs_subgraph *taken_branch(const qs_graph *g, const qs_node *n) {
    const qs_const *c = qs_node_is_onnx(n, "If") ? qs_node_const(g, n, 0) : NULL;
    if (!c || c->elements != 1 || c->dtype != QSIM_BOOL)
        return NULL;
    const bool yes = *(const uint8_t *)c->data != 0;
    const qs_subgraph *sub = qs_node_subgraph(n, yes ? "then_branch" : "else_branch");
    return sub && (int32_t)sub->graph->output_count == n->output_count ? sub : NULL;
}

/* ---- Loop ---- */

/* A value of the body as a constant; NULL: it is none. */
static const qs_const *inner_const(const qs_graph *g, const qs_node *n, const qs_subgraph *sub,
                                   qs_id value) {
    const qs_graph *inner = sub->graph;
    qs_id id;
    while ((id = qs_pass_producer(inner, value, "Identity")) != QS_NONE)
        value = inner->nodes[id].inputs[0];
    id = qs_pass_producer(inner, value, "Constant");
    const qs_attr *a = id == QS_NONE ? NULL : qs_node_attr(&inner->nodes[id], "value");
    if (a && a->type == QSIM_ATTR_TENSOR)
        return a->u.tensor;
    if (value == inner->inputs[1]) /* the condition, which stays that of the first iteration */
        return qs_node_const(g, n, 1);
    for (int32_t i = 0; i < sub->capture_count; i++)
        if (sub->captures[i].inner == value)
            return qs_node_const(g, n, sub->captures[i].input);
    return inner->values[value].data;
}

static bool is_true(const qs_const *c) {
    return c && c->data && c->elements == 1 && c->dtype == QSIM_BOOL &&
           *(const uint8_t *)c->data != 0;
}

/* Whether a node draws random numbers, which depend on how often the graph has run. */
static bool is_random(const qs_graph *g) {
    bool any = false;
    for (size_t i = 0; i < g->order_count && !any; i++)
        any = (qs_node_traits(g, &g->nodes[g->order[i]]) & QS_RANDOM) != 0;
    for (size_t i = 0; i < g->owned_count && !any; i++)
        any = is_random(g->owned[i]);
    return any;
}

/* The number of iterations of a Loop that can be unrolled, else 0. */
static int64_t known_iterations(const qs_graph *g, const qs_node *n) {
    const qs_subgraph *sub = qs_node_is_onnx(n, "Loop") ? qs_node_subgraph(n, "body") : NULL;
    const bool endless = n->input_count > 1 && n->inputs[1] == QS_NONE;
    int64_t count;
    bool carries = false;
    if (!sub || qs_const_ints(qs_node_const(g, n, 0), &count, 1) != 1 || count < 1 ||
        !(endless || is_true(qs_node_const(g, n, 1))) ||
        (int32_t)sub->graph->output_count != n->output_count + 1 ||
        n->output_count != sub->fed - 2) /* scan outputs are left to the run */
        return 0;
    for (int32_t i = 2; i < sub->fed; i++)
        carries = carries || sub->graph->values[sub->graph->inputs[i]].is_sequence;
    if (!carries || count > UNROLL_MOST / (int64_t)(sub->graph->order_count + 1) ||
        is_random(sub->graph))
        return 0;
    const qs_id again = sub->graph->outputs[0];
    return (endless && again == sub->graph->inputs[1]) || is_true(inner_const(g, n, sub, again))
               ? count
               : 0;
}

/* A number that the Loop feeds to the body, which may declare axes of size 1. */
static qs_id add_number(const copying *c, int32_t index, int32_t dtype, const void *data) {
    static const int64_t ones[QSIM_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const int32_t rank = c->sub->graph->values[c->sub->graph->inputs[index]].rank;
    return qs_pass_const(c->p, dtype, rank < 0 ? 0 : rank, ones, data);
}

/* Copies the body for iteration `t`. ids: the inputs of the body, which become its outputs. */
static int copy_iteration(const copying *c, int64_t t, qs_id *ids) {
    const uint8_t yes = 1;
    ids[0] = add_number(c, 0, QSIM_INT64, &t);
    ids[1] = add_number(c, 1, QSIM_BOOL, &yes);
    const int code = ids[0] < 0 || ids[1] < 0 ? QSIM_E_NOMEM : copy_nodes(c, ids);
    for (int32_t i = 2; i < c->sub->fed && !code; i++)
        ids[i] = result(c, i - 1);
    return code;
}

static int unroll(qs_pass *p, qs_id node, int64_t count) {
    copying c;
    int code = begin(&c, p, node, qs_node_subgraph(&p->graph->nodes[node], "body"));
    qs_id *ids = qs_alloc(p->ctx, (size_t)c.sub->fed, sizeof(*ids));
    if (!code && !ids)
        code = qs_pass_no_memory(p);
    for (int32_t i = 2; i < c.sub->fed && !code; i++)
        ids[i] = c.n.inputs[i];
    for (int64_t t = 0; t < count && !code; t++)
        code = copy_iteration(&c, t, ids);
    if (!code)
        qs_graph_remove_node(p->graph, node);
    for (int32_t i = 0; i < c.n.output_count && !code; i++)
        code = make_output(&c, i, ids[i + 2]);
    qs_free(p->ctx, ids);
    qs_free(p->ctx, c.map);
    return code;
}

int qs_pass_branches(qs_pass *p, bool *changed) {
    qs_graph *g = p->graph;
    bool any = false;
    int code = QSIM_OK;
    for (size_t i = 0, count = g->order_count; i < count && !code; i++) {
        const qs_id id = g->order[i];
        const qs_subgraph *sub = taken_branch(g, &g->nodes[id]);
        const int64_t times = sub ? 0 : known_iterations(g, &g->nodes[id]);
        if (sub)
            code = inline_branch(p, id, sub);
        else if (times)
            code = unroll(p, id, times);
        any = any || sub || times;
    }
    *changed = *changed || any;
    return code || !any ? code : qs_pass_finish(p);
}
