/* SPDX-License-Identifier: MIT */
/*
 * A Slice of a Slice along other axes becomes one Slice, so that the tensor between them is not
 * made. s * s Slices that each take one pixel of every s x s block, and the Concat that joins them
 * as channels, become a space-to-depth transposition: the focus layer at a detector's start.
 */
#include "pass/layout/layout.h"

/* A Slice. */
typedef struct cut {
    int64_t lists[4][QSIM_MAX_RANK]; /* starts, ends, axes, steps */
    int32_t count;
    uint32_t mask; /* of axes */
} cut;

/*
 * Reads the lists of a Slice; false: the node is another one, a list is not constant, or an axis
 * occurs twice.
 */
static bool read_cut(const qs_graph *g, qs_id node, cut *c) {
    const qs_node *n = node == QS_NONE ? NULL : &g->nodes[node];
    if (!n || !qs_node_is_onnx(n, "Slice") || n->version < 10 || n->input_count < 3)
        return false;
    const qs_const *starts = qs_node_const(g, n, 1);
    const int32_t rank = g->values[n->inputs[0]].rank;
    if (!starts || rank < 0 || starts->elements > (size_t)rank)
        return false;
    c->count = (int32_t)starts->elements;
    c->mask = 0;
    for (int32_t k = 0; k < 4; k++) {
        const bool given = qs_node_input(n, k + 1) != QS_NONE;
        for (int32_t i = 0; i < c->count && !given; i++)
            c->lists[k][i] = k == 2 ? i : 1;
        const qs_const *list = qs_node_const(g, n, k + 1);
        if (given ? qs_const_ints(list, c->lists[k], QSIM_MAX_RANK) != c->count : k < 2)
            return false;
    }
    for (int32_t i = 0; i < c->count; i++) {
        c->lists[2][i] += c->lists[2][i] < 0 ? rank : 0;
        if (c->lists[2][i] < 0 || c->lists[2][i] >= rank || c->mask >> c->lists[2][i] & 1)
            return false;
        c->mask |= 1u << c->lists[2][i];
    }
    return true;
}

static int merge_slices(qs_pass *p, qs_id node, const cut *first, const cut *then) {
    qs_graph *g = p->graph;
    const int64_t count = first->count + then->count;
    if (qs_node_grow_inputs(g, node, 5))
        return qs_pass_no_memory(p);
    for (int32_t k = 0; k < 4; k++) {
        int64_t list[QSIM_MAX_RANK];
        memcpy(list, first->lists[k], (size_t)first->count * sizeof(*list));
        memcpy(list + first->count, then->lists[k], (size_t)then->count * sizeof(*list));
        const qs_id v = qs_pass_const(p, QSIM_INT64, 1, &count, list);
        if (v < 0)
            return v;
        qs_node_set_input(g, node, k + 1, v);
    }
    qs_node_set_input(g, node, 0, g->nodes[g->values[g->nodes[node].inputs[0]].producer].inputs[0]);
    return qs_pass_resolve(p, node);
}

int qs_pass_slices(qs_pass *p) {
    qs_graph *g = p->graph;
    bool changed = false;
    int code = QSIM_OK;
    for (size_t i = 0; i < g->order_count && !code; i++) {
        const qs_id node = g->order[i];
        cut first, then;
        if (!read_cut(g, node, &then) ||
            !read_cut(g, g->values[g->nodes[node].inputs[0]].producer, &first) ||
            first.mask & then.mask)
            continue;
        code = merge_slices(p, node, &first, &then);
        changed = true;
    }
    return code || !changed ? code : qs_pass_finish(p);
}

/* ---- space to depth ---- */

/* Whether `v` is the Slice of x that takes every s-th pixel from this row and column on. */
static bool is_phase(const qs_graph *g, qs_id v, qs_id x, int64_t s, int64_t row, int64_t column) {
    cut c;
    const qs_value *from = &g->values[x], *to = v == QS_NONE ? NULL : &g->values[v];
    if (!to || !read_cut(g, to->producer, &c) || g->nodes[to->producer].inputs[0] != x ||
        c.count != 2 || c.mask != 0xc || to->rank != 4)
        return false;
    for (int32_t i = 0; i < 2; i++) {
        const int64_t axis = c.lists[2][i];
        if (c.lists[0][i] != (axis == 2 ? row : column) || c.lists[3][i] != s ||
            to->dims[axis].size * s != from->dims[axis].size)
            return false;
    }
    return true;
}

/*
 * s, if the node is the Concat of the s * s phases of *x; else 0. *by_columns: the rows of a block
 * follow each other, column by column.
 */
static int64_t match_phases(const qs_graph *g, const qs_node *n, qs_id *x, bool *by_columns) {
    const int64_t s = n->input_count == 4 ? 2 : n->input_count == 9 ? 3 : 4;
    const qs_id first = n->inputs[0] == QS_NONE ? QS_NONE : g->values[n->inputs[0]].producer;
    if (n->input_count != s * s || qs_node_int(n, "axis", 0) != 1 || first == QS_NONE)
        return 0;
    *x = g->nodes[first].inputs[0];
    const qs_value *v = *x == QS_NONE ? NULL : &g->values[*x];
    if (!v || v->rank != 4 || v->dims[1].size < 1 || v->dims[2].size < 1 || v->dims[3].size < 1)
        return 0;
    *by_columns = is_phase(g, n->inputs[1], *x, s, 1, 0);
    for (int64_t i = 0; i < s * s; i++)
        if (!is_phase(g, n->inputs[i], *x, s, *by_columns ? i % s : i / s,
                      *by_columns ? i / s : i % s))
            return 0;
    return s;
}

/* Replaces the Concat; the Slices are pruned unless another node reads them. */
static int replace_phases(qs_pass *p, qs_id node, int64_t s, qs_id x, bool by_columns) {
    qs_graph *g = p->graph;
    const int64_t rows = g->values[x].dims[2].size / s, columns = g->values[x].dims[3].size / s;
    const int64_t split[6] = {0, 0, rows, s, columns, s};
    const int64_t perm[6] = {0, by_columns ? 5 : 3, by_columns ? 3 : 5, 1, 2, 4};
    const int64_t joined[4] = {0, g->values[x].dims[1].size * s * s, rows, columns};
    const qs_id y = g->nodes[node].outputs[0];
    const qs_id cut_up = qs_graph_add_value(g, NULL), transposed = qs_graph_add_value(g, NULL);
    if (cut_up < 0 || transposed < 0)
        return qs_pass_no_memory(p);
    qs_graph_remove_node(g, node);
    int code = qs_pass_reshape(p, x, split, 6, cut_up);
    if (!code)
        code = qs_pass_transpose(p, cut_up, perm, 6, transposed);
    return code ? code : qs_pass_reshape(p, transposed, joined, 4, y);
}

static int replace_concat(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    const qs_graph *g = p->graph;
    qs_id x;
    bool by_columns;
    if (!qs_node_is_onnx(&g->nodes[node], "Concat") ||
        !qs_layout_wants_last(g, uses, g->nodes[node].outputs[0]))
        return QSIM_OK;
    const int64_t s = match_phases(g, &g->nodes[node], &x, &by_columns);
    if (s == 0)
        return QSIM_OK;
    *changed = true;
    return replace_phases(p, node, s, x, by_columns);
}

int qs_pass_phases(qs_pass *p) {
    return qs_pass_nodes(p, replace_concat);
}
