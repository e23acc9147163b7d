/* SPDX-License-Identifier: MIT */
/* A Slice of a Slice along other axes is one Slice: what the first alone would make is not made. */
#include "exec/passes.h"

typedef struct cut {
    int64_t lists[4][QSIM_MAX_RANK]; /* starts, ends, axes, steps */
    int32_t count;
    uint32_t mask; /* axes */
} cut;

static bool read_list(const qs_graph *g, const qs_node *n, int32_t index, int32_t count,
                      int64_t *list) {
    const qs_id v = index < n->input_count ? n->inputs[index] : QS_NONE;
    const qs_const *c = v == QS_NONE ? NULL : g->values[v].data;
    if (!c || (c->dtype != QSIM_INT64 && c->dtype != QSIM_INT32) || (int32_t)c->elements != count)
        return false;
    for (int32_t i = 0; i < count; i++)
        if (c->dtype == QSIM_INT64) /* ends may be greater than a double tells apart */
            memcpy(&list[i], (const uint8_t *)c->data + (size_t)i * 8, 8);
        else
            list[i] = (int64_t)qs_const_at(c, (size_t)i);
    return true;
}

/* Reads constant lists; false for a node that has no such, or names an axis twice. */
static bool read_cut(const qs_graph *g, qs_id node, cut *c) {
    const qs_node *n = node == QS_NONE ? NULL : &g->nodes[node];
    if (!n || !qs_node_is(n, "", "Slice") || n->version < 10 || n->input_count < 3)
        return false;
    const qs_const *starts = n->inputs[1] == QS_NONE ? NULL : g->values[n->inputs[1]].data;
    const int32_t rank = g->values[n->inputs[0]].rank;
    if (!starts || rank < 0 || starts->elements > (size_t)rank)
        return false;
    c->count = (int32_t)starts->elements;
    c->mask = 0;
    for (int32_t k = 0; k < 4; k++) {
        const bool given = k + 1 < n->input_count && n->inputs[k + 1] != QS_NONE;
        for (int32_t i = 0; i < c->count && !given; i++)
            c->lists[k][i] = k == 2 ? i : 1;
        if (given ? !read_list(g, n, k + 1, c->count, c->lists[k]) : k < 2)
            return false;
    }
    for (int32_t i = 0; i < c->count; i++) {
        c->lists[2][i] += c->lists[2][i] < 0 ? rank : 0;
        if (c->lists[2][i] < 0 || c->lists[2][i] >= rank || c->mask >> c->lists[2][i] & 1)
            return false;
        c->mask |= 1u << c->lists[2][i];
    }
    return true;
}

static int join(qs_pass *p, qs_id node, const cut *first, const cut *then) {
    qs_graph *g = p->graph;
    const int64_t count = first->count + then->count;
    if (qs_node_grow_inputs(g, node, 5))
        return qs_pass_no_memory(p);
    for (int32_t k = 0; k < 4; k++) {
        int64_t list[QSIM_MAX_RANK];
        memcpy(list, first->lists[k], (size_t)first->count * sizeof(*list));
        memcpy(list + first->count, then->lists[k], (size_t)then->count * sizeof(*list));
        const qs_id v = qs_pass_const(p, QSIM_INT64, 1, &count, list);
        if (v < 0)
            return v;
        qs_node_set_input(g, node, k + 1, v);
    }
    qs_node_set_input(g, node, 0, g->nodes[g->values[g->nodes[node].inputs[0]].producer].inputs[0]);
    return qs_pass_resolve(p, node);
}

int qs_pass_slices(qs_pass *p) {
    qs_graph *g = p->graph;
    bool changed = false;
    int code = QSIM_OK;
    for (size_t i = 0; i < g->order_count && !code; i++) {
        const qs_id node = g->order[i];
        cut first, then;
        if (!read_cut(g, node, &then) ||
            !read_cut(g, g->values[g->nodes[node].inputs[0]].producer, &first) ||
            first.mask & then.mask)
            continue;
        code = join(p, node, &first, &then);
        changed = true;
    }
    return code || !changed ? code : qs_pass_finish(p);
}
