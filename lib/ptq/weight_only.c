/* SPDX-License-Identifier: MIT */
/*
 * Weights alone in 8 bits: after a DequantizeLinear the float model goes on as it was. In the other
 * modes those that no integer operator takes: of recurrent layers and of tables.
 */
#include "op/op.h"
#include "ptq/quantizer.h"

typedef struct dequantized {
    qs_id y; /* QS_NONE: not made yet */
    int32_t axis;
    qs_codes codes;
} dequantized;

static bool is_weight(const qs_quantizer *q, const qs_node *n, int32_t index) {
    const qs_const *c = qs_node_const(q->g, n, index);
    return !n->domain[0] && !n->removed && n->op && qs_op_in(n->op->weight_inputs, index) && c &&
           c->dtype == QSIM_FLOAT && c->rank >= 2 && c->elements > 0;
}

size_t qs_stored_weights(const qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    const uint32_t sums = QS_CONVOLVES | QS_MULTIPLIES;
    size_t elements = 0;
    if (q->options.mode != QSIM_MODE_WEIGHTS &&
        (q->choices[node].layer >= 0 || (qs_node_traits(q->g, n) & sums)))
        return 0;
    for (int32_t i = 0; i < n->input_count; i++)
        if (is_weight(q, n, i))
            elements += qs_node_const(q->g, n, i)->elements;
    return elements;
}

static int rewrite(qs_quantizer *q, qs_id node, int32_t index, dequantized *made) {
    const qs_node *n = &q->g->nodes[node];
    qs_id v = n->inputs[index];
    int32_t axis = qs_op_weight_axis(n, q->g->values[v].data->rank);
    const qs_weight_form form = qs_recipe_weights(q, node);
    if (made[v].y == QS_NONE || made[v].axis != axis) {
        qs_codes *c = &made[v].codes;
        int code = qs_initializer_quantize(q, v, axis, form, c);
        if (code)
            return code;
        made[v].axis = axis;
        made[v].y = qs_write_dequantized(q, v, form.dtype, c->data, c->scale, c->zero_point,
                                         c->count, axis);
    }
    if (made[v].y < 0)
        return qs_fail(q->error, QSIM_E_NOMEM, "quantization: out of memory");
    if (q->choices[node].layer >= 0) {
        const qs_layer *l = &q->layers[q->choices[node].layer];
        float *shift = NULL;
        int code = qs_bias_find(q, l, &made[v].codes, form.dtype, &shift);
        if (!code && shift)
            code = qs_bias_add(q, l, shift);
        if (code)
            return code;
    }
    qs_node_set_input(q->g, node, index, made[v].y);
    return QSIM_OK;
}

int qs_rewrite_weights(qs_quantizer *q) {
    dequantized *made = qs_alloc(q->ctx, q->value_count + 1, sizeof(*made));
    int code = QSIM_OK;
    if (!made)
        return qs_fail(q->error, QSIM_E_NOMEM, "quantization: out of memory");
    for (size_t v = 0; v < q->value_count; v++)
        made[v].y = QS_NONE;
    for (size_t k = 0; k < q->g->order_count && !code; k++) {
        qs_id node = q->g->order[k];
        if ((size_t)node >= q->node_count || q->choices[node].forced == QSIM_RULE_FLOAT ||
            !qs_stored_weights(q, node))
            continue;
        code = qs_write_progress(q, node, k, q->g->order_count);
        for (int32_t i = 0; i < q->g->nodes[node].input_count && !code; i++)
            if (is_weight(q, &q->g->nodes[node], i))
                code = rewrite(q, node, i, made);
    }
    qs_free(q->ctx, made);
    return code ? code : qs_write_finish(q);
}
