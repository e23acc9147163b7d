/* SPDX-License-Identifier: MIT */
/* Reads NodeProto and AttributeProto. */
#include "base/ctx.h"
#include "onnx/reader.h"

struct attr_parts {
    qs_span name, s, t, sparse, reference;
    uint64_t type, i, f;
    uint32_t value_field; /* the field that has a value; 0: none */
    uint32_t empty_field; /* one that is empty or 0 */
    size_t strings;
    bool mixed;
};

static uint64_t type_of_field(uint32_t field) {
    switch (field) {
    case ATTR_F: return ATTR_IS_FLOAT;
    case ATTR_I: return ATTR_IS_INT;
    case ATTR_S: return ATTR_IS_STRING;
    case ATTR_T: return ATTR_IS_TENSOR;
    case ATTR_G: return ATTR_IS_GRAPH;
    case ATTR_FLOATS: return ATTR_IS_FLOATS;
    case ATTR_INTS: return ATTR_IS_INTS;
    case ATTR_STRINGS: return ATTR_IS_STRINGS;
    case ATTR_TENSORS: return ATTR_IS_TENSORS;
    case ATTR_GRAPHS: return ATTR_IS_GRAPHS;
    case ATTR_SPARSE: return ATTR_IS_SPARSE;
    case ATTR_SPARSES: return ATTR_IS_SPARSES;
    case ATTR_TP: return ATTR_IS_TYPE;
    case ATTR_TYPE_PROTOS: return ATTR_IS_TYPES;
    default: return 0;
    }
}

/* Whether a field is empty or 0. Some writers write all fields, and one has the value. */
static bool is_empty(const qs_field *f) {
    return f->type == PB_WT_STRING ? f->data.size == 0 : f->value == 0;
}

static void collect_attr(qs_span message, struct attr_parts *p) {
    qs_wire wire;
    qs_field f;
    memset(p, 0, sizeof(*p));
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        switch (f.number) {
        case ATTR_NAME: p->name = f.data; break;
        case ATTR_TYPE: p->type = f.value; break;
        case ATTR_REF: p->reference = f.data.size ? f.data : p->reference; break;
        case ATTR_I: p->i = f.value; break;
        case ATTR_F: p->f = f.value; break;
        case ATTR_S: p->s = f.data; break;
        case ATTR_T:
            p->mixed = p->mixed || p->t.data;
            p->t = f.data;
            break;
        case ATTR_SPARSE:
            p->mixed = p->mixed || (p->sparse.size && f.data.size);
            p->sparse = f.data.size ? f.data : p->sparse;
            break;
        case ATTR_STRINGS: p->strings++; break;
        default: break;
        }
        if (!type_of_field(f.number))
            continue;
        if (is_empty(&f)) {
            p->empty_field = f.number;
            continue;
        }
        p->mixed = p->mixed || (p->value_field && p->value_field != f.number);
        p->value_field = f.number;
    }
}

/* Reads a list of integers (PB_WT_VARINT) or floats (PB_WT_32BIT). */
static int read_numbers(qs_reader *r, qs_span message, uint32_t field, uint32_t width, qs_attr *a) {
    const int64_t count = qs_numbers_count(message, field, width);
    const bool ints = width == PB_WT_VARINT;
    if ((uint64_t)count > INT32_MAX)
        return qs_read_fail(r, QSIM_E_LIMIT, "attribute '%s' is malformed or too long", a->name);
    void *out = qs_arena_alloc(r->arena, (size_t)count, ints ? sizeof(int64_t) : sizeof(float));
    qs_numbers numbers;
    uint64_t value = 0;
    if (!out)
        return qs_read_nomem(r);
    qs_numbers_begin(&numbers, message, field, width);
    for (int64_t i = 0; i < count; i++) {
        (void)qs_numbers_next(&numbers, &value);
        if (ints)
            ((int64_t *)out)[i] = (int64_t)value;
        else
            ((float *)out)[i] = qs_bits_float(value);
    }
    if (ints)
        a->u.ints = out;
    else
        a->u.floats = out;
    a->count = (int32_t)count;
    return QSIM_OK;
}

