/* SPDX-License-Identifier: MIT */
/*
 * Sequences that subgraphs capture: the nodes that produce one are copied into the subgraph, which
 * then captures their tensors.
 */
#include "op/rules.h"
#include "pass/pass.h"

/* A node, one of its subgraphs, and the nodes that produce a sequence, the first one last. */
typedef struct capturing {
    qs_pass *p;
    qs_id node;
    qs_subgraph *sub;
    qs_id *producers;
    size_t count, capacity;
} capturing;

static bool makes_sequence(const qs_graph *g, qs_id value) {
    const qs_id id = g->values[value].producer;
    return id != QS_NONE && (qs_node_traits(g, &g->nodes[id]) & QS_MAKES_SEQUENCE);
}

/* The subgraph's value for an outer value, which it then captures. Negative: error. */
static qs_id capture_value(const capturing *s, qs_id outer) {
    qs_graph *g = s->p->graph, *inner = s->sub->graph;
    const int32_t count = s->sub->capture_count, at = g->nodes[s->node].input_count;
    if (outer == QS_NONE)
        return QS_NONE;
    for (int32_t i = 0; i < count; i++)
        if (g->nodes[s->node].inputs[s->sub->captures[i].input] == outer)
            return s->sub->captures[i].inner;
    const qs_id id = qs_graph_add_value(inner, NULL);
    qs_capture *all = qs_arena_alloc(&g->arena, (size_t)count + 1, sizeof(*all));
    if (id < 0 || !all || qs_node_grow_inputs(g, s->node, at + 1))
        return qs_pass_no_memory(s->p);
    if (count)
        memcpy(all, s->sub->captures, (size_t)count * sizeof(*all));
    all[count] = (qs_capture){id, at};
    s->sub->captures = all;
    s->sub->capture_count++;
    qs_node_set_input(g, s->node, at, outer);
    g->nodes[s->node].captured++;
    const qs_value *from = &g->values[outer];
    qs_value *v = &inner->values[id];
    v->data = from->data;
    v->dtype = from->dtype;
    v->rank = from->rank;
    v->dims = from->dims;
    v->is_input = true;
    return from->data || !qs_graph_push_input(inner, id) ? id : qs_pass_no_memory(s->p);
}

/* Removes capture `index`, whose value the subgraph now computes itself. */
static void remove_capture(const capturing *s, int32_t index) {
    qs_graph *inner = s->sub->graph;
    qs_node *n = &s->p->graph->nodes[s->node];
    const qs_capture old = s->sub->captures[index];
    size_t kept = 0;
    for (size_t i = 0; i < inner->input_count; i++)
        if (inner->inputs[i] != old.inner)
            inner->inputs[kept++] = inner->inputs[i];
    inner->input_count = kept;
    inner->values[old.inner].is_input = false;
    inner->values[old.inner].is_sequence = false;
    for (int32_t i = index + 1; i < s->sub->capture_count; i++)
        s->sub->captures[i - 1] = s->sub->captures[i];
    s->sub->capture_count--;
    for (int32_t i = old.input + 1; i < n->input_count; i++)
        n->inputs[i - 1] = n->inputs[i];
    n->input_count--;
    n->captured--;
    for (int32_t a = 0; a < n->attr_count; a++) {
        qs_subgraph *sub = n->attrs[a].type == QSIM_ATTR_GRAPH ? n->attrs[a].u.graph : NULL;
        for (int32_t i = 0; sub && i < sub->capture_count; i++)
            sub->captures[i].input -= sub->captures[i].input > old.input;
    }
}

/* Copies a producer; `sequence`: its input 0 in the subgraph, QS_NONE: that is a tensor. */
static int copy_producer(const capturing *s, qs_id producer, qs_id sequence, qs_id out) {
    const qs_node n = s->p->graph->nodes[producer];
    qs_id *in = qs_alloc(s->p->ctx, (size_t)n.input_count + 1, sizeof(*in));
    int code = in ? QSIM_OK : qs_pass_no_memory(s->p);
    for (int32_t i = 0; i < n.input_count && !code; i++) {
        in[i] = i == 0 && sequence != QS_NONE ? sequence : capture_value(s, n.inputs[i]);
        code = in[i] < QS_NONE ? in[i] : QSIM_OK;
    }
    const qs_id id = code ? code : qs_graph_add_like(s->sub->graph, &n, in, &out);
    qs_free(s->p->ctx, in);
    return id < 0 && !code ? qs_pass_no_memory(s->p) : code;
}

/* Lists the producers of a sequence, the first one last. */
static int list_producers(capturing *s, qs_id sequence) {
    const qs_graph *g = s->p->graph;
    s->count = 0;
    while (makes_sequence(g, sequence)) {
        const qs_id producer = g->values[sequence].producer;
        if (!qs_grow(s->p->ctx, (void **)&s->producers, &s->capacity, s->count,
                     sizeof(*s->producers)))
            return qs_pass_no_memory(s->p);
        s->producers[s->count++] = producer;
        if (!(qs_node_traits(g, &g->nodes[producer]) & QS_TAKES_SEQUENCE))
            break;
        sequence = g->nodes[producer].inputs[0];
    }
    return QSIM_OK;
}

/* Computes the sequence of capture `index` inside the subgraph. */
static int copy_inside(capturing *s, int32_t index) {
    const qs_capture old = s->sub->captures[index];
    qs_id sequence = QS_NONE;
    int code = list_producers(s, s->p->graph->nodes[s->node].inputs[old.input]);
    while (s->count > 0 && !code) {
        const qs_id producer = s->producers[--s->count];
        const qs_id out = s->count ? qs_graph_add_value(s->sub->graph, NULL) : old.inner;
        code = out < 0 ? qs_pass_no_memory(s->p) : copy_producer(s, producer, sequence, out);
        sequence = out;
    }
    if (!code)
        remove_capture(s, index);
    return code;
}

static int convert_subgraph(capturing *s, bool *changed) {
    const qs_graph *g = s->p->graph;
    bool moved = false;
    int code = QSIM_OK;
    for (int32_t i = 0; i < s->sub->capture_count && !code;) {
        const qs_id outer = g->nodes[s->node].inputs[s->sub->captures[i].input];
        const bool moves = outer != QS_NONE && makes_sequence(g, outer);
        code = moves ? copy_inside(s, i) : QSIM_OK;
        moved = moved || moves;
        i += !moves;
    }
    *changed = *changed || moved;
    return code || !moved ? code : qs_graph_sort(s->sub->graph, s->p->error);
}

static int convert_node(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    capturing s = {.p = p, .node = node};
    int code = QSIM_OK;
    (void)uses;
    for (int32_t a = 0; a < p->graph->nodes[node].attr_count && !code; a++) {
        const qs_attr *attr = &p->graph->nodes[node].attrs[a];
        s.sub = attr->type == QSIM_ATTR_GRAPH ? attr->u.graph : NULL;
        if (s.sub)
            code = convert_subgraph(&s, changed);
    }
    qs_free(p->ctx, s.producers);
    return code;
}

int qs_pass_sequences(qs_pass *p) {
    return qs_pass_nodes(p, convert_node);
}
