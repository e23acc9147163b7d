/* SPDX-License-Identifier: MIT */
/* Writes tensors, attributes, nodes and values; emit.h explains how. */
#include "onnx/emit.h"

#include <stdio.h>

bool qs_emit_message(pb_ostream_t *out, uint32_t number, qs_emit_fn body, const void *arg) {
    pb_ostream_t size = PB_OSTREAM_SIZING;
    return body(&size, arg) && pb_encode_tag(out, PB_WT_STRING, number) &&
           pb_encode_varint(out, size.bytes_written) && body(out, arg);
}

static bool emit_bytes(pb_ostream_t *out, uint32_t number, const void *data, size_t size) {
    return pb_encode_tag(out, PB_WT_STRING, number) && pb_encode_string(out, data, size);
}

bool qs_emit_text(pb_ostream_t *out, uint32_t number, const char *text) {
    return emit_bytes(out, number, text, strlen(text));
}

bool qs_emit_int(pb_ostream_t *out, uint32_t number, int64_t value) {
    return pb_encode_tag(out, PB_WT_VARINT, number) && pb_encode_varint(out, (uint64_t)value);
}

bool qs_emit_span(pb_ostream_t *out, qs_span fields) {
    return pb_write(out, fields.data, fields.size);
}

static bool emit_float(pb_ostream_t *out, uint32_t number, float value) {
    return pb_encode_tag(out, PB_WT_32BIT, number) && pb_encode_fixed32(out, &value);
}

/* Writes the fields of a message whose numbers are not in the bit set `own`. */
static bool emit_others(pb_ostream_t *out, qs_span message, uint32_t own) {
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1)
        if ((f.number >= 32 || !(own >> f.number & 1)) && !qs_emit_span(out, f.whole))
            return false;
    return true;
}

#define BIT(number) (1u << (number))

/* ---- tensors ---- */

struct named_tensor {
    const char *name;
    const qs_const *tensor;
    const char *location; /* the file of its bytes; NULL: they are in the message */
    uint64_t offset;
};

struct pair {
    const char *key, *value;
};

static bool pair_body(pb_ostream_t *out, const void *arg) {
    const struct pair *p = arg;
    return qs_emit_text(out, PAIR_KEY, p->key) && qs_emit_text(out, PAIR_VALUE, p->value);
}

static bool emit_location(pb_ostream_t *out, const struct named_tensor *t) {
    char offset[24], length[24];
    snprintf(offset, sizeof(offset), "%llu", (unsigned long long)t->offset);
    snprintf(length, sizeof(length), "%zu", t->tensor->bytes);
    const struct pair pairs[] = {{"location", t->location}, {"offset", offset}, {"length", length}};
    bool ok = true;
    for (size_t i = 0; ok && i < QS_COUNT(pairs); i++)
        ok = qs_emit_message(out, TENSOR_EXTERNAL, pair_body, &pairs[i]);
    return ok && qs_emit_int(out, TENSOR_LOCATION, 1);
}

#define TENSOR_DATA_FIELDS                                                                         \
    (BIT(TENSOR_DIMS) | BIT(TENSOR_DTYPE) | BIT(TENSOR_SEGMENT) | BIT(TENSOR_FLOATS) |             \
     BIT(TENSOR_INT32S) | BIT(TENSOR_STRINGS) | BIT(TENSOR_INT64S) | BIT(TENSOR_NAME) |            \
     BIT(TENSOR_RAW) | BIT(TENSOR_DOUBLES) | BIT(TENSOR_UINT64S) | BIT(TENSOR_EXTERNAL) |          \
     BIT(TENSOR_LOCATION))

static bool tensor_fields(pb_ostream_t *out, const void *arg) {
    const struct named_tensor *t = arg;
    const qs_const *c = t->tensor;
    bool ok = true;
    for (int32_t i = 0; ok && i < c->rank; i++)
        ok = qs_emit_int(out, TENSOR_DIMS, c->dims[i]);
    ok = ok && qs_emit_int(out, TENSOR_DTYPE, c->dtype);
    if (t->name[0])
        ok = ok && qs_emit_text(out, TENSOR_NAME, t->name);
    ok = ok &&
         (t->location ? emit_location(out, t) : emit_bytes(out, TENSOR_RAW, c->data, c->bytes));
    return ok && emit_others(out, c->source, TENSOR_DATA_FIELDS);
}