static int read_strings(qs_reader *r, qs_span message, size_t count, qs_attr *a) {
    if (count > INT32_MAX)
        return qs_read_fail(r, QSIM_E_LIMIT, "attribute '%s' is too long", a->name);
    qs_span *out = qs_arena_alloc(r->arena, count, sizeof(*out));
    qs_wire wire;
    qs_field f;
    size_t n = 0;
    if (!out)
        return qs_read_nomem(r);
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1)
        if (f.number == ATTR_STRINGS)
            out[n++] = f.data;
    a->u.strings = out;
    a->count = (int32_t)n;
    return QSIM_OK;
}

static int read_tensor_attr(qs_reader *r, const struct attr_parts *p, qs_attr *a) {
    const bool sparse = p->type == ATTR_IS_SPARSE;
    const qs_span message = sparse ? p->sparse : p->t;
    qs_const *c = qs_arena_alloc(r->arena, 1, sizeof(*c));
    if (!c)
        return qs_read_nomem(r);
    if (!message.data)
        return qs_read_fail(r, QSIM_E_FORMAT, "attribute '%s' has no tensor", a->name);
    a->u.tensor = c;
    return (sparse ? qs_read_sparse : qs_read_tensor)(r, message, "attribute", a->name, c);
}

static int read_value(qs_reader *r, qs_span message, const struct attr_parts *p, qs_attr *a) {
    switch (a->type) {
    case ATTR_IS_FLOAT: a->u.f = qs_bits_float(p->f); return QSIM_OK;
    case ATTR_IS_INT: a->u.i = (int64_t)p->i; return QSIM_OK;
    case ATTR_IS_STRING: a->u.s = p->s; return QSIM_OK;
    case ATTR_IS_TENSOR: return read_tensor_attr(r, p, a);
    case ATTR_IS_FLOATS: return read_numbers(r, message, ATTR_FLOATS, PB_WT_32BIT, a);
    case ATTR_IS_INTS: return read_numbers(r, message, ATTR_INTS, PB_WT_VARINT, a);
    case ATTR_IS_STRINGS: return read_strings(r, message, p->strings, a);
    default: return QSIM_OK; /* only the source span is kept */
    }
}

/* Reads an attribute of a node in a function that refers to one of the function's attributes. */
static int read_reference(qs_reader *r, qs_span text, qs_attr *a) {
    const char *name = a->name;
    const qs_attr *given = NULL;
    const qs_call *call = qs_read_caller(r);
    if (!call)
        return qs_read_fail(r, QSIM_E_GRAPH,
                            "attribute '%s' refers to a function's attribute outside of one", name);
    const int code = qs_call_attr(r, call, text, &given);
    if (code)
        return code;
    if (given && (given->type == QSIM_ATTR_GRAPH || given->type == QSIM_ATTR_OTHER))
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "attribute '%s' refers to a graph", name);
    *a = given ? *given : (qs_attr){0};
    a->name = name;
    a->source = (qs_span){0};
    return QSIM_OK;
}

int qs_read_attr(qs_reader *r, qs_span message, qs_attr *a) {
    struct attr_parts p;
    collect_attr(message, &p);
    if (p.name.size == 0)
        return qs_read_fail(r, QSIM_E_GRAPH, "an attribute has no name");
    a->name = qs_read_text(r, p.name);
    if (!a->name)
        return qs_read_nomem(r);
    if (p.reference.size)
        return read_reference(r, p.reference, a);
    uint64_t found = type_of_field(p.value_field);
    if (p.type == 0)
        p.type = found ? found : type_of_field(p.empty_field);
    if (p.type == 0 || p.type > ATTR_IS_TYPES)
        return qs_read_fail(r, QSIM_E_FORMAT, "attribute '%s' has no type and no value", a->name);
    if (p.mixed || (found && found != p.type))
        return qs_read_fail(r, QSIM_E_FORMAT, "attribute '%s' has a value of another type",
                            a->name);
    a->type = p.type <= ATTR_IS_STRINGS  ? (int32_t)p.type
              : p.type == ATTR_IS_SPARSE ? QSIM_ATTR_TENSOR
                                         : QSIM_ATTR_OTHER;
    a->source = message;
    return read_value(r, message, &p, a);
}

