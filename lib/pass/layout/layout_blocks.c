/* SPDX-License-Identifier: MIT */
/*
 * Space to depth and depth to space as files write them: Reshape to six axes, Transpose, Reshape to
 * four. In either layout of input and output this is one Transpose.
 */
#include "pass/layout/layout.h"

typedef struct blocks {
    qs_id second, third;
    int64_t parts[6], joined[4]; /* shapes of the two Reshapes */
    int64_t perm[6];
    bool down; /* space to depth */
} blocks;

static bool all_known(const qs_value *v, int32_t from) {
    for (int32_t i = from; i < v->rank; i++)
        if (v->dims[i].size < 1)
            return false;
    return true;
}

/*
 * Whether the six axes are [N,C,h,s,w,t], and h and w come last: space to depth; or [N,a,b,c,h,w],
 * and one of a, b, c comes before h, one after it and one after w: depth to space.
 */
static bool is_blocks(const qs_value *x, const qs_value *a, blocks *b) {
    const qs_dim *d = a->dims;
    const int64_t *p = b->perm;
    b->down = d[1].size == x->dims[1].size && d[2].size * d[3].size == x->dims[2].size &&
              d[4].size * d[5].size == x->dims[3].size && p[4] == 2 && p[5] == 4;
    return b->down ||
           (d[1].size * d[2].size * d[3].size == x->dims[1].size && d[4].size == x->dims[2].size &&
            d[5].size == x->dims[3].size && p[2] == 4 && p[4] == 5);
}

/* Matches the three nodes, of which `first` is the first Reshape. */
static bool match_blocks(const qs_layout *l, qs_id first, blocks *b) {
    const qs_graph *g = l->g;
    const qs_node *n = &g->nodes[first];
    if (!qs_node_is_onnx(n, "Reshape"))
        return false;
    const qs_value *x = &g->values[n->inputs[0]], *a = &g->values[n->outputs[0]];
    b->second = qs_pass_reader(g, &l->uses, n->outputs[0], "Transpose");
    if (x->rank != 4 || a->rank != 6 || b->second == QS_NONE || !all_known(x, 1) ||
        !all_known(a, 1) || !qs_dim_same(&x->dims[0], &a->dims[0]) ||
        !qs_node_perm(&g->nodes[b->second], 6, b->perm) || b->perm[0] != 0 || !is_blocks(x, a, b))
        return false;
    b->third = qs_pass_reader(g, &l->uses, g->nodes[b->second].outputs[0], "Reshape");
    if (b->third == QS_NONE)
        return false;
    const qs_value *y = &g->values[g->nodes[b->third].outputs[0]];
    const qs_dim *d = a->dims;
    const int64_t *p = b->perm;
    return y->rank == 4 && all_known(y, 1) && qs_dim_same(&x->dims[0], &y->dims[0]) &&
           (b->down
                ? y->dims[2].size == d[2].size && y->dims[3].size == d[4].size
                : y->dims[1].size == d[p[1]].size && y->dims[2].size == d[4].size * d[p[3]].size);
}

/* The axis of the twin, split likewise, that is axis `axis` of [N,C,h,s,w,t] or [N,a,b,c,h,w]. */
static int32_t split_axis(const blocks *b, int32_t axis) {
    static const int32_t down[6] = {0, 5, 1, 2, 3, 4}, up[6] = {0, 3, 4, 5, 1, 2};
    return b->down ? down[axis] : up[axis];
}

/* Sets the shapes of the Reshapes, and the permutation between them. */
static void set_shapes(const qs_layout *l, blocks *b, qs_id first, bool from_twin, bool to_twin,
                       int64_t perm[6]) {
    static const int32_t down[6] = {0, 4, 5, 1, 2, 3}, up[6] = {0, 2, 3, 4, 5, 1};
    const qs_node *nodes = l->g->nodes;
    const qs_dim *a = l->g->values[nodes[first].outputs[0]].dims;
    const qs_dim *y = l->g->values[nodes[b->third].outputs[0]].dims;
    for (int32_t i = 0; i < 6; i++) {
        const int32_t to = (int32_t)(to_twin ? b->perm[b->down ? down[i] : up[i]] : b->perm[i]);
        perm[i] = from_twin ? split_axis(b, to) : to;
        b->parts[from_twin ? split_axis(b, i) : i] = i ? a[i].size : 0;
    }
    for (int32_t i = 0; i < 4; i++)
        b->joined[i] = i ? y[to_twin ? qs_layout_origin(i, 4) : i].size : 0;
}

/*
 * An image that is not pending is read in the model's layout if columns of a block are neighbours
 * there, since whole lines are read then; in other orders its twin is read.
 */
int qs_layout_blocks(qs_layout *l, qs_id node, bool *done) {
    qs_graph *g = l->g;
    blocks b;
    int64_t perm[6];
    if (!match_blocks(l, node, &b))
        return QSIM_OK;
    qs_id x = g->nodes[node].inputs[0], y = g->nodes[b.third].outputs[0];
    const bool to_twin = qs_layout_wants_last(g, &l->uses, y),
               pending = qs_twins_is_pending(&l->twins, x);
    const bool from_twin = pending || (to_twin && (!b.down || b.perm[1] != 5));
    if (!from_twin && !to_twin)
        return QSIM_OK;
    const qs_id split = qs_graph_add_value(g, NULL), transposed = qs_graph_add_value(g, NULL);
    if (split < 0 || transposed < 0)
        return qs_pass_no_memory(l->p);
    set_shapes(l, &b, node, from_twin, to_twin, perm);
    if (from_twin)
        x = qs_twins_get(&l->twins, x);
    int code = x < 0 ? x : QSIM_OK;
    if (!code && to_twin)
        code = qs_twins_emit(&l->twins, b.third, 0);
    qs_graph_remove_node(g, node);
    qs_graph_remove_node(g, b.second);
    qs_graph_remove_node(g, b.third);
    if (!code)
        code = qs_pass_reshape(l->p, x, b.parts, 6, split);
    if (!code)
        code = qs_pass_transpose(l->p, split, perm, 6, transposed);
    if (!code)
        code = qs_pass_reshape(l->p, transposed, b.joined, 4, to_twin ? l->twins.of[y] : y);
    *done = !code;
    return code;
}
