/* SPDX-License-Identifier: MIT */
/*
 * Reads a call of a local function, which the model defines itself: the nodes of the function
 * become nodes of the graph, with names of their own; its inputs and outputs become those of the
 * call.
 */
#include "onnx/reader.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH_LIMIT 16      /* of calls inside calls */
#define CALL_LIMIT  100000  /* nested calls of a small file can multiply */
#define NODE_LIMIT  1000000 /* nodes that calls make */

/* Orders by name, a shorter one first, then by position. */
static int by_text(const void *a, const void *b) {
    const qs_alias *x = a, *y = b;
    if (x->text.size != y->text.size)
        return x->text.size < y->text.size ? -1 : 1;
    const int order = x->text.size ? memcmp(x->text.data, y->text.data, x->text.size) : 0;
    return order ? order : x->position - y->position;
}

/* The first alias of this name; NULL: there is none. */
static const qs_alias *find_alias(const qs_call *call, qs_span text) {
    const qs_alias key = {text, QS_NONE, -1};
    size_t low = 0, high = call->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (by_text(&call->aliases[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == call->count)
        return NULL;
    const qs_alias *found = &call->aliases[low];
    const qs_alias same = {text, QS_NONE, found->position};
    return by_text(found, &same) == 0 ? found : NULL;
}

bool qs_call_alias(const qs_scope *scope, qs_span text, qs_id *out) {
    const qs_alias *found = scope->call ? find_alias(scope->call, text) : NULL;
    if (found)
        *out = found->value;
    return found;
}

const qs_call *qs_read_caller(const qs_reader *r) {
    const qs_scope *scope = r->scope;
    const qs_level *level = r->level;
    for (;;) {
        for (; scope; scope = scope->outer)
            if (scope->call)
                return scope->call;
        if (!level)
            return NULL;
        scope = level->outer_scope;
        level = level->outer;
    }
}

int qs_call_attr(qs_reader *r, const qs_call *call, qs_span name, const qs_attr **out) {
    qs_wire wire;
    qs_field f;
    *out = NULL;
    for (int32_t i = 0; i < call->node->attr_count && !*out; i++)
        if (qs_span_is(name, call->node->attrs[i].name))
            *out = &call->node->attrs[i];
    qs_wire_begin(&wire, call->body);
    while (!*out && qs_wire_next(&wire, &f) == 1) {
        const qs_span own = qs_wire_find(f.data, ATTR_NAME);
        if (f.number != FUNCTION_ATTRIBUTE_PROTO || own.size != name.size ||
            memcmp(own.data, name.data, own.size) != 0)
            continue;
        qs_attr *a = qs_arena_alloc(r->arena, 1, sizeof(*a));
        if (!a)
            return qs_read_nomem(r);
        *out = a;
        return qs_read_attr(r, f.data, a);
    }
    return QSIM_OK;
}

/* ---- inputs and outputs ---- */

static size_t count_fields(qs_span message, uint32_t number) {
    qs_wire wire;
    qs_field f;
    size_t n = 0;
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1)
        n += f.number == number;
    return n;
}

/* Pairs the names in field `formal` of the function with those in field `actual` of the call. */
static int bind_arguments(qs_reader *r, qs_call *call, qs_span message, uint32_t formal,
                          uint32_t actual) {
    qs_wire names, arguments;
    qs_field name, argument;
    qs_wire_begin(&names, call->body);
    qs_wire_begin(&arguments, message);
    for (;;) {
        int more;
        do
            more = qs_wire_next(&arguments, &argument);
        while (more == 1 && argument.number != actual);
        bool named;
        while ((named = qs_wire_next(&names, &name) == 1) && name.number != formal)
            continue;
        if (!named && more == 1)
            return qs_read_fail(r, QSIM_E_GRAPH, "more %s than the function '%s' has",
                                formal == FUNCTION_INPUT ? "inputs" : "outputs",
                                call->node->op_type);
        if (!named)
            return QSIM_OK;
        qs_id id = QS_NONE;
        const int code = more == 1 ? qs_read_value(r, argument.data, &id) : QSIM_OK;
        if (code)
            return code;
        if (formal == FUNCTION_INPUT || id != QS_NONE)
            call->aliases[call->count] = (qs_alias){name.data, id, (int32_t)call->count};
        call->count += formal == FUNCTION_INPUT || id != QS_NONE;
    }
}

/*
 * Checks that the function imports the operator sets in the model's versions; those that the model
 * lacks are imported.
 */
static int check_imports(qs_reader *r, const qs_call *call) {
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, call->body);
    while (qs_wire_next(&wire, &f) == 1) {
        if (f.number != FUNCTION_OPSET)
            continue;
        qs_wire fields;
        qs_field part;
        qs_span domain = {0};
        int64_t version = 0;
        qs_wire_begin(&fields, f.data);
        while (qs_wire_next(&fields, &part) == 1) {
            domain = part.number == OPSET_DOMAIN ? part.data : domain;
            version = part.number == OPSET_VERSION ? (int64_t)part.value : version;
        }
        const char *name = qs_span_is(domain, "ai.onnx") ? "" : qs_read_text(r, domain);
        if (!name)
            return qs_read_nomem(r);
        const int64_t own = qs_graph_import(r->graph, name);
        if (version < 1 || version > INT32_MAX) /* as for imports of the model */
            return qs_read_fail(r, QSIM_E_UNSUPPORTED, "opset %lld of %s does not exist",
                                (long long)version, *name ? name : "ai.onnx");
        if (own && own != version)
            return qs_read_fail(r, QSIM_E_UNSUPPORTED,
                                "the function '%s' is of opset %lld of %s, the model of %lld",
                                call->node->op_type, (long long)version, *name ? name : "ai.onnx",
                                (long long)own);
        if (!own && qs_graph_set_import(r->graph, name, version))
            return qs_read_nomem(r);
    }
    return QSIM_OK;
}

