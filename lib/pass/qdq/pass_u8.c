/* SPDX-License-Identifier: MIT */
/*
 * Kernels take unsigned activations. The twin (twins.h) of an s8 activation is u8, x ^ 0x80 with
 * 128 added to its zero point: the same numbers. Flips convert. Weights keep their sign: packing
 * makes them signed.
 */
#include "pass/twins.h"

typedef struct signs {
    qs_pass *p;
    qs_graph *g;
    qs_twins twins;
} signs;

static qs_id input_of(const signs *s, qs_id node, int32_t index) {
    const qs_node *n = &s->g->nodes[node];
    return index < 0 ? QS_NONE : qs_node_input(n, index);
}

static bool is_type(const signs *s, qs_id v, int32_t dtype) {
    return v >= 0 && s->g->values[v].dtype == dtype;
}

/* ---- twins ---- */

qs_id qs_pass_flip_const(qs_pass *p, const qs_const *c) {
    uint8_t *bytes = qs_arena_raw64(&p->graph->arena, c->bytes + 1);
    if (!bytes)
        return qs_pass_no_memory(p);
    const uint8_t *from = c->data;
    const size_t n = c->bytes; /* a local: writing a byte might change c->bytes */
    for (size_t i = 0; i < n; i++)
        bytes[i] = from[i] ^ 0x80;
    return qs_pass_placed_const(p, c->dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8, c->rank, c->dims,
                                bytes);
}

static qs_id new_flipped(qs_pass *p, qs_id v) {
    qs_id t = qs_pass_value(p, v);
    if (t >= 0)
        p->graph->values[t].dtype = p->graph->values[v].dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8;
    return t;
}

static int add_flip(qs_pass *p, qs_id from, qs_id to, bool to_twin) {
    (void)to_twin; /* it is its own inverse */
    qs_id id = qs_pass_node(p, "qsim", "Flip", "", 1, &from, 1, &to, 1);
    return id < 0 ? id : QSIM_OK;
}

static qs_id flip(signs *s, qs_id v) {
    const qs_const *c = s->g->values[v].data;
    return c ? qs_pass_flip_const(s->p, c) : qs_twins_get(&s->twins, v);
}

/* ---- operators with zero points ---- */

/*
 * Makes input `index` the zero point of the twin of a tensor of type `dtype`. If it was left out,
 * which means 0, it gets the shape of the scale, input `like`, or is a scalar (-1).
 */
static int flip_zero_point(signs *s, qs_id node, int32_t index, int32_t dtype, int32_t like) {
    qs_id z = input_of(s, node, index), made;
    if (z != QS_NONE) {
        made = flip(s, z);
    } else {
        qs_id scale = like < 0 ? QS_NONE : input_of(s, node, like);
        int64_t dims[QSIM_MAX_RANK] = {0};
        int32_t rank = scale == QS_NONE ? 0 : s->g->values[scale].rank;
        size_t count = 1;
        for (int32_t i = 0; i < rank; i++) {
            dims[i] = s->g->values[scale].dims[i].size;
            count *= (size_t)dims[i];
        }
        uint8_t *bytes = qs_arena_alloc64(&s->g->arena, count + 1);
        if (!bytes)
            return qs_pass_no_memory(s->p);
        memset(bytes, 0x80, count);
        made = qs_pass_placed_const(s->p, dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8, rank, dims,
                                    bytes);
    }
    if (made < 0)
        return qs_pass_no_memory(s->p);
    if (qs_node_grow_inputs(s->g, node, index + 1))
        return qs_pass_no_memory(s->p);
    qs_node_set_input(s->g, node, index, made);
    return QSIM_OK;
}

/* Whether flip_zero_point works: the zero point is given, or the size of the scale is known. */
static bool can_flip(const signs *s, qs_id node, int32_t index, int32_t like) {
    qs_id z = input_of(s, node, index);
    if (z != QS_NONE)
        return true;
    qs_id scale = like < 0 ? QS_NONE : input_of(s, node, like);
    return scale == QS_NONE || s->g->values[scale].data != NULL;
}

static int flip_input(signs *s, qs_id node, int32_t index, int32_t zero_point, int32_t like) {
    qs_id v = input_of(s, node, index);
    int32_t dtype = s->g->values[v].dtype;
    qs_id t = flip(s, v);
    if (t < 0)
        return t;
    qs_node_set_input(s->g, node, index, t);
    return flip_zero_point(s, node, zero_point, dtype, like);
}

