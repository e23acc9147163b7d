/* SPDX-License-Identifier: MIT */
#include "pass/twins.h"

int qs_twins_init(qs_twins *t) {
    t->count = t->p->graph->value_count;
    t->of = qs_alloc(t->p->ctx, t->count + 1, sizeof(*t->of));
    t->pending = qs_calloc(t->p->ctx, t->count + 1, sizeof(*t->pending));
    if (!t->of || !t->pending)
        return qs_pass_no_memory(t->p);
    for (size_t v = 0; v < t->count; v++)
        t->of[v] = QS_NONE;
    return QSIM_OK;
}

void qs_twins_free(qs_twins *t) {
    qs_free(t->p->ctx, t->of);
    qs_free(t->p->ctx, t->pending);
}

bool qs_twins_is_pending(const qs_twins *t, qs_id v) {
    return v >= 0 && (size_t)v < t->count && t->pending[v];
}

qs_id qs_twins_get(qs_twins *t, qs_id v) {
    const bool known = (size_t)v < t->count;
    if (known && t->of[v] != QS_NONE)
        return t->of[v];
    const qs_id twin = t->value(t->p, v);
    if (twin < 0)
        return twin;
    const int code = t->convert(t->p, v, twin, true);
    if (known)
        t->of[v] = twin;
    return code ? code : twin;
}

int qs_twins_emit(qs_twins *t, qs_id node, int32_t index) {
    const qs_id y = t->p->graph->nodes[node].outputs[index];
    if (y == QS_NONE)
        return QSIM_OK;
    const qs_id twin = t->value(t->p, y);
    if (twin < 0)
        return twin;
    qs_pass_set_output(t->p, node, index, twin);
    t->of[y] = twin;
    t->pending[y] = true;
    return QSIM_OK;
}

int qs_twins_restore(qs_twins *t, qs_id v) {
    if (!qs_twins_is_pending(t, v))
        return QSIM_OK;
    t->pending[v] = false;
    return t->convert(t->p, t->of[v], v, false);
}

int qs_twins_restore_inputs(qs_twins *t, qs_id node) {
    const qs_graph *g = t->p->graph;
    int code = QSIM_OK;
    for (int32_t i = 0; i < g->nodes[node].input_count && !code; i++)
        code = qs_twins_restore(t, g->nodes[node].inputs[i]);
    return code;
}
