/* SPDX-License-Identifier: MIT */
/*
 * Observed sessions: each output is shown to the observer as soon as it is complete, so that it
 * need not be kept until the run ends.
 */
#include "exec/run.h"

/*
 * Finds the step that completes each value. A value that no step makes is complete with its last
 * operand.
 */
static void find_complete(const qsim_session *s, const qs_plan *plan, const bool *deferred_values,
                          int32_t *complete) {
    const qs_graph *g = s->graph;
    size_t next = 0;
    for (size_t v = 0; v < g->value_count; v++)
        complete[v] = -1;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        int32_t at = -1;
        if (next < plan->step_count && plan->steps[next].node == g->order[i])
            at = (int32_t)next++;
        for (int32_t k = 0; k < n->input_count && at < (int32_t)next - 1; k++)
            if (n->inputs[k] != QS_NONE && complete[n->inputs[k]] > at)
                at = complete[n->inputs[k]];
        for (int32_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != QS_NONE)
                complete[n->outputs[k]] =
                    deferred_values[n->outputs[k]] ? (int32_t)plan->step_count : at;
    }
}

/*
 * Fills plan->shown: sorts the outputs by the step that completes them, by counting. `first` has
 * zeros.
 */
static void sort_outputs(const qs_graph *g, qs_plan *plan, const int32_t *complete, size_t *first) {
    for (size_t i = 0; i < g->output_count; i++)
        first[complete[g->outputs[i]] + 2]++;
    for (size_t i = 1; i < plan->step_count + 3; i++)
        first[i] += first[i - 1];
    for (size_t i = 0; i < g->output_count; i++) {
        const int32_t step = complete[g->outputs[i]];
        const size_t at = first[step + 1]++;
        plan->shown[at] = (int32_t)i;
        plan->ready[at] = step;
    }
}

int qs_plan_find_ready(const qsim_session *s, qs_plan *plan, const bool *deferred_values) {
    const qs_graph *g = s->graph;
    qs_arena temporary;
    qs_arena_init(&temporary, s->ctx);
    int32_t *complete = qs_arena_alloc(&temporary, g->value_count + 1, sizeof(*complete));
    size_t *first = qs_arena_alloc(&temporary, plan->step_count + 4, sizeof(*first));
    plan->shown = qs_arena_alloc(&plan->arena, g->output_count + 1, sizeof(*plan->shown));
    plan->ready = qs_arena_alloc(&plan->arena, g->output_count + 1, sizeof(*plan->ready));
    const bool made = complete && first && plan->shown && plan->ready;
    if (made) {
        find_complete(s, plan, deferred_values, complete);
        sort_outputs(g, plan, complete, first);
    }
    qs_arena_free(&temporary);
    return made ? QSIM_OK : QSIM_E_NOMEM;
}

/* An output of the plan; the sizes of a deferred node's output are stored in its port. */
static qsim_tensor output_view(const qs_plan *plan, const qs_port *p) {
    qsim_tensor t = {.dtype = p->dtype,
                     .rank = p->rank,
                     .dims = p->found_dims ? p->found_dims : p->dims,
                     .data = plan->address[p->value],
                     .bytes = p->bytes};
    const qs_value *v = &plan->values[p->value];
    if (!p->found_dims)
        return t;
    t.dtype = v->dtype;
    t.rank = v->rank;
    (void)qs_value_size(v, NULL, &t.bytes);
    for (int32_t i = 0; i < v->rank; i++)
        p->found_dims[i] = v->dims[i].size;
    return t;
}

int qs_run_show(qsim_run *run, int32_t step, qsim_error *error) {
    const qsim_session *s = run->session;
    const qs_plan *plan = run->plan;
    int code = QSIM_OK;
    for (; run->shown < s->graph->output_count && plan->ready[run->shown] == step && !code;
         run->shown++) {
        const int32_t output = plan->shown[run->shown];
        if (plan->untaken && (plan->untaken[output] || (size_t)output >= s->shown_count))
            continue;
        const qsim_tensor value = output_view(plan, &plan->outputs[output]);
        code = run->observe(run->observe_user, s->output_names[output], &value,
                            s->channels_last[output], error);
    }
    return code;
}
