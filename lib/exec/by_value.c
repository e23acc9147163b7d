/* SPDX-License-Identifier: MIT */
/*
 * Finds the inputs whose values decide on sizes: the shape of a Reshape, the axes of a reduction. A
 * plan holds for one value of such an input, as it does for one shape of the others.
 */
#include "exec/exec.h"
#include "op/rules.h"

/* Whether the input has one element, whatever its shape. */
static bool is_single(const qs_value *v) {
    return v->rank >= 0 && qs_dims_product(v->dims, 0, v->rank) == 1;
}

/*
 * Whether the input is one integer or truth value. A float is more likely to be data, and each new
 * value costs a plan.
 */
static bool is_whole(const qs_value *v) {
    return is_single(v) && v->dtype > 0 && v->dtype < 32 &&
           ((QS_T_INT | QS_T(QSIM_BOOL)) & QS_T(v->dtype));
}

/*
 * Marks conditions of one element that follow from inputs of one element each, a sampling rate for
 * instance: a plan holds for one value of them and leaves out the branch that they do not choose.
 * `small` is scratch.
 */
static void need_switches(const qs_graph *g, bool *small, bool *needed) {
    for (size_t v = 0; v < g->value_count; v++)
        small[v] = g->values[v].data != NULL;
    for (size_t i = 0; i < g->input_count; i++)
        small[g->inputs[i]] = is_whole(&g->values[g->inputs[i]]);
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        bool all = true;
        for (int32_t k = 0; k < n->input_count; k++)
            all &= n->inputs[k] == QS_NONE || small[n->inputs[k]];
        for (int32_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != QS_NONE)
                small[n->outputs[k]] = all;
        if ((n->op->traits & QS_CHOOSES) && small[n->inputs[0]] &&
            is_single(&g->values[n->inputs[0]]))
            needed[n->inputs[0]] = true;
    }
}

int qs_find_by_value(qsim_session *s) {
    const qs_graph *g = s->graph;
    bool *needed = qs_calloc(s->ctx, g->value_count + 1, sizeof(*needed));
    bool *small = qs_calloc(s->ctx, g->value_count + 1, sizeof(*small));
    s->by_value = qs_arena_alloc(&s->arena, g->input_count + 1, sizeof(*s->by_value));
    if (!needed || !small || !s->by_value) {
        qs_free(s->ctx, needed);
        qs_free(s->ctx, small);
        return QSIM_E_NOMEM;
    }
    need_switches(g, small, needed);
    qs_free(s->ctx, small);
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
