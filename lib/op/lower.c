/* SPDX-License-Identifier: MIT */
/* Functions shared by packing and lowering of all operators. */
#include <stdio.h>

#include "op/rules.h"

const void *qs_pack_bytes(const qs_pack *p, int32_t index) {
    const qs_const *c = qs_node_const(p->graph, p->node, index);
    return c ? c->data : NULL;
}

const void *qs_pack_const(qs_pack *p, int32_t index) {
    if (!qs_pack_bytes(p, index))
        return NULL;
    const void *aligned = qs_graph_aligned(p->graph, p->node->inputs[index]);
    p->no_memory |= !aligned;
    return aligned;
}

void qs_run_nothing(const qs_step *s, const qs_frame *f) {
    (void)s;
    (void)f;
}

void *qs_lower_params(qs_lower *l, size_t size) {
    void *params = qs_arena_alloc(l->arena, 1, size);
    l->step->params = params;
    if (!params)
        qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    return params;
}

const qs_value *qs_lower_in(const qs_lower *l, int32_t index) {
    if (index >= l->node->input_count || l->node->inputs[index] == QS_NONE)
        return NULL;
    return &l->values[l->node->inputs[index]];
}

const qs_value *qs_lower_out(const qs_lower *l, int32_t index) {
    if (index >= l->node->output_count || l->node->outputs[index] == QS_NONE)
        return NULL;
    return &l->values[l->node->outputs[index]];
}

void qs_lower_infer(const qs_lower *l, qs_infer *x) {
    memset(x, 0, sizeof(*x));
    x->graph = l->graph;
    x->values = l->values;
    x->node = l->node;
    x->node_id = l->node_id;
    x->model = l->model;
    x->error = l->error;
    for (int32_t i = 0; i < l->node->input_count && i < (int32_t)QS_COUNT(x->in); i++)
        x->in[i] = qs_lower_in(l, i);
}

/* ---- faults ---- */

void qs_step_outside(const qs_frame *f, const char *what, int64_t value, int64_t low, int64_t end,
                     int32_t axis) {
    if (f->fault && !f->fault->code)
        *f->fault = (qs_fault){QSIM_E_VALUE, what, value, low, end, axis};
}

void qs_step_fails(const qs_frame *f) {
    qs_step_outside(f, NULL, 0, 0, 0, -1);
}

int qs_fault_report(const qs_fault *fault, const qs_graph *g, qs_id node, const char *model,
                    qsim_error *error) {
    const qs_infer x = {
        .graph = g, .node = &g->nodes[node], .node_id = node, .model = model, .error = error};
    char axis[24] = "";
    if (!fault->code)
        return QSIM_OK;
    if (!fault->what)
        return qs_infer_fail(&x, fault->code, "a value is outside what the operator takes");
    if (fault->axis >= 0)
        snprintf(axis, sizeof(axis), " of axis %d", (int)fault->axis);
    return qs_infer_fail(&x, fault->code, "%s %lld is outside [%lld, %lld)%s", fault->what,
                         (long long)fault->value, (long long)fault->low, (long long)fault->end,
                         axis);
}
