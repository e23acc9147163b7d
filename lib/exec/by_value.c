/* SPDX-License-Identifier: MIT */
/*
 * Finds the inputs on whose values sizes depend: the shape of a Reshape, the axes of a reduction. A
 * plan is made for one value of such an input, as it is for one shape of the others.
 */
#include "exec/exec.h"
#include "op/rules.h"

/* Whether the input has one element, whatever its shape. */
static bool is_single(const qs_value *v) {
    return v->rank >= 0 && qs_dims_product(v->dims, 0, v->rank) == 1;
}

/*
 * Whether the input is one integer or bool. A float is more likely to be data, and each new value
 * needs a plan of its own.
 */
static bool is_integer(const qs_value *v) {
    return is_single(v) && v->dtype > 0 && v->dtype < 32 &&
           ((QS_T_INT | QS_T(QSIM_BOOL)) & QS_T(v->dtype));
}

/*
 * Marks the conditions of Where that are computed from inputs of one integer alone, such as a
 * sampling rate: a plan is made for one value and leaves out the branch that is not taken.
 * `derived` is memory for one flag a value: computed from such inputs and constants alone.
 */
static void mark_conditions(const qs_graph *g, bool *derived, bool *needed) {
    for (size_t v = 0; v < g->value_count; v++)
        derived[v] = g->values[v].data != NULL;
    for (size_t i = 0; i < g->input_count; i++)
        derived[g->inputs[i]] = is_integer(&g->values[g->inputs[i]]);
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        bool all = !(n->op->traits & QS_RANDOM);
        for (int32_t k = 0; k < n->input_count; k++)
            all &= n->inputs[k] == QS_NONE || derived[n->inputs[k]];
        for (int32_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != QS_NONE)
                derived[n->outputs[k]] = all;
        if ((n->op->traits & QS_CHOOSES) && derived[n->inputs[0]] &&
            is_single(&g->values[n->inputs[0]]))
            needed[n->inputs[0]] = true;
    }
}

int qs_find_by_value(qsim_session *s) {
    const qs_graph *g = s->graph;
    bool *needed = qs_calloc(s->ctx, g->value_count + 1, sizeof(*needed));
    bool *derived = qs_calloc(s->ctx, g->value_count + 1, sizeof(*derived));
    s->by_value = qs_arena_alloc(&s->arena, g->input_count + 1, sizeof(*s->by_value));
    if (!needed || !derived || !s->by_value) {
        qs_free(s->ctx, needed);
        qs_free(s->ctx, derived);
        return QSIM_E_NOMEM;
    }
    mark_conditions(g, derived, needed);
    qs_free(s->ctx, derived);
    for (size_t i = g->order_count; i-- > 0;) {
        const qs_node *n = &g->nodes[g->order[i]];
        bool all = false;
        for (int32_t k = 0; k < n->output_count; k++)
            all |= n->outputs[k] != QS_NONE && needed[n->outputs[k]];
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE &&
                (qs_op_in(n->op->shape_inputs, k) || (all && !(n->op->traits & QS_READS_SIZES))))
                needed[n->inputs[k]] = true;
    }
    for (size_t i = 0; i < g->input_count; i++) {
        s->by_value[i] = needed[g->inputs[i]];
        s->any_by_value |= s->by_value[i];
    }
    qs_free(s->ctx, needed);
    return QSIM_OK;
}
