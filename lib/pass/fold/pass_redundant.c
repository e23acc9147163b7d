/* SPDX-License-Identifier: MIT */
/*
 * Turns nodes that undo each other, or do nothing to inputs of their sizes, into Identity, which
 * qs_pass_identities removes. A Reshape to a fixed shape reads the input of the nodes before it
 * that only reshape.
 */
#include "pass/pass.h"
#include "op/rules.h"

/* The value that `v` is a copy of: Identity nodes are skipped. */
static qs_id origin(const qs_graph *g, qs_id v) {
    while (v != QS_NONE) {
        const qs_id id = g->values[v].producer;
        if (id == QS_NONE || !qs_node_is_onnx(&g->nodes[id], "Identity"))
            break;
        v = g->nodes[id].inputs[0];
    }
    return v;
}

/* The producer of `v`, Identity nodes skipped; QS_NONE if there is none. */
static qs_id producer_of(const qs_graph *g, qs_id v) {
    v = origin(g, v);
    return v == QS_NONE ? QS_NONE : g->values[v].producer;
}

/* Makes the node an Identity of the origin of `x`, so that chains of Identity nodes stay short. */
static int become_identity(qs_pass *p, qs_id node, qs_id x) {
    qs_node *n = &p->graph->nodes[node];
    qs_node_set_input(p->graph, node, 0, origin(p->graph, x));
    n->op_type = "Identity";
    n->op = NULL;
    n->attr_count = 0;
    n->input_count = 1;
    n->changed = true;
    return qs_pass_resolve(p, node);
}

/* ---- Transpose ---- */

static int transpose(qs_pass *p, qs_id node) {
    qs_graph *g = p->graph;
    int64_t last[QSIM_MAX_RANK], first[QSIM_MAX_RANK];
    qs_id x = g->nodes[node].inputs[0];
    const int32_t rank = g->values[x].rank;
    if (rank < 0 || !qs_node_perm(&g->nodes[node], rank, last))
        return QSIM_OK;
    const qs_id before = producer_of(g, x);
    if (before != QS_NONE && qs_node_is_onnx(&g->nodes[before], "Transpose") &&
        qs_node_perm(&g->nodes[before], rank, first)) {
        for (int32_t i = 0; i < rank; i++)
            last[i] = first[last[i]];
        x = g->nodes[before].inputs[0];
        qs_node_set_input(g, node, 0, x);
        if (qs_node_set_ints(g, node, "perm", last, rank))
            return qs_pass_no_memory(p);
    }
    for (int32_t i = 0; i < rank; i++)
        if (last[i] != i)
            return QSIM_OK;
    return become_identity(p, node, x);
}

/* ---- Reshape, Flatten, Squeeze, Unsqueeze ---- */

/* Whether the node is a Reshape to a constant shape that copies no size of its input. */
static bool ignores_axes(const qs_graph *g, const qs_node *n) {
    const qs_const *c = qs_node_const(g, n, 1);
    if (!qs_node_is_onnx(n, "Reshape") || !c || c->dtype != QSIM_INT64)
        return false;
    for (size_t i = 0; i < c->elements; i++)
        if (qs_const_at(c, i) == 0)
            return false;
    return true;
}

/* The axes of a Squeeze or Unsqueeze as a mask, counted in the larger shape; 0: not known. */
static uint32_t squeezed_axes(const qs_graph *g, const qs_node *n) {
    const bool squeeze = qs_node_is_onnx(n, "Squeeze");
    return qs_node_axes(g, n, g->values[squeeze ? n->inputs[0] : n->outputs[0]].rank);
}

/*
 * Product of the known sizes of `v`, without the axes in `kept`; false: a size is unknown, or the
 * product overflows.
 */
static bool known_product(const qs_value *v, uint32_t kept, int64_t *known) {
    bool all = true;
    *known = 1;
    for (int32_t i = 0; i < v->rank; i++)
        if (!(kept & 1u << i) && (v->dims[i].size < 0 || !qs_mul64(*known, v->dims[i].size, known)))
            all = false;
    return all;
}

