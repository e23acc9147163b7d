/* SPDX-License-Identifier: MIT */
/*
 * Results whose logarithm is taken, as spectra of sound: the logarithm of a small number is as
 * large as that of a great one, but with one scale for both the small one is 0. The layers and sums
 * before a Log stay in float, back to an activation function.
 */
#include "pass/pass.h"
#include "ptq/quantizer.h"

/* Whether small results of the node come from small operands. */
static bool passes(const qs_graph *g, const qs_node *n) {
    const uint32_t linear =
        QS_MOVES | QS_ADDS | QS_SCALES | QS_DIVIDES | QS_REDUCES | QS_CONVOLVES | QS_MULTIPLIES;
    const uint32_t traits = qs_node_traits(g, n);
    double low, high;
    if (traits & linear)
        return true;
    if ((traits & (QS_ELEMENTWISE | QS_COSTLY)) != QS_ELEMENTWISE)
        return false;
    /* Powers, roots and the like; a Clip to numbers above 0. */
    return n->op->kind == QS_KIND_FLOAT || (qs_node_bounds(g, n, &low, &high) && low > 0);
}

int qs_logarithms_keep_float(qs_quantizer *q) {
    const qs_graph *g = q->g;
    bool *logged = qs_calloc(q->ctx, g->value_count + 1, sizeof(*logged)); /* by value */
    if (!logged)
        return QSIM_E_NOMEM;
    for (size_t k = g->order_count; k-- > 0;) {
        const qs_node *n = &g->nodes[g->order[k]];
        qs_choice *c = &q->choices[g->order[k]];
        bool found = qs_node_is_onnx(n, "Log");
        for (int32_t i = 0; i < n->output_count && !found; i++)
            found = n->outputs[i] != QS_NONE && logged[n->outputs[i]] && passes(g, n);
        for (int32_t i = 0; i < n->input_count && found; i++)
            if (n->inputs[i] != QS_NONE)
                logged[n->inputs[i]] = true;
        if (found && c->layer >= 0)
            c->forced = QSIM_RULE_FLOAT; /* unless recipe or rules ask for integers */
        else if (found)
            c->kind = QS_KIND_FLOAT;
    }
    qs_free(q->ctx, logged);
    return QSIM_OK;
}
