/* SPDX-License-Identifier: MIT */
/* Movement of quantized tensors: operators that only copy elements copy integers. */
#include "pass/qdq/qdq.h"
#include "op/rules.h"

bool qs_qdq_same(const qs_target *t, const qs_quantized *from) {
    return t->q.s == from->s && t->q.z == from->z && t->q.dtype == from->dtype && !t->bounded;
}

/* ---- Pad ---- */

static bool is_pad(const qs_node *n) {
    return qs_node_is_onnx(n, "Pad");
}

static bool pads_by_constant(const qs_node *n) {
    return qs_node_string_is(n, "mode", "constant", true);
}

/* Reads the value that Pad fills with; false: it is not a constant. */
static bool pad_value(const qs_graph *g, const qs_node *n, double *value) {
    qs_id v = qs_node_input(n, 2);
    *value = 0;
    return v == QS_NONE || (qs_const_scalar(g, v, value) && g->values[v].dtype == QSIM_FLOAT);
}

/* Makes the fill value an integer of x's type; QS_NONE if the mode repeats elements. */
static int pad_fill(qs_qdq *d, const qs_node *n, const qs_quantized *x, qs_id *fill) {
    double value;
    *fill = QS_NONE;
    if (!pads_by_constant(n) || !pad_value(d->g, n, &value))
        return QSIM_OK;
    *fill = qs_pass_const_u8(d->p, x->dtype, (uint8_t)qs_qdq_quantize(x, value));
    return *fill < 0 ? *fill : QSIM_OK;
}

/* Whether x's integers represent the fill value exactly. */
static bool fill_is_exact(const qs_graph *g, const qs_node *n, const qs_quantized *x) {
    double value;
    if (!is_pad(n) || !pads_by_constant(n))
        return true;
    return pad_value(g, n, &value) &&
           (double)((float)(qs_qdq_quantize(x, value) - x->z) * x->s) == value;
}

/* ---- one node ---- */

bool qs_qdq_is_movement(const qs_graph *g, const qs_node *n) {
    double value;
    if (!(qs_node_traits(g, n) & QS_MOVES) || (n->input_count > 1 && qs_op_is_operand(n->op, 1)))
        return false;
    return !is_pad(n) || !pads_by_constant(n) || pad_value(g, n, &value);
}

/* Raises MaxPool to version 12, the first that takes 8 bits. */
static void allow_bytes(qs_node *n) {
    if (qs_node_is_onnx(n, "MaxPool") && n->version < 12)
        n->version = 12;
}

/* Pad also gets its fill value as an integer. */
int qs_qdq_move_integers(qs_qdq *d, const qs_target *t, const qs_quantized *x) {
    const qs_node *n = &d->g->nodes[t->core];
    int32_t count = n->input_count;
    qs_id fill = QS_NONE, *in = qs_arena_alloc(&d->g->arena, (size_t)count + 3, sizeof(*in));
    if (!in)
        return qs_pass_no_memory(d->p);
    memcpy(in, n->inputs, (size_t)count * sizeof(*in));
    in[0] = x->x;
    int code = is_pad(n) ? pad_fill(d, n, x, &fill) : QSIM_OK;
    if (!code && is_pad(n)) {
        count = fill != QS_NONE && count < 3 ? 3 : count;
        in[2] = fill;
    }
    if (code)
        return code;
    const qs_id made = qs_qdq_replace(d, t, "", n->op_type, in, count, t->core);
    if (made < 0)
        return made;
    allow_bytes(&d->g->nodes[made]);
    return qs_pass_resolve(d->p, made);
}

int qs_qdq_move(qs_qdq *d, qs_target *t, bool *done) {
    qs_quantized x;
    if (t->core == QS_NONE || !qs_qdq_is_movement(d->g, &d->g->nodes[t->core]))
        return QSIM_OK;
    const qs_node *n = &d->g->nodes[t->core];
    if (!qs_qdq_source(d, n->inputs[0], &x) || n->output_count != 1 || !qs_qdq_same(t, &x))
        return QSIM_OK;
    *done = true;
    return qs_qdq_move_integers(d, t, &x);
}

/* ---- DQ -> movement becomes movement -> DQ ---- */

static int fill_with_integers(qs_qdq *d, qs_id node, const qs_quantized *x) {
    qs_id fill;
    int code = pad_fill(d, &d->g->nodes[node], x, &fill);
    if (code || (fill == QS_NONE && d->g->nodes[node].input_count < 3))
        return code;
    if (qs_node_grow_inputs(d->g, node, 3))
        return qs_pass_no_memory(d->p);
    qs_node_set_input(d->g, node, 2, fill);
    return QSIM_OK;
}

static int propagate_dq(qs_qdq *d, qs_id node, const qs_quantized *x) {
    qs_graph *g = d->g;
    qs_id dq = g->values[g->nodes[node].inputs[0]].producer;
    int code = is_pad(&g->nodes[node]) ? fill_with_integers(d, node, x) : QSIM_OK;
    if (code)
        return code;
    qs_node_set_input(g, node, 0, x->x);
    allow_bytes(&g->nodes[node]);
    for (int32_t i = 0; i < g->nodes[node].output_count; i++) {
        qs_id y = g->nodes[node].outputs[i], q;
        if (y == QS_NONE)
            continue;
        q = qs_pass_value(d->p, y);
        if (q < 0)
            return q;
        g->values[q].dtype = x->dtype;
        qs_pass_set_output(d->p, node, i, q);
        const qs_id in[3] = {q, x->scale, x->zp};
        qs_id made =
            qs_pass_clone(d->p, dq, g->nodes[dq].domain, in, g->nodes[dq].input_count, &y, 1);
        if (made < 0)
            return made;
        code = qs_pass_resolve(d->p, made);
        if (code)
            return code;
    }
    return qs_pass_resolve(d->p, node);
}

int qs_qdq_propagate_dq(qs_qdq *d) {
    qs_graph *g = d->g;
    int code = QSIM_OK;
    for (size_t i = 0; i < g->order_count && !code; i++) {
        qs_id id = g->order[i];
        qs_quantized x;
        if (qs_qdq_is_movement(g, &g->nodes[id]) && qs_qdq_source(d, g->nodes[id].inputs[0], &x) &&
            !g->values[x.x].data && fill_is_exact(g, &g->nodes[id], &x))
            code = propagate_dq(d, id, &x);
    }
    return code ? code : qs_graph_sort(g, d->p->error);
}
