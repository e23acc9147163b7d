/* SPDX-License-Identifier: MIT */
/* Weights alone in 8 bits: after a DequantizeLinear the float model goes on as it was. */
#include "op/op.h"
#include "ptq/quantizer.h"

/* Which inputs of an operator are weights, and the axis of their output channels. */
static const struct {
    const char *op_type;
    int32_t input, axis; /* axis < 0: from the end */
} roles[] = {
    {"Conv", 1, 0},    {"ConvTranspose", 1, 1}, {"Gather", 0, 0}, {"Gemm", 1, 1},
    {"GRU", 1, 1},     {"GRU", 2, 1},           {"LSTM", 1, 1},   {"LSTM", 2, 1},
    {"MatMul", 1, -1}, {"RNN", 1, 1},           {"RNN", 2, 1},
};

typedef struct dequantized {
    qs_id y; /* QS_NONE: not made yet */
    int32_t axis;
} dequantized;

static int32_t axis_of(const qs_node *n, size_t role, int32_t rank) {
    int32_t axis = roles[role].axis + (roles[role].axis < 0 ? rank : 0);
    if (strcmp(n->op_type, "Gemm") == 0 && qs_node_int(n, "transB", 0))
        return 0;
    if (strcmp(n->op_type, "ConvTranspose") == 0 && qs_node_int(n, "group", 1) != 1)
        return -1; /* axis 1 counts the channels of one group */
    return axis;
}

static bool is_weight(const qs_quantizer *q, const qs_node *n, size_t role) {
    qs_id v = roles[role].input < n->input_count ? n->inputs[roles[role].input] : QS_NONE;
    const qs_const *c = v == QS_NONE ? NULL : q->g->values[v].data;
    return qs_node_is(n, "", roles[role].op_type) && c && c->dtype == QSIM_FLOAT && c->rank >= 2 &&
           c->elements > 0;
}

bool qs_has_weights(const qs_quantizer *q, qs_id node) {
    for (size_t r = 0; r < QS_COUNT(roles); r++)
        if (is_weight(q, &q->g->nodes[node], r))
            return true;
    return false;
}

static int rewrite(qs_quantizer *q, qs_id node, size_t role, dequantized *made) {
    const qs_node *n = &q->g->nodes[node];
    qs_id v = n->inputs[roles[role].input];
    int32_t axis = axis_of(n, role, q->g->values[v].data->rank);
    const qs_weight_form form = qs_recipe_weights(q, node);
    if (made[v].y == QS_NONE || made[v].axis != axis) {
        qs_codes c;
        int code = qs_initializer_quantize(q, v, axis, form, &c);
        if (code)
            return code;
        made[v].axis = axis;
        made[v].y =
            qs_write_dequantized(q, v, form.dtype, c.data, c.scale, c.zero_point, c.count, axis);
    }
    if (made[v].y < 0)
        return qs_fail(q->error, QSIM_E_NOMEM, "quantization: out of memory");
    qs_node_set_input(q->g, node, roles[role].input, made[v].y);
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
        if (q->choices[node].forced == QSIM_RULE_FLOAT)
            continue;
        code = qs_write_progress(q, node, k, q->g->order_count);
        for (size_t r = 0; r < QS_COUNT(roles) && !code; r++)
            if (is_weight(q, &q->g->nodes[node], r))
                code = rewrite(q, node, r, made);
    }
    qs_free(q->ctx, made);
    return code ? code : qs_write_finish(q);
}
