/* SPDX-License-Identifier: MIT */
/*
 * Channels-last forms of operators that list axes, and of the model's own Transposes and Reshapes.
 */
#include "pass/layout/layout.h"

static int32_t pending_input_rank(const qs_layout *l, const qs_node *n) {
    if (n->input_count < 1 || !qs_twins_is_pending(&l->twins, n->inputs[0]))
        return 0;
    return l->g->values[n->inputs[0]].rank;
}

/* ---- Transpose ---- */

/*
 * Makes a Transpose of a pending x read the twin; a twin in the order of the result is the result.
 */
static int compose(qs_layout *l, qs_id node, const int64_t *perm, int32_t rank, bool *done) {
    int64_t composed[QSIM_MAX_RANK];
    bool identity = true;
    qs_id x = l->g->nodes[node].inputs[0], y = l->g->nodes[node].outputs[0];
    for (int32_t i = 0; i < rank; i++) {
        composed[i] = qs_layout_axis((int32_t)perm[i], rank);
        identity &= composed[i] == i;
    }
    *done = true;
    if (identity) {
        qs_graph_remove_node(l->g, node);
        l->same[y] = l->twins.of[x];
        return QSIM_OK;
    }
    qs_node_set_input(l->g, node, 0, l->twins.of[x]);
    return qs_node_set_ints(l->g, node, "perm", composed, rank) ? qs_pass_no_memory(l->p) : QSIM_OK;
}

static int transpose(qs_layout *l, qs_id node, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    qs_id x = n->inputs[0], y = n->outputs[0];
    const int32_t rank = l->g->values[x].rank;
    int64_t perm[QSIM_MAX_RANK];
    bool to_first = rank >= 3;
    if (rank < 3 || !qs_node_perm(n, rank, perm))
        return QSIM_OK;
    if (qs_twins_is_pending(&l->twins, x))
        return compose(l, node, perm, rank, done);
    for (int32_t i = 0; i < rank; i++)
        to_first &= perm[i] == qs_layout_axis(i, rank);
    if (!to_first || l->g->values[x].data)
        return QSIM_OK;
    qs_graph_remove_node(l->g, node);
    l->twins.of[y] = x;
    l->twins.pending[y] = true;
    *done = true;
    return QSIM_OK;
}

/* ---- lists of axes ---- */

/* Reads a constant list of integers and returns its length; -1: the input is not one. */
static int32_t read_ints(const qs_layout *l, const qs_node *n, int32_t index,
                         int64_t out[2 * QSIM_MAX_RANK]) {
    return qs_const_ints(qs_node_const(l->g, n, index), out, 2 * QSIM_MAX_RANK);
}

static int set_ints(qs_layout *l, qs_id node, int32_t index, const int64_t *v, int32_t count) {
    int64_t dims = count;
    qs_id c = qs_pass_const(l->p, QSIM_INT64, 1, &dims, v);
    if (c < 0)
        return c;
    if (qs_node_grow_inputs(l->g, node, index + 1))
        return qs_pass_no_memory(l->p);
    qs_node_set_input(l->g, node, index, c);
    return QSIM_OK;
}

static bool map_axes(int64_t *axes, int32_t count, int32_t rank) {
    for (int32_t i = 0; i < count; i++) {
        axes[i] += axes[i] < 0 ? rank : 0;
        if (axes[i] < 0 || axes[i] >= rank)
            return false;
        axes[i] = qs_layout_axis((int32_t)axes[i], rank);
    }
    return true;
}

static int read_twin(qs_layout *l, qs_id node, bool emit, bool *done) {
    qs_id t = qs_twins_get(&l->twins, l->g->nodes[node].inputs[0]);
    if (t < 0)
        return t;
    qs_node_set_input(l->g, node, 0, t);
    *done = true;
    return emit ? qs_twins_emit(&l->twins, node, 0) : QSIM_OK;
}

static int slice(qs_layout *l, qs_id node, int32_t rank, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    int64_t starts[2 * QSIM_MAX_RANK], axes[2 * QSIM_MAX_RANK];
    if (n->version < 10)
        return QSIM_OK;
    int32_t count = read_ints(l, n, 1, starts);
    bool given = qs_node_input(n, 3) != QS_NONE;
    if (count < 0 || count > rank || (given && read_ints(l, n, 3, axes) != count))
        return QSIM_OK;
    for (int32_t i = 0; i < count && !given; i++)
        axes[i] = i;
    if (!map_axes(axes, count, rank))
        return QSIM_OK;
    int code = set_ints(l, node, 3, axes, count);
    return code ? code : read_twin(l, node, true, done);
}

