/* SPDX-License-Identifier: MIT */
#include "ptq/calibration.h"
#include "ptq/gram.h"

#include <math.h>

#include "kernel/context.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "pass/pass.h"
#include "graph/model.h"
#include "op/op.h"

#define MIN_OPSET 13 /* per-axis DequantizeLinear */

int qs_ptq_infer_inside(qs_graph *g, const char *model, bool *broken) {
    const int rule = qs_op_infer_graph(g, model, NULL);
    *broken = rule != QSIM_OK;
    return rule == QSIM_E_NOMEM ? rule : QSIM_OK;
}

static int prepare_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub);

/* Runs the passes over a graph, then over its subgraphs, to which constants of it are known. */
static int prepare_graph(qs_pass *p) {
    const int code = qs_pipeline_run(p, QS_FOR_PTQ, QSIM_LEVEL_ALL);
    return code ? code : qs_subgraphs_visit(p->graph, prepare_inside, p);
}

static int prepare_inside(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub) {
    qs_pass p = *(const qs_pass *)user;
    p.graph = sub->graph;
    if (qs_subgraph_bind(g, n, sub, sub->graph))
        return QSIM_E_NOMEM;
    bool broken;
    const int code = qs_ptq_infer_inside(sub->graph, p.model, &broken);
    return code || broken ? code : prepare_graph(&p);
}

static int prepare(qs_pass *p, int32_t opset) {
    qs_graph *g = p->graph;
    int code = QSIM_OK;
    p->standard = true;
    if (qs_graph_import(g, "") < opset) {
        code = qs_op_upgrade_graph(g, opset, p->model, p->error);
        if (!code)
            code = qs_op_infer_graph(g, p->model, p->error);
    }
    if (!code)
        code = prepare_graph(p);
    return code ? code : qs_stop_fail(p->ctx, qs_graph_name_inside(g), p->model, p->error);
}

int qs_ptq_prepare(const qsim_model *model, qsim_model **out, qsim_error *error) {
    return qs_pass_derive(model, "calibration", prepare, MIN_OPSET, out, error);
}

int qs_ptq_prepared(const qsim_model *model, const qsim_calibration *c, qsim_model **out,
                    qsim_error *error) {
    if (!c || !c->prepared || c->prepared->base != model)
        return qs_ptq_prepare(model, out, error);
    *out = qs_model_hold(c->prepared);
    return QSIM_OK;
}

int qs_calibration_new(qsim_ctx *ctx, qsim_calibration **out, qsim_error *error) {
    int code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    qsim_calibration *c = qs_calloc(ctx, 1, sizeof(*c));
    if (!c) {
        qs_ctx_drop(ctx);
        return QSIM_E_NOMEM;
    }
    c->ctx = ctx;
    c->bits = QS_BITS;
    c->label = "the calibration";
    qs_arena_init(&c->arena, ctx);
    c->names = qs_names_create(ctx);
    if (!c->names) {
        qsim_calibration_free(c);
        return QSIM_E_NOMEM;
    }
    *out = c;
    return QSIM_OK;
}

void qsim_calibration_free(qsim_calibration *c) {
    if (!c)
        return;
    qsim_ctx *ctx = c->ctx;
    for (size_t i = 0; i < c->count; i++) {
        qs_record_free(ctx, &c->tensors[i].kept);
        qs_record_free(ctx, &c->tensors[i].batch);
    }
    qs_gram_free(c);
    qsim_run_free(c->run);
    qsim_session_free(c->session);
    qsim_model_free(c->prepared);
    qs_watch_free(&c->watch);
    qs_free(ctx, c->tensors);
    if (c->names)
        qs_names_free(ctx, c->names);
    qs_arena_free(&c->arena);
    qs_free(ctx, c);
    qs_ctx_drop(ctx);
}

int qs_calibration_add(qsim_calibration *c, const char *name, size_t length, qsim_error *error) {
    char *kept = qs_arena_string(&c->arena, name, length);
    if (!kept || c->count >= INT32_MAX ||
        !qs_grow(c->ctx, (void **)&c->tensors, &c->capacity, c->count, sizeof(*c->tensors)))
        return QSIM_E_NOMEM;
    if (qs_names_find(c->names, kept) != QS_NONE)
        return qs_fail(error, QSIM_E_FORMAT, "calibration: tensor '%s' appears twice", kept);
    qs_seen s = {.name = kept, .input = -1};
    int code = qs_record_create(c->ctx, c->bits, &s.kept);
    if (code)
        return code;
    c->tensors[c->count++] = s;
    if (qs_names_put(c->ctx, c->names, kept, (qs_id)(c->count - 1)))
        return QSIM_E_NOMEM;
    return QSIM_OK;
}

const qsim_observer *qs_calibration_find(const qsim_calibration *c, const char *name,
                                         int32_t *index) {
    qs_id at = qs_names_find(c->names, name);
    if (index)
        *index = at;
    if (at == QS_NONE || qsim_observer_count(c->tensors[at].kept.observer) == 0)
        return NULL;
    return c->tensors[at].kept.observer;
}

