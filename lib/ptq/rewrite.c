/* SPDX-License-Identifier: MIT */
/*
 * Writes the decisions into the graph as QuantizeLinear and DequantizeLinear. Names are those that
 * ONNX Runtime's quantizer gives: t_QuantizeLinear, t_DequantizeLinear (nodes, and with _Output
 * their values), t_scale, t_zero_point, t_quantized.
 */
#include "op/op.h"
#include "ptq/quantizer.h"

static int no_memory(qs_quantizer *q) {
    return qs_fail(q->error, QSIM_E_NOMEM, "quantization: out of memory");
}

/* base + suffix, made unique among the graph's values. */
static const char *value_name(qs_quantizer *q, const char *base, const char *suffix) {
    size_t n = strlen(base), m = strlen(suffix);
    char *text = qs_arena_alloc(&q->g->arena, n + m + 1, 1);
    if (!text)
        return NULL;
    memcpy(text, base, n);
    memcpy(text + n, suffix, m);
    return qs_graph_fresh_name(q->g, text);
}

/* A new value named base + suffix with type and shape; < 0: out of memory. */
static qs_id add_value(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                       qs_id like) {
    const char *name = value_name(q, base, suffix);
    qs_id id = name ? qs_graph_add_value(q->g, name) : QSIM_E_NOMEM;
    if (id >= 0) {
        q->g->values[id].dtype = dtype;
        q->g->values[id].rank = q->g->values[like].rank;
        q->g->values[id].dims = q->g->values[like].dims;
    }
    return id;
}

static qs_id add_constant(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                          int32_t rank, const int64_t *dims, const void *data) {
    const char *name = value_name(q, base, suffix);
    return name ? qs_graph_add_const(q->g, name, dtype, rank, dims, data, true) : QSIM_E_NOMEM;
}

/* A zero point per scale in the type of the quantized values. */
static qs_id add_zero_points(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                             const int32_t *zero_point, size_t count) {
    const int64_t dims[1] = {(int64_t)count};
    uint8_t *bytes = qs_arena_alloc(&q->g->arena, count, sizeof(int32_t));
    for (size_t i = 0; bytes && i < count; i++) {
        int32_t zp = zero_point ? zero_point[i] : 0;
        if (dtype == QSIM_INT32)
            memcpy(bytes + 4 * i, &zp, sizeof(zp));
        else
            bytes[i] = (uint8_t)zp;
    }
    return bytes ? add_constant(q, base, suffix, dtype, count > 1, dims, bytes) : QSIM_E_NOMEM;
}

/* QuantizeLinear or DequantizeLinear from `x` to `y`. */
static qs_id add_node(qs_quantizer *q, const char *op, const char *base, qs_id x, qs_id scale,
                      qs_id zero, qs_id y) {
    size_t n = strlen(base), m = strlen(op);
    char *name = qs_arena_alloc(&q->g->arena, n + m + 2, 1);
    if (!name || x < 0 || scale < 0 || zero < 0 || y < 0)
        return QSIM_E_NOMEM;
    memcpy(name, base, n);
    name[n] = '_';
    memcpy(name + n + 1, op, m);
    const qs_id inputs[3] = {x, scale, zero};
    return qs_graph_add_node(q->g, "", op, name, inputs, 3, &y, 1);
}

/* Constants of a quantized weight or bias behind a DequantizeLinear; the float it stands for. */
static qs_id add_quantized(qs_quantizer *q, qs_id original, int32_t dtype, const void *data,
                           const float *scale, const int32_t *zero_point, size_t count,
                           int32_t axis) {
    const qs_const *c = q->g->values[original].data;
    const char *base = q->g->values[original].name;
    const int64_t dims[1] = {(int64_t)count};
    bool bias = dtype == QSIM_INT32;
    qs_id v = add_constant(q, base, "_quantized", dtype, c->rank, c->dims, data);
    qs_id s = add_constant(q, base, bias ? "_quantized_scale" : "_scale", QSIM_FLOAT, count > 1,
                           dims, scale);
    qs_id z = add_zero_points(q, base, bias ? "_quantized_zero_point" : "_zero_point", dtype,
                              zero_point, count);
    qs_id y = add_value(q, base, "_DequantizeLinear_Output", QSIM_FLOAT, original);
    qs_id node = add_node(q, "DequantizeLinear", base, v, s, z, y);
    if (node < 0 || (count > 1 && qs_node_set_int(q->g, node, "axis", axis)))
        return QSIM_E_NOMEM;
    return y;
}

/* ---- activations ---- */

/* Scale and zero point of a root, made once and shared by everything that has its scale. */
static bool make_scale(qs_quantizer *q, qs_activation *root, const char *name) {
    if (root->scale_id == QS_NONE) {
        root->scale_id = add_constant(q, name, "_scale", QSIM_FLOAT, 0, NULL, &root->scale);
        root->zero_id = add_zero_points(q, name, "_zero_point", q->options.activation_type,
                                        &root->zero_point, 1);
    }
    return root->scale_id >= 0 && root->zero_id >= 0;
}

/* Whether a value comes out of a node in integers, so that everyone reads what it became. */
static bool is_integer_made(const qs_quantizer *q, qs_id value) {
    qs_id from = q->g->values[value].producer;
    return from != QS_NONE && (size_t)from < q->node_count && q->choices[from].integer;
}

