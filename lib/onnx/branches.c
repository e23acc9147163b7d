/* SPDX-License-Identifier: MIT */
/*
 * Reads an If as both branches and a choice: the nodes of the branches become nodes of the outer
 * graph, with names of their own, and each output becomes Where(condition, then, else). The result
 * is the same if both branches give equal sizes, which is checked; otherwise the model is read
 * again, with If as a node that has subgraphs (subgraph_read.c). A plan leaves out the branch that
 * a known condition does not take.
 */
#include "base/ctx.h"
#include "onnx/reader.h"
#include "op/rules.h"

#include <stdio.h>

struct branch {
    qs_span graph;
    qs_id *outputs; /* one for each output of the node */
};

/* ---- names ---- */

/* The name of `text` in a scope: its prefix and the text, in scratch memory. */
static const char *in_scope(qs_reader *r, const qs_scope *scope, qs_span text) {
    if (!scope)
        return qs_read_scratch(r, text);
    const size_t n = strlen(scope->prefix);
    size_t size;
    if (!qs_add(n, text.size, &size) ||
        !qs_grow(r->ctx, (void **)&r->text, &r->text_capacity, size, 1))
        return NULL;
    memcpy(r->text, scope->prefix, n);
    if (text.size)
        memcpy(r->text + n, text.data, text.size);
    r->text[size] = 0;
    return r->text;
}

const char *qs_read_local(qs_reader *r, qs_span text) {
    return in_scope(r, r->scope, text);
}

int qs_read_lookup(qs_reader *r, qs_span text, qs_id *out) {
    const qs_scope *scope = r->scope;
    *out = QS_NONE;
    for (;; scope = scope->outer) {
        if (scope && scope->call && qs_call_alias(scope, text, out))
            return QSIM_OK;
        const char *name = in_scope(r, scope, text);
        if (!name)
            return qs_read_nomem(r);
        *out = qs_graph_find(r->graph, name);
        if (*out != QS_NONE)
            return QSIM_OK;
        if (scope && scope->call)
            return qs_read_fail(r, QSIM_E_GRAPH, "tensor '%.*s' is defined nowhere in the function",
                                QS_SPAN_TEXT(text));
        if (!scope)
            return r->level ? qs_read_captured(r, text, out) : QSIM_OK;
    }
}

int qs_read_claim_names(qs_reader *r, qs_span graph, uint32_t node_field) {
    qs_wire nodes, fields;
    qs_field node, f;
    qs_id given;
    qs_wire_begin(&nodes, graph);
    while (qs_wire_next(&nodes, &node) == 1) {
        if (node.number != node_field)
            continue;
        qs_wire_begin(&fields, node.data);
        while (qs_wire_next(&fields, &f) == 1) {
            if (f.number != NODE_OUTPUT || f.data.size == 0 ||
                (r->scope && r->scope->call && qs_call_alias(r->scope, f.data, &given)))
                continue;
            const char *name = qs_read_local(r, f.data);
            if (!name || (qs_graph_find(r->graph, name) == QS_NONE &&
                          qs_graph_add_value(r->graph, name) < 0))
                return qs_read_nomem(r);
        }
    }
    return QSIM_OK;
}

/* ---- a branch ---- */

static int read_output(qs_reader *r, qs_span message, qs_id *out) {
    const qs_span text = qs_wire_find(message, VALUE_NAME);
    int code = qs_read_lookup(r, text, out);
    const qs_value *v = code || *out == QS_NONE ? NULL : &r->graph->values[*out];
    if (!code && (!v || !qs_value_exists(v)))
        return qs_read_fail(r, QSIM_E_GRAPH, "output '%.*s' of a branch is made by no node",
                            QS_SPAN_TEXT(text));
    return code;
}

static int read_parts(qs_reader *r, const struct branch *b, uint32_t part, size_t count) {
    qs_wire wire;
    qs_field f;
    size_t outputs = 0;
    int code = QSIM_OK;
    qs_wire_begin(&wire, b->graph);
    while (!code && qs_wire_next(&wire, &f) == 1) {
        if (f.number == GRAPH_INPUT)
            return qs_read_fail(r, QSIM_E_UNSUPPORTED, "a branch with inputs");
        if (f.number == GRAPH_SPARSE && part == GRAPH_INITIALIZER)
            code = qs_read_sparse_initializer(r, f.data);
        if (f.number != part)
            continue;
        if (part == GRAPH_INITIALIZER)
            code = qs_read_initializer(r, f.data);
        else if (part == GRAPH_NODE)
            code = qs_read_node(r, f.data);
        else if (outputs++ < count)
            code = read_output(r, f.data, &b->outputs[outputs - 1]);
    }
    if (!code && part == GRAPH_OUTPUT && outputs != count)
        return qs_read_fail(r, QSIM_E_GRAPH, "a branch has %zu outputs, the node %zu", outputs,
                            count);
    return code;
}

