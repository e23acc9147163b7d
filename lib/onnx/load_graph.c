/* SPDX-License-Identifier: MIT */
/*
 * Reads GraphProto: constants, inputs, nodes, outputs, declared types; then checks that every name
 * is defined.
 */
#include "base/ctx.h"
#include "onnx/reader.h"

typedef int (*field_fn)(qs_reader *r, qs_span message);

/*
 * Skips a part that could not be read if problems are collected: marks the tensors that it defines
 * as broken.
 */
static int skip_part(qs_reader *r, int code, uint32_t number, qs_span message) {
    qs_wire wire;
    qs_field f;
    r->at = NULL;
    code = qs_read_collect(r, code);
    if (!code && number == GRAPH_INITIALIZER)
        return qs_read_break(r, qs_wire_find(message, TENSOR_NAME));
    if (!code && number == GRAPH_SPARSE)
        return qs_read_break(r, qs_wire_find(qs_wire_find(message, SPARSE_VALUES), TENSOR_NAME));
    if (!code && number == GRAPH_INPUT)
        return qs_read_break(r, qs_wire_find(message, VALUE_NAME));
    qs_wire_begin(&wire, message);
    while (!code && number == GRAPH_NODE && qs_wire_next(&wire, &f) == 1)
        if (f.number == NODE_OUTPUT)
            code = qs_read_break(r, f.data);
    return code;
}

/* Checks, after each part, the context's limits and whether to stop. */
static int check_limits(qs_reader *r) {
    int code = qs_go_on(r->ctx, r->name, r->error);
    if (!code)
        code = QS_LIMIT(r->ctx, values, r->graph->value_count, r->error, r->name);
    if (!code && r->nodes_before + r->graph->node_count > r->ctx->limits.nodes)
        code = qs_over_limit(r->error, "nodes", r->ctx->limits.nodes,
                             r->nodes_before + r->graph->node_count, r->name);
    return code;
}

/* Calls fn with every field `number` of every graph message. */
static int read_fields(qs_reader *r, const qs_span *graphs, size_t count, uint32_t number,
                       field_fn fn) {
    for (size_t i = 0; i < count; i++) {
        qs_wire wire;
        qs_field f;
        qs_wire_begin(&wire, graphs[i]);
        while (qs_wire_next(&wire, &f) == 1) {
            if (f.number != number)
                continue;
            int code = fn(r, f.data);
            if (code)
                code = skip_part(r, code, number, f.data);
            if (!code)
                code = check_limits(r);
            if (code)
                return code;
        }
    }
    return QSIM_OK;
}

static int set_shape(qs_reader *r, qs_id id, const qs_type *type) {
    return qs_value_set_shape(r->graph, id, type->dtype, type->rank, type->dims) ? qs_read_nomem(r)
                                                                                 : QSIM_OK;
}

typedef int (*tensor_fn)(qs_reader *r, qs_span message, const char *what, const char *name,
                         qs_const *out);

/* Adds a constant, which a TensorProto in `named` names. */
static int add_constant(qs_reader *r, qs_span named, qs_span message, tensor_fn read) {
    qs_span text = qs_wire_find(named, TENSOR_NAME);
    if (text.size == 0)
        return qs_read_fail(r, QSIM_E_GRAPH, "an initializer has no name");
    const char *name = qs_read_local(r, text);
    if (!name)
        return qs_read_nomem(r);
    if (qs_graph_find(r->graph, name) != QS_NONE)
        return qs_read_fail(r, QSIM_E_GRAPH, "initializer '%s' is defined twice", name);
    qs_id id = qs_graph_add_value(r->graph, name);
    qs_const *c = qs_arena_alloc(r->arena, 1, sizeof(*c));
    if (id < 0 || !c)
        return qs_read_nomem(r);
    int code = read(r, message, "initializer", r->graph->values[id].name, c);
    if (code)
        return code;
    qs_type type = {.dtype = c->dtype, .rank = c->rank};
    for (int32_t i = 0; i < c->rank; i++)
        type.dims[i].size = c->dims[i];
    r->graph->values[id].data = c;
    return set_shape(r, id, &type);
}

int qs_read_initializer(qs_reader *r, qs_span message) {
    return add_constant(r, message, message, qs_read_tensor);
}

