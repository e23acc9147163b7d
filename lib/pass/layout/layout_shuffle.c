/* SPDX-License-Identifier: MIT */
/*
 * The channel shuffle: [N,C,H,W] reshaped to [N,g,c,H,W], transposed to [N,c,g,H,W] and reshaped to
 * [N,C,H,W]. On the twin it is a Transpose of the last axis, split into [g,c].
 */
#include "pass/layout/layout.h"

/* Whether the batch and the last two axes of `v` have the sizes of image `x`. */
static bool is_of_image(const qs_value *v, const qs_value *x) {
    const qs_dim *last = &v->dims[v->rank - 2];
    return qs_dim_same(&v->dims[0], &x->dims[0]) && qs_dim_same(&last[0], &x->dims[2]) &&
           qs_dim_same(&last[1], &x->dims[3]);
}

/* Matches the three nodes, of which `first` is the first Reshape. */
static bool match_shuffle(const qs_layout *l, qs_id first, qs_id *second, qs_id *third) {
    static const int64_t swap[5] = {0, 2, 1, 3, 4};
    const qs_graph *g = l->g;
    const qs_node *n = &g->nodes[first];
    if (!qs_node_is_onnx(n, "Reshape") || !qs_twins_is_pending(&l->twins, n->inputs[0]))
        return false;
    const qs_value *x = &g->values[n->inputs[0]], *a = &g->values[n->outputs[0]];
    *second = qs_pass_reader(g, &l->uses, n->outputs[0], "Transpose");
    if (x->rank != 4 || a->rank != 5 || *second == QS_NONE ||
        !qs_node_perm_is(&g->nodes[*second], swap, 5))
        return false;
    *third = qs_pass_reader(g, &l->uses, g->nodes[*second].outputs[0], "Reshape");
    if (*third == QS_NONE)
        return false;
    const qs_value *y = &g->values[g->nodes[*third].outputs[0]];
    return y->rank == 4 && a->dims[1].size > 0 && a->dims[2].size > 0 &&
           a->dims[1].size * a->dims[2].size == x->dims[1].size &&
           y->dims[1].size == x->dims[1].size && is_of_image(a, x) && is_of_image(y, x);
}

int qs_layout_shuffle(qs_layout *l, qs_id node, bool *done) {
    qs_graph *g = l->g;
    qs_id second, third;
    if (!match_shuffle(l, node, &second, &third))
        return QSIM_OK;
    const qs_value *a = &g->values[g->nodes[node].outputs[0]];
    const int64_t split[5] = {0, 0, 0, a->dims[1].size, a->dims[2].size};
    const int64_t joined[4] = {0, 0, 0, a->dims[1].size * a->dims[2].size};
    const int64_t perm[5] = {0, 1, 2, 4, 3};
    qs_id x = g->nodes[node].inputs[0], y = g->nodes[third].outputs[0];
    qs_id grouped = qs_graph_add_value(g, NULL), swapped = qs_graph_add_value(g, NULL);
    if (grouped < 0 || swapped < 0)
        return qs_pass_no_memory(l->p);
    int code = qs_twins_emit(&l->twins, third, 0);
    if (code)
        return code;
    qs_graph_remove_node(g, node);
    qs_graph_remove_node(g, second);
    qs_graph_remove_node(g, third);
    code = qs_pass_reshape(l->p, l->twins.of[x], split, 5, grouped);
    if (!code)
        code = qs_pass_transpose(l->p, grouped, perm, 5, swapped);
    if (!code)
        code = qs_pass_reshape(l->p, swapped, joined, 4, l->twins.of[y]);
    *done = !code;
    return code;
}