static int read_branch(qs_reader *r, const struct branch *b, const char *kind, size_t count) {
    char prefix[64];
    const qs_node *at = r->at;
    const qs_scope scope = {prefix, r->scope, r->scope ? r->scope->depth + 1 : 1, NULL};
    int code = QS_LIMIT(r->ctx, nesting, (uint64_t)scope.depth, r->error, r->name);
    if (code)
        return code;
    snprintf(prefix, sizeof(prefix), "if%zu/%s/", r->branches, kind);
    r->branches++;
    r->scope = &scope;
    code = qs_read_claim_names(r, b->graph, GRAPH_NODE);
    if (!code)
        code = read_parts(r, b, GRAPH_INITIALIZER, count);
    if (!code)
        code = read_parts(r, b, GRAPH_NODE, count);
    r->at = at;
    if (!code)
        code = read_parts(r, b, GRAPH_OUTPUT, count);
    r->scope = scope.outer;
    return code;
}

/* ---- the node ---- */

static qs_span find_branch(qs_span message, const char *name) {
    qs_wire wire;
    qs_field f;
    qs_wire_begin(&wire, message);
    while (qs_wire_next(&wire, &f) == 1)
        if (f.number == NODE_ATTRIBUTE && qs_span_is(qs_wire_find(f.data, ATTR_NAME), name))
            return qs_wire_find(f.data, ATTR_G);
    return (qs_span){0};
}

/* The first Where gets the If's name, if it has one. */
static const char *name_choice(qs_graph *g, const char *head, size_t index, const char *output) {
    const size_t n = strlen(head), m = strlen(output);
    if (index == 0 || n == 0)
        return head;
    char *name = qs_arena_alloc(&g->arena, n + m + 2, 1);
    if (!name)
        return NULL;
    memcpy(name, head, n);
    name[n] = '/';
    memcpy(name + n + 1, output, m);
    return name;
}

/* Adds the Where for output `index`, whose name is `text`. */
static int add_choice(qs_reader *r, const qs_node *head, size_t index, qs_span text,
                      const qs_id in[3]) {
    qs_graph *g = r->graph;
    qs_id y;
    /* An output of a function is that of its call. */
    if (!r->scope || !qs_call_alias(r->scope, text, &y)) {
        const char *name = qs_read_local(r, text);
        if (!name)
            return qs_read_nomem(r);
        y = qs_graph_find(g, name);
        if (y == QS_NONE)
            y = qs_graph_add_value(g, name);
        if (y < 0)
            return qs_read_nomem(r);
    }
    const qs_value *v = &g->values[y];
    if (qs_value_exists(v))
        return qs_read_fail(r, QSIM_E_GRAPH, "tensor '%s' is written twice", v->name);
    const char *label = name_choice(g, head->name, index, v->name);
    qs_id node = label ? qs_graph_add_node(g, "", "Where", label, in, 3, &y, 1) : QSIM_E_NOMEM;
    if (node < 0 || !qs_grow(r->ctx, (void **)&r->choices, &r->choice_capacity, r->choice_count,
                             sizeof(*r->choices)))
        return qs_read_nomem(r);
    r->choices[r->choice_count++] = (qs_if_choice){g, node, head->name, head->source};
    return QSIM_OK;
}

static int add_choices(qs_reader *r, qs_span message, const qs_node *head, qs_id condition,
                       const struct branch b[2]) {
    qs_wire wire;
    qs_field f;
    size_t i = 0;
    int code = QSIM_OK;
    qs_wire_begin(&wire, message);
    while (!code && qs_wire_next(&wire, &f) == 1) {
        if (f.number != NODE_OUTPUT)
            continue;
        const qs_id in[3] = {condition, b[0].outputs[i], b[1].outputs[i]};
        code = f.data.size ? add_choice(r, head, i, f.data, in) : QSIM_OK;
        i++;
    }
    return code;
}

bool qs_read_is_choice(const qs_node *n) {
    return qs_same(n->op_type, "If") && !n->domain[0];
}

int qs_read_if(qs_reader *r, qs_span message, const qs_node *head, size_t inputs, size_t outputs) {
    struct branch b[2] = {{.graph = find_branch(message, "then_branch")},
                          {.graph = find_branch(message, "else_branch")}};
    const qs_span text = qs_wire_find(message, NODE_INPUT);
    qs_id condition;
    if (inputs != 1 || text.size == 0 || outputs == 0 || !b[0].graph.data || !b[1].graph.data)
        return qs_read_fail(r, QSIM_E_GRAPH, "no condition, two branches and outputs");
    int code = qs_read_lookup(r, text, &condition);
    if (code)
        return code;
    if (condition == QS_NONE)
        return qs_read_fail(r, QSIM_E_GRAPH, "the condition is defined nowhere before");
    for (int i = 0; i < 2 && !code; i++) {
        b[i].outputs = qs_arena_alloc(r->arena, outputs, sizeof(*b[i].outputs));
        if (!b[i].outputs)
            return qs_read_nomem(r);
        code = read_branch(r, &b[i], i ? "else" : "then", outputs);
    }
    return code ? code : add_choices(r, message, head, condition, b);
}

