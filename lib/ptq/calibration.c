/* SPDX-License-Identifier: MIT */
#include "ptq/calibration.h"

#include "kernel/context.h"
#include "pass/pass.h"
#include "graph/model.h"
#include "op/op.h"

#define MIN_OPSET 13 /* per-axis DequantizeLinear */

int qs_ptq_prepare(const qsim_model *model, qsim_model **out, qsim_error *error) {
    qsim_model *m;
    *out = NULL;
    if (model->inspect_only)
        return qs_fail(error, QSIM_E_STATE, "%s: the model was loaded for inspection only",
                       model->name);
    int code = qs_model_derive(model, &m, error);
    if (code)
        return code;
    if (qs_graph_import(m->graph, "") < MIN_OPSET) {
        code = qs_op_upgrade_graph(m->graph, MIN_OPSET, m->name, error);
        if (!code)
            code = qs_op_infer_graph(m->graph, m->name, error);
    }
    qs_pass p = {
        .ctx = m->ctx, .graph = m->graph, .model = m->name, .error = error, .standard = true};
    if (!code)
        code = qs_pipeline_run(&p, QS_FOR_PTQ, QSIM_LEVEL_ALL);
    if (code)
        qsim_model_free(m);
    else
        *out = m;
    return code;
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
        return qs_fail(error, QSIM_E_NOMEM, "calibration: out of memory");
    }
    c->ctx = ctx;
    qs_arena_init(&c->arena, ctx);
    c->names = qs_names_create(ctx);
    if (!c->names) {
        qsim_calibration_free(c);
        return qs_fail(error, QSIM_E_NOMEM, "calibration: out of memory");
    }
    *out = c;
    return QSIM_OK;
}

void qsim_calibration_free(qsim_calibration *c) {
    if (!c)
        return;
    qsim_ctx *ctx = c->ctx;
    for (size_t i = 0; i < c->count; i++)
        qsim_observer_free(c->tensors[i].observer);
    qsim_run_free(c->run);
    qsim_session_free(c->session);
    qsim_model_free(c->prepared);
    qs_free(ctx, c->outputs);
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
        !qs_grow(c->ctx, (void **)&c->tensors, &c->room, c->count + 1, sizeof(*c->tensors)))
        return qs_fail(error, QSIM_E_NOMEM, "calibration: out of memory");
    if (qs_names_find(c->names, kept) != QS_NONE)
        return qs_fail(error, QSIM_E_FORMAT, "calibration: tensor '%s' appears twice", kept);
    qs_seen s = {.name = kept, .input = -1, .output = -1};
    int code = qsim_observer_create(c->ctx, &s.observer, error);
    if (code)
        return code;
    c->tensors[c->count++] = s;
    if (qs_names_put(c->ctx, c->names, kept, (qs_id)(c->count - 1)))
        return qs_fail(error, QSIM_E_NOMEM, "calibration: out of memory");
    return QSIM_OK;
}

const qsim_observer *qs_calibration_find(const qsim_calibration *c, const char *name,
                                         int32_t *index) {
    qs_id at = qs_names_find(c->names, name);
    if (index)
        *index = at;
    if (at == QS_NONE || qsim_observer_count(c->tensors[at].observer) == 0)
        return NULL;
    return c->tensors[at].observer;
}

/* ---- create ---- */

static bool is_observed(const qs_graph *g, qs_id value) {
    const qs_value *v = value == QS_NONE ? NULL : &g->values[value];
    return v && v->name[0] && v->dtype == QSIM_FLOAT && !v->data;
}

/* The float activations of the graph: its inputs, then what its nodes give, in their order. */
static int list_tensors(qsim_calibration *c, const qs_graph *g, qsim_error *error) {
    int code = QSIM_OK;
    for (size_t i = 0; i < g->input_count && !code; i++)
        if (is_observed(g, g->inputs[i])) {
            const char *name = g->values[g->inputs[i]].name;
            code = qs_calibration_add(c, name, strlen(name), error);
        }
    size_t inputs = c->count;
    for (size_t k = 0; k < g->order_count && !code; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        for (int32_t i = 0; i < n->output_count && !code && !n->removed; i++)
            if (is_observed(g, n->outputs[i])) {
                const char *name = g->values[n->outputs[i]].name;
                code = qs_calibration_add(c, name, strlen(name), error);
            }
    }
    for (size_t i = inputs; i < c->count && !code; i++)
        c->tensors[i].output = (int32_t)(i - inputs);
    c->output_count = c->count - inputs;
    if (!code && c->output_count == 0)
        code = qs_fail(error, QSIM_E_GRAPH, "calibration: no float activation has a name");
    return code;
}

