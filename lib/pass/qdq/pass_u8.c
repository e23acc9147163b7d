/* SPDX-License-Identifier: MIT */
/*
 * Kernels take unsigned activations. An s8 activation becomes its u8 twin, x ^ 0x80 with 128 added
 * to its zero point, which is the same numbers. As in the layout pass a value whose maker writes
 * the twin is `late`, and a Flip makes it only where something needs it as it was. (Weights may be
 * of either sign: packing makes them signed.)
 */
#include "pass/pass.h"

typedef struct signs {
    qs_pass *p;
    qs_graph *g;
    size_t count;
    qs_id *twin;
    bool *late;
} signs;

#define NO (-1)

/* Which inputs of an operator are what. Pairs: tensor and its zero point. */
typedef struct form {
    const char *domain, *name;
    int8_t x[2], x_zp[2]; /* activations; x[1] is NO for operators with one */
    int8_t y_zp;          /* zero point of output 0; NO: its type is not 8-bit */
} form;

static const form forms[] = {
    {"", "QLinearConv", {0, NO}, {2, NO}, 7},
    {"", "QLinearMatMul", {0, NO}, {2, NO}, 7},
    {"", "ConvInteger", {0, NO}, {2, NO}, NO},
    {"", "MatMulInteger", {0, NO}, {2, NO}, NO},
    {"", "QuantizeLinear", {NO, NO}, {NO, NO}, 2},
    {"", "DequantizeLinear", {0, NO}, {2, NO}, NO},
    {"com.microsoft", "QuantizeLinear", {NO, NO}, {NO, NO}, 2},
    {"com.microsoft", "DequantizeLinear", {0, NO}, {2, NO}, NO},
    {"com.microsoft", "QLinearAdd", {0, 3}, {2, 5}, 7},
    {"com.microsoft", "QLinearMul", {0, 3}, {2, 5}, 7},
    {"com.microsoft", "QLinearAveragePool", {0, NO}, {2, NO}, 4},
    {"com.microsoft", "QLinearGlobalAveragePool", {0, NO}, {2, NO}, 4},
    {"com.microsoft", "QLinearSigmoid", {0, NO}, {2, NO}, 4},
    {"com.microsoft", "QLinearLeakyRelu", {0, NO}, {2, NO}, 4},
    {"com.microsoft", "QLinearSoftmax", {0, NO}, {2, NO}, 4},
};

static const form *form_of(const qs_node *n) {
    for (size_t i = 0; i < QS_COUNT(forms); i++)
        if (qs_node_is(n, forms[i].domain, forms[i].name))
            return &forms[i];
    return NULL;
}

static qs_id input_of(const signs *s, qs_id node, int32_t index) {
    const qs_node *n = &s->g->nodes[node];
    return index < 0 ? QS_NONE : qs_node_input(n, index);
}

static bool is_type(const signs *s, qs_id v, int32_t dtype) {
    return v >= 0 && s->g->values[v].dtype == dtype;
}

static bool is_late(const signs *s, qs_id v) {
    return v >= 0 && (size_t)v < s->count && s->late[v];
}

/* ---- twins ---- */

static qs_id flip_constant(signs *s, qs_id v) {
    const qs_const *c = s->g->values[v].data;
    uint8_t *bytes = qs_arena_raw64(&s->g->arena, c->bytes + 1);
    if (!bytes)
        return qs_pass_no_memory(s->p);
    const uint8_t *from = c->data;
    const size_t n = c->bytes; /* not read anew for each byte, which might be it */
    for (size_t i = 0; i < n; i++)
        bytes[i] = from[i] ^ 0x80;
    qs_id id = qs_graph_add_const(s->g, NULL, c->dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8,
                                  c->rank, c->dims, bytes, false);
    return id < 0 ? qs_pass_no_memory(s->p) : id;
}

static qs_id new_twin(signs *s, qs_id v) {
    qs_id t = qs_pass_value(s->p, v);
    if (t >= 0)
        s->g->values[t].dtype = s->g->values[v].dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8;
    return t;
}

static int add_flip(signs *s, qs_id from, qs_id to) {
    qs_id id = qs_pass_node(s->p, "qsim", "Flip", "", 1, &from, 1, &to, 1);
    return id < 0 ? id : QSIM_OK;
}

