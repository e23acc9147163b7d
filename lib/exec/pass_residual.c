/* SPDX-License-Identifier: MIT */
/*
 * A residual sum becomes the end of the convolution that makes one of its operands, if nothing else
 * reads that; so does the curve behind a float convolution.
 */
#include "exec/passes.h"

#include "op/conv_float.h"

#include <math.h>

static bool same_shape(const qs_value *a, const qs_value *b) {
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++) {
        const qs_dim *x = &a->dims[i], *y = &b->dims[i];
        bool same =
            x->size >= 0 || y->size >= 0 ? x->size == y->size : x->symbol && x->symbol == y->symbol;
        if (!same)
            return false;
    }
    return true;
}

static bool is_constant(const qs_graph *g, const qs_node *n, int32_t first, int32_t end) {
    for (int32_t i = first; i < end && i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && !g->values[n->inputs[i]].data)
            return false;
    return true;
}

/* The convolution that makes operand `v` of the sum, or QS_NONE. */
static qs_id maker_of(const qs_graph *g, const qs_uses *uses, qs_id v) {
    qs_id id = g->values[v].producer;
    const qs_node *n = id == QS_NONE ? NULL : &g->nodes[id];
    if (!n || !qs_node_is(n, "qsim", "QLinearConv") || g->values[v].is_output ||
        uses->start[v + 1] - uses->start[v] != 1)
        return QS_NONE;
    return qs_node_int(n, "group", 1) == 1 && qs_node_int(n, "channels_last", 0) == 1 &&
                   is_constant(g, n, 1, n->input_count)
               ? id
               : QS_NONE;
}

static bool is_sum(const qs_graph *g, const qs_node *n) {
    if (!qs_same(n->op_type, "QLinearAdd") || !is_constant(g, n, 1, 3) ||
        !is_constant(g, n, 4, n->input_count))
        return false;
    const qs_value *a = &g->values[n->inputs[0]], *b = &g->values[n->inputs[3]];
    return n->inputs[0] != n->inputs[3] && !a->data && !b->data && a->dtype == QSIM_UINT8 &&
           b->dtype == QSIM_UINT8 && g->values[n->outputs[0]].dtype == QSIM_UINT8 &&
           same_shape(a, b);
}

static qs_id input(const qs_node *n, int32_t index) {
    return index < n->input_count ? n->inputs[index] : QS_NONE;
}

/* `side`: where the convolution's result is among the sum's inputs, 0 or 3. */
static int fuse(qs_pass *p, qs_id sum, qs_id conv, int32_t side) {
    qs_graph *g = p->graph;
    const qs_node *s = &g->nodes[sum], *c = &g->nodes[conv];
    const int32_t other = 3 - side;
    qs_id in[14], y = s->outputs[0];
    for (int32_t i = 0; i < 9; i++)
        in[i] = input(c, i);
    for (int32_t i = 0; i < 3; i++)
        in[9 + i] = s->inputs[other + i];
    in[12] = s->inputs[6];
    in[13] = input(s, 7);
    const int64_t lo = qs_node_int(s, "lo", 0), hi = qs_node_int(s, "hi", 255);
    qs_graph_remove_node(g, sum);
    qs_id id = qs_pass_clone(p, conv, "qsim", in, 14, &y, 1);
    if (id < 0)
        return id;
    qs_graph_remove_node(g, conv);
    g->nodes[id].op_type = "QLinearConvAdd";
    if (qs_node_set_int(g, id, "sum_lo", lo) || qs_node_set_int(g, id, "sum_hi", hi))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, id);
}

/* ---- floats ---- */

/* The float convolution that alone makes `v`, for nothing but its one reader; or QS_NONE. */
static qs_id float_maker(const qs_graph *g, const qs_uses *uses, qs_id v) {
    const qs_id id = v == QS_NONE ? QS_NONE : g->values[v].producer;
    const qs_node *n = id == QS_NONE ? NULL : &g->nodes[id];
    if (!n || !qs_node_is(n, "qsim", "Conv") || g->values[v].is_output ||
        uses->start[v + 1] - uses->start[v] != 1)
        return QS_NONE;
    const bool plain = n->input_count < 4 && !qs_node_attr(n, "then");
    return plain && qs_node_int(n, "channels_last", 0) == 1 ? id : QS_NONE;
}

