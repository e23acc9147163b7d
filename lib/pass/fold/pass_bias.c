/* SPDX-License-Identifier: MIT */
/*
 * A constant added to the result of a Conv, ConvTranspose or MatMul becomes its bias, which makes a
 * MatMul a Gemm, or is added to the bias. The constant has one number a channel, or one for all. In
 * integers the bias is summed in int32 instead of going through 8 bits twice.
 */
#include "pass/pass.h"

/*
 * The Conv, ConvTranspose or MatMul that makes `v` for one reader and has no bias, or one that is
 * constant; or QS_NONE.
 */
static qs_id producer_of(const qs_graph *g, const qs_uses *uses, qs_id v) {
    const qs_id id = qs_only_producer(g, uses, v);
    const qs_node *n = id == QS_NONE ? NULL : &g->nodes[id];
    if (!n || (qs_node_input(n, 2) != QS_NONE && !qs_node_floats(g, n, 2)))
        return QS_NONE;
    const int32_t rank = g->values[v].rank;
    if (qs_node_is_onnx(n, "Conv") || qs_node_is_onnx(n, "ConvTranspose"))
        return rank >= 3 ? id : QS_NONE;
    /* Gemm broadcasts its bias since version 7. */
    const qs_const *w = qs_node_is_onnx(n, "MatMul") ? qs_node_const(g, n, 1) : NULL;
    return w && w->rank == 2 && rank == 2 && n->version >= 7 ? id : QS_NONE;
}

bool qs_pass_is_per_channel(const qs_const *c, int32_t rank, int64_t channels) {
    if (!c || c->dtype != QSIM_FLOAT || c->rank > rank || c->elements == 0)
        return false;
    for (int32_t i = 0; i < c->rank; i++) {
        const int32_t axis = i + rank - c->rank;
        if (c->dims[i] != 1 && (axis != 1 || c->dims[i] != channels))
            return false;
    }
    return channels > 0;
}

/*
 * The constant as a vector of `channels` numbers: reshaped, or its one number repeated. `before`:
 * what is added to them, or NULL.
 */
static qs_id as_vector(qs_pass *p, qs_id constant, int64_t channels, const qs_const *before) {
    qs_graph *g = p->graph;
    const qs_const *c = g->values[constant].data;
    const void *data = c->data;
    if (c->rank == 1 && c->dims[0] == channels && !before)
        return constant;
    if (c->elements != (size_t)channels || before) {
        float *b = qs_arena_alloc64(&g->arena, (size_t)channels * sizeof(*b));
        for (size_t i = 0; b && i < (size_t)channels; i++)
            b[i] = (float)(qs_const_at(c, c->elements == 1 ? 0 : i) +
                           (before ? qs_const_at(before, i) : 0));
        data = b;
    }
    const char *name = qs_graph_fresh_name(g, g->values[constant].name);
    const qs_id id = data && name
                         ? qs_graph_add_const(g, name, QSIM_FLOAT, 1, &channels, data, false)
                         : QSIM_E_NOMEM;
    return id < 0 ? qs_pass_no_memory(p) : id;
}

static int add_bias(qs_pass *p, qs_id node, qs_id add, qs_id constant, int64_t channels) {
    qs_graph *g = p->graph;
    const qs_const *before = qs_node_floats(g, &g->nodes[node], 2);
    const qs_id bias = as_vector(p, constant, channels, before);
    if (bias < 0)
        return bias;
    if (qs_node_grow_inputs(g, node, 3))
        return qs_pass_no_memory(p);
    qs_node_set_input(g, node, 2, bias);
    const qs_id y = g->nodes[add].outputs[0];
    qs_graph_remove_node(g, add);
    qs_pass_set_output(p, node, 0, y);
    if (!qs_node_is_onnx(&g->nodes[node], "MatMul"))
        return QSIM_OK;
    g->nodes[node].op_type = "Gemm";
    return qs_pass_resolve(p, node);
}

static int fold_add(qs_pass *p, const qs_uses *uses, qs_id add, bool *changed) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[add];
    for (int32_t k = 0; k < 2 && qs_node_is_onnx(n, "Add"); k++) {
        const qs_id x = n->inputs[k], c = n->inputs[1 - k];
        const qs_id node = producer_of(g, uses, x);
        if (node == QS_NONE || !qs_pass_is_per_channel(g->values[c].data, g->values[x].rank,
                                                       g->values[x].dims[1].size))
            continue;
        *changed = true;
        return add_bias(p, node, add, c, g->values[x].dims[1].size);
    }
    return QSIM_OK;
}

int qs_pass_bias(qs_pass *p) {
    return qs_pass_nodes(p, fold_add);
}
