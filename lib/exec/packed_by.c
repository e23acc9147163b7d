/* SPDX-License-Identifier: MIT */
/* Finds nodes that would pack the same weights in the same way, so that they are packed once. */
#include "exec/exec.h"

/*
 * Whether two values are equal for packing, which reads constants, and types and sizes of other
 * values.
 */
static bool same_value(const qs_graph *g, qs_id a, qs_id b) {
    if (a == b)
        return true;
    if (a == QS_NONE || b == QS_NONE)
        return false;
    const qs_value *x = &g->values[a], *y = &g->values[b];
    bool same = !x->data && !y->data && x->dtype == y->dtype && x->rank == y->rank;
    for (int32_t i = 0; same && i < x->rank; i++)
        same = x->dims[i].size == y->dims[i].size;
    return same;
}

static bool same_attr(const qs_attr *a, const qs_attr *b) {
    if (!qs_same(a->name, b->name) || a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case QSIM_ATTR_FLOAT: return memcmp(&a->u.f, &b->u.f, sizeof(a->u.f)) == 0;
    case QSIM_ATTR_INT: return a->u.i == b->u.i;
    case QSIM_ATTR_STRING:
        return a->u.s.size == b->u.s.size &&
               (a->u.s.size == 0 || memcmp(a->u.s.data, b->u.s.data, a->u.s.size) == 0);
    case QSIM_ATTR_INTS:
        return a->count == 0 ||
               memcmp(a->u.ints, b->u.ints, (size_t)a->count * sizeof(*a->u.ints)) == 0;
    case QSIM_ATTR_FLOATS:
        return a->count == 0 ||
               memcmp(a->u.floats, b->u.floats, (size_t)a->count * sizeof(*a->u.floats)) == 0;
    case QSIM_ATTR_TENSOR: return a->u.tensor == b->u.tensor;
    default: return false;
    }
}

static bool same_node(const qs_graph *g, const qs_node *a, const qs_node *b) {
    bool same = a->op == b->op && a->version == b->version && a->attr_count == b->attr_count &&
                a->input_count == b->input_count && a->output_count == b->output_count;
    for (int32_t i = 0; same && i < a->input_count; i++)
        same = same_value(g, a->inputs[i], b->inputs[i]);
    for (int32_t i = 0; same && i < a->output_count; i++)
        same = same_value(g, a->outputs[i], b->outputs[i]);
    for (int32_t i = 0; same && i < a->attr_count; i++)
        same = same_attr(&a->attrs[i], &b->attrs[i]);
    return same;
}

/* Hashes row and constants, which rarely are equal in nodes that differ otherwise. */
static uint64_t hash_node(const qsim_ctx *ctx, const qs_graph *g, const qs_node *n) {
    uint64_t h = (uintptr_t)n->op;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_id id = n->inputs[i];
        const uint64_t pair[2] = {h, id != QS_NONE && g->values[id].data ? (uint64_t)id : 0};
        h = qs_keyed_hash(qs_ctx_secret(ctx), pair, sizeof(pair));
    }
    return h;
}

/* Most nodes of one hash that are compared. */
#define CHAIN 8

int qs_find_packed_by(qsim_ctx *ctx, const qs_graph *g, qs_id *packed_by) {
    size_t capacity = 16;
    while (capacity < 2 * g->order_count)
        capacity *= 2;
    qs_id *table = qs_alloc(ctx, capacity, sizeof(*table));
    if (!table)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < capacity; i++)
        table[i] = QS_NONE;
    for (size_t i = 0; i < g->order_count; i++) {
        const qs_node *n = &g->nodes[g->order[i]];
        packed_by[i] = QS_NONE;
        if (!qs_op_more_of(n->op)->pack || n->input_count > 16)
            continue;
        size_t at = (size_t)hash_node(ctx, g, n);
        for (int probes = 0; probes < CHAIN && packed_by[i] == QS_NONE; probes++, at++) {
            qs_id *seen = &table[at & (capacity - 1)];
            if (*seen == QS_NONE) {
                *seen = g->order[i];
                break;
            }
            if (same_node(g, n, &g->nodes[*seen]))
                packed_by[i] = *seen;
        }
    }
    qs_free(ctx, table);
    return QSIM_OK;
}