int qs_read_sparse_initializer(qs_reader *r, qs_span message) {
    return add_constant(r, qs_wire_find(message, SPARSE_VALUES), message, qs_read_sparse);
}

/* Checks that the declared number of elements can be counted. */
static int check_size(qs_reader *r, const char *name, const qs_type *type) {
    if (!qs_shape_fits(type->dtype, type->rank, type->dims))
        return qs_read_fail(r, QSIM_E_LIMIT, "the shape of tensor '%s' is too large", name);
    return QSIM_OK;
}

/* Checks that an initializer and the input of its name, which old models also list, agree. */
static int check_constant(qs_reader *r, const qs_value *v, const qs_type *type) {
    bool differs = type->rank >= 0 && type->rank != v->rank;
    for (int32_t i = 0; i < type->rank && !differs; i++)
        differs = type->dims[i].size >= 0 && type->dims[i].size != v->dims[i].size;
    if (differs)
        return qs_read_fail(r, QSIM_E_SHAPE, "input '%s' and its initializer differ in shape",
                            v->name);
    if (type->dtype != v->dtype)
        return qs_read_fail(r, QSIM_E_DTYPE, "input '%s' is %s, its initializer %s", v->name,
                            qsim_dtype_name(type->dtype), qsim_dtype_name(v->dtype));
    return QSIM_OK;
}

static int read_input_type(qs_reader *r, qs_span message, const char *name, qs_type *type) {
    int code = qs_read_type(r, message, name, type);
    if (code)
        return code;
    if (!type->present && r->level) { /* in a subgraph: the operator gives it one */
        type->rank = -1;
        return QSIM_OK;
    }
    if (!type->present)
        return qs_read_fail(r, QSIM_E_GRAPH, "input '%s' has no type", name);
    if (type->other && !r->inspect && !r->level) /* in a subgraph the operator decides */
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "input '%s' has type %s, not tensor", name,
                            type->other);
    if (!type->other && type->dtype == QSIM_UNDEFINED)
        return qs_read_fail(r, QSIM_E_DTYPE, "input '%s' has no element type", name);
    return check_size(r, name, type);
}

static int read_input(qs_reader *r, qs_span message) {
    qs_type type;
    qs_span text = qs_wire_find(message, VALUE_NAME);
    const char *name = qs_read_scratch(r, text);
    if (!name)
        return qs_read_nomem(r);
    if (text.size == 0)
        return qs_read_fail(r, QSIM_E_GRAPH, "a graph input has no name");
    int code = read_input_type(r, message, name, &type);
    if (code)
        return code;
    qs_id id = qs_graph_find(r->graph, name);
    if (id != QS_NONE && r->graph->values[id].declared)
        return qs_read_fail(r, QSIM_E_GRAPH, "input '%s' is defined twice", name);
    if (id != QS_NONE) {
        code = check_constant(r, &r->graph->values[id], &type);
    } else {
        id = qs_graph_add_value(r->graph, name);
        if (id < 0 || qs_graph_push_input(r->graph, id))
            return qs_read_nomem(r);
        code = set_shape(r, id, &type);
    }
    r->graph->values[id].source = message;
    r->graph->values[id].declared = true;
    return code;
}

/* Stores the type and shape that a graph output or value_info states for a tensor of a node. */
static int declare(qs_reader *r, qs_span message, qs_id id) {
    qs_type type;
    qs_value *v = &r->graph->values[id];
    if (v->is_input || v->data || v->declared)
        return QSIM_OK;
    int code = qs_read_type(r, message, v->name, &type);
    if (code)
        return code;
    v->source = message;
    if (!type.present || type.other)
        return QSIM_OK;
    v->declared = true;
    code = check_size(r, v->name, &type);
    return code ? code : set_shape(r, id, &type);
}

/* Whether a value is defined, or its definition could not be read. */
static bool is_defined(const qs_value *v) {
    return qs_value_exists(v) || v->broken;
}