/* ---- checks, once shapes are known ---- */

static bool same_sizes(const qs_value *a, const qs_value *b) {
    if (a->rank < 0 || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++) {
        const qs_dim *x = &a->dims[i], *y = &b->dims[i];
        if (x->size != y->size ||
            (x->size < 0 && (!x->symbol || !y->symbol || strcmp(x->symbol, y->symbol) != 0)))
            return false;
    }
    return true;
}

/* Whether two values may have equal sizes: known ones are equal. */
static bool may_be_same_sizes(const qs_value *a, const qs_value *b) {
    if (a->rank < 0 || b->rank < 0)
        return true;
    bool same = a->rank == b->rank;
    for (int32_t i = 0; i < a->rank && same; i++)
        same = a->dims[i].size < 0 || b->dims[i].size < 0 || a->dims[i].size == b->dims[i].size;
    return same;
}

static int check_choice(qs_reader *r, const qs_if_choice *choice, bool inferred) {
    const qs_node *n = &choice->graph->nodes[choice->node];
    const qs_value *values = choice->graph->values, *c = &values[n->inputs[0]];
    const qs_value *a = &values[n->inputs[1]], *b = &values[n->inputs[2]];
    const char *y = values[n->outputs[0]].name;
    if (!qs_is_single(c))
        return qs_read_fail(r, QSIM_E_SHAPE, "the condition '%s' of If is not a single value",
                            c->name);
    if (c->dtype != QSIM_UNDEFINED && c->dtype != QSIM_BOOL)
        return qs_read_fail(r, QSIM_E_DTYPE, "the condition '%s' of If is %s, not bool", c->name,
                            qsim_dtype_name(c->dtype));
    if (a->dtype != QSIM_UNDEFINED && b->dtype != QSIM_UNDEFINED && a->dtype != b->dtype)
        return qs_read_fail(r, QSIM_E_DTYPE, "the branches of If give '%s' as %s and as %s", y,
                            qsim_dtype_name(a->dtype), qsim_dtype_name(b->dtype));
    if (!may_be_same_sizes(a, b))
        return qs_read_fail(r, QSIM_E_UNSUPPORTED,
                            "the branches of If give '%s' in different sizes", y);
    if (inferred && !same_sizes(a, b))
        return qs_read_fail(r, QSIM_E_UNSUPPORTED,
                            "the branches of If give '%s' in sizes that are not known to be "
                            "the same",
                            y);
    /* Where chooses element by element, and its result has at least the condition's rank. */
    if (inferred && (c->rank < 0 || c->rank > a->rank || qs_dims_product(c->dims, 0, c->rank) < 0))
        return qs_read_fail(r, QSIM_E_UNSUPPORTED,
                            "the condition '%s' of If may have more axes or elements than '%s'",
                            c->name, y);
    return QSIM_OK;
}

/*
 * Checks that the branches of each If agree. If their sizes differ, or may differ, the model is
 * read again with subgraphs.
 */
static int check_choices(qs_reader *r, bool inferred) {
    int code = QSIM_OK;
    for (size_t i = 0; i < r->choice_count && !code; i++) {
        const qs_if_choice *c = &r->choices[i];
        const qs_node head = {.name = c->name, .op_type = "If", .source = c->source};
        r->at = &head;
        code = check_choice(r, c, inferred);
        r->retry = r->retry || code == QSIM_E_UNSUPPORTED;
    }
    r->at = NULL;
    return code;
}

int qs_read_choices(qs_reader *r) {
    return check_choices(r, true);
}

/* Whether the first node that breaks a rule is in a branch, or has subgraphs with branches. */
static bool fails_in_branch(qs_reader *r) {
    const qs_graph *g = r->graph;
    bool nested = false;
    for (size_t i = 0; i < r->choice_count; i++)
        nested = nested || r->choices[i].graph != g;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        const char *y =
            n->output_count && n->outputs[0] != QS_NONE ? g->values[n->outputs[0]].name : "";
        const bool inside = strncmp(y, "if", 2) == 0 && strstr(y, "/then/") != strstr(y, "/else/");
        if (qs_read_node_rules(r->graph, g->order[i], r->name, NULL))
            return inside || (nested && qs_node_has_subgraph(n));
    }
    return false;
}

/*
 * If a node in a branch breaks a rule the model is read again with subgraphs, since the branch may
 * never be taken.
 */
int qs_read_choices_failed(qs_reader *r, int code, const qsim_error *why) {
    const int better = code == QSIM_E_NOMEM ? QSIM_OK : check_choices(r, false);
    if (!better)
        *r->error = *why;
    if (!better && code != QSIM_E_NOMEM && r->choice_count)
        r->retry = fails_in_branch(r);
    return better ? better : code;
}
