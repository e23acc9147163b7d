/* SPDX-License-Identifier: MIT */
/* The operators that start the channels-last layout (layout.h). */
#include "pass/layout/layout.h"

int32_t qs_layout_origin(int32_t i, int32_t rank) {
    if (i == 0)
        return 0;
    return i == rank - 1 ? 1 : i + 1;
}

int32_t qs_layout_axis(int32_t axis, int32_t rank) {
    if (axis == 0)
        return 0;
    return axis == 1 ? rank - 1 : axis - 1;
}

/* A value of `v`'s type with its sizes in channels-last order. */
static qs_id new_last(qs_pass *p, qs_id v) {
    qs_graph *g = p->graph;
    qs_id t = qs_pass_value(p, v);
    if (t < 0)
        return t;
    const qs_value *from = &g->values[v];
    qs_dim *dims = qs_arena_alloc(&g->arena, (size_t)from->rank, sizeof(*dims));
    if (!dims)
        return qs_pass_no_memory(p);
    for (int32_t i = 0; i < from->rank; i++)
        dims[i] = from->dims[qs_layout_origin(i, from->rank)];
    g->values[t].dims = dims;
    return t;
}

static int add_transpose(qs_pass *p, qs_id from, qs_id to, bool to_last) {
    int64_t perm[QSIM_MAX_RANK];
    int32_t rank = p->graph->values[from].rank;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = to_last ? qs_layout_origin(i, rank) : qs_layout_axis(i, rank);
    return qs_pass_transpose(p, from, perm, rank, to);
}

/* ---- operators that exist channels-last only ---- */

static bool needs_last(const qs_node *n) {
    return (n->op->traits & QS_NEEDS_LAST) && qs_node_int(n, "channels_last", 0) == 0;
}

bool qs_layout_wants_last(const qs_graph *g, const qs_uses *uses, qs_id value) {
    for (qs_id i = uses->start[value]; i < uses->start[value + 1]; i++) {
        const qs_node *n = &g->nodes[uses->nodes[i]];
        if (n->inputs[0] == value && (needs_last(n) || (n->op->traits & QS_QUANTIZES)))
            return true;
    }
    return false;
}

static int convert_windowed(qs_layout *l, qs_id node) {
    qs_id x = qs_twins_get(&l->twins, l->g->nodes[node].inputs[0]);
    int code = x < 0 ? x : QSIM_OK;
    for (int32_t i = 1; i < l->g->nodes[node].input_count && !code; i++)
        code = qs_twins_restore(&l->twins, l->g->nodes[node].inputs[i]);
    if (code)
        return code;
    qs_node_set_input(l->g, node, 0, x);
    l->g->nodes[node].domain = "qsim";
    if (qs_node_set_int(l->g, node, "channels_last", 1))
        return qs_pass_no_memory(l->p);
    code = qs_pass_resolve(l->p, node);
    return code ? code : qs_twins_emit(&l->twins, node, 0);
}

/* Sets the rank of an image where it is unknown (after an If) by the window, as if declared. */
static void find_rank(qs_graph *g, const qs_node *n) {
    static const qs_dim dims[] = {{-1, NULL}, {-1, NULL}, {-1, NULL}, {-1, NULL}, {-1, NULL}};
    const qs_attr *window = needs_last(n) ? qs_node_attr(n, "kernel_shape") : NULL;
    if (!window || window->count < 1 || window->count + 2 > (int32_t)QS_COUNT(dims))
        return;
    qs_value *v = &g->values[n->inputs[0]];
    if (v->rank < 0) {
        v->rank = window->count + 2;
        v->dims = dims;
        v->declared = true;
    }
}

/* ---- the pass ---- */

static int convert_node(qs_layout *l, qs_id node, bool propagate) {
    static int (*const rules[])(qs_layout *, qs_id, bool *) = {
        qs_layout_propagate, qs_layout_axes, qs_layout_flatten, qs_layout_shuffle, qs_layout_blocks,
    };
    qs_node *n = &l->g->nodes[node];
    bool done = false;
    int code = QSIM_OK;
    if (n->removed)
        return QSIM_OK;
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && (size_t)n->inputs[i] < l->twins.count &&
            l->same[n->inputs[i]] != n->inputs[i])
            qs_node_set_input(l->g, node, i, l->same[n->inputs[i]]);
    if (needs_last(n) && l->g->values[n->inputs[0]].rank >= 3)
        return convert_windowed(l, node);
    const bool takes_last =
        (n->op->traits & QS_TAKES_LAST) && qs_node_int(n, "channels_last", 0) == 0;
    if (propagate && takes_last && qs_twins_is_pending(&l->twins, n->inputs[0]))
        return convert_windowed(l, node);
    for (size_t i = 0; i < QS_COUNT(rules) && propagate && !code && !done; i++)
        code = rules[i](l, node, &done);
    /* A node that reads twins still reads other inputs, such as bounds, in the model's layout. */
    return code || l->g->nodes[node].removed ? code : qs_twins_restore_inputs(&l->twins, node);
}

static int convert_outputs(qs_layout *l) {
    int code = QSIM_OK;
    for (size_t i = 0; i < l->g->output_count && !code; i++) {
        qs_id v = l->g->outputs[i];
        if (l->same[v] != v)
            qs_graph_set_output(l->g, i, l->same[v]);
        v = l->g->outputs[i];
        if (l->p->channels_last && qs_twins_is_pending(&l->twins, v)) {
            qs_graph_set_output(l->g, i, l->twins.of[v]);
            l->p->channels_last[i] = true;
        } else {
            code = qs_twins_restore(&l->twins, v);
        }
    }
    qs_graph_mark_outputs(l->g);
    return code;
}

int qs_pass_layout(qs_pass *p, bool propagate) {
    qs_graph *g = p->graph;
    qs_layout l = {.p = p, .g = g, .twins = {.p = p, .value = new_last, .convert = add_transpose}};
    for (size_t i = 0; i < g->order_count; i++)
        find_rank(g, &g->nodes[g->order[i]]);
    int code = qs_op_infer_graph(g, p->model, p->error);
    if (code)
        return code;
    code = qs_twins_init(&l.twins);
    l.same = qs_alloc(p->ctx, l.twins.count + 1, sizeof(*l.same));
    if (!code && (!l.same || qs_graph_uses(g, &l.uses)))
        code = qs_pass_no_memory(p);
    if (code)
        goto done;
    for (size_t v = 0; v < l.twins.count; v++)
        l.same[v] = (qs_id)v;
    for (size_t i = 0; i < g->order_count && !code; i++) {
        code = qs_go_on_at(p->ctx, i, p->model, p->error);
        if (!code)
            code = convert_node(&l, g->order[i], propagate);
    }
    if (!code)
        code = convert_outputs(&l);
    if (!code)
        code = qs_pass_finish(p);
done:
    qs_uses_free(g, &l.uses);
    qs_twins_free(&l.twins);
    qs_free(p->ctx, l.same);
    return code;
}
