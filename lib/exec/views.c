/* SPDX-License-Identifier: MIT */
/*
 * Functions that inspect a model. A model is immutable and shared by threads, so the results are
 * built on first use and published by one atomic exchange; a thread that loses the race frees its
 * own.
 */
#include "exec/exec.h"
#include "pass/pass.h"

/* Counts that public functions return. */
enum { VALUES, NODES, PARAMETERS, PARAMETER_BYTES, COUNTS };

struct views {
    qs_views head;
    qs_arena arena;
    qsim_value_info *values;
    int32_t *index_of; /* by value id: its index in `values`; -1: not listed */
    qsim_node_info *nodes;
    const qs_node **sources; /* of `nodes` */
    int64_t counts[COUNTS];
};

static void free_views(qsim_ctx *ctx, qs_views *head) {
    struct views *v = (struct views *)head;
    qs_arena_free(&v->arena);
    qs_free(ctx, v);
}

static bool fill_value(struct views *views, const qs_value *v, qsim_value_info *info) {
    size_t rank = v->rank > 0 ? (size_t)v->rank : 0;
    int64_t *dims = qs_arena_alloc(&views->arena, rank, sizeof(*dims));
    const char **names = qs_arena_alloc(&views->arena, rank, sizeof(*names));
    if (!dims || !names)
        return false;
    for (size_t i = 0; i < rank; i++) {
        dims[i] = v->dims[i].size < 0 ? -1 : v->dims[i].size;
        names[i] = v->dims[i].size < 0 ? v->dims[i].symbol : NULL;
    }
    *info = (qsim_value_info){.struct_size = sizeof(*info),
                              .name = v->name,
                              .dims = dims,
                              .dim_names = names,
                              .data = v->data ? v->data->data : NULL,
                              .bytes = v->data ? v->data->bytes : 0,
                              .dtype = v->dtype,
                              .rank = v->rank};
    return true;
}

static void list_value(struct views *views, const qs_graph *g, qs_id id) {
    if (id != QS_NONE && views->index_of[id] < 0 && g->values[id].name && g->values[id].name[0])
        views->index_of[id] = (int32_t)views->counts[VALUES]++;
}

/* Lists the named values: inputs, values of nodes in their order, outputs, and other constants. */
static void list_values(struct views *views, const qsim_model *m) {
    const qs_graph *g = m->graph;
    for (size_t i = 0; i < g->input_count; i++)
        list_value(views, g, g->inputs[i]);
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        for (int32_t k = 0; !n->removed && k < n->input_count; k++)
            list_value(views, g, n->inputs[k]);
        for (int32_t k = 0; !n->removed && k < n->output_count; k++)
            list_value(views, g, n->outputs[k]);
    }
    for (size_t i = 0; i < g->output_count; i++)
        list_value(views, g, g->outputs[i]);
    for (size_t i = 0; m->source && i < g->value_count; i++)
        if (g->values[i].data)
            list_value(views, g, (qs_id)i);
}

static int make_values(struct views *views, const qsim_model *m) {
    const qs_graph *g = m->graph;
    int code = QSIM_OK;
    views->index_of = qs_arena_alloc(&views->arena, g->value_count, sizeof(*views->index_of));
    if (!views->index_of)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->value_count; i++)
        views->index_of[i] = -1;
    list_values(views, m);
    views->values =
        qs_arena_alloc(&views->arena, (size_t)views->counts[VALUES], sizeof(*views->values));
    if (!views->values)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->value_count && !code; i++) {
        code = qs_go_on_at(m->ctx, i, "", NULL);
        if (!code && views->index_of[i] >= 0 &&
            !fill_value(views, &g->values[i], &views->values[views->index_of[i]]))
            code = QSIM_E_NOMEM;
    }
    return code;
}

static const char **name_list(struct views *views, const qs_graph *g, const qs_id *ids,
                              int32_t count) {
    const char **names = qs_arena_alloc(&views->arena, (size_t)count, sizeof(*names));
    for (int32_t i = 0; names && i < count; i++)
        names[i] = ids[i] == QS_NONE ? "" : g->values[ids[i]].name;
    return names;
}

/*
 * Finds the nodes that a session would run in integers, by live node in order: runs its passes on a
 * clone until that is known. If the model does not compile, the rows of the operators decide.
 * Errors: NOMEM, and those of a stop.
 */
static int find_integers(const qsim_model *m, bool *integer) {
    qs_graph *g = NULL;
    qs_pass p = {.ctx = m->ctx,
                 .model = m->name,
                 .origin = m->graph,
                 .integer = integer,
                 .only_marks = true};
    int code = m->inspect_only ? QSIM_E_STATE : qs_graph_clone(m->graph, m->ctx, &g);
    if (!code) {
        p.graph = g;
        code = qs_pipeline_run(&p, QS_FOR_SESSION, QSIM_LEVEL_ALL);
    }
    const int stopped = qs_stop_code(m->ctx);
    if (code && code != QSIM_E_NOMEM && !stopped) {
        p.graph = m->graph;
        code = qs_pass_mark_integers(&p);
    }
    qs_graph_free(g);
    return stopped ? stopped : code;
}

