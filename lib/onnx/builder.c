/* SPDX-License-Identifier: MIT */
/* qsim_builder: makes a model by calls instead of from a file and checks it by the same rules. */
#include "onnx/reader.h"
#include "onnx/builder_text.h"
#include "kernel/context.h"
#include "op/op.h"

struct qsim_builder {
    qsim_model *model; /* NULL after qsim_builder_finish */
    qsim_ctx *ctx;     /* counted reference */
    qsim_error error;  /* the first failure */
    qs_id node;        /* the last node added */
    qs_id *ids;
    size_t ids_capacity;
};

static int fail(qsim_builder *b, int code, const char *what, const char *name) {
    return qs_fail(&b->error, code, "%s: '%s' %s", b->model->name, name, what);
}

static int nomem(qsim_builder *b) {
    return qs_fail(&b->error, QSIM_E_NOMEM, "builder: out of memory");
}

/* The code of an earlier failure, or of a builder that takes no more. */
static int closed(qsim_builder *b) {
    if (!b || b->error.code)
        return b ? b->error.code : QSIM_E_ARGUMENT;
    return b->model ? QSIM_OK
                    : qs_fail(&b->error, QSIM_E_STATE, "builder: the model has been handed out");
}
#define ENTER(b)                                                                                   \
    {                                                                                              \
        const int shut = closed(b);                                                                \
        if (shut)                                                                                  \
            return shut;                                                                           \
    }

static bool text_ok(const char *text) {
    return text && qs_text_ok((qs_span){(const uint8_t *)text, strlen(text)});
}

static char *keep_text(qsim_builder *b, const char *text) {
    return qs_arena_string(&b->model->graph->arena, text, strlen(text));
}

int qsim_builder_create(qsim_ctx *ctx, int32_t opset, const char *name, qsim_builder **out,
                        qsim_error *error) {
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!out || !name || !name[0] || !text_ok(name))
        return qs_fail(error, QSIM_E_ARGUMENT, "builder: no place or no name");
    if (opset < 1 || opset > qs_op_newest_opset())
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "builder: opset %d is not known, the newest is %d", (int)opset,
                       (int)qs_op_newest_opset());
    qsim_model *m;
    int code = qs_model_create(ctx, &m, error);
    if (code)
        return code;
    qsim_builder *b = qs_calloc(m->ctx, 1, sizeof(*b));
    char *kept = qs_arena_string(&m->graph->arena, name, strlen(name));
    if (!b || !kept || qs_graph_set_import(m->graph, "", opset)) {
        qs_free(m->ctx, b);
        qsim_model_free(m);
        return qs_fail(error, QSIM_E_NOMEM, "builder: out of memory");
    }
    m->name = m->graph->name = kept;
    b->model = m;
    b->node = QS_NONE;
    code = qs_ctx_hold(m->ctx, &b->ctx, error);
    *out = b;
    return code;
}

int qsim_builder_import(qsim_builder *b, const char *domain, int32_t version) {
    ENTER(b)
    if (!text_ok(domain) || version < 1)
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: import without domain or version");
    if (strcmp(domain, "qsim") == 0)
        return fail(b, QSIM_E_UNSUPPORTED, "is not for models", domain);
    const char *plain = strcmp(domain, "ai.onnx") == 0 ? "" : domain;
    /* What loading refuses is refused here: a model that is saved can be loaded again. */
    if (!*plain && version > qs_op_newest_opset())
        return fail(b, QSIM_E_UNSUPPORTED, "has no such opset", domain);
    if (b->model->graph->import_count >= QS_MOST_IMPORTS &&
        !qs_graph_import(b->model->graph, plain))
        return fail(b, QSIM_E_LIMIT, "is one operator set too many", domain);
    return qs_graph_set_import(b->model->graph, plain, version) ? nomem(b) : QSIM_OK;
}

/* Finds the value of a name, or adds it. */
static int find_or_add(qsim_builder *b, const char *name, qs_id *out) {
    *out = qs_graph_find(b->model->graph, name);
    if (*out == QS_NONE)
        *out = qs_graph_add_value(b->model->graph, name);
    return *out >= 0 ? QSIM_OK : nomem(b);
}