/* Readers of `value` read `y`: all of them, or those in integers. */
static void redirect(qs_quantizer *q, qs_id value, qs_id y, bool all) {
    for (qs_id u = q->uses.start[value]; u < q->uses.start[value + 1]; u++) {
        qs_id node = q->uses.nodes[u];
        const qs_node *n = &q->g->nodes[node];
        if (!all && (!q->choices[node].integer || q->choices[node].is_absorbed))
            continue;
        for (int32_t i = 0; i < n->input_count; i++)
            if (n->inputs[i] == value)
                qs_node_set_input(q->g, node, i, y);
    }
}

/* A constant operand of Add or Mul: stored in 8 bits. */
static int rewrite_constant(qs_quantizer *q, qs_id value) {
    const qs_activation *a = &q->activations[value];
    const qs_const *c = q->g->values[value].data;
    void *data = qs_arena_alloc(&q->g->arena, c->elements, 1);
    const void *x = qs_graph_aligned(q->g, value);
    if (!data || !x)
        return no_memory(q);
    int code = qsim_values_quantize(x, c->elements, a->scale, a->zero_point,
                                    q->options.activation_type, data);
    if (code)
        return qs_fail(q->error, code, "%s: constant '%s' cannot be quantized", q->model->name,
                       q->g->values[value].name);
    qs_id y =
        add_quantized(q, value, q->options.activation_type, data, &a->scale, &a->zero_point, 1, 0);
    if (y < 0)
        return no_memory(q);
    redirect(q, value, y, false);
    return QSIM_OK;
}

/*
 * Puts a pair behind a value. A graph output that comes out of integers keeps its name: what
 * computed it writes to t_QuantizeLinear_Input instead, and the pair gives t.
 */
static int rewrite_activation(qs_quantizer *q, qs_id value) {
    qs_id root = q->activations[value].root;
    const char *name = q->g->values[value].name;
    bool made = is_integer_made(q, value), output = made && q->g->values[value].is_output;
    if (!make_scale(q, &q->activations[root], q->g->values[root].name))
        return no_memory(q);
    const qs_activation *a = &q->activations[root];
    qs_id from = value, y = value;
    if (output) {
        qs_id producer = q->g->values[value].producer;
        from = add_value(q, name, "_QuantizeLinear_Input", QSIM_FLOAT, value);
        if (from < 0)
            return no_memory(q);
        qs_node *n = &q->g->nodes[producer];
        for (int32_t i = 0; i < n->output_count; i++)
            if (n->outputs[i] == value)
                n->outputs[i] = from;
        n->changed = true;
        q->g->values[from].producer = producer;
        q->g->values[value].producer = QS_NONE;
    } else {
        y = add_value(q, name, "_DequantizeLinear_Output", QSIM_FLOAT, value);
    }
    qs_id v = add_value(q, name, "_QuantizeLinear_Output", q->options.activation_type, value);
    if (y < 0 || v < 0 ||
        add_node(q, "QuantizeLinear", name, from, a->scale_id, a->zero_id, v) < 0 ||
        add_node(q, "DequantizeLinear", name, v, a->scale_id, a->zero_id, y) < 0)
        return no_memory(q);
    if (!output)
        redirect(q, value, y, made);
    return QSIM_OK;
}

/* ---- layers ---- */

static int rewrite_layer(qs_quantizer *q, qs_layer *l) {
    const qs_node *n = &q->g->nodes[l->node];
    qs_id x = n->inputs[0], w = n->inputs[1], b = n->input_count > 2 ? n->inputs[2] : QS_NONE;
    int code = qs_weight_make(q, l, &q->activations[q->activations[x].root]);
    if (code)
        return code;
    qs_id y = add_quantized(q, w, q->options.weight_type, l->weights, l->scale, l->zero_point,
                            l->scale_count, l->axis);
    if (y < 0)
        return no_memory(q);
    qs_node_set_input(q->g, l->node, 1, y);
    if (!l->bias)
        return QSIM_OK;
    y = add_quantized(q, b, QSIM_INT32, l->bias, l->bias_scale, NULL, l->scale_count,
                      q->g->values[b].data->rank - 1);
    if (y < 0)
        return no_memory(q);
    qs_node_set_input(q->g, l->node, 2, y);
    return QSIM_OK;
}

int qs_rewrite(qs_quantizer *q) {
    int code = QSIM_OK;
    for (size_t i = 0; i < q->layer_count && !code; i++) {
        qs_layer *l = &q->layers[i];
        if (!q->choices[l->node].integer)
            continue;
        if (q->options.progress &&
            q->options.progress(q->options.progress_user, qs_node_label(q->g, l->node), i,
                                q->layer_count))
            return qs_fail(q->error, QSIM_E_CANCELLED, "%s: cancelled", q->model->name);
        code = rewrite_layer(q, l);
    }
    for (size_t i = 0; i < q->value_count && !code; i++)
        if (q->activations[i].quantized)
            code = q->g->values[i].data ? rewrite_constant(q, (qs_id)i)
                                        : rewrite_activation(q, (qs_id)i);
    for (size_t i = q->node_count; i < q->g->node_count && !code; i++)
        code = qs_op_resolve(q->g, (qs_id)i, q->model->name, q->error);
    if (!code)
        code = qs_graph_sort(q->g, q->error);
    return code ? code : qs_op_infer_graph(q->g, q->model->name, q->error);
}
