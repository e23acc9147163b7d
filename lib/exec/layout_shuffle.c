/* SPDX-License-Identifier: MIT */
/*
 * The channel shuffle: [N,C,H,W] -> [N,g,c,H,W], transposed to [N,c,g,H,W], -> [N,C,H,W]. On the
 * twin it is one Transpose of the last axis, taken as [g,c].
 */
#include "exec/layout.h"

/* The only reader of `value`, which is not given out; QS_NONE if there are others. */
static qs_id only_reader(const qs_layout *l, qs_id value, const char *op_type) {
    if (l->g->values[value].is_output || l->uses.start[value + 1] - l->uses.start[value] != 1)
        return QS_NONE;
    qs_id id = l->uses.nodes[l->uses.start[value]];
    const qs_node *n = &l->g->nodes[id];
    return qs_node_is(n, "", op_type) && n->inputs[0] == value ? id : QS_NONE;
}

static bool swaps_groups(const qs_node *n) {
    static const int64_t want[5] = {0, 2, 1, 3, 4};
    const qs_attr *a = qs_node_attr(n, "perm");
    return a && a->count == 5 && memcmp(a->u.ints, want, sizeof(want)) == 0;
}

static bool same_size(const qs_dim *a, const qs_dim *b) {
    if (a->size >= 0 || b->size >= 0)
        return a->size == b->size;
    return a->symbol && a->symbol == b->symbol;
}

/* Finds the three nodes; `split` is the value between the first and the second. */
static bool match(const qs_layout *l, qs_id first, qs_id *second, qs_id *third) {
    const qs_graph *g = l->g;
    const qs_node *n = &g->nodes[first];
    if (!qs_node_is(n, "", "Reshape") || !qs_layout_is_late(l, n->inputs[0]))
        return false;
    const qs_value *x = &g->values[n->inputs[0]], *a = &g->values[n->outputs[0]];
    *second = only_reader(l, n->outputs[0], "Transpose");
    if (x->rank != 4 || a->rank != 5 || *second == QS_NONE || !swaps_groups(&g->nodes[*second]))
        return false;
    *third = only_reader(l, g->nodes[*second].outputs[0], "Reshape");
    if (*third == QS_NONE)
        return false;
    const qs_value *y = &g->values[g->nodes[*third].outputs[0]];
    return y->rank == 4 && a->dims[1].size > 0 && a->dims[2].size > 0 &&
           a->dims[1].size * a->dims[2].size == x->dims[1].size &&
           same_size(&a->dims[0], &x->dims[0]) && same_size(&a->dims[3], &x->dims[2]) &&
           same_size(&a->dims[4], &x->dims[3]) && same_size(&y->dims[0], &x->dims[0]) &&
           y->dims[1].size == x->dims[1].size && same_size(&y->dims[2], &x->dims[2]) &&
           same_size(&y->dims[3], &x->dims[3]);
}

/* Reshape of `from` to sizes, where 0 keeps a size. */
static qs_id reshape(qs_layout *l, qs_id from, const int64_t *shape, int64_t count, qs_id to) {
    const qs_id in[2] = {from, qs_pass_const(l->p, QSIM_INT64, 1, &count, shape)};
    return in[1] < 0 ? in[1] : qs_pass_node(l->p, "", "Reshape", "", 13, in, 2, &to, 1);
}

int qs_layout_shuffle(qs_layout *l, qs_id node, bool *done) {
    qs_graph *g = l->g;
    qs_id second, third;
    if (!match(l, node, &second, &third))
        return QSIM_OK;
    const qs_value *a = &g->values[g->nodes[node].outputs[0]];
    const int64_t split[5] = {0, 0, 0, a->dims[1].size, a->dims[2].size};
    const int64_t join[4] = {0, 0, 0, a->dims[1].size * a->dims[2].size};
    const int64_t perm[5] = {0, 1, 2, 4, 3};
    qs_id x = g->nodes[node].inputs[0], y = g->nodes[third].outputs[0];
    qs_id grouped = qs_graph_add_value(g, NULL), swapped = qs_graph_add_value(g, NULL);
    if (grouped < 0 || swapped < 0)
        return qs_pass_no_memory(l->p);
    int code = qs_layout_emit(l, third, 0);
    if (code)
        return code;
    qs_graph_remove_node(g, node);
    qs_graph_remove_node(g, second);
    qs_graph_remove_node(g, third);
    qs_id made = reshape(l, l->twin[x], split, 5, grouped);
    if (made >= 0)
        made = qs_pass_node(l->p, "", "Transpose", "", 13, &grouped, 1, &swapped, 1);
    if (made >= 0 && qs_node_set_ints(g, made, "perm", perm, 5))
        made = qs_pass_no_memory(l->p);
    if (made >= 0)
        made = reshape(l, swapped, join, 4, l->twin[y]);
    *done = made >= 0;
    return made < 0 ? made : QSIM_OK;
}
