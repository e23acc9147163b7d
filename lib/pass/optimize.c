/* SPDX-License-Identifier: MIT */
/* qsim_model_optimize: runs the passes whose results ONNX operators can express. */
#include "pass/pass.h"
#include "graph/names.h"

/* Renames a node whose name another node has: `name`_2 and so on. */
static int rename_node(qs_pass *p, struct qs_names *names, qs_id id) {
    qs_node *n = &p->graph->nodes[id];
    const char *name = qs_names_unused(names, &p->graph->arena, n->name, 2);
    if (!name || qs_names_put(p->ctx, names, name, id))
        return qs_pass_no_memory(p);
    n->name = name;
    n->changed = true;
    return QSIM_OK;
}

/* Makes nodes' names unique. Passes may give one name to several nodes; the first keeps it. */
static int node_names(qs_pass *p) {
    qs_graph *g = p->graph;
    struct qs_names *names = qs_names_create(p->ctx);
    int code = names ? QSIM_OK : qs_pass_no_memory(p);
    for (size_t k = 0; k < g->order_count && !code; k++) {
        const char *name = g->nodes[g->order[k]].name;
        code = qs_go_on_at(p->ctx, k, p->model, p->error);
        if (!code && name[0] && qs_names_find(names, name) == QS_NONE &&
            qs_names_put(p->ctx, names, name, g->order[k]))
            code = qs_pass_no_memory(p);
    }
    for (size_t k = 0; k < g->order_count && !code; k++) {
        const qs_id id = g->order[k];
        if (g->nodes[id].name[0] && qs_names_find(names, g->nodes[id].name) != id)
            code = rename_node(p, names, id);
    }
    if (names)
        qs_names_free(p->ctx, names);
    return code;
}

int qs_pass_name(qs_pass *p, qs_id value, const char *base) {
    qs_graph *g = p->graph;
    const char *name = qs_graph_fresh_name(g, base);
    if (!name || qs_names_put(p->ctx, g->names, name, value))
        return qs_pass_no_memory(p);
    g->values[value].name = name;
    return QSIM_OK;
}

/* Names the unnamed values that passes have made, since values in files need names. */
int qs_pass_names(qs_pass *p) {
    qs_graph *g = p->graph;
    int code = node_names(p);
    if (code)
        return code;
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if ((code = qs_go_on(p->ctx, p->model, p->error)))
            return code;
        for (int32_t i = 0; i < n->input_count + n->output_count; i++) {
            qs_id v = i < n->input_count ? n->inputs[i] : n->outputs[i - n->input_count];
            if (v == QS_NONE || g->values[v].name[0])
                continue;
            if ((code = qs_pass_name(p, v, n->name[0] ? n->name : n->op_type)))
                return code;
        }
    }
    return qs_stop_fail(p->ctx, qs_graph_name_inside(g), p->model, p->error);
}

int qs_pass_derive(const qsim_model *model, const char *what, int (*work)(qs_pass *p, int32_t how),
                   int32_t how, qsim_model **out, qsim_error *error) {
    qsim_model *m;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail_missing(error, what);
    int code = qs_model_derive_whole(model, &m, error);
    if (code)
        return code;
    qs_pass p = {.ctx = m->ctx, .graph = m->graph, .model = m->name, .error = error};
    code = work(&p, how);
    code = qs_leave(m->ctx, code == QSIM_E_NOMEM ? qs_pass_no_memory(&p) : code, error);
    if (code) {
        qsim_model_free(m);
        return code;
    }
    *out = m;
    return QSIM_OK;
}

static int optimize(qs_pass *p, int32_t level) {
    if (level < QSIM_LEVEL_DEFAULT || level > QSIM_LEVEL_ALL)
        return qs_fail(p->error, QSIM_E_ARGUMENT, "%s: level %d does not exist", p->model,
                       (int)level);
    p->standard = p->contributed = true;
    return qs_pipeline_run(p, QS_FOR_FILE, level);
}

int qsim_model_optimize(const qsim_model *model, int32_t level, qsim_model **out,
                        qsim_error *error) {
    return qs_pass_derive(model, "optimize", optimize, level, out, error);
}