/* See qsim_node_info. */
static uint64_t operands_of(const qs_node *n) {
    uint64_t bits = n->op ? 0 : UINT64_MAX;
    for (int32_t i = 0; n->op && i < n->input_count && i < 64; i++)
        bits |= (uint64_t)qs_op_is_operand(n->op, i) << i;
    return bits;
}

static int make_nodes(struct views *views, const qsim_model *m) {
    const qs_graph *g = m->graph;
    views->nodes = qs_arena_alloc(&views->arena, g->order_count, sizeof(*views->nodes));
    views->sources = qs_arena_alloc(&views->arena, g->order_count, sizeof(*views->sources));
    bool *integer = qs_arena_alloc(&views->arena, g->node_count + 1, sizeof(*integer));
    if (!views->nodes || !views->sources || !integer)
        return QSIM_E_NOMEM;
    const int code = find_integers(m, integer);
    if (code)
        return code;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        if (n->removed)
            continue;
        const char **in = name_list(views, g, n->inputs, n->input_count);
        const char **out = name_list(views, g, n->outputs, n->output_count);
        if (!in || !out)
            return QSIM_E_NOMEM;
        qsim_node_info *info = &views->nodes[views->counts[NODES]];
        *info = (qsim_node_info){.struct_size = sizeof(*info),
                                 .name = n->name ? n->name : "",
                                 .domain = n->domain,
                                 .op_type = n->op_type,
                                 .inputs = in,
                                 .outputs = out,
                                 .input_count = n->input_count,
                                 .output_count = n->output_count,
                                 .macs = qs_op_macs(g, g->order[i]),
                                 .integer = integer[views->counts[NODES]],
                                 .operands = operands_of(n)};
        for (int32_t k = 0; k < n->attr_count; k++)
            info->graphs += n->attrs[k].type == QSIM_ATTR_GRAPH;
        views->sources[views->counts[NODES]++] = n;
    }
    return QSIM_OK;
}

/* ---- parameters ---- */

/*
 * The constant of a value: an initializer, or the tensor of a Constant node; NULL: it is computed.
 */
static const qs_const *constant(const qs_graph *g, qs_id value) {
    const qs_value *v = &g->values[value];
    if (v->data)
        return v->data;
    if (v->producer == QS_NONE || g->nodes[v->producer].input_count > 0)
        return NULL;
    const qs_attr *a = qs_node_attr(&g->nodes[v->producer], "value");
    return a && a->type == QSIM_ATTR_TENSOR ? a->u.tensor : NULL;
}

/*
 * Counts elements and bytes of the constants that nodes read as operands, not as bounds, shapes,
 * scales or zero points, each once; those of int64, bool and strings do not count. False: out of
 * memory.
 */
static bool count_parameters(struct views *views, const qs_graph *g) {
    bool *seen = qs_arena_alloc(&views->arena, g->value_count, sizeof(*seen));
    for (size_t i = 0; i < g->order_count && seen; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        for (int32_t k = 0; k < n->input_count && !n->removed; k++) {
            const qs_id x = n->inputs[k];
            const qs_const *c = x == QS_NONE || seen[x] ? NULL : constant(g, x);
            if (!c || c->dtype == QSIM_INT64 || c->dtype == QSIM_BOOL || c->dtype == QSIM_STRING ||
                (n->op && !qs_op_is_operand(n->op, k)))
                continue;
            seen[x] = true;
            views->counts[PARAMETERS] += (int64_t)c->elements;
            views->counts[PARAMETER_BYTES] += (int64_t)c->bytes;
        }
    }
    return seen;
}

static int make_views(const qsim_model *m, struct views **out) {
    struct views *views = qs_calloc(m->ctx, 1, sizeof(*views));
    if (!views)
        return QSIM_E_NOMEM;
    views->head.free = free_views;
    qs_arena_init(&views->arena, m->ctx);
    int code = make_values(views, m);
    if (!code)
        code = make_nodes(views, m);
    if (!code && !count_parameters(views, m->graph))
        code = QSIM_E_NOMEM;
    if (code)
        free_views(m->ctx, &views->head);
    else
        *out = views;
    return code;
}

/* NULL: *code says why. */
static const struct views *views_of(const qsim_model *model, int *code) {
    qsim_model *m = (qsim_model *)(uintptr_t)model;
    *code = QSIM_E_ARGUMENT;
    if (!m)
        return NULL;
    qs_views *published = atomic_load(&m->views);
    if (published)
        return (const struct views *)published;
    struct views *made = NULL;
    *code = make_views(model, &made);
    if (*code)
        return NULL;
    if (!atomic_compare_exchange_strong(&m->views, &published, &made->head)) {
        free_views(m->ctx, &made->head);
        return (const struct views *)published;
    }
    return made;
}

/* Negative: a code. */
static int64_t count_of(const qsim_model *model, int what) {
    int code;
    const struct views *views = views_of(model, &code);
    return views ? views->counts[what] : model ? code : 0;
}