static bool renamed_fields(pb_ostream_t *out, const void *arg) {
    const struct named_tensor *t = arg;
    return (!t->name[0] || qs_emit_text(out, TENSOR_NAME, t->name)) &&
           emit_others(out, t->tensor->source, BIT(TENSOR_NAME));
}

bool qs_emit_tensor_body(pb_ostream_t *out, const char *name, const qs_const *c) {
    struct named_tensor t = {name, c, NULL, 0};
    if (c->source.size == 0 || c->external)
        return tensor_fields(out, &t);
    if (qs_span_is(qs_wire_find(c->source, TENSOR_NAME), name))
        return qs_emit_span(out, c->source);
    return renamed_fields(out, &t);
}

static bool tensor_body(pb_ostream_t *out, const void *arg) {
    const struct named_tensor *t = arg;
    return qs_emit_tensor_body(out, t->name, t->tensor);
}

bool qs_emit_tensor(pb_ostream_t *out, uint32_t number, const char *name, const qs_const *tensor) {
    struct named_tensor t = {name, tensor, NULL, 0};
    return qs_emit_message(out, number, tensor_body, &t);
}

bool qs_emit_outside(pb_ostream_t *out, uint32_t number, const char *name, const qs_const *tensor,
                     const char *location, uint64_t offset) {
    struct named_tensor t = {name, tensor, location, offset};
    return qs_emit_message(out, number, tensor_fields, &t);
}

/* ---- attributes ---- */

static bool attr_list(pb_ostream_t *out, const qs_attr *a) {
    bool ok = true;
    for (int32_t i = 0; ok && i < a->count; i++) {
        if (a->type == QSIM_ATTR_FLOATS)
            ok = emit_float(out, ATTR_FLOATS, a->u.floats[i]);
        else if (a->type == QSIM_ATTR_INTS)
            ok = qs_emit_int(out, ATTR_INTS, a->u.ints[i]);
        else
            ok = emit_bytes(out, ATTR_STRINGS, a->u.strings[i].data, a->u.strings[i].size);
    }
    return ok;
}

/* Whether a value is a constant of the subgraph itself; captured ones are marked as inputs. */
static bool is_own_constant(const qs_value *v) {
    return v->data && v->producer == QS_NONE && !v->is_input;
}

static bool subgraph_body(pb_ostream_t *out, const void *arg) {
    const qs_subgraph *sub = arg;
    const qs_graph *g = sub->graph;
    bool ok = true;
    for (size_t i = 0; ok && i < g->order_count; i++)
        ok = g->nodes[g->order[i]].removed || qs_emit_node(out, g, &g->nodes[g->order[i]]);
    ok = ok && qs_emit_text(out, GRAPH_NAME, g->name && g->name[0] ? g->name : "subgraph");
    for (size_t i = 0; ok && i < g->value_count; i++)
        if (is_own_constant(&g->values[i]))
            ok = qs_emit_tensor(out, GRAPH_INITIALIZER, g->values[i].name, g->values[i].data);
    for (int32_t i = 0; ok && i < sub->fed; i++)
        ok = qs_emit_value(out, GRAPH_INPUT, &g->values[g->inputs[i]]);
    for (size_t i = 0; ok && i < g->output_count; i++)
        ok = qs_emit_value(out, GRAPH_OUTPUT, &g->values[g->outputs[i]]);
    return ok;
}