static int64_t curve_of(const qs_node *n) {
    return qs_node_is(n, "qsim", "Silu")    ? QS_THEN_SILU
           : qs_node_is(n, "", "HardSwish") ? QS_THEN_HARDSWISH
           : qs_node_is(n, "", "Sigmoid")   ? QS_THEN_SIGMOID
                                            : 0;
}

static int fuse_curve(qs_pass *p, qs_id node, qs_id conv) {
    const int64_t then = curve_of(&p->graph->nodes[node]);
    const qs_id y = p->graph->nodes[node].outputs[0];
    qs_graph_remove_node(p->graph, node);
    qs_pass_set_output(p, conv, 0, y);
    return qs_node_set_int(p->graph, conv, "then", then) ? qs_pass_no_memory(p) : QSIM_OK;
}

static bool is_float_sum(const qs_graph *g, const qs_node *n) {
    if (!qs_same(n->op_type, "Add") || qs_node_attr(n, "broadcast"))
        return false;
    const qs_value *a = &g->values[n->inputs[0]], *b = &g->values[n->inputs[1]];
    return n->inputs[0] != n->inputs[1] && !a->data && !b->data && a->dtype == QSIM_FLOAT &&
           b->dtype == QSIM_FLOAT && same_shape(a, b);
}

static int fuse_sum(qs_pass *p, qs_id sum, qs_id conv, int32_t side) {
    qs_graph *g = p->graph;
    const qs_node *s = &g->nodes[sum], *c = &g->nodes[conv];
    const qs_id in[4] = {c->inputs[0], c->inputs[1], input(c, 2), s->inputs[1 - side]};
    const qs_id y = s->outputs[0];
    const float lo = qs_node_float(s, "lo", -INFINITY), hi = qs_node_float(s, "hi", INFINITY);
    qs_graph_remove_node(g, sum);
    const qs_id id = qs_pass_clone(p, conv, "qsim", in, 4, &y, 1);
    if (id < 0)
        return id;
    qs_graph_remove_node(g, conv);
    if (qs_node_set_float(g, id, "sum_lo", lo) || qs_node_set_float(g, id, "sum_hi", hi))
        return qs_pass_no_memory(p);
    return qs_pass_resolve(p, id);
}

/* Fuses what node `id` is, if a convolution makes its operand. */
static int fuse_node(qs_pass *p, const qs_uses *uses, qs_id id, size_t *fused) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[id];
    if (n->removed)
        return QSIM_OK;
    const bool integers = is_sum(g, n), floats = !integers && is_float_sum(g, n);
    if (!integers && !floats && !curve_of(n))
        return QSIM_OK;
    qs_id (*const maker)(const qs_graph *, const qs_uses *, qs_id) =
        integers ? maker_of : float_maker;
    const int32_t second = integers ? 3 : floats ? 1 : 0;
    const int32_t side = maker(g, uses, n->inputs[0]) != QS_NONE ? 0 : second;
    const qs_id conv = maker(g, uses, n->inputs[side]);
    if (conv == QS_NONE)
        return QSIM_OK;
    ++*fused;
    if (integers)
        return fuse(p, id, conv, side);
    return floats ? fuse_sum(p, id, conv, side) : fuse_curve(p, id, conv);
}

int qs_pass_residual(qs_pass *p) {
    qs_graph *g = p->graph;
    qs_uses uses;
    size_t fused = 0;
    int code = QSIM_OK;
    if (qs_graph_uses(g, &uses))
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = fuse_node(p, &uses, g->order[i], &fused);
    qs_uses_free(g, &uses);
    return code || !fused ? code : qs_pass_finish(p);
}