static int set_type(qsim_builder *b, qs_id id, int32_t dtype, int32_t rank, const int64_t *dims,
                    const char *const *names) {
    qs_graph *g = b->model->graph;
    qs_dim shape[QSIM_MAX_RANK];
    if (rank < -1 || rank > QSIM_MAX_RANK || (rank > 0 && !dims) || dtype < 0 || dtype > QSIM_INT2)
        return fail(b, QSIM_E_ARGUMENT, "has no such type or rank", g->values[id].name);
    for (int32_t i = 0; i < rank; i++) {
        shape[i] = (qs_dim){dims[i] < 0 ? -1 : dims[i], NULL};
        if (dims[i] >= 0 || !names || !names[i] || !names[i][0])
            continue;
        if (!text_ok(names[i]))
            return fail(b, QSIM_E_ARGUMENT, "has a symbol that is not UTF-8", g->values[id].name);
        shape[i].symbol = keep_text(b, names[i]);
        if (!shape[i].symbol)
            return nomem(b);
    }
    if (!qs_shape_fits(dtype, rank, shape))
        return fail(b, QSIM_E_LIMIT, "has a shape that is too large", g->values[id].name);
    g->values[id].declared = true;
    return qs_value_set_shape(g, id, dtype, rank, shape) ? nomem(b) : QSIM_OK;
}

int qsim_builder_input(qsim_builder *b, const char *name, int32_t dtype, int32_t rank,
                       const int64_t *dims, const char *const *dim_names) {
    ENTER(b)
    qs_id id;
    if (!text_ok(name) || !name[0] || dtype == QSIM_UNDEFINED)
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: an input without name or type");
    int code = find_or_add(b, name, &id);
    if (code)
        return code;
    if (qs_value_exists(&b->model->graph->values[id]))
        return fail(b, QSIM_E_GRAPH, "is defined twice", name);
    if (qs_graph_push_input(b->model->graph, id))
        return nomem(b);
    return set_type(b, id, dtype, rank, dims, dim_names);
}

int qsim_builder_output(qsim_builder *b, const char *name, int32_t dtype, int32_t rank,
                        const int64_t *dims, const char *const *dim_names) {
    ENTER(b)
    qs_id id;
    if (!text_ok(name) || !name[0])
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: an output without name");
    int code = find_or_add(b, name, &id);
    if (code)
        return code;
    if (qs_graph_push_output(b->model->graph, id))
        return nomem(b);
    const qs_value *v = &b->model->graph->values[id];
    return v->is_input || v->data ? QSIM_OK : set_type(b, id, dtype, rank, dims, dim_names);
}

/* Checks a tensor and copies it into the arena. */
static int copy_tensor(qsim_builder *b, const char *name, const qsim_tensor *t, qs_const *c) {
    qs_arena *arena = &b->model->graph->arena;
    *c = (qs_const){.dtype = t ? t->dtype : 0, .rank = t ? t->rank : 0};
    if (!t)
        return fail(b, QSIM_E_ARGUMENT, "has no tensor", name);
    int code = qsim_tensor_size(t->dtype, t->rank, t->dims, &c->elements, &c->bytes);
    if (code)
        return fail(b, code, "has no such type or shape", name);
    if (c->bytes != t->bytes || (c->bytes && !t->data))
        return fail(b, QSIM_E_ARGUMENT, "has other bytes than its shape says", name);
    c->dims = qs_arena_copy(arena, t->dims, (size_t)t->rank * sizeof(*t->dims));
    uint8_t *data = qs_arena_alloc64(arena, c->bytes ? c->bytes : 1);
    if (!c->dims || !data)
        return nomem(b);
    if (c->bytes)
        memcpy(data, t->data, c->bytes);
    c->data = data;
    return QSIM_OK;
}

int qsim_builder_constant(qsim_builder *b, const char *name, const qsim_tensor *value) {
    ENTER(b)
    qs_id id;
    qs_const c = {0}, *kept;
    if (!text_ok(name) || !name[0])
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: a constant without name");
    int code = find_or_add(b, name, &id);
    if (!code && qs_value_exists(&b->model->graph->values[id]))
        code = fail(b, QSIM_E_GRAPH, "is defined twice", name);
    if (!code)
        code = copy_tensor(b, name, value, &c);
    if (!code)
        code = set_type(b, id, c.dtype, c.rank, c.dims, NULL);
    if (code)
        return code;
    kept = qs_arena_copy(&b->model->graph->arena, &c, sizeof(c));
    if (!kept)
        return nomem(b);
    b->model->graph->values[id].data = kept;
    return QSIM_OK;
}

/* ---- short forms ---- */

static int no_type(qsim_builder *b, const char *name, const char *type) {
    return qs_fail(&b->error, QSIM_E_ARGUMENT, "%s: '%s' has no type such as float[N,64]: '%s'",
                   b->model->name, name ? name : "", type ? type : "");
}

int qsim_builder_input_as(qsim_builder *b, const char *name, const char *type) {
    ENTER(b)
    qs_text_type t;
    if (!qs_builder_type(type, &t))
        return no_type(b, name, type);
    return qsim_builder_input(b, name, t.dtype, t.rank, t.dims, t.names);
}

