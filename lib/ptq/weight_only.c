/* SPDX-License-Identifier: MIT */
/*
 * Stores weights as integers before a DequantizeLinear, or in float16 before a Cast; the model
 * computes in floats. In mode
 * WEIGHTS these are all weights, in other modes those of recurrent layers and tables, which no
 * integer operator takes.
 */
#include "op/op.h"
#include "ptq/quantizer.h"

#include <qsim/data.h>

typedef struct dequantized {
    qs_id y; /* QS_NONE: not made yet */
    int32_t axis;
    qs_weight_form form;
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

/* The layer of a node if its weights have 4 bits; else NULL. */
static const qs_layer *narrow_layer(const qs_quantizer *q, qs_id node, const qs_weight_form *form) {
    return qs_is_narrow(form->dtype) ? &q->layers[q->choices[node].layer] : NULL;
}

/* Adds a weight in float16, and the Cast that reads it. */
static int write_half(qs_quantizer *q, qs_id node, qs_id v, qs_id *y) {
    const qs_const *c = q->g->values[v].data;
    const char *base = q->g->values[v].name;
    const size_t n = c->elements;
    const float *w = qs_graph_aligned(q->g, v);
    uint16_t *half = qs_arena_alloc(&q->g->arena, n, sizeof(*half));
    const qsim_tensor from = {QSIM_FLOAT, 1, (int64_t[]){(int64_t)n}, (void *)(uintptr_t)w, 4 * n},
                      to = {QSIM_FLOAT16, 1, from.dims, half, 2 * n};
    if (!w || !half)
        return QSIM_E_NOMEM;
    int code = qsim_tensor_convert(&from, &to, q->error);
    for (size_t i = 0; i < n && !code; i++)
        if ((half[i] & 0x7c00) == 0x7c00) {
            code =
                qs_fail(q->error, QSIM_E_VALUE,
                        "%s: the weights '%s' hold a number that float16 has not (node '%s', %s)",
                        q->model->name, base, qs_node_label(q->g, node), q->g->nodes[node].op_type);
            qs_hint(q->error, "leave the node in floats");
        }
    if (code)
        return code;
    const qs_id x = qs_write_constant(q, base, "_float16", QSIM_FLOAT16, c->rank, c->dims, half);
    *y = qs_write_value(q, base, "_Cast_Output", QSIM_FLOAT, v);
    const char *name = qs_write_joined(q, base, "_Cast");
    if (!name || x < 0 || *y < 0)
        return QSIM_E_NOMEM;
    const qs_id made = qs_graph_add_node(q->g, "", "Cast", name, &x, 1, y, 1);
    return made < 0 || qs_node_set_int(q->g, made, "to", QSIM_FLOAT) ? QSIM_E_NOMEM : QSIM_OK;
}

/* Quantizes a weight and, unless `bare`, adds its DequantizeLinear; kept for other readers. */
static int make(qs_quantizer *q, qs_id node, qs_id v, int32_t axis, bool bare, dequantized *made) {
    const qs_weight_form form = qs_recipe_weights(q, node);
    const qs_layer *narrow = narrow_layer(q, node, &form);
    if (made->y != QS_NONE && made->axis == axis && !memcmp(&made->form, &form, sizeof(form)))
        return QSIM_OK;
    if (form.dtype == QSIM_FLOAT16) {
        made->axis = axis;
        made->form = form;
        return write_half(q, node, v, &made->y);
    }
    int code = narrow ? qs_narrow_make(q, narrow, &made->codes)
                      : qs_initializer_quantize(q, v, axis, form, NULL, &made->codes);
    made->axis = axis;
    made->form = form;
    if (!code && !bare)
        made->y = qs_write_dequantized(q, v, form.dtype, &made->codes, axis);
    return code ? code : made->y < 0 && !bare ? QSIM_E_NOMEM : QSIM_OK;
}

static int correct_bias(qs_quantizer *q, qs_id node, const qs_codes *codes, int32_t dtype) {
    float *shift = NULL;
    if (q->choices[node].layer < 0)
        return QSIM_OK;
    const qs_layer *l = &q->layers[q->choices[node].layer];
    int code = qs_bias_find(q, l, codes, dtype, &shift);
    return !code && shift ? qs_bias_add(q, l, shift) : code;
}

static int rewrite(qs_quantizer *q, qs_id node, int32_t index, dequantized *all) {
    const qs_node *n = &q->g->nodes[node];
    const qs_id v = n->inputs[index];
    const qs_weight_form form = qs_recipe_weights(q, node);
    const qs_layer *narrow = narrow_layer(q, node, &form);
    const bool bare = narrow && q->options.mode == QSIM_MODE_WEIGHTS &&
                      q->options.format == QSIM_FORMAT_QOPERATOR && !(n->op->traits & QS_CONVOLVES);
    int code = make(q, node, v, qs_op_weight_axis(n, q->g->values[v].data->rank), bare, &all[v]);
    if (!code && form.dtype != QSIM_FLOAT16)
        code = correct_bias(q, node, &all[v].codes, form.dtype);
    if (code)
        return code;
    if (bare)
        return qs_write_nbits(q, narrow, &all[v].codes, 0);
    qs_node_set_input(q->g, node, index, all[v].y);
    return QSIM_OK;
}

int qs_rewrite_weights(qs_quantizer *q) {
    dequantized *made = qs_alloc(q->ctx, q->value_count + 1, sizeof(*made));
    int code = QSIM_OK;
    if (!made)
        return QSIM_E_NOMEM;
    for (size_t v = 0; v < q->value_count; v++)
        made[v].y = QS_NONE;
    for (size_t k = 0; k < q->g->order_count && !code; k++) {
        qs_id node = q->g->order[k];
        if ((size_t)node >= q->node_count || q->choices[node].forced == QSIM_RULE_FLOAT ||
            !qs_stored_weights(q, node))
            continue;
        code = qs_write_progress(q, node, k, q->g->order_count);
        for (int32_t i = 0; i < q->g->nodes[node].input_count && !code; i++)
            if (!q->g->nodes[node].removed && is_weight(q, &q->g->nodes[node], i))
                code = rewrite(q, node, i, made);
    }
    qs_free(q->ctx, made);
    return code ? code : qs_write_finish(q);
}
