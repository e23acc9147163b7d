/* SPDX-License-Identifier: MIT */
/*
 * Masks of attention: a number of -1e4, the least float or -infinity is added to a score, or put in
 * its place, so that Softmax gives 0. One scale for such numbers and for scores would make all
 * scores equal, and the number is no value of the data: masks, and scores with one, stay float.
 */
#include "op/rules.h"
#include "ptq/quantizer.h"

#define LEAST_SCORE (-1000.0) /* below it: a mask */
#define LOOKED_AT   65536     /* elements of a constant; of a causal mask the second is one */

/* What a value is computed of; by value id. Of numbers alone: 0. */
enum {
    DATA = 1, /* results of layers, for instance */
    MASK = 2, /* numbers below LEAST_SCORE, inputs, conditions or integers */
    LEADS = 4 /* all readers are Softmax with a mask, or pass it on to them */
};

static uint8_t of_constant(const qs_const *c) {
    for (size_t i = 0; i < c->elements && i < LOOKED_AT; i++)
        if (qs_const_at(c, i) < LEAST_SCORE)
            return MASK;
    return 0;
}

/* Whether each element of a node's result comes from those at the same place, or is one of them. */
static bool passes(const qs_node *n) {
    return n->op->traits & (QS_ELEMENTWISE | QS_MOVES) && n->output_count == 1;
}

static uint8_t of_result(const qs_graph *g, const qs_node *n, const uint8_t *of) {
    const bool chooses = n->op->traits & QS_CHOOSES;
    uint8_t is = passes(n) ? 0 : DATA;
    for (int32_t i = chooses; i < n->input_count && passes(n); i++) {
        const qs_id x = n->inputs[i];
        const qs_value *v = x == QS_NONE ? NULL : &g->values[x];
        if (v && v->dtype == QSIM_FLOAT)
            is |= v->data ? of_constant(v->data) : of[x];
        else if (v && !v->data && !(n->op->traits & QS_MOVES))
            is |= MASK;
    }
    return chooses && !(is & DATA) ? MASK : is;
}

static bool leads_to_softmax(const qs_quantizer *q, qs_id value, const uint8_t *of) {
    qs_id u = q->uses.start[value];
    const qs_id end = q->uses.start[value + 1];
    if (q->g->values[value].is_output || u == end)
        return false;
    for (; u < end; u++) {
        const qs_node *n = &q->g->nodes[q->uses.nodes[u]];
        if (n->op->traits & QS_SOFTMAX ? of[value] != (DATA | MASK)
                                       : !passes(n) || !(of[n->outputs[0]] & LEADS))
            return false;
    }
    return true;
}

int qs_masks_keep_float(qs_quantizer *q) {
    const qs_graph *g = q->g;
    uint8_t *of = qs_calloc(q->ctx, g->value_count + 1, sizeof(*of));
    if (!of)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->input_count; i++)
        of[g->inputs[i]] = MASK;
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        for (int32_t i = 0; i < n->output_count; i++)
            if (n->outputs[i] != QS_NONE)
                of[n->outputs[i]] = of_result(g, n, of);
    }
    for (size_t k = g->order_count; k-- > 0;) {
        const qs_node *n = &g->nodes[g->order[k]];
        const qs_id y = n->output_count > 0 ? n->outputs[0] : QS_NONE;
        if (y == QS_NONE || !leads_to_softmax(q, y, of))
            continue;
        if (of[y] & MASK && q->choices[g->order[k]].layer < 0)
            q->choices[g->order[k]].kind = QS_KIND_FLOAT;
        of[y] |= LEADS;
    }
    qs_free(q->ctx, of);
    return QSIM_OK;
}