static bool has_name(const qs_attr *attrs, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (qs_same(attrs[i].name, name))
            return true;
    return false;
}

static int read_attrs(qs_reader *r, qs_span message, size_t count, qs_node *n) {
    qs_wire wire;
    qs_field f;
    size_t done = 0;
    if (count > r->ctx->limits.attributes)
        return qs_read_fail(r, QSIM_E_LIMIT, "the limit 'attributes' is %llu, %zu are needed",
                            (unsigned long long)r->ctx->limits.attributes, count);
    qs_attr *attrs = qs_arena_alloc(r->arena, count, sizeof(*attrs));
    if (!attrs)
        return qs_read_nomem(r);
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != NODE_ATTRIBUTE)
            continue;
        int code = qs_read_attr(r, f.data, &attrs[done]);
        if (!code && has_name(attrs, done, attrs[done].name))
            code = qs_read_fail(r, QSIM_E_GRAPH, "attribute '%s' is given twice", attrs[done].name);
        done += code == QSIM_OK && attrs[done].type != 0;
        code = qs_read_collect(r, code);
        if (code)
            return code;
    }
    n->attrs = attrs;
    n->attr_count = (int32_t)done;
    return QSIM_OK;
}

struct node_parts {
    qs_span name, op_type, domain, overload;
    size_t inputs, outputs, attrs;
};

static void collect_node(qs_span message, struct node_parts *p) {
    qs_wire wire;
    qs_field f;
    memset(p, 0, sizeof(*p));
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        switch (f.number) {
        case NODE_INPUT: p->inputs++; break;
        case NODE_OUTPUT: p->outputs++; break;
        case NODE_ATTRIBUTE: p->attrs++; break;
        case NODE_NAME: p->name = f.data; break;
        case NODE_OP_TYPE: p->op_type = f.data; break;
        case NODE_DOMAIN: p->domain = f.data; break;
        case NODE_OVERLOAD: p->overload = f.data; break;
        default: break;
        }
    }
}

/* If no scope defines the name it is one of the graph. */
int qs_read_value(qs_reader *r, qs_span text, qs_id *out) {
    *out = QS_NONE;
    if (text.size == 0 || (r->scope && qs_call_alias(r->scope, text, out)))
        return QSIM_OK;
    int code = qs_read_lookup(r, text, out);
    if (code || *out != QS_NONE || qs_read_caller(r)) /* a call may leave it out */
        return code;
    const char *name = qs_read_scratch(r, text);
    *out = name ? qs_graph_add_value(r->graph, name) : QSIM_E_NOMEM;
    return *out >= 0 ? QSIM_OK : qs_read_nomem(r);
}

/*
 * Reads the node's inputs and outputs to r->ids, and makes the node to be added the producer of the
 * outputs.
 */
static int read_ports(qs_reader *r, qs_span message, const struct node_parts *p) {
    qs_wire wire;
    qs_field f;
    size_t in = 0, out = p->inputs;
    if (!qs_grow(r->ctx, (void **)&r->ids, &r->ids_capacity, p->inputs + p->outputs,
                 sizeof(*r->ids)))
        return qs_read_nomem(r);
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != NODE_INPUT && f.number != NODE_OUTPUT)
            continue;
        qs_id id;
        int code = qs_read_value(r, f.data, &id);
        if (code)
            return code;
        r->ids[f.number == NODE_INPUT ? in++ : out++] = id;
        if (f.number == NODE_INPUT || id == QS_NONE)
            continue;
        qs_value *v = &r->graph->values[id];
        if (!qs_value_exists(v)) {
            v->producer = (qs_id)r->graph->node_count;
            continue;
        }
        code = qs_read_collect(
            r, qs_read_fail(r, QSIM_E_GRAPH, "tensor '%s' is written twice", v->name));
        if (code)
            return code;
    }
    return QSIM_OK;
}