static int read_output(qs_reader *r, qs_span message) {
    qs_span text = qs_wire_find(message, VALUE_NAME);
    const char *name = qs_read_scratch(r, text);
    if (!name)
        return qs_read_nomem(r);
    qs_id id = qs_graph_find(r->graph, name);
    const qs_value *v = id == QS_NONE ? NULL : &r->graph->values[id];
    if (!v || !is_defined(v))
        return qs_read_fail(r, QSIM_E_GRAPH, "output '%s' is made by no node", name);
    if (qs_graph_push_output(r->graph, id))
        return qs_read_nomem(r);
    return declare(r, message, id);
}

static int read_value_info(qs_reader *r, qs_span message) {
    const char *name = qs_read_scratch(r, qs_wire_find(message, VALUE_NAME));
    if (!name)
        return qs_read_nomem(r);
    qs_id id = qs_graph_find(r->graph, name);
    return id == QS_NONE ? QSIM_OK : declare(r, message, id);
}

static int read_node_names(qs_reader *r, const qs_node *n) {
    const qs_graph *g = r->graph;
    bool any = false;
    int code = QSIM_OK;
    r->at = n;
    for (int32_t k = 0; k < n->output_count; k++)
        any = any || n->outputs[k] != QS_NONE;
    if (!any)
        code = qs_read_collect(r, qs_read_fail(r, QSIM_E_GRAPH, "the node has no outputs"));
    for (int32_t k = 0; k < n->input_count && !code; k++) {
        const qs_value *v = n->inputs[k] == QS_NONE ? NULL : &g->values[n->inputs[k]];
        if (v && !is_defined(v))
            code = qs_read_collect(
                r, qs_read_fail(r, QSIM_E_GRAPH, "input '%s' is defined nowhere", v->name));
    }
    r->at = NULL;
    return code;
}

int qs_read_names(qs_reader *r) {
    const qs_graph *g = r->graph;
    int code = QSIM_OK;
    if (g->output_count == 0)
        code = qs_read_collect(r, qs_read_fail(r, QSIM_E_GRAPH, "the graph has no outputs"));
    for (size_t i = 0; i < g->node_count && !code; i++)
        code = read_node_names(r, &g->nodes[i]);
    return code;
}

/* Reads the graph's name and keeps the fields that are not interpreted. */
static int read_rest(qs_reader *r, qs_span graph) {
    qsim_model *m = r->model;
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, graph);
    while (qs_wire_next(&wire, &f) == 1) {
        switch (f.number) {
        case GRAPH_NODE:
        case GRAPH_INITIALIZER:
        case GRAPH_SPARSE:
        case GRAPH_INPUT:
        case GRAPH_OUTPUT:
        case GRAPH_VALUE: break;
        case GRAPH_NAME:
            r->graph->name = qs_read_text(r, f.data);
            if (!r->graph->name)
                return qs_read_nomem(r);
            break;
        default:
            if (qs_keep_field(r->ctx, &m->kept_graph, &m->kept_graph_capacity, &m->kept_graph_count,
                              f.whole))
                return qs_read_nomem(r);
        }
    }
    return QSIM_OK;
}

static int read_parts(qs_reader *r, const qs_span *graphs, size_t count) {
    static const struct {
        uint32_t field;
        field_fn read;
    } parts[] = {
        /* saving counts on it that initializers in full come first */
        {GRAPH_INITIALIZER, qs_read_initializer},
        {GRAPH_SPARSE, qs_read_sparse_initializer},
        {GRAPH_INPUT, read_input},
        {GRAPH_NODE, qs_read_node},
        {GRAPH_OUTPUT, read_output},
        {GRAPH_VALUE, read_value_info},
    };
    for (size_t i = 0; i < QS_COUNT(parts); i++) {
        int code = read_fields(r, graphs, count, parts[i].field, parts[i].read);
        if (code)
            return code;
    }
    return QSIM_OK;
}

int qs_read_graph(qs_reader *r, const qs_span *graphs, size_t count) {
    int code = read_parts(r, graphs, count);
    for (size_t i = 0; i < count && !code; i++)
        code = read_rest(r, graphs[i]);
    return code ? code : qs_read_names(r);
}

int qs_read_inner_graph(qs_reader *r, qs_span graph) {
    int code = read_parts(r, &graph, 1);
    r->nodes_before += r->graph->node_count;
    return code ? code : qs_read_names(r);
}