int qsim_builder_output_as(qsim_builder *b, const char *name, const char *type) {
    ENTER(b)
    qs_text_type t = {.dtype = QSIM_UNDEFINED, .rank = -1};
    if (type && !qs_builder_type(type, &t))
        return no_type(b, name, type);
    return qsim_builder_output(b, name, t.dtype, t.rank, t.dims, t.names);
}

int qsim_builder_constant_as(qsim_builder *b, const char *name, const char *type,
                             const void *data) {
    ENTER(b)
    qs_text_type t;
    size_t bytes;
    if (!qs_builder_type(type, &t) || t.rank < 0)
        return no_type(b, name, type);
    for (int32_t i = 0; i < t.rank; i++)
        if (t.dims[i] < 0)
            return no_type(b, name, type);
    if (qsim_tensor_size(t.dtype, t.rank, t.dims, NULL, &bytes))
        return no_type(b, name, type);
    qsim_tensor value = {t.dtype, t.rank, t.dims, (void *)(uintptr_t)data, bytes};
    return qsim_builder_constant(b, name, &value);
}

/* ---- nodes ---- */

/* Appends the ids of comma-separated names to b->ids from `at` on. */
static int parse_names(qsim_builder *b, const char *names, size_t at, size_t *count) {
    char name[1024];
    *count = 0;
    if (!qs_grow(b->ctx, (void **)&b->ids, &b->ids_capacity, at, sizeof(*b->ids)))
        return nomem(b); /* so that b->ids is not NULL for a node without names */
    for (const char *p = names; p && *names; p = *p ? p + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (n >= sizeof(name))
            return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: a name is over 1023 bytes");
        memcpy(name, p, n);
        name[n] = 0;
        if (!qs_grow(b->ctx, (void **)&b->ids, &b->ids_capacity, at + *count, sizeof(*b->ids)))
            return nomem(b);
        qs_id *id = &b->ids[at + (*count)++];
        *id = QS_NONE;
        if (n > 0 && find_or_add(b, name, id))
            return b->error.code;
        p += n;
    }
    return QSIM_OK;
}

static int claim_outputs(qsim_builder *b, const qs_id *ids, size_t count) {
    qs_graph *g = b->model->graph;
    for (size_t i = 0; i < count; i++) {
        qs_value *v = ids[i] == QS_NONE ? NULL : &g->values[ids[i]];
        if (v && qs_value_exists(v))
            return fail(b, QSIM_E_GRAPH, "is written twice", v->name);
        if (v)
            v->producer = (qs_id)g->node_count;
    }
    return QSIM_OK;
}

int qsim_builder_node(qsim_builder *b, const char *domain, const char *op_type, const char *name,
                      const char *inputs, const char *outputs) {
    ENTER(b)
    size_t in, out;
    domain = domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
    name = name ? name : "";
    if (!text_ok(domain) || !text_ok(op_type) || !op_type[0] || !text_ok(name) ||
        !text_ok(inputs) || !text_ok(outputs))
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: a node without operator or names");
    if (strcmp(domain, "qsim") == 0)
        return fail(b, QSIM_E_UNSUPPORTED, "is not for models", domain);
    int code = parse_names(b, inputs, 0, &in);
    if (!code)
        code = parse_names(b, outputs, in, &out);
    if (!code)
        code = claim_outputs(b, b->ids + in, out);
    if (code)
        return code;
    const char *d = keep_text(b, domain), *o = keep_text(b, op_type), *n = keep_text(b, name);
    if (!d || !o || !n)
        return nomem(b);
    b->node =
        qs_graph_add_node(b->model->graph, d, o, n, b->ids, (int32_t)in, b->ids + in, (int32_t)out);
    return b->node >= 0 ? QSIM_OK : nomem(b);
}

static int set_attr(qsim_builder *b, qs_attr *a, bool kept) {
    if (!text_ok(a->name) || !a->name[0])
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: an attribute without name");
    if (b->node == QS_NONE)
        return qs_fail(&b->error, QSIM_E_STATE, "builder: an attribute before the first node");
    return !kept || qs_node_set_attr(b->model->graph, b->node, a) ? nomem(b) : QSIM_OK;
}

int qsim_builder_attr_int(qsim_builder *b, const char *name, int64_t value) {
    ENTER(b)
    qs_attr a = {.name = name, .type = QSIM_ATTR_INT, .u.i = value};
    return set_attr(b, &a, true);
}

