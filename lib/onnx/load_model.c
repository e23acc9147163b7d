/* SPDX-License-Identifier: MIT */
/* Reads ModelProto, and has the order in which a model is read and checked. */
#include "onnx/reader.h"
#include "base/ctx.h"
#include "op/op.h"

#include <stdio.h>

struct head {
    qs_span *graphs;
    size_t graph_count, graph_capacity;
    bool has_ir;
};

static int read_import(qs_reader *r, qs_span message) {
    qs_wire wire;
    qs_field f;
    qs_span domain = {0};
    int64_t version = 0;
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number == OPSET_DOMAIN)
            domain = f.data;
        else if (f.number == OPSET_VERSION)
            version = (int64_t)f.value;
    }
    const char *name = qs_span_is(domain, "ai.onnx") ? "" : qs_read_scratch(r, domain);
    if (!name)
        return qs_read_nomem(r);
    const char *shown = *name ? name : "ai.onnx";
    int64_t before = qs_graph_import(r->graph, name);
    if (version < 1 || version > INT32_MAX)
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "opset %lld of %s does not exist",
                            (long long)version, shown);
    if (!*name && version > qs_op_newest_opset()) {
        int code = qs_read_fail(r, QSIM_E_UNSUPPORTED,
                                "opset %lld of %s is not known, the newest that is read is %lld",
                                (long long)version, shown, (long long)qs_op_newest_opset());
        code = qs_read_collect(r, code);
        if (code)
            return code;
        version = qs_op_newest_opset();
    }
    if (qs_span_is(domain, "qsim"))
        return qs_read_fail(r, QSIM_E_UNSUPPORTED,
                            "imports the domain 'qsim', which is not for files");
    if (before && before != version)
        return qs_read_fail(r, QSIM_E_GRAPH, "%s is imported in two versions, %lld and %lld", shown,
                            (long long)before, (long long)version);
    if (!before && r->graph->import_count >= QS_MOST_IMPORTS)
        return qs_read_fail(r, QSIM_E_LIMIT, "more than %d operator sets", QS_MOST_IMPORTS);
    return qs_graph_set_import(r->graph, name, version) ? qs_read_nomem(r) : QSIM_OK;
}

static int read_property(qs_reader *r, qs_span message) {
    qsim_model *m = r->model;
    const char *key = qs_read_text(r, qs_wire_find(message, PAIR_KEY));
    const char *value = qs_read_text(r, qs_wire_find(message, PAIR_VALUE));
    if (!key || !value ||
        !qs_grow(r->ctx, (void **)&m->properties, &m->property_capacity, m->property_count,
                 sizeof(*m->properties)))
        return qs_read_nomem(r);
    m->properties[m->property_count++] = (qs_property){key, value};
    return QSIM_OK;
}

static int read_field(qs_reader *r, const qs_field *f, struct head *h) {
    qsim_model *m = r->model;
    switch (f->number) {
    case MODEL_IR_VERSION:
        m->ir_version = (int64_t)f->value;
        h->has_ir = true;
        return QSIM_OK;
    case MODEL_PRODUCER_NAME:
        m->producer_name = qs_read_text(r, f->data);
        return m->producer_name ? QSIM_OK : qs_read_nomem(r);
    case MODEL_PRODUCER_VERSION:
        m->producer_version = qs_read_text(r, f->data);
        return m->producer_version ? QSIM_OK : qs_read_nomem(r);
    case MODEL_GRAPH:
        if (!qs_grow(r->ctx, (void **)&h->graphs, &h->graph_capacity, h->graph_count,
                     sizeof(*h->graphs)))
            return qs_read_nomem(r);
        h->graphs[h->graph_count++] = f->data;
        return QSIM_OK;
    case MODEL_OPSET: return read_import(r, f->data);
    case MODEL_METADATA: return read_property(r, f->data);
    default:
        return qs_keep_field(r->ctx, &m->kept, &m->kept_capacity, &m->kept_count, f->whole)
                   ? qs_read_nomem(r)
                   : QSIM_OK;
    }
}

