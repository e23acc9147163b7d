/* SPDX-License-Identifier: MIT */
/*
 * Reads the subgraphs of nodes. A value of the outer graph that a subgraph reads is captured: it
 * becomes an input of the node and, unless it is a constant, of the subgraph.
 */
#include "base/ctx.h"
#include "onnx/reader.h"

/* The state of the reader that belongs to a graph. */
typedef struct state {
    qs_graph *graph;
    qs_arena *arena;
    const qs_scope *scope;
    qs_level *level;
} state;

static state save_state(const qs_reader *r) {
    return (state){r->graph, r->arena, r->scope, r->level};
}

static void restore_state(qs_reader *r, state to) {
    r->graph = to.graph;
    r->arena = to.arena;
    r->scope = to.scope;
    r->level = to.level;
}

/* ---- captures ---- */

static int add_capture(qs_reader *r, qs_span text, qs_id outer, qs_id *out) {
    qs_level *level = r->level;
    const size_t count = (size_t)level->sub->capture_count;
    const char *name = qs_read_scratch(r, text);
    *out = name ? qs_graph_add_value(r->graph, name) : QSIM_E_NOMEM;
    if (*out < 0 ||
        !qs_grow(r->ctx, (void **)&level->pairs, &level->capacity, count, sizeof(*level->pairs)))
        return qs_read_nomem(r);
    level->pairs[count] = (qs_captured){.inner = *out, .outer = outer};
    level->sub->capture_count++;
    const qs_value *from = &level->outer_graph->values[outer];
    qs_value *v = &r->graph->values[*out];
    v->data = from->data;
    v->dtype = from->dtype;
    v->rank = from->rank;
    v->dims = from->dims;
    v->is_input = true; /* also a constant, so that no node of the subgraph may make it */
    return QSIM_OK;
}

int qs_read_captured(qs_reader *r, qs_span text, qs_id *out) {
    const state inner_state = save_state(r);
    const qs_level *level = r->level;
    restore_state(r, (state){level->outer_graph, &level->outer_graph->arena, level->outer_scope,
                             level->outer});
    qs_id outer;
    int code = qs_read_lookup(r, text, &outer);
    restore_state(r, inner_state);
    *out = QS_NONE;
    return code || outer == QS_NONE ? code : add_capture(r, text, outer, out);
}

/* ---- a subgraph ---- */

static int copy_imports(qs_reader *r, const qs_graph *from) {
    for (size_t i = 0; i < from->import_count; i++)
        if (qs_graph_set_import(r->graph, from->imports[i].domain, from->imports[i].version))
            return qs_read_nomem(r);
    return QSIM_OK;
}

/* Appends captured values that are not constant to the inputs that the operator feeds. */
static int list_inputs(qs_reader *r, const qs_level *level) {
    level->sub->fed = (int32_t)r->graph->input_count;
    for (int32_t i = 0; i < level->sub->capture_count; i++)
        if (!r->graph->values[level->pairs[i].inner].data &&
            qs_graph_push_input(r->graph, level->pairs[i].inner))
            return qs_read_nomem(r);
    return QSIM_OK;
}

static int read_contents(qs_reader *r, qs_span message, const qs_level *level) {
    int code = copy_imports(r, level->outer_graph);
    if (!code)
        code = qs_read_claim_names(r, message, GRAPH_NODE);
    if (!code)
        code = qs_read_inner_graph(r, message);
    if (!code)
        code = list_inputs(r, level);
    return code ? code : qs_read_resolve(r);
}

/* Leaves a subgraph that breaks a rule unread, in a model loaded for inspection. */
static int skip_subgraph(qs_reader *r, int code) {
    if (r->collects)
        return qs_read_collect(r, code);
    qs_error_clear(r->error);
    return QSIM_OK;
}

static int read_one(qs_reader *r, qs_attr *a, qs_level *level) {
    const state outer_state = save_state(r);
    const qs_node *at = r->at;
    const int depth = r->level ? r->level->depth + 1 : 1;
    qs_graph *inner;
    const int limit = (int)r->ctx->limits.nesting;
    if (depth > limit) {
        const int code =
            qs_over_limit(r->error, "nesting", (uint64_t)limit, (uint64_t)depth, r->name);
        return r->inspect ? skip_subgraph(r, code) : code;
    }
    qs_subgraph *sub = qs_arena_alloc(r->arena, 1, sizeof(*sub));
    if (!sub || qs_graph_create(r->ctx, &inner) || qs_graph_own(r->graph, inner))
        return qs_read_nomem(r);
    sub->graph = inner;
    *level = (qs_level){.sub = sub,
                        .outer_graph = r->graph,
                        .outer_scope = r->scope,
                        .outer = r->level,
                        .depth = depth};
    restore_state(r, (state){inner, &inner->arena, NULL, level});
    int code = read_contents(r, qs_wire_find(a->source, ATTR_G), level);
    restore_state(r, outer_state);
    r->at = at;
    if (code && code != QSIM_E_NOMEM && r->inspect) {
        level->sub = NULL;
        code = skip_subgraph(r, code);
    } else {
        a->u.graph = sub;
    }
    return code;
}

/* Appends the values that a subgraph captures to those of the node. */
static int append_captures(qs_reader *r, const qs_level *level, int32_t own, qs_id **list,
                           int32_t *count) {
    qs_subgraph *sub = level->sub;
    const size_t before = (size_t)*count, added = (size_t)sub->capture_count;
    qs_id *all = qs_arena_alloc(r->arena, before + added, sizeof(*all));
    sub->captures = qs_arena_alloc(r->arena, added, sizeof(*sub->captures));
    if (!all || !sub->captures || before + added + (size_t)own > INT32_MAX)
        return qs_read_nomem(r);
    if (before)
        memcpy(all, *list, before * sizeof(*all));
    for (size_t i = 0; i < added; i++) {
        all[before + i] = level->pairs[i].outer;
        sub->captures[i] = (qs_capture){level->pairs[i].inner, own + (int32_t)(before + i)};
    }
    *list = all;
    *count += sub->capture_count;
    return QSIM_OK;
}

int qs_read_subgraphs(qs_reader *r, qs_node *head, int32_t own_inputs, qs_id **captured,
                      int32_t *count) {
    *captured = NULL;
    *count = 0;
    for (int32_t i = 0; i < head->attr_count; i++) {
        qs_level level = {0};
        if (head->attrs[i].type != QSIM_ATTR_GRAPH)
            continue;
        int code = read_one(r, &head->attrs[i], &level);
        if (!code && level.sub)
            code = append_captures(r, &level, own_inputs, captured, count);
        qs_free(r->ctx, level.pairs);
        if (code)
            return code;
    }
    return QSIM_OK;
}