/* The value with its sign flipped. */
static qs_id flipped(signs *s, qs_id v) {
    if (s->g->values[v].data)
        return flip_constant(s, v);
    bool known = (size_t)v < s->count;
    if (known && s->twin[v] != QS_NONE)
        return s->twin[v];
    qs_id t = new_twin(s, v);
    if (t < 0)
        return t;
    int code = add_flip(s, v, t);
    if (known)
        s->twin[v] = t;
    return code ? code : t;
}

static int emit(signs *s, qs_id node, int32_t index) {
    qs_id y = s->g->nodes[node].outputs[index];
    if (y == QS_NONE)
        return QSIM_OK;
    qs_id t = new_twin(s, y);
    if (t < 0)
        return t;
    qs_pass_set_output(s->p, node, index, t);
    s->twin[y] = t;
    s->late[y] = true;
    return QSIM_OK;
}

static int need(signs *s, qs_id v) {
    if (!is_late(s, v))
        return QSIM_OK;
    s->late[v] = false;
    return add_flip(s, s->twin[v], v);
}

/* ---- operators with zero points ---- */

/*
 * The zero point that goes with the twin of a tensor of type `dtype`. One that is left out means 0;
 * it gets the shape of the scale at input `like`, or is a scalar.
 */
static int flip_zero_point(signs *s, qs_id node, int32_t index, int32_t dtype, int32_t like) {
    qs_id z = input_of(s, node, index), made;
    if (z != QS_NONE) {
        made = flipped(s, z);
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
        made = qs_graph_add_const(s->g, NULL, dtype == QSIM_INT8 ? QSIM_UINT8 : QSIM_INT8, rank,
                                  dims, bytes, false);
    }
    if (made < 0)
        return qs_pass_no_memory(s->p);
    if (qs_node_grow_inputs(s->g, node, index + 1))
        return qs_pass_no_memory(s->p);
    qs_node_set_input(s->g, node, index, made);
    return QSIM_OK;
}

/* A zero point that can be moved: given, or left out beside a scale of known size. */
static bool can_flip(const signs *s, qs_id node, int32_t index, int32_t like) {
    qs_id z = input_of(s, node, index);
    if (z != QS_NONE)
        return true;
    qs_id scale = like < 0 ? QS_NONE : input_of(s, node, like);
    return scale == QS_NONE || s->g->values[scale].data != NULL;
}

/* Integer products have no scales beside their zero points. */
static int32_t scale_index(const form *f, int32_t zero_point) {
    return strstr(f->name, "Integer") ? NO : zero_point - 1;
}

static int flip_input(signs *s, qs_id node, int32_t index, int32_t zero_point, int32_t like) {
    qs_id v = input_of(s, node, index);
    int32_t dtype = s->g->values[v].dtype;
    qs_id t = flipped(s, v);
    if (t < 0)
        return t;
    qs_node_set_input(s->g, node, index, t);
    return flip_zero_point(s, node, zero_point, dtype, like);
}

static int convert_inputs(signs *s, qs_id node, const form *f) {
    int code = QSIM_OK;
    for (int k = 0; k < 2 && !code; k++) {
        qs_id x = input_of(s, node, f->x[k]);
        int32_t like = scale_index(f, f->x_zp[k]);
        /* Constants that are dequantized are weights: they stay. */
        bool weights = x >= 0 && s->g->values[x].data && strstr(f->name, "Dequantize");
        if (is_type(s, x, QSIM_INT8) && !weights && can_flip(s, node, f->x_zp[k], like))
            code = flip_input(s, node, f->x[k], f->x_zp[k], like);
    }
    return code;
}

static int convert(signs *s, qs_id node, const form *f) {
    int code = convert_inputs(s, node, f);
    qs_id y = s->g->nodes[node].outputs[0];
    if (code || f->y_zp == NO || !is_type(s, y, QSIM_INT8) ||
        !can_flip(s, node, f->y_zp, f->y_zp - 1))
        return code;
    qs_node_drop_attr(s->g, node, "output_dtype");
    code = flip_zero_point(s, node, f->y_zp, QSIM_INT8, f->y_zp - 1);
    return code ? code : emit(s, node, 0);
}