static int check_head(qs_reader *r, const struct head *h) {
    const qsim_model *m = r->model;
    if (!h->has_ir && h->graph_count == 0)
        return qs_read_fail(r, QSIM_E_FORMAT, "not an ONNX model: no version and no graph");
    if (!h->has_ir)
        return qs_read_fail(r, QSIM_E_FORMAT, "the model has no ir_version");
    if (m->ir_version < ONNX_IR_OLDEST || m->ir_version > ONNX_IR_NEWEST)
        return qs_read_fail(r, QSIM_E_UNSUPPORTED,
                            "ir_version %lld is not known, %d to %d are read",
                            (long long)m->ir_version, ONNX_IR_OLDEST, ONNX_IR_NEWEST);
    if (h->graph_count == 0)
        return qs_read_fail(r, QSIM_E_FORMAT, "the model has no graph");
    if (r->graph->import_count > 0)
        return QSIM_OK;
    if (m->ir_version >= 3)
        return qs_read_fail(r, QSIM_E_FORMAT, "the model imports no operator set");
    return qs_graph_set_import(r->graph, "", 1) ? qs_read_nomem(r) : QSIM_OK;
}

/* For inspection: infers the outputs of all nodes but those that break a rule. */
static int inspect_operators(qs_reader *r) {
    qs_graph *g = r->graph;
    for (size_t i = 0; i < g->order_count; i++)
        if (qs_read_node_rules(g, g->order[i], r->name, NULL) == QSIM_E_NOMEM)
            return qs_read_nomem(r);
    return QSIM_OK;
}

/* Not every exporter imports com.microsoft; a file that is written has to. */
static int import_domain(qs_reader *r, qs_graph *g, const qs_node *n) {
    return !qs_graph_import(g, n->domain) && qs_graph_set_import(g, n->domain, n->version)
               ? qs_read_nomem(r)
               : QSIM_OK;
}

int qs_read_resolve(qs_reader *r) {
    qs_graph *g = r->graph;
    qsim_error why = {0};
    for (size_t i = 0; i < g->node_count && !r->inspect; i++) {
        int code = qs_op_resolve(g, (qs_id)i, r->name, r->error);
        if (!code)
            code = import_domain(r, g, &g->nodes[i]);
        if (!code && r->model) /* of a node's graph */
            code = import_domain(r, r->model->graph, &g->nodes[i]);
        if (code)
            return code;
    }
    int code = qs_graph_sort(g, &why);
    if (code)
        code = qs_read_collect(r, qs_read_fail(r, code, "%s", why.message));
    return code;
}

int qs_read_operators(qs_reader *r) {
    qs_graph *g = r->graph;
    qsim_error why = {0};
    int code = qs_read_resolve(r);
    if (code)
        return code;
    if (r->inspect)
        return inspect_operators(r);
    code = qs_op_infer_graph(g, r->name, &why);
    if (!code)
        qs_read_warn(g, r->name);
    return code ? qs_read_choices_failed(r, code, &why) : qs_read_choices(r);
}

static int read_model(qs_reader *r, struct head *h) {
    qs_span bytes = r->source->bytes;
    qs_wire wire;
    qs_field f;
    int code = qs_sniff(bytes, r->name, r->error);
    if (!code)
        code = qs_schema_check(bytes, QS_MESSAGE_MODEL, r->name, r->error);
    if (code)
        return code;
    qs_wire_begin(&wire, bytes);
    while (!code && qs_wire_next(&wire, &f) == 1)
        code = qs_read_collect(r, read_field(r, &f, h));
    if (!code)
        code = h->graph_count ? qs_read_collect(r, check_head(r, h)) : check_head(r, h);
    if (!code)
        code = qs_read_collect(r, qs_read_functions(r, bytes));
    if (!code)
        code = qs_read_graph(r, h->graphs, h->graph_count);
    return code ? code : qs_read_operators(r);
}

/* Reads a model from its source. *retry: it failed only because an If was read as a choice. */
static int read_into(qsim_model *m, const qsim_load_options *o, bool keep_ifs, bool *retry,
                     qsim_error *error) {
    qsim_error own = {0}; /* for a caller that wants no message */
    qs_reader r = {.ctx = m->ctx,
                   .model = m,
                   .graph = m->graph,
                   .arena = &m->graph->arena,
                   .source = m->source,
                   .name = m->name,
                   .error = error ? error : &own,
                   .external = o->external,
                   .external_user = o->external_user,
                   .keep_ifs = keep_ifs,
                   .inspect = m->inspect_only,
                   .collects = (o->flags & QSIM_LOAD_CHECK) != 0};
    struct head h = {0};
    m->bytes = (int64_t)m->source->bytes.size;
    int code = read_model(&r, &h);
    m->flattened = r.branches > 0;
    qs_free_functions(&r);
    qs_free(m->ctx, h.graphs);
    qs_free(m->ctx, r.text);
    qs_free(m->ctx, r.ids);
    qs_free(m->ctx, r.choices);
    *retry = code && r.retry;
    return code;
}