/* The listed value `index`, or the value with this id if `by_id`. */
static int get_value(const qsim_model *model, int32_t index, bool by_id, qsim_value_info *info) {
    int code;
    const struct views *views = views_of(model, &code);
    if (!views)
        return code;
    if (by_id)
        index = views->index_of[index];
    if (!info || index < 0 || index >= views->counts[VALUES])
        return QSIM_E_ARGUMENT;
    return qs_give(info, &views->values[index], sizeof(*info));
}

int32_t qsim_model_input_count(const qsim_model *model) {
    return model ? (int32_t)model->graph->input_count : 0;
}

int32_t qsim_model_output_count(const qsim_model *model) {
    return model ? (int32_t)model->graph->output_count : 0;
}

int qsim_model_input(const qsim_model *model, int32_t index, qsim_value_info *info) {
    if (!model || index < 0 || (size_t)index >= model->graph->input_count)
        return QSIM_E_ARGUMENT;
    return get_value(model, model->graph->inputs[index], true, info);
}

int qsim_model_output(const qsim_model *model, int32_t index, qsim_value_info *info) {
    if (!model || index < 0 || (size_t)index >= model->graph->output_count)
        return QSIM_E_ARGUMENT;
    return get_value(model, model->graph->outputs[index], true, info);
}

int32_t qsim_model_value_count(const qsim_model *model) {
    return (int32_t)count_of(model, VALUES);
}

int qsim_model_value(const qsim_model *model, int32_t index, qsim_value_info *info) {
    return get_value(model, index, false, info);
}

int32_t qsim_model_node_count(const qsim_model *model) {
    return (int32_t)count_of(model, NODES);
}

int qsim_model_node(const qsim_model *model, int32_t index, qsim_node_info *info) {
    int code;
    const struct views *views = views_of(model, &code);
    if (!views)
        return code;
    if (!info || index < 0 || index >= views->counts[NODES])
        return QSIM_E_ARGUMENT;
    return qs_give(info, &views->nodes[index], sizeof(*info));
}

_Static_assert(sizeof(qsim_bytes) == sizeof(qs_span) &&
                   offsetof(qsim_bytes, size) == offsetof(qs_span, size),
               "strings are given as they are stored");
static qsim_attr_info describe_attr(const qs_attr *a) {
    qsim_attr_info info = {.name = a->name, .type = a->type, .count = 1};
    switch (a->type) {
    case QSIM_ATTR_FLOATS:
    case QSIM_ATTR_FLOAT: info.floats = a->type == QSIM_ATTR_FLOAT ? &a->u.f : a->u.floats; break;
    case QSIM_ATTR_INTS:
    case QSIM_ATTR_INT: info.ints = a->type == QSIM_ATTR_INT ? &a->u.i : a->u.ints; break;
    case QSIM_ATTR_STRINGS:
    case QSIM_ATTR_STRING:
        info.strings = (const qsim_bytes *)(a->type == QSIM_ATTR_STRING ? &a->u.s : a->u.strings);
        break;
    case QSIM_ATTR_TENSOR:
        info.tensor = (qsim_tensor){a->u.tensor->dtype, a->u.tensor->rank, a->u.tensor->dims,
                                    (void *)(uintptr_t)a->u.tensor->data, a->u.tensor->bytes};
        break;
    default: break;
    }
    if (a->type >= QSIM_ATTR_FLOATS && a->type <= QSIM_ATTR_STRINGS)
        info.count = a->count;
    return info;
}

int qsim_model_attr(const qsim_model *model, int32_t node, int32_t index, qsim_attr_info *info) {
    int code;
    const struct views *views = views_of(model, &code);
    if (!views)
        return code;
    if (!info || !info->struct_size || node < 0 || node >= views->counts[NODES] || index < 0)
        return QSIM_E_ARGUMENT;
    const qs_node *n = views->sources[node];
    if (index >= n->attr_count)
        return QSIM_E_NOT_FOUND;
    const qsim_attr_info own = describe_attr(&n->attrs[index]);
    return qs_give(info, &own, sizeof(own));
}

int64_t qsim_model_opset(const qsim_model *model, const char *domain) {
    bool standard = !domain || strcmp(domain, "ai.onnx") == 0;
    return model ? qs_graph_import(model->graph, standard ? "" : domain) : 0;
}

int64_t qsim_model_ir_version(const qsim_model *model) {
    return model ? model->ir_version : 0;
}

int64_t qsim_model_parameters(const qsim_model *model) {
    return count_of(model, PARAMETERS);
}

int64_t qsim_model_parameter_bytes(const qsim_model *model) {
    return count_of(model, PARAMETER_BYTES);
}

int32_t qsim_model_metadata_count(const qsim_model *model) {
    return model ? (int32_t)model->property_count : 0;
}

const char *qsim_model_metadata_key(const qsim_model *model, int32_t index) {
    if (!model || index < 0 || (size_t)index >= model->property_count)
        return NULL;
    return model->properties[index].key;
}

const char *qsim_model_metadata_value(const qsim_model *model, int32_t index) {
    if (!model || index < 0 || (size_t)index >= model->property_count)
        return NULL;
    return model->properties[index].value;
}
