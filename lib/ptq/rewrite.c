/* SPDX-License-Identifier: MIT */
/*
 * Writes the decisions into the graph as QuantizeLinear and DequantizeLinear. Names are those that
 * ONNX Runtime's quantizer gives: t_QuantizeLinear, t_DequantizeLinear (nodes, and with _Output
 * their values), t_scale, t_zero_point, t_quantized.
 */
#include "pass/pass.h"
#include "ptq/quantizer.h"

/* ---- activations ---- */

/* Makes scale and zero point of a root, once; all values with its scale share them. */
static bool make_scale(qs_quantizer *q, qs_activation *root, const char *name) {
    if (root->scale_id == QS_NONE) {
        root->scale_id = qs_write_constant(q, name, "_scale", QSIM_FLOAT, 0, NULL, &root->scale);
        root->zero_id =
            qs_write_zero_points(q, name, "_zero_point", root->dtype, &root->zero_point, 0, NULL);
    }
    return root->scale_id >= 0 && root->zero_id >= 0;
}

/* Whether a node in integers makes the value: then all readers read its quantized form. */
static bool is_integer_made(const qs_quantizer *q, qs_id value) {
    qs_id from = q->g->values[value].producer;
    /* A producer that is new is the Add of a corrected bias. */
    return from != QS_NONE && ((size_t)from >= q->node_count || q->choices[from].integer);
}

/* Whether a node reads a value in integers that not all readers read so. */
static bool reads_codes(const qs_quantizer *q, qs_id node, qs_id value) {
    const qs_choice *c = &q->choices[node];
    return c->integer && (c->curve != QS_NONE ? !q->g->values[value].data : !c->is_absorbed);
}

/* Makes readers of `value` read `y`: all of them, or those in integers. */
static void redirect(qs_quantizer *q, qs_id value, qs_id y, bool all) {
    q->activations[value].read = y;
    q->activations[value].all_read = all;
}

/* Makes the node that writes `from` write `to`, which has no other producer then. */
static void rename_output(qs_quantizer *q, qs_id from, qs_id to) {
    qs_value *values = q->g->values;
    q->activations[from].made = to;
    values[to].producer = values[from].producer;
    values[from].producer = QS_NONE;
}

/* Carries out what redirect and rename_output noted, in one walk over each node. */
static void rename_values(qs_quantizer *q) {
    qs_graph *g = q->g;
    for (size_t id = 0; id < g->node_count; id++) {
        qs_node *n = &g->nodes[id];
        for (int32_t i = 0; id < q->node_count && i < n->input_count; i++) {
            const qs_id x = n->inputs[i];
            if ((size_t)x >= q->value_count)
                continue;
            const qs_activation *a = &q->activations[x];
            if (a->read != QS_NONE && (a->all_read || reads_codes(q, (qs_id)id, x)))
                qs_node_set_input(g, (qs_id)id, i, a->read);
        }
        for (int32_t i = 0; i < n->output_count && !n->removed; i++) {
            qs_id y = n->outputs[i];
            while ((size_t)y < q->value_count && q->activations[y].made != QS_NONE &&
                   g->values[y].producer != (qs_id)id)
                y = q->activations[y].made;
            n->changed = n->changed || y != n->outputs[i];
            n->outputs[i] = y;
        }
    }
}

/* Stores a constant operand of Add or Mul in 8 bits. */
static int rewrite_constant(qs_quantizer *q, qs_id value) {
    const qs_activation *a = &q->activations[value];
    const qs_const *c = q->g->values[value].data;
    void *data = qs_arena_alloc(&q->g->arena, c->elements, 2);
    const void *x = qs_graph_aligned(q->g, value);
    if (!data || !x)
        return QSIM_E_NOMEM;
    int code = qsim_values_quantize(x, c->elements, a->scale, a->zero_point, a->dtype, data);
    if (code)
        return qs_fail(q->error, code, "%s: constant '%s' cannot be quantized", q->model->name,
                       q->g->values[value].name);
    float scale = a->scale;
    int32_t zero_point = a->zero_point;
    const qs_codes codes = {.data = data, .scale = &scale, .zero_point = &zero_point, .count = 1};
    qs_id y = qs_write_dequantized(q, value, a->dtype, &codes, 0);
    if (y < 0)
        return QSIM_E_NOMEM;
    redirect(q, value, y, false);
    return QSIM_OK;
}

/*
 * Removes the absorbed Clip that makes a value if its bounds are the first and the last of the
 * 8-bit codes. ONNX Runtime 1.30 removes some of these late, and then refuses the model.
 */
