/* SPDX-License-Identifier: MIT */
/*
 * Propagates the channels-last layout through the nodes between convolutions: operators that treat
 * all axes alike, or all but one, read and write twins.
 */
#include "pass/layout/layout.h"

/* How a node can work on twins. */
typedef struct propagation {
    uint32_t traits; /* 0: not at all */
    int32_t rank;    /* of its twins */
    int32_t axis;    /* the one that the operator treats differently; -1: none */
    int32_t outputs; /* number of outputs that become twins */
} propagation;

/* Whether a value has one element. */
static bool is_single(const qs_value *v) {
    size_t elements;
    return qs_value_size(v, &elements, NULL) && elements == 1;
}

/* Whether an operand can be read channels-last. */
static bool fits(const qs_layout *l, qs_id id, const propagation *s) {
    const qs_value *v = &l->g->values[id];
    if (v->rank == s->rank)
        return true;
    if (s->traits & QS_ALONG_AXIS) /* operands of Concat are not broadcast */
        return false;
    return v->rank >= 0 && v->rank < s->rank && (v->data || (is_single(v) && v->rank <= 1));
}

/*
 * Sets s->rank to that of the pending operands and returns it; 0: none is pending, or an operand or
 * output does not fit.
 */
static int32_t pending_rank(const qs_layout *l, const qs_node *n, propagation *s) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (qs_op_is_operand(n->op, i) && qs_twins_is_pending(&l->twins, n->inputs[i]))
            s->rank = l->g->values[n->inputs[i]].rank;
    for (int32_t i = 0; i < n->input_count && s->rank; i++)
        if (qs_op_is_operand(n->op, i) && (n->inputs[i] == QS_NONE || !fits(l, n->inputs[i], s)))
            return 0;
    for (int32_t i = 0; i < s->outputs && s->rank; i++)
        if (n->outputs[i] != QS_NONE && l->g->values[n->outputs[i]].rank != s->rank)
            return 0;
    return s->rank;
}

/*
 * Permutes a constant operand to channels-last; a lower rank is extended by axes of size 1 in
 * front.
 */
static qs_id constant_last(qs_layout *l, qs_id id, int32_t rank) {
    const qs_value *v = &l->g->values[id];
    const qs_const *c = v->data;
    int64_t dims[QSIM_MAX_RANK], out[QSIM_MAX_RANK];
    size_t step[QSIM_MAX_RANK], moved[QSIM_MAX_RANK], unit = (size_t)qsim_dtype_bits(c->dtype) / 8;
    if (is_single(v))
        return id;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = i < rank - c->rank ? 1 : c->dims[i - (rank - c->rank)];
    for (int32_t i = rank; i-- > 0;)
        step[i] = i == rank - 1 ? 1 : step[i + 1] * (size_t)dims[i + 1];
    for (int32_t i = 0; i < rank; i++) {
        out[i] = dims[qs_layout_origin(i, rank)];
        moved[i] = step[qs_layout_origin(i, rank)];
    }
    uint8_t *bytes = qs_arena_alloc64(&l->g->arena, c->bytes + 1);
    if (!bytes)
        return qs_pass_no_memory(l->p);
    for (size_t i = 0; i < c->elements; i++) {
        size_t rest = i, at = 0;
        for (int32_t k = rank; k-- > 0; rest /= (size_t)out[k])
            at += rest % (size_t)out[k] * moved[k];
        memcpy(bytes + i * unit, (const uint8_t *)c->data + at * unit, unit);
    }
    return qs_pass_placed_const(l->p, c->dtype, rank, out, bytes);
}

/* ---- the node ---- */

/* Whether a node of QS_RANGED computes statistics of each image or of the whole batch. */
static bool ranges_over_images(const qs_node *n) {
    const int64_t axis = qs_node_int(n, "axis", n->op->axis);
    return axis == 0 || axis == 1;
}

static propagation propagation_of(const qs_layout *l, const qs_node *n) {
    const propagation none = {0};
    propagation s = {.traits =
                         qs_node_traits(l->g, n) & (QS_ELEMENTWISE | QS_RANGED | QS_ALONG_AXIS),
                     .axis = -1,
                     .outputs = n->output_count};
    /* Before version 7 the second operand's axes were counted from the first. */
    if (!s.traits || qs_node_int(n, "broadcast", 0) ||
        ((s.traits & QS_RANGED) && !ranges_over_images(n)))
        return none;
    if (s.traits & QS_RANGED)
        s.outputs = 1;
    if (!pending_rank(l, n, &s))
        return none;
    if (s.traits & QS_ALONG_AXIS) {
        const int64_t axis = qs_node_int(n, "axis", n->op->axis);
        s.axis = (int32_t)(axis < 0 ? axis + s.rank : axis);
        if (s.axis < 0 || s.axis >= s.rank)
            return none;
    }
    return s;
}

int qs_layout_propagate(qs_layout *l, qs_id node, bool *done) {
    qs_graph *g = l->g;
    const propagation s = propagation_of(l, &g->nodes[node]);
    int code = QSIM_OK;
    if (!s.traits)
        return QSIM_OK;
    if (s.axis >= 0 && qs_node_set_int(g, node, "axis", qs_layout_axis(s.axis, s.rank)))
        return qs_pass_no_memory(l->p);
    for (int32_t i = 0; i < g->nodes[node].input_count && !code; i++) {
        qs_id v = g->nodes[node].inputs[i];
        if (!qs_op_is_operand(g->nodes[node].op, i))
            continue;
        if (g->values[v].data)
            v = constant_last(l, v, s.rank);
        else if (g->values[v].rank == s.rank)
            v = qs_twins_get(&l->twins, v);
        if (v < 0)
            return v;
        qs_node_set_input(g, node, i, v);
    }
    for (int32_t i = 0; i < s.outputs && !code; i++)
        code = qs_twins_emit(&l->twins, node, i);
    *done = !code;
    return code;
}