static bool attr_value(pb_ostream_t *out, const qs_attr *a) {
    switch (a->type) {
    case QSIM_ATTR_FLOAT: return emit_float(out, ATTR_F, a->u.f);
    case QSIM_ATTR_INT: return qs_emit_int(out, ATTR_I, a->u.i);
    case QSIM_ATTR_STRING: return emit_bytes(out, ATTR_S, a->u.s.data, a->u.s.size);
    case QSIM_ATTR_TENSOR: {
        qs_span name = qs_wire_find(a->u.tensor->source, TENSOR_NAME);
        if (name.size == 0 || a->u.tensor->external)
            return qs_emit_tensor(out, ATTR_T, "", a->u.tensor);
        return emit_bytes(out, ATTR_T, a->u.tensor->source.data, a->u.tensor->source.size);
    }
    case QSIM_ATTR_GRAPH: return qs_emit_message(out, ATTR_G, subgraph_body, a->u.graph);
    default: return attr_list(out, a);
    }
}

static bool subgraph_holds(const qs_attr *a);

/* Whether the message that the attribute was read from still describes it. */
static bool attr_holds(const qs_attr *a) {
    const bool outside = a->type == QSIM_ATTR_TENSOR && a->u.tensor->external;
    return a->source.size > 0 && !outside && subgraph_holds(a);
}

static bool attr_body(pb_ostream_t *out, const void *arg) {
    const qs_attr *a = arg;
    if (attr_holds(a))
        return qs_emit_span(out, a->source);
    /* The numbers of QSIM_ATTR_* are those of AttributeProto. */
    return qs_emit_text(out, ATTR_NAME, a->name) && attr_value(out, a) &&
           qs_emit_int(out, ATTR_TYPE, a->type);
}

/* ---- nodes ---- */

struct graph_node {
    const qs_graph *graph;
    const qs_node *node;
};

static const char *value_name(const qs_graph *g, qs_id id) {
    return id == QS_NONE ? "" : g->values[id].name;
}

/* Number of inputs in the message, which does not list captured values. */
static int32_t own_inputs(const qs_node *n) {
    return n->input_count - n->captured;
}

/* Whether the message that the node was read from still describes it. */
static bool node_holds(const qs_graph *g, const qs_node *n) {
    qs_wire wire;
    qs_field f;
    int32_t in = 0, out = 0;
    if (n->changed || n->source.size == 0)
        return false;
    qs_wire_begin(&wire, n->source);
    while (qs_wire_next(&wire, &f) == 1) {
        bool same = true;
        if (f.number == NODE_INPUT)
            same = in < own_inputs(n) && qs_span_is(f.data, value_name(g, n->inputs[in++]));
        else if (f.number == NODE_OUTPUT)
            same = out < n->output_count && qs_span_is(f.data, value_name(g, n->outputs[out++]));
        else if (f.number == NODE_OP_TYPE)
            same = qs_span_is(f.data, n->op_type);
        if (!same)
            return false;
    }
    for (int32_t i = 0; i < n->attr_count; i++)
        if (n->attrs[i].source.size > 0 && !attr_holds(&n->attrs[i]))
            return false;
    return in == own_inputs(n) && out == n->output_count;
}

static bool subgraph_holds(const qs_attr *a) {
    const qs_graph *g = a->type == QSIM_ATTR_GRAPH && a->u.graph ? a->u.graph->graph : NULL;
    for (size_t i = 0; g && i < g->node_count; i++)
        if (g->nodes[i].removed || !node_holds(g, &g->nodes[i]))
            return false;
    for (size_t i = 0; g && i < g->value_count; i++)
        if (is_own_constant(&g->values[i]) && g->values[i].data->external)
            return false;
    return true;
}