static void drop_implied_clip(qs_quantizer *q, qs_id value, const qs_activation *a) {
    const qs_id id = q->g->values[value].producer;
    double low, high;
    uint8_t codes[4];
    if ((size_t)id >= q->node_count || !q->choices[id].is_absorbed)
        return;
    const qs_node *n = &q->g->nodes[id];
    if (n->input_count < 3 || !qs_node_bounds(q->g, n, &low, &high))
        return;
    const float bounds[2] = {(float)low, (float)high};
    const int first = a->dtype == QSIM_UINT8 ? 0 : a->dtype == QSIM_INT8 ? 128 : -1;
    (void)qsim_values_quantize(bounds, 2, a->scale, a->zero_point, a->dtype, codes);
    if (codes[0] != first || codes[1] != (uint8_t)(first - 1))
        return;
    const qs_id x = n->inputs[0];
    qs_graph_remove_node(q->g, id);
    rename_output(q, x, value);
}

/*
 * Adds a QDQ pair after a value. A graph output t keeps its name: a producer that runs in integers
 * writes t_QuantizeLinear_Input instead, and the pair makes t.
 */
static int rewrite_activation(qs_quantizer *q, qs_id value) {
    qs_id root = q->activations[value].root;
    const char *name = q->g->values[value].name;
    bool made = is_integer_made(q, value), output = made && q->g->values[value].is_output;
    if (!make_scale(q, &q->activations[root], q->g->values[root].name))
        return QSIM_E_NOMEM;
    const qs_activation *a = &q->activations[root];
    drop_implied_clip(q, value, a);
    qs_id from = value, y = value;
    if (output) {
        from = qs_write_value(q, name, "_QuantizeLinear_Input", QSIM_FLOAT, value);
        if (from < 0)
            return QSIM_E_NOMEM;
        rename_output(q, value, from);
    } else {
        y = qs_write_value(q, name, "_DequantizeLinear_Output", QSIM_FLOAT, value);
    }
    qs_id v = qs_write_value(q, name, "_QuantizeLinear_Output", a->dtype, value);
    if (y < 0 || v < 0 ||
        qs_write_node(q, "QuantizeLinear", name, from, a->scale_id, a->zero_id, v) < 0 ||
        qs_write_node(q, "DequantizeLinear", name, v, a->scale_id, a->zero_id, y) < 0)
        return QSIM_E_NOMEM;
    if (!output)
        redirect(q, value, y, made);
    return QSIM_OK;
}

/* ---- layers ---- */

static int rewrite_layer(qs_quantizer *q, qs_layer *l) {
    qs_id x = q->g->nodes[l->node].inputs[0], w = q->g->nodes[l->node].inputs[1];
    const qs_id bias = qs_node_input(&q->g->nodes[l->node], 2);
    int code = qs_weight_make(q, l, &q->activations[q->activations[x].root]);
    if (code)
        return code;
    const qs_codes codes = qs_layer_codes(l);
    qs_id y = qs_write_dequantized(q, w, l->form.dtype, &codes, l->axis);
    if (y < 0)
        return QSIM_E_NOMEM;
    qs_node_set_input(q->g, l->node, 1, y);
    if (!l->bias)
        return QSIM_OK;
    /* A corrected bias has the name and shape of the model's. */
    const qs_id b = bias == QS_NONE ? qs_node_input(&q->g->nodes[l->node], 2) : bias;
    const qs_codes sums = {.data = l->bias, .scale = l->bias_scale, .count = l->scale_count};
    y = qs_write_dequantized(q, b, QSIM_INT32, &sums, q->g->values[b].data->rank - 1);
    if (y < 0)
        return QSIM_E_NOMEM;
    qs_node_set_input(q->g, l->node, 2, y);
    return QSIM_OK;
}

int qs_rewrite(qs_quantizer *q) {
    int code = QSIM_OK;
    for (size_t i = 0; i < q->layer_count && !code; i++) {
        qs_layer *l = &q->layers[i];
        if (!q->choices[l->node].integer)
            continue;
        code = qs_write_progress(q, l->node, i, q->layer_count);
        if (!code)
            code = rewrite_layer(q, l);
    }
    for (size_t i = 0; i < q->value_count && !code; i++) {
        code = qs_go_on_at(q->ctx, i, q->model->name, q->error);
        if (!code && q->activations[i].quantized)
            code = q->g->values[i].data ? rewrite_constant(q, (qs_id)i)
                                        : rewrite_activation(q, (qs_id)i);
    }
    rename_values(q);
    return code ? code : qs_write_finish(q);
}
