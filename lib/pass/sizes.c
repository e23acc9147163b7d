/* SPDX-License-Identifier: MIT */
/*
 * Finds tensors that have equal sizes whatever the size of the input: the operands of a residual
 * sum, for instance, after convolutions that keep the size of the image.
 */
#include "pass/pass.h"

#include "op/rules.h"

/* Whether all sizes of space are 1. Images have one or two such axes between batch and channels. */
static bool all_ones(const qs_value *v) {
    for (int32_t i = 1; i + 1 < v->rank; i++)
        if (v->dims[i].size != 1)
            return false;
    return true;
}

static bool all_are(const qs_attr *a, int64_t value) {
    for (int32_t i = 0; a && i < a->count; i++)
        if (a->u.ints[i] != value)
            return false;
    return true;
}

/* Whether a window has stride 1 and padding that keeps the size. */
static bool keeps_size(const qs_node *n, const qs_value *w) {
    const qs_attr *pads = qs_node_attr(n, "pads");
    if (!all_are(qs_node_attr(n, "strides"), 1) || !all_are(qs_node_attr(n, "dilations"), 1) ||
        !qs_node_string_is(n, "auto_pad", "NOTSET", true) || w->rank < 3)
        return false;
    for (int32_t i = 0, axes = w->rank - 2; i < axes; i++) {
        const int64_t pad =
            pads && pads->count == 2 * axes ? pads->u.ints[i] + pads->u.ints[i + axes] : 0;
        if (w->dims[i + 2].size != pad + 1)
            return false;
    }
    return true;
}

/* Index of the weights of a channels-last convolution; -1: another node. */
static int32_t conv_weights(const qs_node *n) {
    if (!(n->op->traits & QS_CONVOLVES) || qs_node_int(n, "channels_last", 0) != 1)
        return -1;
    for (int32_t i = 1; i < n->input_count; i++)
        if (qs_op_in(n->op->weight_inputs, i))
            return i;
    return -1;
}

/* Lists the first two operands of an element-wise node. Returns the number of all. */
static int32_t find_operands(const qs_node *n, qs_id found[2]) {
    int32_t count = 0;
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && qs_op_is_operand(n->op, i)) {
            if (count < 2)
                found[count] = n->inputs[i];
            count++;
        }
    return count;
}

/*
 * Finds the sizes of y, the result of a and b: those of the operand that the other one is broadcast
 * to.
 */
static void find_broadcast(qs_sizes *s, qs_id a, qs_id b, qs_id y) {
    const qs_value *va = &s->values[a], *vb = &s->values[b];
    if (va->rank != vb->rank || va->rank < 2 || s->batch[a] != s->batch[b])
        return;
    s->batch[y] = s->batch[a];
    if (s->space[a] == s->space[b] || all_ones(vb))
        s->space[y] = s->space[a];
    else if (all_ones(va))
        s->space[y] = s->space[b];
}

static void find_node(qs_sizes *s, const qs_graph *g, const qs_node *n) {
    const qs_id x = qs_node_input(n, 0);
    const qs_id y = n->output_count > 0 ? n->outputs[0] : QS_NONE;
    const bool each = qs_node_traits(g, n) & (QS_ELEMENTWISE | QS_RANGED);
    qs_id operands[2];
    if (x == QS_NONE || y == QS_NONE)
        return;
    const int32_t count = each && !qs_node_attr(n, "broadcast") ? find_operands(n, operands) : 0;
    if (count == 1)
        s->batch[y] = s->batch[operands[0]], s->space[y] = s->space[operands[0]];
    if (count == 2)
        find_broadcast(s, operands[0], operands[1], y);
    if ((n->op->traits & QS_NEEDS_LAST) || n->op->moments == QS_MOMENTS_NORM)
        s->batch[y] = s->batch[x];
    const int32_t w = conv_weights(n);
    if (w > 0 && keeps_size(n, &s->values[n->inputs[w]]))
        s->space[y] = s->space[x];
}

int qs_sizes_find(qs_pass *p, qs_sizes *s) {
    const qs_graph *g = p->graph;
    s->values = g->values;
    s->batch = qs_alloc(p->ctx, g->value_count + 1, sizeof(*s->batch));
    s->space = qs_alloc(p->ctx, g->value_count + 1, sizeof(*s->space));
    if (!s->batch || !s->space)
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < g->value_count; i++)
        s->batch[i] = s->space[i] = (qs_id)i;
    for (size_t i = 0; i < g->order_count; i++)
        find_node(s, g, &g->nodes[g->order[i]]);
    return QSIM_OK;
}

void qs_sizes_free(qs_pass *p, qs_sizes *s) {
    qs_free(p->ctx, s->batch);
    qs_free(p->ctx, s->space);
}

bool qs_sizes_same(const qs_sizes *s, qs_id a, qs_id b) {
    const qs_value *x = &s->values[a], *y = &s->values[b];
    if (x->rank < 0 || x->rank != y->rank)
        return false;
    for (int32_t i = 0; i < x->rank; i++) {
        const qs_dim *m = &x->dims[i], *n = &y->dims[i];
        const qs_id *root = i == 0 ? s->batch : s->space;
        bool same = m->size >= 0 || n->size >= 0 ? m->size == n->size
                    : m->symbol                  ? m->symbol == n->symbol
                                                 : false;
        same = same || (m->size < 0 && n->size < 0 && i + 1 < x->rank && root[a] == root[b]);
        if (!same)
            return false;
    }
    return true;
}
