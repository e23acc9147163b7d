/* SPDX-License-Identifier: MIT */
/*
 * An element-wise float expression of one 8-bit tensor becomes a table of 256 bytes, computed by
 * the operators themselves on all 256 values, in a graph of its own.
 */
#include "pass/qdq/qdq.h"

#include <stdlib.h>

#define MAX_NODES  16
#define MAX_VALUES 64

typedef struct expression {
    qs_id nodes[MAX_NODES];
    int32_t count;
    qs_id leaf; /* the tensor, or QS_NONE */
} expression;

static bool is_elementwise(const qs_node *n) {
    return !n->domain[0] && !n->removed && (n->op->traits & QS_ELEMENTWISE);
}

static bool has_node(const expression *e, qs_id node) {
    for (int32_t i = 0; i < e->count; i++)
        if (e->nodes[i] == node)
            return true;
    return false;
}

/* Adds a leaf: the one 8-bit tensor, or a constant of one element; false: `v` is neither. */
static bool add_leaf(const qs_graph *g, expression *e, qs_id v, int32_t rank) {
    double scalar;
    if (g->values[v].data)
        return qs_const_scalar(g, v, &scalar) && g->values[v].rank <= rank;
    if (e->leaf != QS_NONE && e->leaf != v)
        return false;
    e->leaf = v;
    return g->values[v].dtype == QSIM_UINT8 && g->values[v].rank == rank;
}

/* Whether a node dequantizes a constant of one element. */
static bool is_scalar_constant(const qs_graph *g, const qs_node *n, int32_t rank) {
    double scalar;
    if (!(n->op->traits & QS_DEQUANTIZES) || g->values[n->inputs[0]].rank > rank)
        return false;
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && !qs_const_scalar(g, n->inputs[i], &scalar))
            return false;
    return true;
}

/* Adds the producer of an input, or the input itself if it is a constant; false: it is neither. */
static bool add_input(const qs_graph *g, expression *e, qs_id v, int32_t rank) {
    const qs_id producer = g->values[v].producer;
    if (producer == QS_NONE)
        return g->values[v].data && add_leaf(g, e, v, rank);
    if (has_node(e, producer))
        return true;
    if (e->count == MAX_NODES)
        return false;
    e->nodes[e->count++] = producer;
    return true;
}

/*
 * Collects the nodes of the expression whose result is `value`; false: it does not depend on one
 * 8-bit tensor alone, or is too large.
 */
static bool collect(const qs_qdq *d, qs_id value, expression *e) {
    const qs_graph *g = d->g;
    int32_t rank = g->values[value].rank;
    qs_id first = g->values[value].producer;
    *e = (expression){.leaf = QS_NONE};
    if (rank < 0 || first == QS_NONE)
        return false;
    e->nodes[e->count++] = first;
    for (int32_t at = 0; at < e->count; at++) {
        const qs_node *n = &g->nodes[e->nodes[at]];
        qs_quantized q;
        if ((size_t)e->nodes[at] >= d->positions || n->output_count != 1)
            return false;
        if (qs_qdq_source(d, n->outputs[0], &q)) {
            if (!add_leaf(g, e, q.x, rank))
                return false;
            continue;
        }
        if (is_scalar_constant(g, n, rank))
            continue;
        if (!is_elementwise(n))
            return false;
        for (int32_t i = 0; i < n->input_count; i++)
            if (n->inputs[i] != QS_NONE && !add_input(g, e, n->inputs[i], rank))
                return false;
    }
    return e->leaf != QS_NONE;
}

/* ---- computing ---- */

/* The graph in which the expression is executed, and the values that were copied into it. */
typedef struct evaluation {
    qs_qdq *d;
    qs_graph *g;
    qs_id from[MAX_VALUES], to[MAX_VALUES];
    int32_t count;
} evaluation;

/* The copy of a value, made if there is none yet; the bytes of constants are shared. */
static qs_id copy_value(evaluation *l, qs_id v) {
    for (int32_t i = 0; i < l->count; i++)
        if (l->from[i] == v)
            return l->to[i];
    if (l->count == MAX_VALUES)
        return QSIM_E_LIMIT;
    const qs_const *c = l->d->g->values[v].data;
    const bool one = c && c->elements == 1; /* as a scalar, since the table has one axis */
    qs_id id =
        c ? qs_graph_add_const(l->g, NULL, c->dtype, one ? 0 : c->rank, c->dims, c->data, false)
          : qs_graph_add_value(l->g, NULL);
    if (id < 0)
        return id;
    l->from[l->count] = v;
    l->to[l->count++] = id;
    return id;
}

