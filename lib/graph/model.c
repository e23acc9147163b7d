/* SPDX-License-Identifier: MIT */
/* The model object: reference-counted, with metadata. lib/onnx reads and writes it. */
#include "graph/model.h"
#include "kernel/context.h"

int qs_model_create(qsim_ctx *ctx, qsim_model **out, qsim_error *error) {
    qsim_ctx *held;
    int code = qs_ctx_hold(ctx, &held, error);
    if (code)
        return code;
    qsim_model *m = qs_calloc(held, 1, sizeof(*m));
    if (!m || qs_graph_create(held, &m->graph)) {
        qs_free(held, m);
        qs_ctx_drop(held);
        return qs_fail(error, QSIM_E_NOMEM, "model: out of memory");
    }
    m->ctx = held;
    m->name = "(memory)";
    m->producer_name = m->producer_version = "";
    atomic_init(&m->holds, 1);
    *out = m;
    return QSIM_OK;
}

void qsim_model_free(qsim_model *m) {
    if (!m || atomic_fetch_sub(&m->holds, 1) != 1)
        return;
    qsim_ctx *ctx = m->ctx;
    qsim_model *base = m->base;
    qs_views *views = atomic_load(&m->views);
    if (views)
        views->free(ctx, views);
    if (m->free_source)
        m->free_source(m);
    qs_graph_free(m->graph);
    qs_free(ctx, m->properties);
    qs_free(ctx, m->kept);
    qs_free(ctx, m->kept_graph);
    qs_free(ctx, m->problems);
    qs_free(ctx, m);
    qsim_model_free(base);
    qs_ctx_drop(ctx);
}

qsim_model *qs_model_hold(const qsim_model *model) {
    /* The count is the one field of a model that changes: holding it is not an edit. */
    qsim_model *m = (qsim_model *)(uintptr_t)model;
    atomic_fetch_add(&m->holds, 1);
    return m;
}

static bool copy_spans(qsim_ctx *ctx, qs_span **to, size_t *capacity, size_t *count,
                       const qs_span *from, size_t n) {
    if (n == 0)
        return true;
    if (!qs_grow(ctx, (void **)to, capacity, n, sizeof(**to)))
        return false;
    memcpy(*to, from, n * sizeof(**to));
    *count = n;
    return true;
}

int qs_model_derive(const qsim_model *base, qsim_model **out, qsim_error *error) {
    qsim_model *m;
    if (base->problem_count > 0)
        return qs_fail(error, QSIM_E_STATE, "%s: parts of the model were left out", base->name);
    int code = qs_model_create(base->ctx, &m, error);
    if (code)
        return code;
    qs_graph_free(m->graph);
    m->graph = NULL;
    m->base = qs_model_hold(base);
    m->name = base->name;
    m->ir_version = base->ir_version;
    m->producer_name = base->producer_name;
    m->producer_version = base->producer_version;
    m->inspect_only = base->inspect_only;
    code = qs_graph_clone(base->graph, m->ctx, &m->graph);
    if (!code && !(copy_spans(m->ctx, &m->kept, &m->kept_capacity, &m->kept_count, base->kept,
                              base->kept_count) &&
                   copy_spans(m->ctx, &m->kept_graph, &m->kept_graph_capacity, &m->kept_graph_count,
                              base->kept_graph, base->kept_graph_count) &&
                   qs_grow(m->ctx, (void **)&m->properties, &m->property_capacity,
                           base->property_count, sizeof(*m->properties))))
        code = QSIM_E_NOMEM;
    if (code) {
        qsim_model_free(m);
        return qs_stop_fail(base->ctx, code, base->name, error);
    }
    /* Their text is the base's, which lives as long. */
    for (; m->property_count < base->property_count; m->property_count++)
        m->properties[m->property_count] = base->properties[m->property_count];
    *out = m;
    return QSIM_OK;
}

int qs_model_derive_whole(const qsim_model *base, qsim_model **out, qsim_error *error) {
    if (base->inspect_only)
        return qs_fail(error, QSIM_E_STATE, "%s: the model was loaded for inspection only",
                       base->name);
    return qs_model_derive(base, out, error);
}

int qs_model_set_property(qsim_model *m, const char *key, const char *value) {
    char *kept = qs_arena_string(&m->graph->arena, value, strlen(value));
    if (!kept)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < m->property_count; i++)
        if (strcmp(m->properties[i].key, key) == 0) {
            m->properties[i].value = kept;
            return QSIM_OK;
        }
    char *name = qs_arena_string(&m->graph->arena, key, strlen(key));
    if (!name || !qs_grow(m->ctx, (void **)&m->properties, &m->property_capacity, m->property_count,
                          sizeof(*m->properties)))
        return QSIM_E_NOMEM;
    m->properties[m->property_count++] = (qs_property){name, kept};
    return QSIM_OK;
}
