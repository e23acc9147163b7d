/* SPDX-License-Identifier: MIT */
/* Order of execution, readers of values, dead nodes. All linear in the number of edges. */
#include "base/ctx.h"
#include "graph/graph.h"

static qsim_ctx *ctx_of(const qs_graph *g) {
    return g->arena.ctx;
}

int qs_graph_uses(const qs_graph *g, qs_uses *uses) {
    size_t edges = 0;
    for (size_t i = 0; i < g->node_count; i++)
        edges += g->nodes[i].removed ? 0 : (size_t)g->nodes[i].input_count;
    uses->start = qs_calloc(ctx_of(g), g->value_count + 2, sizeof(qs_id));
    uses->nodes = qs_alloc(ctx_of(g), edges, sizeof(qs_id));
    if (!uses->start || !uses->nodes || edges > INT32_MAX) {
        qs_uses_free(g, uses);
        return QSIM_E_NOMEM;
    }
    uses->values = g->value_count;
    qs_id *end = uses->start + 1; /* counts, then positions; at last start[v + 1] */
    for (size_t i = 0; i < g->node_count; i++)
        for (int32_t k = 0; !g->nodes[i].removed && k < g->nodes[i].input_count; k++)
            if (g->nodes[i].inputs[k] != QS_NONE)
                end[g->nodes[i].inputs[k] + 1]++;
    for (size_t v = 0; v < g->value_count; v++)
        end[v + 1] += end[v];
    for (size_t i = 0; i < g->node_count; i++)
        for (int32_t k = 0; !g->nodes[i].removed && k < g->nodes[i].input_count; k++)
            if (g->nodes[i].inputs[k] != QS_NONE)
                uses->nodes[end[g->nodes[i].inputs[k]]++] = (qs_id)i;
    return QSIM_OK;
}

void qs_uses_free(const qs_graph *g, qs_uses *uses) {
    qs_free(ctx_of(g), uses->start);
    qs_free(ctx_of(g), uses->nodes);
    uses->start = uses->nodes = NULL;
}

qs_id qs_only_reader(const qs_graph *g, const qs_uses *uses, qs_id value) {
    if ((size_t)value >= uses->values || g->values[value].is_output)
        return QS_NONE;
    const qs_id first = uses->start[value];
    return uses->start[value + 1] - first == 1 ? uses->nodes[first] : QS_NONE;
}

qs_id qs_only_producer(const qs_graph *g, const qs_uses *uses, qs_id value) {
    return qs_only_reader(g, uses, value) == QS_NONE ? QS_NONE : g->values[value].producer;
}

static bool has_producer(const qs_graph *g, qs_id value) {
    return value != QS_NONE && g->values[value].producer != QS_NONE;
}

/*
 * A heap of node ids, smallest first: of the nodes that could come next the one that comes first in
 * the file does, so that a file that is in order keeps it.
 */
static void heap_push(qs_id *heap, size_t *count, qs_id id) {
    size_t i = (*count)++;
    for (; i > 0 && heap[(i - 1) / 2] > id; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = id;
}

static qs_id heap_pop(qs_id *heap, size_t *count) {
    qs_id top = heap[0], last = heap[--*count];
    size_t i = 0;
    for (size_t child = 1; child < *count; child = 2 * i + 1) {
        child += child + 1 < *count && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

static int fail_cycle(const qs_graph *g, const int32_t *waiting, qsim_error *error) {
    for (size_t i = 0; i < g->node_count; i++)
        if (waiting[i] > 0)
            return qs_fail(error, QSIM_E_GRAPH, "the graph has a cycle (node '%s', %s)",
                           g->nodes[i].name, g->nodes[i].op_type);
    return qs_fail(error, QSIM_E_INTERNAL, "sorting lost a node");
}

/* Appends nodes whose producers are all in the order, until none is left. */
static void sort_nodes(qs_graph *g, const qs_uses *uses, int32_t *waiting, qs_id *heap) {
    size_t ready = 0;
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->nodes[i].removed && waiting[i] == 0)
            heap_push(heap, &ready, (qs_id)i);
    while (ready > 0) {
        qs_id id = heap_pop(heap, &ready);
        const qs_node *n = &g->nodes[id];
        g->order[g->order_count++] = id;
        for (int32_t k = 0; k < n->output_count; k++)
            for (qs_id u = n->outputs[k] == QS_NONE ? 0 : uses->start[n->outputs[k]];
                 n->outputs[k] != QS_NONE && u < uses->start[n->outputs[k] + 1]; u++)
                if (--waiting[uses->nodes[u]] == 0)
                    heap_push(heap, &ready, uses->nodes[u]);
    }
}

int qs_graph_sort(qs_graph *g, qsim_error *error) {
    qsim_ctx *ctx = ctx_of(g);
    qs_uses uses = {0};
    size_t live = 0;
    int32_t *waiting = qs_calloc(ctx, g->node_count, sizeof(*waiting));
    qs_id *heap = qs_alloc(ctx, g->node_count, sizeof(*heap));
    int code = QSIM_E_NOMEM;
    if (!waiting || !heap || qs_graph_uses(g, &uses) ||
        !qs_grow(ctx, (void **)&g->order, &g->order_capacity, g->node_count, sizeof(*g->order))) {
        qs_fail(error, code, "out of memory");
        goto done;
    }
    for (size_t i = 0; i < g->node_count; i++) {
        live += !g->nodes[i].removed;
        for (int32_t k = 0; !g->nodes[i].removed && k < g->nodes[i].input_count; k++)
            waiting[i] += has_producer(g, g->nodes[i].inputs[k]);
    }
    code = qs_go_on(ctx, g->name, error);
    if (code)
        goto done;
    g->order_count = 0;
    sort_nodes(g, &uses, waiting, heap);
    code = g->order_count == live ? QSIM_OK : fail_cycle(g, waiting, error);
done:
    qs_uses_free(g, &uses);
    qs_free(ctx, heap);
    qs_free(ctx, waiting);
    return code;
}

int qs_graph_prune(qs_graph *g) {
    bool *needed = qs_calloc(ctx_of(g), g->value_count, sizeof(*needed));
    if (!needed)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->output_count; i++)
        needed[g->outputs[i]] = true;
    for (size_t i = g->order_count; i-- > 0;) {
        const qs_node *n = &g->nodes[g->order[i]];
        bool used = false;
        for (int32_t k = 0; !n->removed && k < n->output_count; k++)
            used |= n->outputs[k] != QS_NONE && needed[n->outputs[k]];
        if (!used) {
            qs_graph_remove_node(g, g->order[i]);
            continue;
        }
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE)
                needed[n->inputs[k]] = true;
    }
    size_t kept = 0;
    for (size_t i = 0; i < g->order_count; i++)
        if (!g->nodes[g->order[i]].removed)
            g->order[kept++] = g->order[i];
    g->order_count = kept;
    qs_free(ctx_of(g), needed);
    return QSIM_OK;
}