/* QLinearConcat: scale and zero point of the output, then triples. */
static int convert_concat(signs *s, qs_id node) {
    int32_t count = s->g->nodes[node].input_count;
    int code = QSIM_OK;
    for (int32_t i = 1; i < count; i += 3)
        if (!can_flip(s, node, i, i - 1))
            return QSIM_OK;
    if (!is_type(s, s->g->nodes[node].outputs[0], QSIM_INT8))
        return QSIM_OK;
    for (int32_t i = 2; i + 2 < count && !code; i += 3)
        code = flip_input(s, node, i, i + 2, i + 1);
    if (!code)
        code = flip_zero_point(s, node, 1, QSIM_INT8, 0);
    return code ? code : emit(s, node, 0);
}

/* ---- operators that only move bytes, or compare them ---- */

static bool is_movement(const qs_node *n) {
    static const char *const names[] = {"MaxPool", "Reshape",  "Flatten",   "Transpose",
                                        "Squeeze", "Slice",    "Unsqueeze", "Split",
                                        "Gather",  "Identity", "Concat",    "Pad"};
    for (size_t i = 0; i < QS_COUNT(names); i++)
        if (qs_node_is(n, "", names[i]))
            return n->output_count == 1 || qs_same(n->op_type, "Split");
    return false;
}

static bool pads_by_constant(const qs_node *n) {
    const qs_attr *mode = qs_node_attr(n, "mode");
    return !mode || (mode->type == QS_ATTR_STRING && mode->u.s.size == 8 &&
                     memcmp(mode->u.s.data, "constant", 8) == 0);
}

static int move(signs *s, qs_id node) {
    bool concat = qs_node_is(&s->g->nodes[node], "", "Concat");
    int32_t count = concat ? s->g->nodes[node].input_count : 1;
    for (int32_t i = 0; i < count; i++) {
        qs_id t = flipped(s, s->g->nodes[node].inputs[i]);
        if (t < 0)
            return t;
        qs_node_set_input(s->g, node, i, t);
    }
    int code = QSIM_OK;
    if (qs_node_is(&s->g->nodes[node], "", "Pad") && pads_by_constant(&s->g->nodes[node]))
        code = flip_zero_point(s, node, 2, QSIM_INT8, NO);
    for (int32_t i = 0; i < s->g->nodes[node].output_count && !code; i++)
        code = emit(s, node, i);
    return code;
}

static bool can_move(const signs *s, qs_id node) {
    const qs_node *n = &s->g->nodes[node];
    /* Bytes of either sign can be moved, greatest ones are found among unsigned ones. */
    const bool must = qs_node_is(n, "", "MaxPool") && is_type(s, n->inputs[0], QSIM_INT8);
    if (!is_movement(n) || !(must || is_late(s, n->inputs[0])))
        return false;
    return !qs_same(n->op_type, "Pad") || (n->version >= 11 && can_flip(s, node, 2, NO));
}

/* ---- the pass ---- */

static int visit(signs *s, qs_id node) {
    const form *f = form_of(&s->g->nodes[node]);
    int code = QSIM_OK;
    if (f)
        code = convert(s, node, f);
    else if (qs_node_is(&s->g->nodes[node], "com.microsoft", "QLinearConcat"))
        code = convert_concat(s, node);
    else if (can_move(s, node))
        code = move(s, node);
    /* Whatever still reads a late value, or did not fit, gets it as it was. */
    for (int32_t i = 0; i < s->g->nodes[node].input_count && !code; i++)
        code = need(s, s->g->nodes[node].inputs[i]);
    return code;
}

int qs_pass_u8(qs_pass *p) {
    qs_graph *g = p->graph;
    signs s = {.p = p, .g = g, .count = g->value_count};
    int code = QSIM_OK;
    s.twin = qs_alloc(p->ctx, s.count + 1, sizeof(*s.twin));
    s.late = qs_calloc(p->ctx, s.count + 1, sizeof(*s.late));
    if (!s.twin || !s.late) {
        code = qs_pass_no_memory(p);
        goto done;
    }
    for (size_t v = 0; v < s.count; v++)
        s.twin[v] = QS_NONE;
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = visit(&s, g->order[i]);
    for (size_t i = 0; i < g->output_count && !code; i++)
        code = need(&s, g->outputs[i]);
    if (!code)
        code = qs_pass_finish(p);
done:
    qs_free(p->ctx, s.twin);
    qs_free(p->ctx, s.late);
    return code;
}
