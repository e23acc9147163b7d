/* SPDX-License-Identifier: MIT */
/* Element-wise operators, Concat and their kin work on twins as well as on values. */
#include "pass/layout/layout.h"

/* What kind of operator: which inputs are tensors of the output's shape. */
#define UNARY  1 /* input 0; the others are scalars */
#define EVERY  2 /* all inputs, broadcast */
#define QBOTH  3 /* inputs 0 and 3, broadcast */
#define CONCAT 4 /* all inputs, along an axis */
#define QCAT   5 /* inputs 2, 5, 8, ... along an axis */
#define SCALED 6 /* input 0; scale and zero point may lie along an axis */
#define SPLIT  7 /* input 0, all outputs, along an axis */
#define SOFT   8 /* input 0, along an axis */
#define FIRST  9 /* input 0, output 0; the other outputs are the same either way */

static int kind_of(const qs_node *n) {
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {
        {"Relu", UNARY},
        {"Clip", UNARY},
        {"LeakyRelu", UNARY},
        {"Sigmoid", UNARY},
        {"Tanh", UNARY},
        {"HardSigmoid", UNARY},
        {"HardSwish", UNARY},
        {"Silu", UNARY},
        {"Exp", UNARY},
        {"Sqrt", UNARY},
        {"Neg", UNARY},
        {"Abs", UNARY},
        {"Cast", UNARY},
        {"Identity", UNARY},
        {"QTable", UNARY},
        {"Erf", UNARY},
        {"Gelu", UNARY},
        {"DynamicQuantizeLinear", FIRST},
        {"QuantizeRows", FIRST},
        {"Flip", UNARY},
        {"QLinearSigmoid", UNARY},
        {"QLinearLeakyRelu", UNARY},
        {"Add", EVERY},
        {"Sub", EVERY},
        {"Mul", EVERY},
        {"Div", EVERY},
        {"Pow", EVERY},
        {"QLinearAdd", QBOTH},
        {"QLinearMul", QBOTH},
        {"Concat", CONCAT},
        {"QLinearConcat", QCAT},
        {"QuantizeLinear", SCALED},
        {"DequantizeLinear", SCALED},
        {"Split", SPLIT},
        {"Softmax", SOFT},
        {"QLinearSoftmax", SOFT},
    };
    if (qs_same(n->op_type, "QuantizeRows") && qs_node_int(n, "axis", -1) != 1)
        return 0; /* rows of the last axis, not images */
    for (size_t i = 0; i < QS_COUNT(kinds); i++)
        if (qs_same(n->op_type, kinds[i].name))
            return kinds[i].kind;
    return 0;
}

static bool is_tensor_input(int kind, int32_t index) {
    switch (kind) {
    case EVERY:
    case CONCAT: return true;
    case QBOTH: return index == 0 || index == 3;
    case QCAT: return index >= 2 && (index - 2) % 3 == 0;
    default: return index == 0;
    }
}

/* One element, whatever its rank. */
static bool is_single(const qs_value *v) {
    size_t elements;
    return qs_value_size(v, &elements, NULL) && elements == 1;
}

/* Whether input `v` of an operator with outputs of this rank can be taken channels-last. */
static bool is_fit(const qs_layout *l, qs_id id, int32_t rank, int kind) {
    const qs_value *v = &l->g->values[id];
    if (v->rank == rank)
        return true;
    if (kind == CONCAT || kind == QCAT)
        return false;
    return v->rank >= 0 && v->rank < rank && (v->data || (is_single(v) && v->rank <= 1));
}

/* Rank of the late inputs; 0 if there is none, or if some input does not fit. */
static int32_t late_rank(const qs_layout *l, const qs_node *n, int kind) {
    int32_t rank = 0;
    for (int32_t i = 0; i < n->input_count; i++)
        if (is_tensor_input(kind, i) && qs_layout_is_late(l, n->inputs[i]))
            rank = l->g->values[n->inputs[i]].rank;
    for (int32_t i = 0; i < n->input_count && rank; i++)
        if (is_tensor_input(kind, i) &&
            (n->inputs[i] == QS_NONE || !is_fit(l, n->inputs[i], rank, kind)))
            return 0;
    for (int32_t i = 0; i < (kind == FIRST ? 1 : n->output_count) && rank; i++)
        if (n->outputs[i] != QS_NONE && l->g->values[n->outputs[i]].rank != rank)
            return 0;
    return rank;
}

/*
 * A constant operand of lower or equal rank, its axes in channels-last order. Only its elements'
 * size matters.
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
    qs_id made = qs_graph_add_const(l->g, NULL, c->dtype, rank, out, bytes, false);
    return made < 0 ? qs_pass_no_memory(l->p) : made;
}

/* ---- axes ---- */

/* The operator's axis, made >= 0; -1 if it cannot be moved. */
static int32_t axis_of(const qs_layout *l, const qs_node *n, int kind, int32_t rank) {
    int64_t fallback = kind == SCALED ? 1 : kind == SOFT ? -1 : 0;
    int64_t axis = qs_node_int(n, "axis", fallback);
    if (kind == SCALED) {
        if (qs_node_int(n, "block_size", 0) != 0)
            return -1;
        /* Per tensor: any axis will do. */
        if (is_single(&l->g->values[n->inputs[1]]))
            return 0;
        if (l->g->values[n->inputs[1]].rank != 1)
            return -1;
    }
    if (kind == SOFT && qs_node_int(n, "opset", n->version) < 13)
        return -1;
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int32_t)axis : -1;
}

static bool has_axis(int kind) {
    return kind == CONCAT || kind == QCAT || kind == SCALED || kind == SPLIT || kind == SOFT;
}

static int move_axis(qs_layout *l, qs_id node, int kind, int32_t rank) {
    const qs_node *n = &l->g->nodes[node];
    if (kind == SCALED && is_single(&l->g->values[n->inputs[1]]))
        return QSIM_OK;
    int32_t axis = qs_layout_axis(axis_of(l, n, kind, rank), rank);
    return qs_node_set_int(l->g, node, "axis", axis) ? qs_pass_no_memory(l->p) : QSIM_OK;
}

int qs_layout_spread(qs_layout *l, qs_id node, bool *done) {
    qs_graph *g = l->g;
    int kind = kind_of(&g->nodes[node]);
    int32_t rank = kind ? late_rank(l, &g->nodes[node], kind) : 0;
    if (!rank || (has_axis(kind) && axis_of(l, &g->nodes[node], kind, rank) < 0))
        return QSIM_OK;
    int code = has_axis(kind) ? move_axis(l, node, kind, rank) : QSIM_OK;
    for (int32_t i = 0; i < g->nodes[node].input_count && !code; i++) {
        qs_id v = g->nodes[node].inputs[i];
        if (!is_tensor_input(kind, i))
            continue;
        if (g->values[v].data)
            v = constant_last(l, v, rank);
        else if (g->values[v].rank == rank)
            v = qs_layout_last(l, v);
        if (v < 0)
            return v;
        qs_node_set_input(g, node, i, v);
    }
    int32_t emitted = kind == FIRST ? 1 : g->nodes[node].output_count;
    for (int32_t i = 0; i < emitted && !code; i++)
        code = qs_layout_emit(l, node, i);
    *done = !code;
    return code;
}
