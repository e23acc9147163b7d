/* SPDX-License-Identifier: MIT */
/*
 * Behind the layout: QLinearConcat of two tensors' channels, shuffled in two groups and, mostly,
 * split in two, is one step.
 */
#include "exec/passes.h"

/* The only reader of a value that is not given out, if it is of this type; or QS_NONE. */
static qs_id reader(const qs_graph *g, const qs_uses *uses, qs_id v, const char *op_type) {
    if (g->values[v].is_output || uses->start[v + 1] - uses->start[v] != 1)
        return QS_NONE;
    const qs_id id = uses->nodes[uses->start[v]];
    return qs_node_is(&g->nodes[id], "", op_type) && g->nodes[id].inputs[0] == v ? id : QS_NONE;
}

/* Channels of each of two byte tensors that are joined; 0 if the node is something else. */
static int64_t joined(const qs_graph *g, const qs_node *n) {
    const bool is =
        qs_node_is(n, "qsim", "QLinearConcat") || qs_node_is(n, "com.microsoft", "QLinearConcat");
    if (!is || n->input_count != 8 || g->values[n->outputs[0]].dtype != QSIM_UINT8)
        return 0;
    for (int32_t i = 0; i < 8; i++)
        if (n->inputs[i] == QS_NONE || (i != 2 && i != 5) != (g->values[n->inputs[i]].data != NULL))
            return 0;
    const qs_value *a = &g->values[n->inputs[2]], *b = &g->values[n->inputs[5]];
    const int32_t last = a->rank - 1;
    const int64_t axis = qs_node_int(n, "axis", 0);
    if (last < 1 || b->rank != a->rank || (axis < 0 ? axis + a->rank : axis) != last ||
        a->dtype != QSIM_UINT8 || b->dtype != QSIM_UINT8)
        return 0;
    const int64_t c = a->dims[last].size;
    return c == b->dims[last].size && c > 0 && c <= 4096 ? c : 0;
}

/* [..., 2c] as [..., 2, c], its last two axes swapped. */
static bool swaps_last(const qs_graph *g, const qs_node *n, int32_t rank, int64_t c) {
    const qs_value *x = &g->values[n->inputs[0]];
    const qs_attr *a = qs_node_attr(n, "perm");
    if (!a || a->count != rank + 1 || x->rank != rank + 1 || x->dims[rank].size != c ||
        x->dims[rank - 1].size != 2)
        return false;
    for (int32_t i = 0; i < rank - 1; i++)
        if (a->u.ints[i] != i)
            return false;
    return a->u.ints[rank - 1] == rank && a->u.ints[rank] == rank - 1;
}

/* A Split of the last axis in two parts of known sizes. */
static bool halves(const qs_graph *g, const qs_node *n, int32_t rank) {
    const int64_t axis = qs_node_int(n, "axis", 0);
    return n->output_count == 2 && (axis < 0 ? axis + rank : axis) == rank - 1 &&
           n->outputs[0] != QS_NONE && n->outputs[1] != QS_NONE &&
           g->values[n->outputs[0]].dims[rank - 1].size > 0 &&
           g->values[n->outputs[1]].dims[rank - 1].size > 0;
}

static int visit(qs_pass *p, const qs_uses *uses, qs_id concat, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[concat];
    const int64_t c = n->removed ? 0 : joined(g, n);
    if (c == 0)
        return QSIM_OK;
    const int32_t rank = g->values[n->outputs[0]].rank;
    const qs_id apart = reader(g, uses, n->outputs[0], "Reshape");
    const qs_id swap =
        apart < 0 ? QS_NONE : reader(g, uses, g->nodes[apart].outputs[0], "Transpose");
    if (swap == QS_NONE || !swaps_last(g, &g->nodes[swap], rank, c))
        return QSIM_OK;
    const qs_id join = reader(g, uses, g->nodes[swap].outputs[0], "Reshape");
    const qs_value *y = join < 0 ? NULL : &g->values[g->nodes[join].outputs[0]];
    if (!y || y->rank != rank || y->dims[rank - 1].size != 2 * c)
        return QSIM_OK;
    qs_id split = reader(g, uses, g->nodes[join].outputs[0], "Split");
    if (split != QS_NONE && !halves(g, &g->nodes[split], rank))
        split = QS_NONE;
    const qs_id end = split == QS_NONE ? join : split;
    qs_id in[8], out[2];
    const int32_t outputs = g->nodes[end].output_count;
    memcpy(in, n->inputs, sizeof(in));
    memcpy(out, g->nodes[end].outputs, (size_t)outputs * sizeof(*out));
    const int64_t first = g->values[out[0]].dims[rank - 1].size;
    const char *name = n->name;
    const qs_id gone[] = {concat, apart, swap, join, end};
    for (size_t i = 0; i < QS_COUNT(gone); i++)
        qs_graph_remove_node(g, gone[i]);
    const qs_id made = qs_graph_add_node(g, "qsim", "QLinearShuffle", name, in, 8, out, outputs);
    *changed = true;
    if (made < 0 || qs_node_set_int(g, made, "axis", rank - 1) ||
        qs_node_set_int(g, made, "first", first))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, made);
}

int qs_pass_shuffle(qs_pass *p) {
    qs_graph *g = p->graph;
    qs_uses uses;
    bool changed = false;
    int code = QSIM_OK;
    if (qs_graph_uses(g, &uses))
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = visit(p, &uses, g->order[i], &changed);
    qs_uses_free(g, &uses);
    return code || !changed ? code : qs_pass_finish(p);
}
