/* SPDX-License-Identifier: MIT */
/* qsim_model_check, which reports every problem, and qsim_model_upgrade. */
#include "base/ctx.h"
#include "graph/model.h"
#include "onnx/reader.h"
#include "op/op.h"
#include "tensor/shape.h"

struct report {
    qsim_problem_fn fn;
    void *user;
    int count;
};

static int report_problem(struct report *r, int code, const qsim_error *why) {
    if (!code)
        return QSIM_OK;
    if (code == QSIM_E_NOMEM)
        return code;
    r->count++;
    if (r->fn)
        r->fn(r->user, why);
    return QSIM_OK;
}

/* Describes a value whose declared shape is not the one that its node gives it. */
static void describe_misdeclared(const qs_value *v, const char *name, qsim_error *why) {
    int64_t dims[QSIM_MAX_RANK];
    char shape[96];
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = v->dims[i].size;
    qs_fail(why, QSIM_E_SHAPE, "%s: '%s' has the shape %s; the file declares another", name,
            v->name, qs_shape_text(shape, sizeof(shape), v->rank, dims));
}

void qs_read_warn(qs_graph *g, const char *name) {
    for (size_t i = 0; i < g->value_count; i++)
        if (g->values[i].misdeclared) {
            qsim_error why = {0};
            describe_misdeclared(&g->values[i], name, &why);
            qs_log(g->arena.ctx, QSIM_LOG_WARNING, "%s", why.message);
        }
}

int qs_read_node_rules(qs_graph *g, qs_id id, const char *name, qsim_error *error) {
    int code = qs_op_resolve(g, id, name, error);
    if (code)
        return code;
    qs_id *order = g->order;
    size_t count = g->order_count;
    g->order = &id;
    g->order_count = 1;
    code = qs_op_infer_graph(g, name, error);
    g->order = order;
    g->order_count = count;
    return code;
}

static int check_node(qs_graph *g, qs_id id, const char *name, struct report *r) {
    qsim_error why = {0};
    /* In a model loaded for inspection If is a node without a shape rule. */
    if (qs_read_is_choice(&g->nodes[id]))
        return QSIM_OK;
    return report_problem(r, qs_read_node_rules(g, id, name, &why), &why);
}

/*
 * Checks the operators of nodes in or after a cycle. They are not in the order, so nothing can be
 * inferred.
 */
static int check_cycles(qs_graph *g, const char *name, struct report *r) {
    bool *ordered = qs_calloc(g->arena.ctx, g->node_count, sizeof(*ordered));
    int code = ordered ? QSIM_OK : QSIM_E_NOMEM;
    for (size_t i = 0; !code && i < g->order_count; i++)
        ordered[g->order[i]] = true;
    for (size_t i = 0; !code && i < g->node_count; i++) {
        qsim_error why = {0};
        if (!ordered[i] && !g->nodes[i].removed && !qs_read_is_choice(&g->nodes[i]))
            code = report_problem(r, qs_op_resolve(g, (qs_id)i, name, &why), &why);
    }
    qs_free(g->arena.ctx, ordered);
    return code;
}

int qsim_model_check(const qsim_model *model, qsim_problem_fn problem, void *user) {
    struct report r = {problem, user, 0};
    qs_graph *g = NULL;
    if (!model)
        return QSIM_E_ARGUMENT;
    int code = qs_graph_clone(model->graph, model->ctx, &g);
    for (size_t i = 0; !code && i < model->problem_count; i++)
        code = report_problem(&r, model->problems[i].code, &model->problems[i]);
    for (size_t i = 0; !code && i < g->order_count; i++)
        if (!g->nodes[g->order[i]].removed)
            code = check_node(g, g->order[i], model->name, &r);
    if (!code)
        code = check_cycles(g, model->name, &r);
    for (size_t i = 0; !code && i < g->value_count; i++)
        if (g->values[i].misdeclared) {
            qsim_error why = {0};
            describe_misdeclared(&g->values[i], model->name, &why);
            code = report_problem(&r, QSIM_E_SHAPE, &why);
        }
    qs_graph_free(g);
    return code ? code : r.count;
}

int qsim_model_upgrade(const qsim_model *model, int32_t opset, qsim_model **out,
                       qsim_error *error) {
    qsim_model *m;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "upgrade: no model or no place for one");
    int code = qs_model_derive_whole(model, &m, error);
    if (code)
        return code;
    code = qs_op_upgrade_graph(m->graph, opset, m->name, error);
    if (!code)
        code = qs_graph_sort(m->graph, error);
    if (!code)
        code = qs_op_infer_graph(m->graph, m->name, error);
    if (code) {
        qsim_model_free(m);
        return code;
    }
    int64_t ir = qs_ir_of_opset(qs_graph_import(m->graph, ""));
    m->ir_version = m->ir_version > ir ? m->ir_version : ir;
    *out = m;
    return QSIM_OK;
}
