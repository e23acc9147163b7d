/* SPDX-License-Identifier: MIT */
/*
 * Finds the nodes of the model that run in integers. A node that the passes have replaced counts as
 * the operator that makes its result now or, if none does, as its readers.
 */
#include "pass/pass.h"

static bool is_byte(const qs_graph *g, qs_id value) {
    return value != QS_NONE &&
           (g->values[value].dtype == QSIM_UINT8 || g->values[value].dtype == QSIM_INT8);
}

/* Whether a node computes in integers, or maps bytes to bytes. */
static bool is_integer(const qs_graph *g, qs_id node) {
    const qs_node *n = &g->nodes[node];
    const uint32_t traits = n->op ? n->op->traits : 0;
    if (traits & (QS_QUANTIZES | QS_DEQUANTIZES))
        return false;
    if (traits & QS_INTEGER)
        return true;
    bool reads = false;
    for (int32_t i = 0; i < n->input_count; i++)
        reads |= is_byte(g, n->inputs[i]);
    return reads && n->output_count > 0 && is_byte(g, n->outputs[0]);
}

typedef struct marking {
    const qs_graph *model, *g; /* before and after the passes, which keep the ids of old nodes */
    qs_uses uses;              /* of the model */
    bool *live;                /* by node of g: in the order */
    bool *integer;             /* by node of the model */
} marking;

/* The live node that makes a result of `node` now, or QS_NONE. */
static qs_id successor(const marking *s, qs_id node) {
    const qs_node *n = &s->g->nodes[node];
    for (int32_t i = 0; i < n->output_count; i++) {
        qs_id p = n->outputs[i] == QS_NONE ? QS_NONE : s->g->values[n->outputs[i]].producer;
        if (p != QS_NONE && s->live[p])
            return p;
    }
    return QS_NONE;
}

/* Whether the node has readers, and all of them run in integers. */
static bool readers_are_integer(const marking *s, qs_id node) {
    const qs_node *n = &s->model->nodes[node];
    bool any = false;
    for (int32_t i = 0; i < n->output_count; i++) {
        qs_id y = n->outputs[i];
        for (qs_id u = y == QS_NONE ? 0 : s->uses.start[y];
             y != QS_NONE && u < s->uses.start[y + 1]; u++) {
            any = true;
            if (!s->integer[s->uses.nodes[u]])
                return false;
        }
    }
    return any;
}

/* Sets whether the node runs in integers; its readers are already marked. */
static void mark(const marking *s, qs_id node) {
    qs_id at = s->live[node] ? node : successor(s, node);
    s->integer[node] = at == QS_NONE ? readers_are_integer(s, node) : is_integer(s->g, at);
}

int qs_pass_mark_integers(qs_pass *p) {
    marking s = {.model = p->origin, .g = p->graph};
    if (!p->integer)
        return QSIM_OK;
    s.live = qs_calloc(p->ctx, s.g->node_count + 1, sizeof(bool));
    s.integer = qs_calloc(p->ctx, s.model->node_count + 1, sizeof(bool));
    int code = QSIM_E_NOMEM;
    if (s.live && s.integer && qs_graph_uses(s.model, &s.uses) == QSIM_OK) {
        code = QSIM_OK;
        for (size_t i = 0; i < s.g->order_count; i++)
            s.live[s.g->order[i]] = true;
        for (size_t i = s.model->order_count; i-- > 0;)
            mark(&s, s.model->order[i]);
        size_t count = 0;
        for (size_t i = 0; i < s.model->order_count; i++)
            if (!s.model->nodes[s.model->order[i]].removed)
                p->integer[count++] = s.integer[s.model->order[i]];
        qs_uses_free(s.model, &s.uses);
    }
    qs_free(p->ctx, s.live);
    qs_free(p->ctx, s.integer);
    return code ? qs_pass_no_memory(p) : QSIM_OK;
}
