/* SPDX-License-Identifier: MIT */
#include "pass/qdq/function.h"

#include <stdlib.h>

/* Whether a node normalizes by constants, channel by channel. */
static bool is_batchnorm(const qs_node *n) {
    return n->op->moments == QS_MOMENTS_NORM && qs_node_int(n, "training_mode", 0) == 0;
}

static bool is_elementwise(const qs_node *n) {
    return !n->domain[0] && !n->removed && ((n->op->traits & QS_ELEMENTWISE) || is_batchnorm(n));
}

static bool has_node(const qs_function *f, qs_id node) {
    for (int32_t i = 0; i < f->count; i++)
        if (f->nodes[i] == node)
            return true;
    return false;
}

/*
 * Adds a constant operand of `n`: one element, or several along the axis that all such constants
 * have in common. Axis 0 is that of the codes when they are computed.
 */
static bool add_constant(const qs_graph *g, const qs_node *n, qs_id v, int32_t rank,
                         qs_function *f) {
    const qs_const *c = g->values[v].data;
    int32_t axis = -1;
    double scalar;
    if (c->rank > rank || qs_const_scalar(g, v, &scalar))
        return c->rank <= rank && !is_batchnorm(n);
    if (n->version < 7) /* earlier versions broadcast by attributes */
        return false;
    for (int32_t i = 0; i < c->rank; i++) {
        if (c->dims[i] != 1 && axis >= 0)
            return false;
        axis = c->dims[i] != 1 ? rank - c->rank + i : axis;
    }
    axis = is_batchnorm(n) ? 1 : axis;
    if (axis < 1 || (f->channels && (f->axis != axis || f->channels != (int64_t)c->elements)))
        return false;
    f->axis = axis;
    f->channels = (int64_t)c->elements;
    return true;
}

/* Adds a dequantized tensor: the one of several elements, or a constant of one. */
static bool add_leaf(const qs_graph *g, qs_function *f, const qs_quantized *q, int32_t rank) {
    const qs_value *v = &g->values[q->x];
    double scalar;
    if (v->data)
        return qs_const_scalar(g, q->x, &scalar) && v->rank <= rank;
    if (f->leaf != QS_NONE && f->leaf != q->x)
        return false;
    f->leaf = q->x;
    f->zero_point = q->z;
    return v->dtype == QSIM_UINT8 && v->rank == rank;
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

/* Adds the producer of operand `v` of `n`, or `v` itself if it is a constant; false: neither. */
static bool add_input(const qs_graph *g, qs_function *f, const qs_node *n, qs_id v, int32_t rank) {
    const qs_id producer = g->values[v].producer;
    if (producer == QS_NONE)
        return g->values[v].data && add_constant(g, n, v, rank, f);
    if (has_node(f, producer))
        return true;
    if (f->count == QS_TABLE_NODES)
        return false;
    f->nodes[f->count++] = producer;
    return true;
}

/* Whether the channels are those of the tensor, which is not broadcast. */
static bool fits_leaf(const qs_graph *g, const qs_function *f) {
    return f->leaf != QS_NONE &&
           (!f->channels || g->values[f->leaf].dims[f->axis].size == f->channels);
}

bool qs_function_find(const qs_qdq *d, qs_id value, qs_function *f) {
    const qs_graph *g = d->g;
    int32_t rank = g->values[value].rank;
    qs_id first = g->values[value].producer;
    *f = (qs_function){.leaf = QS_NONE};
    if (rank < 0 || first == QS_NONE)
        return false;
    f->nodes[f->count++] = first;
    for (int32_t at = 0; at < f->count; at++) {
        const qs_node *n = &g->nodes[f->nodes[at]];
        qs_quantized q;
        if ((size_t)f->nodes[at] >= d->positions || n->output_count != 1)
            return false;
        if (qs_qdq_source(d, n->outputs[0], &q)) {
            if (!add_leaf(g, f, &q, rank))
                return false;
            continue;
        }
        if (is_scalar_constant(g, n, rank))
            continue;
        if (!is_elementwise(n))
            return false;
        for (int32_t i = 0; i < n->input_count; i++)
            if (n->inputs[i] != QS_NONE && !add_input(g, f, n, n->inputs[i], rank))
                return false;
    }
    return fits_leaf(g, f);
}

/* ---- computing ---- */

static int compare_positions(const void *a, const void *b) {
    const size_t *x = a, *y = b;
    return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Copies the nodes in order. */
static int copy_nodes(const qs_qdq *d, const qs_function *f, qs_expression *copy) {
    size_t order[QS_TABLE_NODES][2];
    int code = QSIM_OK;
    for (int32_t i = 0; i < f->count; i++) {
        order[i][0] = d->position[f->nodes[i]];
        order[i][1] = (size_t)f->nodes[i];
    }
    qsort(order, (size_t)f->count, sizeof(order[0]), compare_positions);
    for (int32_t i = 0; i < f->count && !code; i++)
        code = qs_expression_add(copy, (qs_id)order[i][1]);
    return code;
}

/* Begins with all codes: along the first axis of a tensor that has `channels` along its own. */
static int begin(const qs_qdq *d, const qs_function *f, qs_expression *e) {
    int64_t dims[QSIM_MAX_RANK];
    const size_t channels = f->channels ? (size_t)f->channels : 1;
    const int32_t rank = f->channels ? d->g->values[f->leaf].rank : 1;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = i == 0 ? 256 : i == f->axis ? f->channels : 1;
    uint8_t *all = qs_alloc(d->p->ctx, channels, 256);
    if (!all)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < 256; i++)
        memset(all + i * channels, (int)i, channels);
    const int code = qs_expression_begin(e, f->leaf, QSIM_UINT8, rank, dims, all);
    qs_free(d->p->ctx, all);
    return code;
}

int qs_function_compute(const qs_qdq *d, const qs_function *f, qs_id reader, qs_id value,
                        qs_expression *e, const qs_const **out) {
    *e =
        (qs_expression){.ctx = d->p->ctx, .from = d->g, .model = d->p->model, .error = d->p->error};
    *out = NULL;
    int code = begin(d, f, e);
    if (!code)
        code = copy_nodes(d, f, e);
    if (!code && reader != QS_NONE)
        code = qs_expression_add(e, reader);
    if (!code)
        code = qs_expression_value(e, value, out);
    return code == QSIM_E_NOMEM ? qs_pass_no_memory(d->p) : code;
}