static const char *same_or_new(qs_reader *r, qs_span text, const char *last) {
    return last && qs_span_is(text, last) ? last : qs_read_text(r, text);
}

/* Reads name, operator and domain of a node. */
static int read_head(qs_reader *r, qs_span message, const struct node_parts *p, qs_node *head) {
    const qs_graph *g = r->graph;
    const qs_node *last = g->node_count ? &g->nodes[g->node_count - 1] : NULL;
    /* Branches and calls repeat names, which are unique in a graph. */
    const bool inner = p->name.size && r->scope;
    const char *local = inner ? qs_read_local(r, p->name) : NULL;
    *head = (qs_node){.source = message,
                      .name = local   ? qs_arena_string(r->arena, local, strlen(local))
                              : inner ? NULL
                                      : qs_read_text(r, p->name),
                      .op_type = same_or_new(r, p->op_type, last ? last->op_type : NULL),
                      .domain = qs_span_is(p->domain, "ai.onnx")
                                    ? ""
                                    : same_or_new(r, p->domain, last ? last->domain : NULL)};
    if (!head->name || !head->op_type || !head->domain)
        return qs_read_nomem(r);
    r->at = head;
    if (p->op_type.size == 0)
        return qs_read_fail(r, QSIM_E_GRAPH, "node %zu has no operator", g->node_count);
    if (qs_span_is(p->domain, "qsim"))
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "operators of domain 'qsim' are not for files");
    if (p->overload.size > 0)
        return qs_read_fail(r, QSIM_E_UNSUPPORTED, "function overloads are not supported");
    if (p->inputs > INT32_MAX || p->outputs > INT32_MAX)
        return qs_read_fail(r, QSIM_E_LIMIT, "too many inputs or outputs");
    return read_attrs(r, message, p->attrs, head);
}

/* Adds a node that is neither a call nor an If read as a choice. */
static int add_node(qs_reader *r, qs_span message, const struct node_parts *p, qs_node *head) {
    qs_id *captured;
    int32_t captures;
    int code = qs_read_subgraphs(r, head, (int32_t)p->inputs, &captured, &captures);
    r->at = head;
    if (!code)
        code = read_ports(r, message, p);
    if (code)
        return code;
    const qs_id id = qs_graph_add_node(r->graph, head->domain, head->op_type, head->name, r->ids,
                                       (int32_t)p->inputs, r->ids + p->inputs, (int32_t)p->outputs);
    if (id < 0 || (captures && qs_graph_capture(r->graph, id, captured, captures)))
        return qs_read_nomem(r);
    qs_node *n = &r->graph->nodes[id];
    n->attrs = head->attrs;
    n->attr_count = head->attr_count;
    n->source = message;
    n->changed = qs_read_caller(r) != NULL;
    return QSIM_OK;
}

int qs_read_node(qs_reader *r, qs_span message) {
    struct node_parts p;
    qs_node head;
    collect_node(message, &p);
    int code = read_head(r, message, &p, &head);
    const qs_span body = qs_find_function(r, p.domain, p.op_type);
    if (!code && body.data && (r->collects || !r->inspect))
        code = qs_read_call(r, message, &head, body);
    else if (!code && qs_read_is_choice(&head) && !r->inspect && !r->keep_ifs)
        code = qs_read_if(r, message, &head, p.inputs, p.outputs);
    else if (!code)
        code = add_node(r, message, &p, &head);
    r->at = NULL;
    return code;
}