/* Empties a model before it is read again. */
static int reset_model(qsim_model *m, qsim_error *error) {
    qs_graph *g;
    if (qs_graph_create(m->ctx, &g))
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", m->name);
    const bool kept = qs_source_keep(m->source, &g->arena);
    m->name = kept ? qs_arena_string(&g->arena, m->name, strlen(m->name)) : NULL;
    qs_graph_free(m->graph);
    m->graph = g;
    m->kept_count = m->kept_graph_count = m->property_count = m->problem_count = 0;
    m->producer_name = m->producer_version = "";
    if (m->name)
        return QSIM_OK;
    m->name = "(memory)";
    return qs_fail(error, QSIM_E_NOMEM, "out of memory for a model's name");
}

/*
 * Reads each If as a choice between two results, which runs faster; if their sizes differ, again as
 * a node with subgraphs.
 */
static int read_with_retry(qsim_model *m, const qsim_load_options *o, qsim_error *error) {
    bool retry;
    int code = read_into(m, o, false, &retry, error);
    if (!retry)
        return code;
    qs_error_clear(error);
    code = reset_model(m, error);
    return code ? code : read_into(m, o, true, &retry, error);
}

/* Creates an empty model with a source. */
static int create_model(qsim_ctx *ctx, const qsim_load_options *o, const char *name,
                        qsim_model **out, qsim_error *error) {
    qsim_model *m;
    int code = qs_model_create(ctx, &m, error);
    if (code)
        return code;
    m->source = qs_calloc(m->ctx, 1, sizeof(*m->source));
    m->free_source = qs_source_free;
    m->release_pages = qs_source_release_pages;
    m->name = qs_arena_string(&m->graph->arena, name, strlen(name));
    m->inspect_only = (o->flags & (QSIM_LOAD_INSPECT | QSIM_LOAD_CHECK)) != 0;
    if (!m->source || !m->name) {
        qsim_model_free(m);
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", name);
    }
    *out = m;
    return QSIM_OK;
}

int qs_load_options(const qsim_load_options *options, qsim_load_options *own, qsim_error *error) {
    int code = QS_OPTIONS(*own, options, error);
    if (code)
        return code;
    if (own->flags & ~(QSIM_LOAD_COPY | QSIM_LOAD_INSPECT | QSIM_LOAD_CHECK))
        return qs_fail(error, QSIM_E_VERSION, "load: unknown flags (0x%x)", (unsigned)own->flags);
    if (own->reserved)
        return qs_fail(error, QSIM_E_VERSION, "load: a reserved option is set");
    return QSIM_OK;
}

static char *folder_of(qsim_ctx *ctx, const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) : 0;
    return n ? qs_text_join(ctx, path, n, "") : qs_text_join(ctx, slash ? "/" : ".", 1, "");
}

/* Reads a model whose source is set; frees it on failure. */
static int read_or_free(qsim_model *m, const qsim_load_options *o, qsim_model **out,
                        qsim_error *error) {
    int code = read_with_retry(m, o, error);
    if (code)
        qsim_model_free(m);
    else
        *out = m;
    return code;
}

int qs_onnx_load_map(qsim_ctx *ctx, qs_map *map, const char *path, const qsim_load_options *o,
                     qsim_model **out, qsim_error *error) {
    qsim_model *m = NULL;
    int code = create_model(ctx, o, o->name ? o->name : path ? path : "(memory)", &m, error);
    if (code) {
        qs_map_close(ctx, map);
        return code;
    }
    m->source->map = *map;
    m->source->bytes = (qs_span){map->data, map->size};
    memset(map, 0, sizeof(*map));
    m->source->folder = path ? folder_of(m->ctx, path) : NULL;
    if (path && !m->source->folder) {
        code = qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", m->name);
        qsim_model_free(m);
        return code;
    }
    return read_or_free(m, o, out, error);
}

int qs_onnx_load_bytes(qsim_ctx *ctx, qs_span bytes, const qsim_load_options *o,
                       void (*release)(void *), void *owner, qsim_model **out, qsim_error *error) {
    qsim_model *m = NULL;
    int code = create_model(ctx, o, o->name ? o->name : "(memory)", &m, error);
    if (code) {
        if (release)
            release(owner);
        return code;
    }
    m->source->bytes = bytes;
    m->source->release = release;
    m->source->owner = owner;
    return read_or_free(m, o, out, error);
}