const qs_means *qs_calibration_means(const qsim_calibration *c, const char *name, int32_t *index) {
    qs_id at = qs_names_find(c->names, name);
    if (index)
        *index = at;
    const qs_means *m = at == QS_NONE ? NULL : &c->tensors[at].kept.means;
    return m && m->positions > 0 ? m : NULL;
}

/* ---- merge ---- */

int qsim_calibration_merge(qsim_calibration *into, const qsim_calibration *from,
                           qsim_error *error) {
    qs_error_clear(error);
    if (!into || !from)
        return qs_fail_missing(error, "calibration");
    if (strcmp(into->model, from->model) != 0)
        return qs_fail(error, QSIM_E_MISMATCH, "calibration: the two belong to different models");
    bool same = into->count == from->count;
    for (size_t i = 0; i < into->count && same; i++)
        same = strcmp(into->tensors[i].name, from->tensors[i].name) == 0;
    if (!same)
        return qs_fail(error, QSIM_E_MISMATCH, "calibration: the two hold different tensors");
    int64_t samples;
    if (!qs_add64(into->samples, from->samples, &samples))
        return qs_fail(error, QSIM_E_LIMIT, "calibration: too many samples");
    for (size_t i = 0; i < into->count; i++) {
        qs_record *r = &into->tensors[i].kept;
        int code = qs_go_on(into->ctx, "calibration", error);
        if (code)
            return code;
        if (r->means.positions == 0)
            r->means.axis = from->tensors[i].kept.means.axis;
        code = qs_record_reserve(into->ctx, r, &from->tensors[i].kept);
        if (code)
            return qs_fail(error, code, "calibration: tensor '%s': %s", into->tensors[i].name,
                           qsim_error_text(code));
    }
    for (size_t i = 0; i < into->count; i++)
        qs_record_merge(&into->tensors[i].kept, &from->tensors[i].kept, into->samples,
                        &into->ctx->kernels->ew->reads);
    qs_gram_merge(into, from);
    into->samples = samples;
    return QSIM_OK;
}

/* ---- inspection ---- */

int64_t qsim_calibration_samples(const qsim_calibration *c) {
    return c ? c->samples : 0;
}

int32_t qsim_calibration_count(const qsim_calibration *c) {
    return c ? (int32_t)c->count : 0;
}

const char *qsim_calibration_name(const qsim_calibration *c, int32_t index) {
    return c && index >= 0 && (size_t)index < c->count ? c->tensors[index].name : NULL;
}

const qsim_observer *qsim_calibration_observer(const qsim_calibration *c, int32_t index) {
    return c && index >= 0 && (size_t)index < c->count ? c->tensors[index].kept.observer : NULL;
}

const char *qsim_calibration_model(const qsim_calibration *c) {
    return c ? c->model : NULL;
}

int qsim_calibration_range(const qsim_calibration *c, const char *tensor, int32_t method,
                           double percentile, int32_t dtype, int32_t flags, float *low,
                           float *high) {
    if (!c || !tensor)
        return QSIM_E_ARGUMENT;
    const qsim_observer *o = qs_calibration_find(c, tensor, NULL);
    return o ? qsim_observer_range(o, method, percentile, dtype, flags, low, high)
             : QSIM_E_NOT_FOUND;
}

/* ---- outliers ---- */

/* Width of the range without the sample that has the greatest (or least) value. */
static double width(const qs_record *r, int64_t without) {
    const double high = (double)(r->high.sample == without ? r->high.next : r->high.value);
    const double low = (double)(r->low.sample == without ? r->low.next : r->low.value);
    return (high > 0 ? high : 0) + (low > 0 ? low : 0);
}

int qsim_calibration_outlier(const qsim_calibration *c, int32_t index, qsim_outlier *outlier) {
    qsim_outlier own = {.sample = -1};
    if (!c || !outlier)
        return QSIM_E_ARGUMENT;
    if (index < 0 || (size_t)index >= c->count)
        return QSIM_E_NOT_FOUND;
    const qs_record *r = &c->tensors[index].kept;
    const qs_top *tops[2] = {&r->high, &r->low};
    for (int i = 0; i < 2; i++) {
        const qs_top *t = tops[i];
        const double all = width(r, -2), rest = width(r, t->sample);
        const double ratio = all > 0 ? (rest > 0 ? all / rest : INFINITY) : 1;
        if (t->sample < 0 || !(t->next > -INFINITY) || ratio <= own.ratio)
            continue;
        own = (qsim_outlier){.sample = t->sample,
                             .value = i ? -t->value : t->value,
                             .others = i ? -t->next : t->next,
                             .ratio = ratio};
    }
    return own.sample < 0 ? QSIM_E_NOT_FOUND : qs_give(outlier, &own, sizeof(own));
}
