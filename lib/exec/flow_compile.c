/* SPDX-License-Identifier: MIT */
/* Compiles subgraphs to sessions of their own, for which each run of the outer session has runs. */
#include "exec/deferred.h"

#include "base/ctx.h"

static int no_memory(const qsim_session *s, const qs_node *n, qsim_error *error) {
    return qs_node_fail(error, QSIM_E_NOMEM, s->name, n, "out of memory for a subgraph");
}

/* Fills body->source. */
static int find_sources(qsim_session *s, const qs_subgraph *sub, const qs_graph *inner,
                        qs_flow_body *body) {
    body->source = qs_arena_alloc(&s->arena, inner->input_count + 1, sizeof(*body->source));
    int32_t *of = qs_calloc(s->ctx, inner->value_count + 1, sizeof(*of));
    const bool ok = body->source && of;
    for (int32_t i = 0; ok && i < sub->capture_count; i++)
        of[sub->captures[i].inner] = sub->captures[i].input;
    for (size_t i = 0; ok && i < inner->input_count; i++)
        body->source[i] = i < (size_t)sub->fed ? -1 - (int32_t)i : of[inner->inputs[i]];
    qs_free(s->ctx, of);
    return ok ? QSIM_OK : QSIM_E_NOMEM;
}

static int compile_one(qsim_session *s, const qs_node *n, const qs_subgraph *sub, int32_t level,
                       bool literal, qs_flow_body *body, qsim_error *error) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_model *m;
    int code = qs_model_create(s->ctx, &m, error);
    if (code)
        return code;
    qs_graph_free(m->graph);
    body->watched = sub->watched;
    m->graph = NULL;
    m->name = s->name;
    code = qs_graph_clone(sub->graph, s->ctx, &m->graph);
    if (!code &&
        (qs_subgraph_bind(s->graph, n, sub, m->graph) || find_sources(s, sub, m->graph, body)))
        code = QSIM_E_NOMEM;
    code = qs_stop_fail(s->ctx, code, s->name, error);
    if (!code)
        code = qs_op_infer_graph(m->graph, s->name, error);
    if (!code)
        code = qs_session_compile(m, &o, literal ? QS_COMPILE_LITERAL : 0, &body->session, error);
    qsim_model_free(m);
    return code;
}

int qs_flow_compile(qsim_session *s, int32_t level, bool literal, qsim_error *error) {
    static const char *const names[][2] = {
        {"then_branch", "body"}, /* the first subgraph of a node */
        {"else_branch", ""},     /* the second one */
    };
    const qs_graph *g = s->graph;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        if (!qs_node_has_subgraph(n))
            continue;
        if (!s->bodies)
            s->bodies = qs_arena_alloc(&s->arena, g->node_count + 1, sizeof(*s->bodies));
        if (!s->bodies)
            return no_memory(s, n, error);
        for (size_t k = 0; k < QS_COUNT(names); k++) {
            const qs_subgraph *sub = qs_node_subgraph(n, names[k][0]);
            if (!sub)
                sub = qs_node_subgraph(n, names[k][1]);
            int code =
                sub ? compile_one(s, n, sub, level, literal, &s->bodies[g->order[i]].body[k], error)
                    : QSIM_OK;
            if (code)
                return code;
        }
    }
    return QSIM_OK;
}

void qs_flow_release(const qsim_session *s) {
    for (size_t i = 0; s->bodies && i < s->graph->node_count; i++)
        for (int k = 0; k < 2; k++)
            qsim_session_free(s->bodies[i].body[k].session);
}
