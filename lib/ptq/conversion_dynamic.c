/* SPDX-License-Identifier: MIT */
/*
 * Dynamic quantization in floats: products of integers and the scaling behind them become the
 * product of the floats that were quantized and of dequantized weights. Ranges that the model finds
 * while it runs are not kept.
 */
#include "ptq/conversion.h"

#include "ptq/quantizer.h"

/* Inputs of MatMulIntegerScaled and ConvIntegerScaled (op_scaled_int8.c). */
enum { X, W, X_ZERO, W_ZERO, X_SCALE, W_SCALE, BIAS };

/* The floats that a product's integers are made of; QS_NONE: it is not known how they are made. */
static qs_id floats_of(const qs_graph *g, const qs_node *n) {
    const qs_id from = g->values[n->inputs[X]].producer;
    const qs_node *f = from == QS_NONE ? n : &g->nodes[from];
    double zero;
    const bool rows = qs_node_is(f, "qsim", "QuantizeRows") &&
                      qs_const_scalar(g, n->inputs[X_ZERO], &zero) && zero == 128;
    const bool whole = qs_node_is_onnx(f, "DynamicQuantizeLinear") && f->output_count == 3 &&
                       f->outputs[2] == n->inputs[X_ZERO];
    return (rows || whole) && f->outputs[1] == n->inputs[X_SCALE] ? f->inputs[0] : QS_NONE;
}

static bool all_equal(const qs_const *c) {
    for (size_t i = 1; i < c->elements; i++)
        if (qs_const_at(c, i) != qs_const_at(c, 0))
            return false;
    return true;
}

/* Adds the DequantizeLinear of a product's weights: with one scale if all are equal. */
static qs_id dequantize(qs_pass *p, const qs_node *n, bool conv) {
    qs_graph *g = p->graph;
    qs_quantizer q = {.ctx = p->ctx, .g = g, .error = p->error};
    const qs_id w = n->inputs[W];
    const qs_const *s = g->values[n->inputs[W_SCALE]].data, *z = g->values[n->inputs[W_ZERO]].data;
    const bool one = all_equal(s) && all_equal(z);
    const int64_t columns = one ? 1 : (int64_t)s->elements;
    int32_t *zeros = qs_arena_alloc(&g->arena, s->elements + 1, sizeof(*zeros));
    const char *base = qs_convert_cut(g, g->values[w].name, "_quantized");
    if (!zeros || !base)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < s->elements; i++)
        zeros[i] = (int32_t)qs_const_at(z, z->elements == 1 ? 0 : i);
    const qs_id scale = qs_write_constant(&q, base, "_scale", QSIM_FLOAT, !one, &columns, s->data);
    const qs_id zero = scale < 0 ? scale
                                 : qs_write_zero_points(&q, base, "_zero_point", g->values[w].dtype,
                                                        zeros, !one, &columns);
    const qs_id y =
        zero < 0 ? zero : qs_write_value(&q, base, "_DequantizeLinear_Output", QSIM_FLOAT, w);
    const qs_id made = y < 0 ? y : qs_write_node(&q, "DequantizeLinear", base, w, scale, zero, y);
    if (made < 0 || (conv && !one && qs_node_set_int(g, made, "axis", 0)))
        return QSIM_E_NOMEM;
    const int code = qs_pass_resolve(p, made);
    return code ? code : y;
}

static int rewrite(qs_pass *p, const qs_uses *uses, qs_id id, bool *changed) {
    qs_graph *g = p->graph;
    const qs_node n = g->nodes[id]; /* nodes move when some are added */
    const bool conv = qs_node_is(&n, "qsim", "ConvIntegerScaled");
    (void)uses;
    if (n.removed || (!conv && !qs_node_is(&n, "qsim", "MatMulIntegerScaled")))
        return QSIM_OK;
    const qs_id bias = qs_node_input(&n, BIAS);
    qs_id in[3] = {floats_of(g, &n), QS_NONE, conv ? bias : QS_NONE}, y = n.outputs[0], sum = y;
    if (in[0] == QS_NONE || !g->values[n.inputs[W_ZERO]].data ||
        (bias != QS_NONE && g->values[bias].dtype != QSIM_FLOAT)) {
        g->nodes[id].op_type = conv ? "ConvInteger" : "MatMulInteger"; /* as the file has it */
        return qs_convert_refuse(p, id, "not all of its integers are quantized while it runs");
    }
    in[1] = dequantize(p, &n, conv);
    if (in[1] < 0)
        return in[1];
    if (bias != QS_NONE && !conv)
        sum = qs_pass_value(p, y);
    if (sum < 0)
        return sum;
    qs_graph_remove_node(g, id);
    const qs_id made = qs_pass_clone(p, id, "", in, in[2] == QS_NONE ? 2 : 3, &sum, 1);
    if (made < 0)
        return made;
    g->nodes[made].op_type = conv ? "Conv" : "MatMul";
    qs_node_drop_attr(g, made, "rows");
    *changed = true;
    const int code = qs_pass_resolve(p, made);
    if (code || sum == y)
        return code;
    const qs_id add = qs_pass_node(p, "", "Add", "", 0, (qs_id[]){sum, bias}, 2, &y, 1);
    return add < 0 ? add : QSIM_OK;
}

int qs_convert_dynamic(qs_pass *p) {
    const int code = qs_pass_dynamic(p);
    return code ? code : qs_pass_nodes(p, rewrite);
}
