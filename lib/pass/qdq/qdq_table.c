/* SPDX-License-Identifier: MIT */
/*
 * An element-wise float expression of one 8-bit tensor becomes a table of 256 bytes, computed by
 * the operators themselves on all 256 values, in a graph of its own.
 */
#include "pass/expression.h"
#include "pass/qdq/qdq.h"

#include <stdlib.h>

typedef struct expression {
    qs_id nodes[QS_TABLE_NODES];
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
    if (e->count == QS_TABLE_NODES)
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

static int compare_positions(const void *a, const void *b) {
    const size_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Copies the nodes in order. */
static int copy_nodes(qs_qdq *d, const expression *e, qs_expression *copy) {
    size_t order[QS_TABLE_NODES][2];
    int code = QSIM_OK;
    for (int32_t i = 0; i < e->count; i++) {
        order[i][0] = d->position[e->nodes[i]];
        order[i][1] = (size_t)e->nodes[i];
    }
    qsort(order, (size_t)e->count, sizeof(order[0]), compare_positions);
    for (int32_t i = 0; i < e->count && !code; i++)
        code = qs_expression_add(copy, (qs_id)order[i][1]);
    return code;
}

/* Computes the results of QuantizeLinear `q` for all 256 codes of the leaf, which `copy` keeps. */
static int compute(qs_qdq *d, const expression *e, qs_id q, qs_expression *copy,
                   const uint8_t **table) {
    const qs_const *c = NULL;
    uint8_t all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (uint8_t)i;
    int code = qs_expression_begin(copy, e->leaf, QSIM_UINT8, sizeof(all), all);
    if (!code)
        code = copy_nodes(d, e, copy);
    if (!code)
        code = qs_expression_add(copy, q);
    if (!code)
        code = qs_expression_value(copy, d->g->nodes[q].outputs[0], &c);
    if (!code && (!c || c->elements != 256 || c->dtype != QSIM_UINT8))
        return qs_fail(d->p->error, QSIM_E_INTERNAL, "%s: a table could not be computed",
                       d->p->model);
    *table = code ? NULL : c->data;
    return code == QSIM_E_NOMEM ? qs_pass_no_memory(d->p) : code;
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
    qs_expression copy = {
        .ctx = d->p->ctx, .from = d->g, .model = d->p->model, .error = d->p->error};
    const uint8_t *table;
    if (d->p->standard || !collect(d, d->g->nodes[t->node].inputs[0], &e))
        return QSIM_OK;
    int code = compute(d, &e, t->node, &copy, &table);
    if (!code) {
        bool copies = true;
        for (int i = 0; i < 256; i++)
            copies &= table[i] == i;
        code = copies ? replace_by_copy(d, t, e.leaf) : replace_by_table(d, t, e.leaf, table);
        *done = !code;
    }
    qs_expression_end(&copy);
    return code == QSIM_E_LIMIT ? QSIM_OK : code;
}
