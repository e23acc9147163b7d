/* SPDX-License-Identifier: MIT */
/*
 * A Concat of channels whose operands are all made by float convolutions, for it alone, disappears:
 * the first convolution makes the whole tensor and writes its channels of it, each other one writes
 * its own over what the one before it left.
 */
#include "exec/passes.h"

#include "op/conv_float.h"

/* Channels of operand `v`, or 0 if no convolution makes it for this one reader. */
static int64_t channels(const qs_graph *g, const qs_uses *uses, qs_id v) {
    const qs_value *x = &g->values[v];
    if (x->producer == QS_NONE || x->is_output || uses->start[v + 1] - uses->start[v] != 1)
        return 0;
    const qs_node *n = &g->nodes[x->producer];
    const bool fits = qs_node_is(n, "qsim", "Conv") && !qs_node_attr(n, "into") &&
                      n->input_count <= QS_CONV_OVER && qs_node_int(n, "channels_last", 0) == 1;
    return fits && x->rank > 2 && x->dims[x->rank - 1].size > 0 ? x->dims[x->rank - 1].size : 0;
}

/* Channels of all operands together, or 0 if one does not fit. */
static int64_t all_channels(const qs_graph *g, const qs_uses *uses, const qs_node *n) {
    if (!qs_node_is(n, "", "Concat") || n->input_count < 2)
        return 0;
    const int32_t rank = g->values[n->outputs[0]].rank;
    const int64_t axis = qs_node_int(n, "axis", 1);
    int64_t all = 0;
    if (rank < 3 || (axis < 0 ? axis + rank : axis) != rank - 1)
        return 0;
    for (int32_t i = 0; i < n->input_count; i++) {
        const int64_t own = channels(g, uses, n->inputs[i]);
        if (own == 0 || !qs_add64(all, own, &all))
            return 0;
    }
    return all;
}

/* Operand i of the Concat: the convolution that makes it writes into `y` over `over`. */
static int redirect(qs_pass *p, qs_id conv, qs_id over, qs_id y, int64_t into, int64_t column) {
    qs_graph *g = p->graph;
    const qs_node *c = &g->nodes[conv];
    qs_id in[QS_CONV_OVER + 1];
    for (int32_t i = 0; i < QS_CONV_OVER; i++)
        in[i] = i < c->input_count ? c->inputs[i] : QS_NONE;
    in[QS_CONV_OVER] = over;
    const qs_id id = qs_pass_clone(p, conv, "qsim", in, QS_CONV_OVER + 1, &y, 1);
    if (id < 0)
        return id;
    qs_graph_remove_node(g, conv);
    if (qs_node_set_int(g, id, "into", into) || qs_node_set_int(g, id, "column", column))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, id);
}

static int fuse(qs_pass *p, qs_id concat, int64_t into) {
    qs_graph *g = p->graph;
    const int32_t count = g->nodes[concat].input_count;
    const qs_id *parts = g->nodes[concat].inputs; /* stay in the graph's arena */
    const qs_id y = g->nodes[concat].outputs[0];
    qs_id over = QS_NONE;
    int64_t column = 0;
    int code = QSIM_OK;
    qs_graph_remove_node(g, concat);
    for (int32_t i = 0; i < count && !code; i++) {
        const qs_value *x = &g->values[parts[i]];
        const int64_t own = x->dims[x->rank - 1].size;
        const qs_id maker = x->producer, to = i + 1 < count ? qs_pass_value(p, y) : y;
        if (to < 0)
            return to;
        code = redirect(p, maker, over, to, into, column);
        over = to;
        column += own;
    }
    return code;
}

int qs_pass_concat(qs_pass *p) {
    qs_graph *g = p->graph;
    qs_uses uses;
    size_t fused = 0;
    int code = QSIM_OK;
    if (qs_graph_uses(g, &uses))
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < g->order_count && !code; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        const int64_t into = n->removed ? 0 : all_channels(g, &uses, n);
        if (into == 0)
            continue;
        code = fuse(p, g->order[i], into);
        fused++;
    }
    qs_uses_free(g, &uses);
    return code || !fused ? code : qs_pass_finish(p);
}
