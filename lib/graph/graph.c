/* SPDX-License-Identifier: MIT */
/* Creation, values, nodes and edits of a graph; order.c sorts, node.c knows attributes. */
#include "graph/graph.h"
#include "base/ctx.h"
#include "graph/names.h"
#include "graph/subgraph.h"

#include <stddef.h>

static qsim_ctx *ctx_of(const qs_graph *g) {
    return g->arena.ctx;
}

int qs_graph_create(qsim_ctx *ctx, qs_graph **out) {
    qs_graph *g = qs_calloc(ctx, 1, sizeof(*g));
    if (!g)
        return QSIM_E_NOMEM;
    qs_arena_init(&g->arena, ctx);
    g->name = "";
    g->names = qs_names_create(ctx);
    if (!g->names) {
        qs_graph_free(g);
        return QSIM_E_NOMEM;
    }
    *out = g;
    return QSIM_OK;
}

/* The arrays of a graph: where it keeps their address, number and capacity. */
static const struct array {
    uint16_t at, count, capacity, element;
} arrays[] = {
#define ARRAY(list, one)                                                                           \
    {                                                                                              \
        offsetof(qs_graph, list), offsetof(qs_graph, one##_count),                                 \
            offsetof(qs_graph, one##_capacity), sizeof(*((qs_graph *)NULL)->list)                  \
    }
    ARRAY(values, value),   ARRAY(nodes, node),  ARRAY(inputs, input),
    ARRAY(outputs, output), ARRAY(order, order), ARRAY(imports, import),
#undef ARRAY
};

/* The field of a graph at this offset. */
static void *field(const qs_graph *g, size_t offset) {
    return (char *)(uintptr_t)g + offset;
}

void qs_graph_free(qs_graph *g) {
    if (!g)
        return;
    qsim_ctx *ctx = ctx_of(g);
    qs_names_free(ctx, g->names);
    for (size_t i = 0; i < QS_COUNT(arrays); i++)
        qs_free(ctx, *(void **)field(g, arrays[i].at));
    for (size_t i = 0; i < g->owned_count; i++)
        qs_graph_free(g->owned[i]);
    qs_free(ctx, g->owned);
    qs_arena_free(&g->arena);
    qs_free(ctx, g);
}

/* Copies an array of a graph; an empty one stays NULL. Errors: NOMEM, those of a stop. */
static int copy_array(const struct array *a, const qs_graph *from, qs_graph *g) {
    const size_t count = *(size_t *)field(from, a->count);
    void **to = field(g, a->at);
    if (count == 0)
        return QSIM_OK;
    if (!qs_grow(ctx_of(g), to, field(g, a->capacity), count, a->element))
        return QSIM_E_NOMEM;
    *(size_t *)field(g, a->count) = count;
    return qs_copy(ctx_of(g), *to, *(void **)field(from, a->at), count * a->element);
}

/* Nodes own their input, output and attribute lists, because passes change them in place. */
static bool copy_lists(qs_graph *g, qs_node *n) {
    n->inputs = qs_arena_copy(&g->arena, n->inputs, (size_t)n->input_count * sizeof(qs_id));
    n->outputs = qs_arena_copy(&g->arena, n->outputs, (size_t)n->output_count * sizeof(qs_id));
    n->attrs = qs_arena_copy(&g->arena, n->attrs, (size_t)n->attr_count * sizeof(qs_attr));
    return n->inputs && n->outputs && n->attrs;
}

int qs_graph_clone(const qs_graph *from, qsim_ctx *ctx, qs_graph **out) {
    qs_graph *g;
    int code = qs_stop_code(ctx);
    if (!code)
        code = qs_graph_create(ctx, &g);
    if (code)
        return code;
    qs_names_free(ctx, g->names);
    g->names = qs_names_clone(ctx, from->names);
    g->name = from->name;
    code = g->names ? qs_stop_code(ctx) : QSIM_E_NOMEM; /* a stop ends the copy early */
    for (size_t i = 0; i < QS_COUNT(arrays) && !code; i++)
        code = copy_array(&arrays[i], from, g);
    for (size_t i = 0; !code && i < g->node_count; i++) {
        code = qs_go_on_at(ctx, i, "", NULL);
        if (!code)
            code = copy_lists(g, &g->nodes[i]) ? qs_subgraphs_clone(g, &g->nodes[i]) : QSIM_E_NOMEM;
    }
    if (code) {
        qs_graph_free(g);
        return code;
    }
    *out = g;
    return QSIM_OK;
}

/* ---- values ---- */

qs_id qs_graph_find(const qs_graph *g, const char *name) {
    return name && *name ? qs_names_find(g->names, name) : QS_NONE;
}

int qs_graph_rename(qs_graph *g, qs_id value, const char *name) {
    qs_value *v = &g->values[value];
    if (qs_names_put(ctx_of(g), g->names, name, value) ||
        qs_names_put(ctx_of(g), g->names, v->name, QS_NONE))
        return QSIM_E_NOMEM;
    v->name = name;
    v->source = (qs_span){NULL, 0};
    return QSIM_OK;
}

qs_id qs_graph_add_value(qs_graph *g, const char *name) {
    if (g->value_count >= INT32_MAX)
        return QSIM_E_LIMIT;
    if (!qs_grow(ctx_of(g), (void **)&g->values, &g->value_capacity, g->value_count,
                 sizeof(*g->values)))
        return QSIM_E_NOMEM;
    qs_id id = (qs_id)g->value_count;
    qs_value *v = &g->values[id];
    memset(v, 0, sizeof(*v));
    v->producer = QS_NONE;
    v->rank = -1;
    v->name = name && *name ? qs_arena_string(&g->arena, name, strlen(name)) : "";
    if (!v->name)
        return QSIM_E_NOMEM;
    if (*v->name && qs_names_put(ctx_of(g), g->names, v->name, id))
        return QSIM_E_NOMEM;
    g->value_count++;
    return id;
}

static const qs_dim *dims_from_sizes(qs_graph *g, int32_t rank, const int64_t *sizes) {
    qs_dim *dims = qs_arena_alloc(&g->arena, (size_t)rank, sizeof(*dims));
    for (int32_t i = 0; dims && i < rank; i++)
        dims[i].size = sizes[i];
    return dims;
}

qs_id qs_graph_add_const(qs_graph *g, const char *name, int32_t dtype, int32_t rank,
                         const int64_t *dims, const void *data, bool copy) {
    qs_const c = {.dtype = dtype, .rank = rank};
    int code = qsim_tensor_size(dtype, rank, dims, &c.elements, &c.bytes);
    if (code)
        return code;
    qs_const *kept = qs_arena_alloc(&g->arena, 1, sizeof(*kept));
    c.dims = qs_arena_copy(&g->arena, dims, (size_t)rank * sizeof(*dims));
    const qs_dim *shape = dims_from_sizes(g, rank, dims);
    c.data = copy ? qs_arena_copy(&g->arena, data, c.bytes) : data;
    if (!kept || !c.dims || !shape || !c.data)
        return QSIM_E_NOMEM;
    qs_id id = qs_graph_add_value(g, name);
    if (id < 0)
        return id;
    *kept = c;
    qs_value *v = &g->values[id];
    v->dtype = dtype;
    v->rank = rank;
    v->dims = shape;
    v->data = kept;
    return id;
}

const char *qs_graph_fresh_name(qs_graph *g, const char *base) {
    return qs_names_counter(g->names, base) ? qs_names_unused(g->names, &g->arena, base, 1)
                                            : qs_arena_string(&g->arena, base, strlen(base));
}

bool qs_dim_same(const qs_dim *a, const qs_dim *b) {
    if (a->size >= 0 || b->size >= 0)
        return a->size == b->size;
    return a->symbol && a->symbol == b->symbol;
}

bool qs_shape_fits(int32_t dtype, int32_t rank, const qs_dim *dims) {
    int64_t sizes[QSIM_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        sizes[i] = dims[i].size < 0 ? 1 : dims[i].size;
    return rank < 0 || qsim_dtype_bits(dtype) <= 0 ||
           qsim_tensor_size(dtype, rank, sizes, NULL, NULL) == QSIM_OK;
}

/* No memcpy: dims may be NULL where there are none, which memcpy may not be given. */
void qs_value_dims(const qs_value *v, qs_dim *to) {
    for (int32_t i = 0; i < v->rank; i++)
        to[i] = v->dims[i];
}

int qs_value_set_shape(qs_graph *g, qs_id value, int32_t dtype, int32_t rank, const qs_dim *dims) {
    const qs_dim *kept =
        rank > 0 ? qs_arena_copy(&g->arena, dims, (size_t)rank * sizeof(*dims)) : NULL;
    if (rank > 0 && !kept)
        return QSIM_E_NOMEM;
    g->values[value].dtype = dtype;
    g->values[value].rank = rank;
    g->values[value].dims = kept;
    return QSIM_OK;
}

const void *qs_graph_aligned(qs_graph *g, qs_id value) {
    const qs_const *c = g->values[value].data;
    int32_t bits = qsim_dtype_bits(c->dtype);
    size_t unit = bits > 8 ? (size_t)bits / 8 : 1;
    if ((uintptr_t)c->data % unit == 0)
        return c->data;
    qs_const *moved = qs_arena_copy(&g->arena, c, sizeof(*c));
    void *data = qs_arena_alloc64(&g->arena, c->bytes);
    if (!moved || !data)
        return NULL;
    memcpy(data, c->data, c->bytes);
    moved->data = data;
    g->values[value].data = moved;
    return data;
}

/* ---- nodes ---- */

qs_id qs_graph_add_node(qs_graph *g, const char *domain, const char *op_type, const char *name,
                        const qs_id *inputs, int32_t input_count, const qs_id *outputs,
                        int32_t output_count) {
    if (g->node_count >= INT32_MAX)
        return QSIM_E_LIMIT;
    if (!qs_grow(ctx_of(g), (void **)&g->nodes, &g->node_capacity, g->node_count,
                 sizeof(*g->nodes)))
        return QSIM_E_NOMEM;
    qs_id id = (qs_id)g->node_count;
    int64_t version = qs_graph_import(g, domain);
    qs_node n = {.name = name ? name : "",
                 .domain = domain,
                 .op_type = op_type,
                 .input_count = input_count,
                 .output_count = output_count,
                 .version = version > 0 && version <= INT32_MAX ? (int32_t)version : 1,
                 .changed = true};
    n.inputs = qs_arena_copy(&g->arena, inputs, (size_t)input_count * sizeof(qs_id));
    n.outputs = qs_arena_copy(&g->arena, outputs, (size_t)output_count * sizeof(qs_id));
    if (!n.inputs || !n.outputs)
        return QSIM_E_NOMEM;
    g->nodes[id] = n;
    g->node_count++;
    for (int32_t i = 0; i < output_count; i++)
        if (outputs[i] != QS_NONE)
            g->values[outputs[i]].producer = id;
    return id;
}

qs_id qs_graph_add_like(qs_graph *g, const qs_node *like, const qs_id *inputs,
                        const qs_id *outputs) {
    const qs_node from = *like; /* adding may move the graph's nodes */
    const qs_id id = qs_graph_add_node(g, from.domain, from.op_type, from.name, inputs,
                                       from.input_count, outputs, from.output_count);
    if (id < 0)
        return id;
    qs_node *n = &g->nodes[id];
    n->op = from.op;
    n->attrs = from.attrs;
    n->attr_count = from.attr_count;
    n->captured = from.captured;
    n->version = from.version;
    return id;
}

void qs_node_set_input(qs_graph *g, qs_id node, int32_t index, qs_id value) {
    g->nodes[node].inputs[index] = value;
    g->nodes[node].changed = true;
}

int qs_node_grow_inputs(qs_graph *g, qs_id node, int32_t count) {
    qs_node *n = &g->nodes[node];
    if (count <= n->input_count)
        return QSIM_OK;
    qs_id *inputs = qs_arena_alloc(&g->arena, (size_t)count, sizeof(*inputs));
    if (!inputs)
        return QSIM_E_NOMEM;
    if (n->input_count)
        memcpy(inputs, n->inputs, (size_t)n->input_count * sizeof(*inputs));
    for (int32_t i = n->input_count; i < count; i++)
        inputs[i] = QS_NONE;
    n->inputs = inputs;
    n->input_count = count;
    n->changed = true;
    return QSIM_OK;
}

void qs_graph_remove_node(qs_graph *g, qs_id node) {
    qs_node *n = &g->nodes[node];
    n->removed = true;
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] != QS_NONE && g->values[n->outputs[i]].producer == node)
            g->values[n->outputs[i]].producer = QS_NONE;
}

/* ---- inputs, outputs, imports ---- */

int qs_graph_push_input(qs_graph *g, qs_id value) {
    if (!qs_grow(ctx_of(g), (void **)&g->inputs, &g->input_capacity, g->input_count,
                 sizeof(*g->inputs)))
        return QSIM_E_NOMEM;
    g->inputs[g->input_count++] = value;
    g->values[value].is_input = true;
    return QSIM_OK;
}

int qs_graph_push_output(qs_graph *g, qs_id value) {
    if (!qs_grow(ctx_of(g), (void **)&g->outputs, &g->output_capacity, g->output_count,
                 sizeof(*g->outputs)))
        return QSIM_E_NOMEM;
    g->outputs[g->output_count++] = value;
    g->values[value].is_output = true;
    return QSIM_OK;
}

void qs_graph_set_output(qs_graph *g, size_t index, qs_id value) {
    g->outputs[index] = value;
    g->values[value].is_output = true;
}

void qs_graph_mark_outputs(qs_graph *g) {
    for (size_t i = 0; i < g->value_count; i++)
        g->values[i].is_output = false;
    for (size_t i = 0; i < g->output_count; i++)
        g->values[g->outputs[i]].is_output = true;
}

int64_t qs_graph_import(const qs_graph *g, const char *domain) {
    for (size_t i = 0; i < g->import_count; i++)
        if (qs_same(g->imports[i].domain, domain))
            return g->imports[i].version;
    return 0;
}

int qs_graph_set_import(qs_graph *g, const char *domain, int64_t version) {
    for (size_t i = 0; i < g->import_count; i++)
        if (qs_same(g->imports[i].domain, domain)) {
            g->imports[i].version = version;
            return QSIM_OK;
        }
    char *kept = qs_arena_string(&g->arena, domain, strlen(domain));
    if (!kept || !qs_grow(ctx_of(g), (void **)&g->imports, &g->import_capacity, g->import_count,
                          sizeof(*g->imports)))
        return QSIM_E_NOMEM;
    g->imports[g->import_count++] = (qs_import){kept, version};
    return QSIM_OK;
}
