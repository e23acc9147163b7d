/* SPDX-License-Identifier: MIT */
/*
 * A constant added to each channel after a Conv, ConvTranspose or MatMul is its bias: folded in,
 * it is summed in int32 instead of going through 8 bits twice. Models made of CNTK and TensorFlow
 * ones have these.
 */
#include "pass/pass.h"

/* One value for each of `channels` at `axis` of `rank`, 1 elsewhere. */
static bool is_per_channel(const qs_const *c, int32_t rank, int32_t axis, int64_t channels) {
    if (!c || c->dtype != QSIM_FLOAT || c->rank > rank || c->elements != (size_t)channels)
        return false;
    int32_t at = axis - (rank - c->rank);
    return at >= 0 && c->dims[at] == channels;
}

/* The activation and the constant that an Add takes; false if it is no such Add. */
static bool operands(const qs_graph *g, const qs_node *n, qs_id *x, qs_id *bias) {
    if (!qs_node_is(n, "", "Add") || n->inputs[0] == QS_NONE || n->inputs[1] == QS_NONE)
        return false;
    bool first = g->values[n->inputs[0]].data != NULL;
    *x = n->inputs[first ? 1 : 0];
    *bias = n->inputs[first ? 0 : 1];
    return g->values[*bias].data && !g->values[*x].data && !g->values[*x].is_output;
}

/* Whether `node`, which makes x, can take the constant as its bias. */
static bool takes_bias(const qs_graph *g, const qs_node *n, qs_id x, const qs_const *bias) {
    const qs_const *w = qs_node_const(g, n, 1);
    int32_t rank = g->values[x].rank;
    if (!w || rank < 2 || qs_node_input(n, 2) != QS_NONE)
        return false;
    if (qs_node_is(n, "", "Conv"))
        return is_per_channel(bias, rank, 1, w->dims[0]);
    int64_t channels;
    if (qs_node_is(n, "", "ConvTranspose") && rank > 2 && w->rank == rank)
        return qs_mul64(w->dims[1], qs_node_int(n, "group", 1), &channels) &&
               is_per_channel(bias, rank, 1, channels);
    /* Gemm broadcasts by itself since version 7. */
    return qs_node_is(n, "", "MatMul") && n->version >= 7 && rank == 2 && w->rank == 2 &&
           is_per_channel(bias, 2, 1, w->dims[1]);
}

/* The same bytes as a vector of their own, since the shape differs. */
static qs_id as_vector(qs_graph *g, qs_id bias) {
    const qs_const *c = g->values[bias].data;
    if (c->rank == 1)
        return bias;
    const int64_t dims[1] = {(int64_t)c->elements};
    const char *name = qs_graph_fresh_name(g, g->values[bias].name);
    return name ? qs_graph_add_const(g, name, QSIM_FLOAT, 1, dims, c->data, false) : QSIM_E_NOMEM;
}

static int fold(qs_graph *g, qs_id node, qs_id add, qs_id bias) {
    bias = as_vector(g, bias);
    if (bias < 0 || qs_node_grow_inputs(g, node, 3))
        return QSIM_E_NOMEM;
    qs_id y = g->nodes[add].outputs[0];
    qs_node_set_input(g, node, 2, bias);
    qs_graph_remove_node(g, add);
    g->values[g->nodes[node].outputs[0]].producer = QS_NONE;
    g->nodes[node].outputs[0] = y;
    g->values[y].producer = node;
    if (qs_node_is(&g->nodes[node], "", "MatMul"))
        g->nodes[node].op_type = "Gemm";
    return QSIM_OK;
}

int qs_fold_bias(qsim_model *m, qsim_error *error) {
    qs_graph *g = m->graph;
    qs_uses uses;
    bool changed = false;
    if (qs_graph_uses(g, &uses))
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", m->name);
    int code = QSIM_OK;
    for (size_t k = 0; k < g->order_count && !code; k++) {
        qs_id x, bias, add = g->order[k];
        if (!operands(g, &g->nodes[add], &x, &bias))
            continue;
        qs_id node = g->values[x].producer;
        if (node == QS_NONE || uses.start[x + 1] - uses.start[x] != 1 ||
            !takes_bias(g, &g->nodes[node], x, g->values[bias].data))
            continue;
        changed = true;
        code = fold(g, node, add, bias);
        if (code)
            qs_fail(error, code, "%s: out of memory", m->name);
        else
            code = qs_op_resolve(g, node, m->name, error);
    }
    qs_uses_free(g, &uses);
    if (!code && changed)
        code = qs_graph_sort(g, error);
    return code || !changed ? code : qs_op_infer_graph(g, m->name, error);
}
