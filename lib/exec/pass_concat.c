/* SPDX-License-Identifier: MIT */
/*
 * A Concat of channels whose operands are all made by convolutions, for it alone, disappears: the
 * first convolution makes the whole tensor and writes its channels of it, each other one writes
 * its own over what the one before it left.
 */
#include "exec/passes.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "op/conv_float.h"
#include "op/int8_op.h"

/*
 * A product of few columns is faster with several pixels in a row, which have to follow each other:
 * where half a panel is left, short vectors would lose more by it than the Concat takes.
 */
static bool is_thin(const qs_pass *p, const qs_node *n) {
    const qs_value *w = &p->graph->values[n->inputs[3]];
    return p->ctx->kernels->i8->lanes < 4 && w->rank > 2 && w->dims[w->rank - 1].size > 1 &&
           w->dims[0].size < 32 && w->dims[0].size % 16 != 0;
}

/* The input behind a convolution's own that is the tensor it writes over; 0: it cannot. */
static int32_t over_of(const qs_pass *p, const qs_node *n) {
    const qs_graph *g = p->graph;
    const bool floats = qs_node_is(n, "qsim", "Conv");
    const int32_t over = floats ? QS_CONV_OVER : QS_I8_CONV_OVER;
    if (n->input_count > over || qs_node_attr(n, "into") || qs_node_int(n, "channels_last", 0) != 1)
        return 0;
    if (floats)
        return over;
    /* Of integers the products only, whose weights are packed ahead. */
    for (int32_t i = 1; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && !g->values[n->inputs[i]].data)
            return 0;
    const bool fits = qs_node_is(n, "qsim", "QLinearConv") && qs_node_int(n, "group", 1) == 1;
    return fits && !is_thin(p, n) ? over : 0;
}

/* Channels of operand `v`, or 0 if no convolution makes it for this one reader. */
static int64_t channels(const qs_pass *p, const qs_uses *uses, qs_id v, int32_t dtype) {
    const qs_graph *g = p->graph;
    const qs_value *x = &g->values[v];
    if (x->producer == QS_NONE || x->is_output || uses->start[v + 1] - uses->start[v] != 1 ||
        x->dtype != dtype)
        return 0;
    const bool fits = over_of(p, &g->nodes[x->producer]) > 0;
    return fits && x->rank > 2 && x->dims[x->rank - 1].size > 0 ? x->dims[x->rank - 1].size : 0;
}

static bool same_constant(const qs_graph *g, qs_id a, qs_id b) {
    const qs_const *x = a == QS_NONE ? NULL : g->values[a].data;
    const qs_const *y = b == QS_NONE ? NULL : g->values[b].data;
    return a == b || (x && y && x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0);
}

/* Where operand i of a Concat is among the inputs. */
static int32_t operand(const qs_node *n, int32_t i) {
    return qs_node_is(n, "", "Concat") ? i : 2 + 3 * i;
}

/* Operands of a Concat, in bytes also one that changes no scale and zero point; or 0. */
static int32_t operands(const qs_graph *g, const qs_node *n) {
    if (qs_node_is(n, "", "Concat"))
        return n->input_count;
    if (!qs_same(n->op_type, "QLinearConcat"))
        return 0;
    for (int32_t i = 2; i + 2 < n->input_count; i += 3)
        if (!same_constant(g, n->inputs[0], n->inputs[i + 1]) ||
            !same_constant(g, n->inputs[1], n->inputs[i + 2]))
            return 0;
    return (n->input_count - 2) / 3;
}

/* Channels of all operands together, or 0 if one does not fit. */
static int64_t all_channels(const qs_pass *p, const qs_uses *uses, const qs_node *n) {
    const qs_graph *g = p->graph;
    const int32_t count = operands(g, n);
    if (count < 2)
        return 0;
    const qs_value *y = &g->values[n->outputs[0]];
    const int32_t rank = y->rank;
    const int64_t axis = qs_node_int(n, "axis", 1);
    int64_t all = 0;
    if (rank < 3 || (axis < 0 ? axis + rank : axis) != rank - 1)
        return 0;
    for (int32_t i = 0; i < count; i++) {
        const int64_t own = channels(p, uses, n->inputs[operand(n, i)], y->dtype);
        if (own == 0 || !qs_add64(all, own, &all))
            return 0;
    }
    return y->dtype == QSIM_FLOAT || (y->dtype == QSIM_UINT8 && all <= INT32_MAX) ? all : 0;
}

/* Operand i of the Concat: the convolution that makes it writes into `y` over `over`. */
static int redirect(qs_pass *p, qs_id conv, qs_id over, qs_id y, int64_t into, int64_t column) {
    qs_graph *g = p->graph;
    const qs_node *c = &g->nodes[conv];
    const int32_t own = over_of(p, c);
    qs_id in[QS_I8_CONV_OVER + 1];
    for (int32_t i = 0; i < own; i++)
        in[i] = i < c->input_count ? c->inputs[i] : QS_NONE;
    in[own] = over;
    const qs_id id = qs_pass_clone(p, conv, "qsim", in, own + 1, &y, 1);
    if (id < 0)
        return id;
    qs_graph_remove_node(g, conv);
    if (qs_node_set_int(g, id, "into", into) || qs_node_set_int(g, id, "column", column))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, id);
}

static int fuse(qs_pass *p, qs_id concat, int64_t into) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[concat];
    const int32_t count = operands(g, n), first = operand(n, 0), step = operand(n, 1) - first;
    const qs_id *parts = n->inputs + first; /* stay in the graph's arena */
    const qs_id y = n->outputs[0];
    qs_id over = QS_NONE;
    int64_t column = 0;
    int code = QSIM_OK;
    qs_graph_remove_node(g, concat);
    for (int32_t i = 0; i < count && !code; i++) {
        const qs_value *x = &g->values[parts[i * step]];
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
        const int64_t into = n->removed ? 0 : all_channels(p, &uses, n);
        if (into == 0)
            continue;
        code = fuse(p, g->order[i], into);
        fused++;
    }
    qs_uses_free(g, &uses);
    return code || !fused ? code : qs_pass_finish(p);
}