static int pad(qs_layout *l, qs_id node, int32_t rank, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    int64_t pads[2 * QSIM_MAX_RANK], axes[2 * QSIM_MAX_RANK], moved[2 * QSIM_MAX_RANK];
    if (n->version < 11)
        return QSIM_OK;
    int32_t count = read_ints(l, n, 1, pads);
    if (qs_node_input(n, 3) != QS_NONE) {
        int32_t named = read_ints(l, n, 3, axes);
        if (named < 0 || named > rank || !map_axes(axes, named, rank))
            return QSIM_OK;
        int code = set_ints(l, node, 3, axes, named);
        return code ? code : read_twin(l, node, true, done);
    }
    if (count != 2 * rank)
        return QSIM_OK;
    for (int32_t i = 0; i < rank; i++) {
        moved[i] = pads[qs_layout_origin(i, rank)];
        moved[rank + i] = pads[rank + qs_layout_origin(i, rank)];
    }
    int code = set_ints(l, node, 1, moved, count);
    return code ? code : read_twin(l, node, true, done);
}

/* Whether a reduction is over all axes of space. If it drops them, its result has no layout. */
static bool is_over_space(const int64_t *moved, int32_t count, int32_t rank) {
    uint32_t mask = 0;
    for (int32_t i = 0; i < count; i++)
        mask |= 1u << moved[i];
    return mask == (1u << (rank - 1)) - 2;
}

static int reduce(qs_layout *l, qs_id node, int32_t rank, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    int64_t axes[2 * QSIM_MAX_RANK];
    const qs_attr *a = qs_node_attr(n, "axes");
    bool keep = qs_node_int(n, "keepdims", 1) != 0;
    int32_t count = a ? a->count : read_ints(l, n, 1, axes);
    if (count < 1 || count > rank)
        return QSIM_OK;
    if (a)
        memcpy(axes, a->u.ints, (size_t)count * sizeof(*axes));
    if (!map_axes(axes, count, rank) || (!keep && !is_over_space(axes, count, rank)))
        return QSIM_OK;
    int code =
        a ? qs_node_set_ints(l->g, node, "axes", axes, count) : set_ints(l, node, 1, axes, count);
    return code ? code : read_twin(l, node, keep, done);
}

/* ---- Reshape ---- */

/*
 * Makes a Reshape of [N,C,H,W] to [N,C,HW], as heads of detectors have it, one of [N,H,W,C] to
 * [N,HW,C].
 */
static int merge_space(qs_layout *l, qs_id node, int32_t rank, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    const qs_value *x = &l->g->values[n->inputs[0]], *y = &l->g->values[n->outputs[0]];
    if (rank < 4 || y->rank != 3 || !qs_dim_same(&x->dims[0], &y->dims[0]) || x->dims[1].size < 1 ||
        x->dims[1].size != y->dims[1].size || x->dims[0].size == 0)
        return QSIM_OK;
    const int64_t shape[3] = {0, y->dims[2].size < 0 ? -1 : y->dims[2].size, x->dims[1].size};
    int code = set_ints(l, node, 1, shape, 3);
    return code ? code : read_twin(l, node, true, done);
}

int qs_layout_axes(qs_layout *l, qs_id node, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    int32_t rank = pending_input_rank(l, n);
    if (qs_node_is_onnx(n, "Transpose"))
        return transpose(l, node, done);
    if (!rank)
        return QSIM_OK;
    if (qs_node_is_onnx(n, "Slice"))
        return slice(l, node, rank, done);
    if (qs_node_is_onnx(n, "Pad"))
        return pad(l, node, rank, done);
    if (qs_node_traits(l->g, n) & QS_REDUCES)
        return reduce(l, node, rank, done);
    if (qs_node_is_onnx(n, "Reshape") && !qs_node_int(n, "allowzero", 0))
        return merge_space(l, node, rank, done);
    return QSIM_OK;
}