/* Whether a Reshape fits its input for any values of the unknown sizes. */
static bool reshape_fits(const qs_graph *g, const qs_node *n) {
    const qs_value *x = &g->values[n->inputs[0]];
    int64_t to[QSIM_MAX_RANK], given = 1, from;
    const int32_t count = qs_const_ints(qs_node_const(g, n, 1), to, QSIM_MAX_RANK);
    uint32_t kept = 0;
    bool open = false;
    if (count < 0 || x->rank < 0)
        return false;
    for (int32_t i = 0; i < count; i++) {
        open = open || to[i] == -1;
        if (to[i] == 0)
            kept |= 1u << i;
        else if (to[i] > 0 && !qs_mul64(given, to[i], &given))
            return false;
    }
    if (kept && qs_node_int(n, "allowzero", 0))
        return false;
    return known_product(x, kept, &from) || (open && from % given == 0);
}

/*
 * Whether the node fits its input for any values of the unknown sizes: then no error is missed when
 * it is left out.
 */
static bool always_fits(const qs_graph *g, const qs_node *n) {
    const qs_value *x = &g->values[n->inputs[0]];
    if (qs_node_is_onnx(n, "Reshape"))
        return reshape_fits(g, n);
    const bool squeeze = qs_node_is_onnx(n, "Squeeze");
    if (!squeeze && !qs_node_is_onnx(n, "Unsqueeze"))
        return true; /* it fits any input */
    const uint32_t axes = squeezed_axes(g, n);
    if (!squeeze)
        return axes != 0;
    for (int32_t i = 0; i < x->rank; i++)
        if ((axes & 1u << i) && x->dims[i].size != 1)
            return false;
    return axes || (n->input_count < 2 && !qs_node_attr(n, "axes"));
}

/* Whether the nodes are Squeeze and Unsqueeze, in either order, of the same axes. */
static bool undoes(const qs_graph *g, const qs_node *n, const qs_node *before) {
    const bool pair = (qs_node_is_onnx(n, "Squeeze") && qs_node_is_onnx(before, "Unsqueeze")) ||
                      (qs_node_is_onnx(n, "Unsqueeze") && qs_node_is_onnx(before, "Squeeze"));
    const uint32_t axes = pair ? squeezed_axes(g, n) : 0;
    return axes && axes == squeezed_axes(g, before) && always_fits(g, before);
}

static int reshape(qs_pass *p, qs_id node) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    qs_id before = producer_of(g, n->inputs[0]);
    while (ignores_axes(g, n) && before != QS_NONE && (g->nodes[before].op->traits & QS_RESHAPES) &&
           always_fits(g, &g->nodes[before])) {
        qs_node_set_input(g, node, 0, g->nodes[before].inputs[0]);
        before = producer_of(g, n->inputs[0]);
    }
    if (qs_pass_same_sizes(g, n->inputs[0], n->outputs[0]))
        return become_identity(p, node, n->inputs[0]);
    if (before != QS_NONE && undoes(g, n, &g->nodes[before]))
        return become_identity(p, node, g->nodes[before].inputs[0]);
    return QSIM_OK;
}

/* ---- all ---- */

/* Makes the node Identity if it does nothing or undoes the one before it. */
static int simplify(qs_pass *p, qs_id node) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    if (qs_node_is_onnx(n, "Transpose"))
        return transpose(p, node);
    if (n->op->traits & QS_RESHAPES)
        return reshape(p, node);
    const bool one = qs_node_is_onnx(n, "Concat") && n->input_count == 1;
    const bool cast = qs_node_is_onnx(n, "Cast") && g->values[n->inputs[0]].dtype > 0 &&
                      qs_node_int(n, "to", 0) == g->values[n->inputs[0]].dtype;
    return one || cast ? become_identity(p, node, n->inputs[0]) : QSIM_OK;
}

int qs_pass_redundant(qs_pass *p) {
    int code = QSIM_OK;
    for (size_t i = 0; i < p->graph->order_count && !code; i++)
        code = simplify(p, p->graph->order[i]);
    return code ? code : qs_pass_identities(p);
}