/* Compiles the graph with every observed tensor as an output. */
static int compile(qsim_calibration *c, const qsim_model *prepared, qsim_error *error) {
    const char **names = qs_alloc(c->ctx, c->output_count, sizeof(*names));
    c->outputs = qs_calloc(c->ctx, c->output_count, sizeof(*c->outputs));
    int code = QSIM_OK;
    if (!names || !c->outputs)
        code = qs_fail(error, QSIM_E_NOMEM, "calibration: out of memory");
    for (size_t i = 0; i < c->count && !code; i++)
        if (c->tensors[i].output >= 0)
            names[c->tensors[i].output] = c->tensors[i].name;
    qsim_session_options options = {
        .struct_size = sizeof(options), .outputs = names, .output_count = c->output_count};
    if (!code)
        code = qsim_session_create(prepared, &options, &c->session, error);
    if (!code)
        code = qsim_run_create(c->session, &c->run, error);
    for (int32_t i = 0; !code && i < qsim_session_input_count(c->session); i++) {
        qs_id at = qs_names_find(c->names, qsim_session_input_name(c->session, i));
        if (at != QS_NONE)
            c->tensors[at].input = i;
    }
    qs_free(c->ctx, names);
    return code;
}

int qsim_calibration_create(const qsim_model *model, qsim_calibration **out, qsim_error *error) {
    qsim_calibration *c = NULL;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!model || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "calibration: an argument is missing");
    int code = qs_ptq_refuse_quantized(model, QSIM_MODE_STATIC, error);
    if (!code)
        code = qs_calibration_new(model->ctx, &c, error);
    if (code)
        return code;
    code = qsim_model_hash(model, c->model);
    if (code) {
        qs_fail(error, code, "%s: hashing failed: %s", model->name, qsim_error_text(code));
        goto fail;
    }
    code = qs_ptq_prepare(model, &c->prepared, error);
    if (!code)
        code = list_tensors(c, c->prepared->graph, error);
    if (!code)
        code = compile(c, c->prepared, error);
    if (code)
        goto fail;
    *out = c;
    return QSIM_OK;
fail:
    qsim_calibration_free(c);
    return code;
}

/* ---- feed, merge ---- */

/* What one tensor held in this batch; NULL where the graph does not read that input. */
static const qsim_tensor *seen_in_batch(const qsim_calibration *c, const qs_seen *s,
                                        const qsim_tensor *inputs) {
    return s->output >= 0 ? &c->outputs[s->output] : s->input >= 0 ? &inputs[s->input] : NULL;
}

static int check_batch(const qsim_calibration *c, const qsim_tensor *inputs, qsim_error *error) {
    for (size_t i = 0; i < c->count; i++) {
        const qsim_tensor *t = seen_in_batch(c, &c->tensors[i], inputs);
        if (t && !qs_all_finite(t->data, t->bytes / sizeof(float)))
            return qs_fail(error, QSIM_E_VALUE,
                           "calibration: tensor '%s' holds a NaN or an infinity",
                           c->tensors[i].name);
    }
    return QSIM_OK;
}

int qsim_calibration_feed(qsim_calibration *c, const qsim_tensor *inputs, size_t input_count,
                          qsim_error *error) {
    qs_error_clear(error);
    if (!c || (input_count > 0 && !inputs))
        return qs_fail(error, QSIM_E_ARGUMENT, "calibration: an argument is missing");
    if (!c->run)
        return qs_fail(error, QSIM_E_STATE, "calibration: a loaded calibration takes no data");
    memset(c->outputs, 0, c->output_count * sizeof(*c->outputs));
    int code = qsim_run_execute(c->run, inputs, input_count, c->outputs, c->output_count, error);
    if (!code)
        code = check_batch(c, inputs, error);
    for (size_t i = 0; i < c->count && !code; i++) {
        const qsim_tensor *t = seen_in_batch(c, &c->tensors[i], inputs);
        if (t)
            code = qsim_observer_feed(c->tensors[i].observer, t->data, t->bytes / sizeof(float));
        if (code)
            qs_fail(error, code, "calibration: tensor '%s': %s", c->tensors[i].name,
                    qsim_error_text(code));
    }
    if (!code)
        c->samples += input_count > 0 && inputs[0].rank > 0 ? inputs[0].dims[0] : 1;
    return code;
}

int qsim_calibration_merge(qsim_calibration *into, const qsim_calibration *from,
                           qsim_error *error) {
    qs_error_clear(error);
    if (!into || !from)
        return qs_fail(error, QSIM_E_ARGUMENT, "calibration: an argument is missing");
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
        int code = qsim_observer_merge(into->tensors[i].observer, from->tensors[i].observer);
        if (code)
            return qs_fail(error, code, "calibration: tensor '%s': %s", into->tensors[i].name,
                           qsim_error_text(code));
    }
    into->samples = samples;
    return QSIM_OK;
}

/* ---- look ---- */

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
    return c && index >= 0 && (size_t)index < c->count ? c->tensors[index].observer : NULL;
}

const char *qsim_calibration_model(const qsim_calibration *c) {
    return c ? c->model : NULL;
}

int qsim_calibration_range(const qsim_calibration *c, const char *tensor, int32_t method,
                           double percentile, float *low, float *high) {
    if (!c || !tensor)
        return QSIM_E_ARGUMENT;
    const qsim_observer *o = qs_calibration_find(c, tensor, NULL);
    return o ? qsim_observer_range(o, method, percentile, QSIM_UINT8, 0, low, high)
             : QSIM_E_NOT_FOUND;
}