/* ---- the body ---- */

static int read_nodes(qs_reader *r, const qs_call *call) {
    qs_wire wire;
    qs_field f;
    int code = qs_read_claim_names(r, call->body, FUNCTION_NODE);
    qs_wire_begin(&wire, call->body);
    while (!code && qs_wire_next(&wire, &f) == 1)
        if (f.number == FUNCTION_NODE)
            code = qs_read_node(r, f.data);
    r->at = call->node;
    return code;
}

/*
 * Adds an Identity for each output that is an input of the function; other outputs are made by
 * nodes.
 */
static int check_outputs(qs_reader *r, const qs_call *call, int32_t inputs) {
    for (size_t i = 0; i < call->count; i++) {
        const qs_alias *y = &call->aliases[i];
        if (y->position < inputs || r->graph->values[y->value].producer != QS_NONE)
            continue;
        const qs_alias *from = find_alias(call, y->text);
        if (!from || from->position >= inputs || from->value == QS_NONE)
            return qs_read_fail(r, QSIM_E_GRAPH,
                                "output '%.*s' of the function '%s' is made by no node",
                                QS_SPAN_TEXT(y->text), call->node->op_type);
        if (qs_graph_add_node(r->graph, "", "Identity", call->node->name, &from->value, 1,
                              &y->value, 1) < 0)
            return qs_read_nomem(r);
    }
    return QSIM_OK;
}

int qs_read_call(qs_reader *r, qs_span message, const qs_node *head, qs_span body) {
    char prefix[32];
    qs_call call = {.node = head, .body = body};
    const qs_scope scope = {prefix, r->scope, r->scope ? r->scope->depth + 1 : 1, &call};
    if (scope.depth > DEPTH_LIMIT)
        return qs_read_fail(r, QSIM_E_LIMIT, "more than %d calls inside calls", DEPTH_LIMIT);
    if (r->branches > CALL_LIMIT || r->graph->node_count > NODE_LIMIT)
        return qs_read_fail(r, QSIM_E_LIMIT, "more than %d calls of functions, or %d nodes",
                            CALL_LIMIT, NODE_LIMIT);
    const size_t capacity =
        count_fields(body, FUNCTION_INPUT) + count_fields(body, FUNCTION_OUTPUT);
    call.aliases = qs_arena_alloc(r->arena, capacity, sizeof(*call.aliases));
    if (!call.aliases)
        return qs_read_nomem(r);
    int code = bind_arguments(r, &call, message, FUNCTION_INPUT, NODE_INPUT);
    const int32_t inputs = (int32_t)call.count;
    if (!code)
        code = bind_arguments(r, &call, message, FUNCTION_OUTPUT, NODE_OUTPUT);
    if (!code)
        code = check_imports(r, &call);
    if (code)
        return code;
    if (call.count)
        qsort(call.aliases, call.count, sizeof(*call.aliases), by_text);
    snprintf(prefix, sizeof(prefix), "call%zu/", r->branches++);
    r->scope = &scope;
    code = read_nodes(r, &call);
    r->scope = scope.outer;
    return code ? code : check_outputs(r, &call, inputs);
}
