/* SPDX-License-Identifier: MIT */
/*
 * After the layout pass: a Concat or QLinearConcat of the channels of two tensors, a channel
 * shuffle of two groups and, usually, a Split into two become one node, Shuffle.
 */
#include "pass/pass.h"
#include "kernel/u8.h"

/* The two operands, and the tables that requantize their bytes, if the scales differ. */
typedef struct pair {
    qs_id x[2];
    int64_t channels; /* of each */
    bool rescaled[2];
    uint8_t table[2][256];
} pair;

/* Whether the operands are two tensors of one type and size that are joined along the last axis. */
static bool read_plain(const qs_graph *g, const qs_node *n, pair *t) {
    const qs_value *a = &g->values[t->x[0]], *b = &g->values[t->x[1]];
    const int32_t last = a->rank - 1;
    const int64_t axis = qs_node_int(n, "axis", 0);
    if (last < 1 || b->rank != a->rank || (axis < 0 ? axis + a->rank : axis) != last || a->data ||
        b->data || a->dtype != b->dtype || (a->dtype != QSIM_UINT8 && a->dtype != QSIM_FLOAT))
        return false;
    t->channels = a->dims[last].size;
    return t->channels == b->dims[last].size && t->channels > 0 && t->channels <= QK_SHUFFLE_MOST;
}

/* Reads the operands of a Concat or QLinearConcat; false: the node is another one. */
static bool read_pair(const qs_graph *g, const qs_node *n, pair *t) {
    qs_q8 from, to;
    *t = (pair){.channels = 0};
    if (qs_node_is_onnx(n, "Concat") && n->input_count == 2) {
        memcpy(t->x, n->inputs, sizeof(t->x));
        return read_plain(g, n, t);
    }
    if ((!qs_node_is(n, "qsim", "QLinearConcat") &&
         !qs_node_is(n, "com.microsoft", "QLinearConcat")) ||
        n->input_count != 8 || g->values[n->outputs[0]].dtype != QSIM_UINT8 ||
        !qs_pass_q8(g, n->inputs[0], n->inputs[1], &to))
        return false;
    for (int32_t i = 0; i < 2; i++) {
        const qs_id *in = n->inputs + 2 + 3 * i;
        if (!qs_pass_q8(g, in[1], in[2], &from))
            return false;
        t->x[i] = in[0];
        t->rescaled[i] = qs_pass_rescaling(&from, &to, t->table[i]);
    }
    return read_plain(g, n, t) && g->values[t->x[0]].dtype == QSIM_UINT8;
}

/* Whether a Reshape keeps the first `axes` axes. */
static bool keeps_axes(const qs_graph *g, const qs_node *n, int32_t axes) {
    const qs_value *x = &g->values[n->inputs[0]], *y = &g->values[n->outputs[0]];
    int64_t to[QSIM_MAX_RANK];
    const int32_t count = qs_const_ints(qs_node_const(g, n, 1), to, QSIM_MAX_RANK);
    if (count < axes || x->rank < axes || qs_node_int(n, "allowzero", 0))
        return false;
    for (int32_t i = 0; i < axes; i++) {
        if (to[i] != 0 && !qs_dim_same(&x->dims[i], &y->dims[i]))
            return false;
    }
    return true;
}

/* Matches [..., 2c] reshaped to [..., 2, c] and its last two axes swapped. */
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

/* Matches a Split of the last axis in two parts of known sizes. */
static bool splits_last(const qs_graph *g, const qs_node *n, int32_t rank) {
    const int64_t axis = qs_node_int(n, "axis", 0);
    return n->output_count == 2 && (axis < 0 ? axis + rank : axis) == rank - 1 &&
           n->outputs[0] != QS_NONE && n->outputs[1] != QS_NONE &&
           g->values[n->outputs[0]].dims[rank - 1].size > 0 &&
           g->values[n->outputs[1]].dims[rank - 1].size > 0;
}

static int add_shuffle(qs_pass *p, const pair *t, const char *name, const qs_id *out,
                       int32_t outputs) {
    const qs_value *y = &p->graph->values[out[0]];
    const int64_t first = y->dims[y->rank - 1].size;
    qs_id in[4] = {t->x[0], t->x[1], QS_NONE, QS_NONE};
    for (int32_t i = 0; i < 2; i++) {
        if (t->rescaled[i])
            in[2 + i] = qs_pass_const_table(p, t->table[i]);
        if (t->rescaled[i] && in[2 + i] < 0)
            return in[2 + i];
    }
    const qs_id made = qs_graph_add_node(p->graph, "qsim", "Shuffle", name, in, 4, out, outputs);
    if (made < 0 || qs_node_set_int(p->graph, made, "first", first))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, made);
}

static int fuse_shuffle(qs_pass *p, const qs_uses *uses, qs_id concat, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[concat];
    pair t;
    if (n->removed || !read_pair(g, n, &t))
        return QSIM_OK;
    const int64_t c = t.channels;
    const int32_t rank = g->values[n->outputs[0]].rank;
    const qs_id grouped = qs_pass_reader(g, uses, n->outputs[0], "Reshape");
    const qs_id swapped =
        grouped < 0 ? QS_NONE : qs_pass_reader(g, uses, g->nodes[grouped].outputs[0], "Transpose");
    if (swapped == QS_NONE || !swaps_last(g, &g->nodes[swapped], rank, c) ||
        !keeps_axes(g, &g->nodes[grouped], rank - 1))
        return QSIM_OK;
    const qs_id joined = qs_pass_reader(g, uses, g->nodes[swapped].outputs[0], "Reshape");
    const qs_value *y = joined < 0 ? NULL : &g->values[g->nodes[joined].outputs[0]];
    if (!y || y->rank != rank || y->dims[rank - 1].size != 2 * c ||
        !keeps_axes(g, &g->nodes[joined], rank - 1))
        return QSIM_OK;
    qs_id split = qs_pass_reader(g, uses, g->nodes[joined].outputs[0], "Split");
    if (split != QS_NONE && !splits_last(g, &g->nodes[split], rank))
        split = QS_NONE;
    const qs_id end = split == QS_NONE ? joined : split;
    qs_id out[2];
    const int32_t outputs = g->nodes[end].output_count;
    memcpy(out, g->nodes[end].outputs, (size_t)outputs * sizeof(*out));
    const char *name = n->name;
    const qs_id removed[] = {concat, grouped, swapped, joined, end};
    for (size_t i = 0; i < QS_COUNT(removed); i++)
        qs_graph_remove_node(g, removed[i]);
    *changed = true;
    return add_shuffle(p, &t, name, out, outputs);
}

int qs_pass_shuffle(qs_pass *p) {
    return qs_pass_nodes(p, fuse_shuffle);
}