static int copy_node(evaluation *l, qs_id node) {
    const qs_node *n = &l->d->g->nodes[node];
    qs_id in[8], out;
    if (n->input_count > 8)
        return QSIM_E_LIMIT;
    for (int32_t i = 0; i < n->input_count; i++) {
        in[i] = n->inputs[i] == QS_NONE ? QS_NONE : copy_value(l, n->inputs[i]);
        if (in[i] < 0 && n->inputs[i] != QS_NONE)
            return in[i];
    }
    out = copy_value(l, n->outputs[0]);
    const qs_id id = out < 0 ? out : qs_graph_add_like(l->g, n, in, &out);
    return id < 0 ? id : QSIM_OK;
}

static int evaluate(evaluation *l, const qs_id *result, const uint8_t **table) {
    const qs_pass *p = l->d->p;
    qs_eval e = {.ctx = p->ctx,
                 .graph = l->g,
                 .values = l->g->values,
                 .address = qs_eval_addresses(&l->g->arena, l->g),
                 .arena = &l->g->arena,
                 .model = p->model,
                 .error = p->error};
    int code = e.address ? QSIM_OK : qs_pass_no_memory(p);
    for (size_t i = 0; i < l->g->node_count && !code; i++) {
        bool done;
        code = qs_eval_const(&e, (qs_id)i, NULL, 1 << 20, &done);
        if (!code && !done)
            code =
                qs_fail(p->error, QSIM_E_INTERNAL, "%s: a table could not be computed", p->model);
    }
    const qs_const *c = code ? NULL : l->g->values[*result].data;
    if (!code && (!c || c->elements != 256 || c->dtype != QSIM_UINT8))
        code = qs_fail(p->error, QSIM_E_INTERNAL, "%s: a table has the wrong shape", p->model);
    *table = c ? c->data : NULL;
    return code;
}

static int compare_positions(const void *a, const void *b) {
    const size_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Copies the expression's nodes in order. The copy of the leaf is a constant of all 256 bytes. */
static int copy_expression(evaluation *l, const expression *e) {
    size_t order[MAX_NODES][2];
    uint8_t *all = qs_arena_alloc64(&l->g->arena, 256);
    const int64_t dims = 256;
    if (!all)
        return QSIM_E_NOMEM;
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    qs_id x = qs_graph_add_const(l->g, NULL, QSIM_UINT8, 1, &dims, all, false);
    if (x < 0)
        return x;
    l->from[0] = e->leaf;
    l->to[0] = x;
    l->count = 1;
    for (int32_t i = 0; i < e->count; i++) {
        order[i][0] = l->d->position[e->nodes[i]];
        order[i][1] = (size_t)e->nodes[i];
    }
    qsort(order, (size_t)e->count, sizeof(order[0]), compare_positions);
    int code = QSIM_OK;
    for (int32_t i = 0; i < e->count && !code; i++)
        code = copy_node(l, (qs_id)order[i][1]);
    return code;
}

static int replace_by_copy(qs_qdq *d, const qs_target *t, qs_id x) {
    const qs_id made = qs_qdq_replace(d, t, "", "Identity", &x, 1, QS_NONE);
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}

/* Replaces the target by QTable(x, table). */
static int replace_by_table(qs_qdq *d, const qs_target *t, qs_id x, const uint8_t *table) {
    const qs_id c = qs_pass_const_table(d->p, table);
    if (c < 0)
        return c;
    const qs_id in[2] = {x, c};
    const qs_id made = qs_qdq_replace(d, t, "qsim", "QTable", in, 2, QS_NONE);
    return made < 0 ? made : qs_pass_resolve(d->p, made);
}

int qs_qdq_table(qs_qdq *d, qs_target *t, bool *done) {
    expression e;
    qs_id q = t->node;
    if (d->p->standard || !collect(d, d->g->nodes[q].inputs[0], &e))
        return QSIM_OK;
    evaluation l = {.d = d};
    const uint8_t *table = NULL;
    if (qs_graph_create(d->p->ctx, &l.g))
        return qs_pass_no_memory(d->p);
    int code = copy_expression(&l, &e);
    if (!code)
        code = copy_node(&l, q);
    if (code == QSIM_E_NOMEM)
        qs_pass_no_memory(d->p);
    qs_id result = code ? QS_NONE : copy_value(&l, d->g->nodes[q].outputs[0]);
    if (!code)
        code = evaluate(&l, &result, &table);
    if (!code) {
        bool copies = true;
        for (int i = 0; i < 256; i++)
            copies &= table[i] == i;
        const qs_id x = e.leaf;
        code = copies ? replace_by_copy(d, t, x) : replace_by_table(d, t, x, table);
        *done = !code;
    }
    qs_graph_free(l.g);
    return code == QSIM_E_LIMIT ? QSIM_OK : code;
}
