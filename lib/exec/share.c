/* SPDX-License-Identifier: MIT */
/*
 * Leaves out steps that only copy contiguous bytes: the outputs of Slice and Split become parts of
 * their input, the operands of Concat parts of its output.
 */
#include "exec/exec.h"

static bool same_bytes(const qs_plan *plan, qs_id a, qs_id b) {
    size_t x, y;
    return qs_value_size(&plan->values[a], NULL, &x) && qs_value_size(&plan->values[b], NULL, &y) &&
           x == y;
}

static void place_results(const qs_step *step, qs_part *part, int32_t outputs) {
    for (int32_t i = 0; i < outputs; i++)
        if (step->out[i] != QS_NONE)
            part[step->out[i]] = (qs_part){step->in[0], step->views[i]};
}

/*
 * The value that has the bytes of operand `v` and may become a part of the result: a step makes it,
 * it is not a part of another value yet, and not an output, for which the caller may have a buffer.
 * QS_NONE: there is none.
 */
static qs_id placeable(const qsim_session *s, const qs_plan *plan, const qs_part *part, qs_id v) {
    const qs_value *values = s->graph->values;
    while (part[v].value != QS_NONE) {
        if (part[v].from || !same_bytes(plan, v, part[v].value))
            return QS_NONE;
        v = part[v].value;
    }
    const bool made = values[v].producer != QS_NONE && !values[v].is_input;
    return made && !plan->values[v].data && !values[v].is_output ? v : QS_NONE;
}

/* Makes operands parts of the result. False: the step has to copy some. */
static bool place_operands(const qsim_session *s, const qs_plan *plan, const qs_step *step,
                           qs_part *part, int32_t inputs) {
    bool all = true;
    for (int32_t i = 0; i < inputs; i++) {
        const qs_id v = placeable(s, plan, part, step->in[i]);
        if (v != QS_NONE)
            part[v] = (qs_part){step->out[0], step->joins[i]};
        all = all && v != QS_NONE;
    }
    return all;
}

bool qs_plan_share(const qsim_session *s, const qs_plan *plan, const qs_step *step, qs_part *part) {
    const qs_node *n = &s->graph->nodes[step->node];
    if (step->views)
        place_results(step, part, n->output_count);
    else if (step->joins)
        return place_operands(s, plan, step, part, n->input_count);
    return step->views != NULL;
}
