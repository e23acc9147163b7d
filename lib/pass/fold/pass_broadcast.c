/* SPDX-License-Identifier: MIT */
/*
 * Lets an element-wise node of two operands read the input of an Expand, if the other operand has
 * the sizes of the result: it broadcasts by itself, and the expanded tensor need not be made.
 * Exporters expand slopes of PRelu and masks in this way.
 */
#include "pass/pass.h"

/* The Expand to constant sizes that makes `v`, or NULL. */
static const qs_node *expand_of(const qs_graph *g, qs_id v) {
    const qs_id id = v == QS_NONE ? QS_NONE : g->values[v].producer;
    const qs_node *n = id == QS_NONE ? NULL : &g->nodes[id];
    return n && qs_node_is_onnx(n, "Expand") && qs_node_const(g, n, 1) ? n : NULL;
}

int qs_pass_broadcast(qs_pass *p) {
    qs_graph *g = p->graph;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_id id = g->order[i];
        const qs_node *n = &g->nodes[id];
        /* Before version 7 operands broadcast by attributes, if at all. */
        if (!(n->op->traits & QS_ELEMENTWISE) || n->input_count != 2 || n->version < 7)
            continue;
        for (int32_t k = 0; k < 2; k++) {
            const qs_node *e = expand_of(g, n->inputs[k]);
            const qs_id other = n->inputs[1 - k];
            if (e && other != QS_NONE && qs_pass_same_sizes(g, other, n->outputs[0]))
                qs_node_set_input(g, id, k, e->inputs[0]);
        }
    }
    return qs_graph_prune(g) ? qs_pass_no_memory(p) : QSIM_OK;
}