static int convert_inputs(signs *s, qs_id node) {
    const qs_op *op = s->g->nodes[node].op;
    const qs_operands *q = qs_op_operands(op);
    int code = QSIM_OK;
    for (size_t k = 0; k < QS_COUNT(q->x) && !code; k++) {
        const qs_operand *o = &q->x[k];
        const qs_id x = o->zero_point ? input_of(s, node, o->at) : QS_NONE;
        /* Dequantized constants are weights, which stay signed. */
        const bool weights = x >= 0 && s->g->values[x].data && (op->traits & QS_DEQUANTIZES);
        if (is_type(s, x, QSIM_INT8) && !weights && can_flip(s, node, o->zero_point, o->scale))
            code = flip_input(s, node, o->at, o->zero_point, o->scale);
    }
    return code;
}

static int convert_operands(signs *s, qs_id node) {
    const qs_operand *o = &qs_op_operands(s->g->nodes[node].op)->y;
    int code = convert_inputs(s, node);
    qs_id y = s->g->nodes[node].outputs[0];
    if (code || !o->zero_point || !is_type(s, y, QSIM_INT8) ||
        !can_flip(s, node, o->zero_point, o->scale))
        return code;
    qs_node_drop_attr(s->g, node, "output_dtype");
    code = flip_zero_point(s, node, o->zero_point, QSIM_INT8, o->scale);
    return code ? code : qs_twins_emit(&s->twins, node, 0);
}

/* Converts a Concat of tensors with a scale and zero point each: all change sign, or none. */
static int convert_concat(signs *s, qs_id node) {
    const qs_operands *q = qs_op_operands(s->g->nodes[node].op);
    const qs_operand *x = &q->x[0];
    const int32_t count = s->g->nodes[node].input_count, step = q->step;
    int code = QSIM_OK;
    if (!is_type(s, s->g->nodes[node].outputs[0], QSIM_INT8) ||
        !can_flip(s, node, q->y.zero_point, q->y.scale))
        return QSIM_OK;
    for (int32_t i = 0; x->zero_point + i < count; i += step)
        if (!can_flip(s, node, x->zero_point + i, x->scale + i))
            return QSIM_OK;
    for (int32_t i = 0; x->zero_point + i < count && !code; i += step)
        code = flip_input(s, node, x->at + i, x->zero_point + i, x->scale + i);
    if (!code)
        code = flip_zero_point(s, node, q->y.zero_point, QSIM_INT8, q->y.scale);
    return code ? code : qs_twins_emit(&s->twins, node, 0);
}

/* ---- operators that move or compare bytes ---- */

static int move(signs *s, qs_id node) {
    for (int32_t i = 0; i < s->g->nodes[node].input_count; i++) {
        if (!qs_op_is_operand(s->g->nodes[node].op, i))
            continue;
        qs_id t = flip(s, s->g->nodes[node].inputs[i]);
        if (t < 0)
            return t;
        qs_node_set_input(s->g, node, i, t);
    }
    int code = QSIM_OK;
    if (qs_node_is_onnx(&s->g->nodes[node], "Pad") &&
        qs_node_string_is(&s->g->nodes[node], "mode", "constant", true))
        code = flip_zero_point(s, node, 2, QSIM_INT8, -1);
    for (int32_t i = 0; i < s->g->nodes[node].output_count && !code; i++)
        code = qs_twins_emit(&s->twins, node, i);
    return code;
}

static bool can_move(const signs *s, qs_id node) {
    const qs_node *n = &s->g->nodes[node];
    const uint32_t traits = qs_node_traits(s->g, n);
    /* Moving works for either sign; MaxPool has kernels for unsigned bytes only. */
    const bool must = (traits & QS_NEEDS_LAST) && is_type(s, n->inputs[0], QSIM_INT8);
    if (!(traits & QS_MOVES) || !(must || qs_twins_is_pending(&s->twins, n->inputs[0])))
        return false;
    return !qs_node_is_onnx(n, "Pad") || can_flip(s, node, 2, -1);
}

/* ---- the pass ---- */

static int convert_node(signs *s, qs_id node) {
    const qs_operands *q = qs_op_operands(s->g->nodes[node].op);
    int code = QSIM_OK;
    if (q->step)
        code = convert_concat(s, node);
    else if (q->x[0].zero_point || q->y.zero_point)
        code = convert_operands(s, node);
    else if (can_move(s, node))
        code = move(s, node);
    /* Nodes that still read a pending value need it with the model's sign. */
    return code ? code : qs_twins_restore_inputs(&s->twins, node);
}

int qs_pass_u8(qs_pass *p) {
    qs_graph *g = p->graph;
    signs s = {.p = p, .g = g, .twins = {.p = p, .value = new_flipped, .convert = add_flip}};
    int code = qs_twins_init(&s.twins);
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = convert_node(&s, g->order[i]);
    for (size_t i = 0; i < g->output_count && !code; i++)
        code = qs_twins_restore(&s.twins, g->outputs[i]);
    if (!code)
        code = qs_pass_finish(p);
    qs_twins_free(&s.twins);
    return code;
}