int qsim_builder_attr_float(qsim_builder *b, const char *name, float value) {
    ENTER(b)
    qs_attr a = {.name = name, .type = QSIM_ATTR_FLOAT, .u.f = value};
    return set_attr(b, &a, true);
}

int qsim_builder_attr_string(qsim_builder *b, const char *name, const char *value) {
    ENTER(b)
    if (!value)
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: a string attribute without value");
    const char *kept = keep_text(b, value);
    qs_attr a = {.name = name, .type = QSIM_ATTR_STRING};
    a.u.s = (qs_span){(const uint8_t *)kept, strlen(value)};
    return set_attr(b, &a, kept != NULL);
}

static int set_list(qsim_builder *b, const char *name, int32_t type, const void *values,
                    size_t count, size_t element) {
    if (count > INT32_MAX || (count && !values))
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: an attribute's list is too long");
    const void *kept = qs_arena_copy(&b->model->graph->arena, values, count * element);
    qs_attr a = {.name = name, .type = type, .count = (int32_t)count};
    if (type == QSIM_ATTR_INTS)
        a.u.ints = kept;
    else
        a.u.floats = kept;
    return set_attr(b, &a, kept != NULL);
}

int qsim_builder_attr_ints(qsim_builder *b, const char *name, const int64_t *values, size_t count) {
    ENTER(b)
    return set_list(b, name, QSIM_ATTR_INTS, values, count, sizeof(*values));
}

int qsim_builder_attr_floats(qsim_builder *b, const char *name, const float *values, size_t count) {
    ENTER(b)
    return set_list(b, name, QSIM_ATTR_FLOATS, values, count, sizeof(*values));
}

int qsim_builder_attr_strings(qsim_builder *b, const char *name, const char *const *values,
                              size_t count) {
    ENTER(b)
    qs_attr a = {.name = name, .type = QSIM_ATTR_STRINGS, .count = (int32_t)count};
    bool missing = count > INT32_MAX || (count && !values);
    for (size_t i = 0; !missing && i < count; i++)
        missing = !values[i];
    if (missing)
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: a string attribute without value");
    qs_span *kept = qs_arena_alloc(&b->model->graph->arena, count, sizeof(*kept));
    bool ok = kept != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        kept[i] = (qs_span){(const uint8_t *)keep_text(b, values[i]), strlen(values[i])};
        ok = kept[i].data != NULL;
    }
    a.u.strings = kept;
    return set_attr(b, &a, ok);
}

int qsim_builder_attr_tensor(qsim_builder *b, const char *name, const qsim_tensor *value) {
    ENTER(b)
    qs_const c;
    int code = copy_tensor(b, name ? name : "", value, &c);
    if (code)
        return code;
    qs_attr a = {.name = name, .type = QSIM_ATTR_TENSOR};
    a.u.tensor = qs_arena_copy(&b->model->graph->arena, &c, sizeof(c));
    return set_attr(b, &a, a.u.tensor != NULL);
}

int qsim_builder_metadata(qsim_builder *b, const char *key, const char *value) {
    ENTER(b)
    if (!text_ok(key) || !text_ok(value))
        return qs_fail(&b->error, QSIM_E_ARGUMENT, "builder: metadata is not text");
    return qs_model_set_property(b->model, key, value) ? nomem(b) : QSIM_OK;
}

static int check(qsim_builder *b) {
    qsim_model *m = b->model;
    const qs_graph *g = m->graph;
    qs_reader r = {.ctx = m->ctx,
                   .model = m,
                   .graph = m->graph,
                   .arena = &m->graph->arena,
                   .name = m->name,
                   .error = &b->error};
    for (size_t i = 0; i < g->output_count; i++)
        if (!qs_value_exists(&g->values[g->outputs[i]]))
            return fail(b, QSIM_E_GRAPH, "is an output that no node makes",
                        g->values[g->outputs[i]].name);
    int code = qs_read_names(&r);
    return code ? code : qs_read_operators(&r);
}

int qsim_builder_finish(qsim_builder *b, qsim_model **out, qsim_error *error) {
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!b || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "builder: nothing to finish");
    int code = closed(b);
    if (!code)
        code = check(b);
    if (code) {
        if (error)
            *error = b->error;
        return qs_leave(b->ctx, code, error);
    }
    b->model->ir_version = qs_ir_of_opset(qs_graph_import(b->model->graph, ""));
    *out = b->model;
    b->model = NULL;
    return QSIM_OK;
}

void qsim_builder_free(qsim_builder *b) {
    if (!b)
        return;
    qsim_ctx *ctx = b->ctx;
    qsim_model_free(b->model);
    qs_free(ctx, b->ids);
    qs_free(ctx, b);
    qs_ctx_drop(ctx);
}