static bool node_body(pb_ostream_t *out, const void *arg) {
    const struct graph_node *gn = arg;
    const qs_node *n = gn->node;
    bool ok = true;
    if (node_holds(gn->graph, n))
        return qs_emit_span(out, n->source);
    for (int32_t i = 0; ok && i < own_inputs(n); i++)
        ok = qs_emit_text(out, NODE_INPUT, value_name(gn->graph, n->inputs[i]));
    for (int32_t i = 0; ok && i < n->output_count; i++)
        ok = qs_emit_text(out, NODE_OUTPUT, value_name(gn->graph, n->outputs[i]));
    if (n->name[0])
        ok = ok && qs_emit_text(out, NODE_NAME, n->name);
    ok = ok && qs_emit_text(out, NODE_OP_TYPE, n->op_type);
    for (int32_t i = 0; ok && i < n->attr_count; i++)
        ok = qs_emit_message(out, NODE_ATTRIBUTE, attr_body, &n->attrs[i]);
    if (n->domain[0])
        ok = ok && qs_emit_text(out, NODE_DOMAIN, n->domain);
    return ok && emit_others(out, n->source,
                             BIT(NODE_INPUT) | BIT(NODE_OUTPUT) | BIT(NODE_NAME) |
                                 BIT(NODE_OP_TYPE) | BIT(NODE_ATTRIBUTE) | BIT(NODE_DOMAIN));
}

bool qs_emit_node(pb_ostream_t *out, const qs_graph *graph, const qs_node *node) {
    struct graph_node gn = {graph, node};
    return qs_emit_message(out, GRAPH_NODE, node_body, &gn);
}

/* ---- values ---- */

static bool dim_body(pb_ostream_t *out, const void *arg) {
    const qs_dim *d = arg;
    if (d->size >= 0)
        return qs_emit_int(out, DIM_VALUE, d->size);
    return !d->symbol || qs_emit_text(out, DIM_PARAM, d->symbol);
}

static bool shape_body(pb_ostream_t *out, const void *arg) {
    const qs_value *v = arg;
    bool ok = true;
    for (int32_t i = 0; ok && i < v->rank; i++)
        ok = qs_emit_message(out, SHAPE_DIM, dim_body, &v->dims[i]);
    return ok;
}

static bool tensor_type_body(pb_ostream_t *out, const void *arg) {
    const qs_value *v = arg;
    return qs_emit_int(out, TENSOR_TYPE_ELEM, v->dtype) &&
           (v->rank < 0 || qs_emit_message(out, TENSOR_TYPE_SHAPE, shape_body, v));
}

static bool type_body(pb_ostream_t *out, const void *arg) {
    return qs_emit_message(out, TYPE_TENSOR, tensor_type_body, arg);
}

static bool shape_agrees(qs_span shape, const qs_value *v) {
    qs_wire wire;
    qs_field f, d;
    int32_t axis = 0;
    qs_wire_begin(&wire, shape);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != SHAPE_DIM)
            continue;
        if (axis >= v->rank)
            return false;
        qs_wire inner;
        qs_wire_begin(&inner, f.data);
        while (qs_wire_next(&inner, &d) == 1)
            if (d.number == DIM_VALUE && (int64_t)d.value != v->dims[axis].size)
                return false;
        axis++;
    }
    return axis == v->rank;
}

/* Whether the message that the value was read from still describes it. */
static bool value_holds(const qs_value *v) {
    qs_wire wire;
    qs_field f;
    if (v->source.size == 0 || !qs_span_is(qs_wire_find(v->source, VALUE_NAME), v->name))
        return false;
    qs_span tensor = qs_wire_find(qs_wire_find(v->source, VALUE_TYPE), TYPE_TENSOR);
    if (tensor.size == 0)
        return v->dtype == QSIM_UNDEFINED;
    qs_wire_begin(&wire, tensor);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number == TENSOR_TYPE_ELEM && (int64_t)f.value != v->dtype)
            return false;
        if (f.number == TENSOR_TYPE_SHAPE && v->rank >= 0 && !shape_agrees(f.data, v))
            return false;
    }
    return true;
}

static bool value_body(pb_ostream_t *out, const void *arg) {
    const qs_value *v = arg;
    if (value_holds(v))
        return qs_emit_span(out, v->source);
    return qs_emit_text(out, VALUE_NAME, v->name) &&
           (v->dtype == QSIM_UNDEFINED || qs_emit_message(out, VALUE_TYPE, type_body, v));
}

bool qs_emit_value(pb_ostream_t *out, uint32_t number, const qs_value *value) {
    return qs_emit_message(out, number, value_body, value);
}
