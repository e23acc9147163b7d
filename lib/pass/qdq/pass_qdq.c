/* SPDX-License-Identifier: MIT */
/*
 * The pass, and functions that all quantize/dequantize patterns use: operands, target, replacement.
 */
#include "pass/qdq/qdq.h"
#include "quant/affine.h"

#include <math.h>

static bool is_quantizing(const qs_node *n, const char *op_type) {
    return qs_node_is_onnx(n, op_type) || qs_node_is(n, "com.microsoft", op_type);
}

/* Reads scale and zero point; false if one has several elements or the scale is not valid. */
static bool read_params(const qs_graph *g, const qs_node *n, qs_quantized *q) {
    double s, z = 0;
    q->scale = n->inputs[1];
    q->zp = qs_node_input(n, 2);
    if (qs_node_int(n, "block_size", 0) != 0 || !qs_const_scalar(g, q->scale, &s) ||
        g->values[q->scale].dtype != QSIM_FLOAT ||
        (q->zp != QS_NONE && !qs_const_scalar(g, q->zp, &z)))
        return false;
    q->s = (float)s;
    q->z = (int32_t)z;
    return isfinite(q->s) && q->s > 0;
}

static bool is_usable_type(const qs_qdq *d, int32_t dtype) {
    return dtype == QSIM_UINT8 || (d->p->standard && dtype == QSIM_INT8);
}

bool qs_qdq_source(const qs_qdq *d, qs_id value, qs_quantized *q) {
    const qs_graph *g = d->g;
    qs_id id = value < 0 ? QS_NONE : g->values[value].producer;
    if (id == QS_NONE || !is_quantizing(&g->nodes[id], "DequantizeLinear") ||
        !read_params(g, &g->nodes[id], q))
        return false;
    q->x = g->nodes[id].inputs[0];
    q->dtype = g->values[q->x].dtype;
    return is_usable_type(d, q->dtype);
}

int qs_qdq_operand(qs_qdq *d, qs_id value, qs_quantized *q, bool *found) {
    *found = qs_qdq_source(d, value, q);
    qs_id id = value < 0 ? QS_NONE : d->g->values[value].producer;
    if (*found || d->p->standard || id == QS_NONE ||
        !is_quantizing(&d->g->nodes[id], "DequantizeLinear") ||
        !read_params(d->g, &d->g->nodes[id], q))
        return QSIM_OK;
    q->x = d->g->nodes[id].inputs[0];
    if (!d->g->values[q->x].data || d->g->values[q->x].dtype != QSIM_INT8)
        return QSIM_OK;
    q->z += 128;
    q->dtype = QSIM_UINT8;
    q->x = qs_pass_flip_const(d->p, d->g->values[q->x].data);
    q->zp = qs_pass_const_u8(d->p, QSIM_UINT8, (uint8_t)q->z);
    *found = q->x >= 0 && q->zp >= 0;
    return *found ? QSIM_OK : QSIM_E_NOMEM;
}

/* A constant of one element and some axes, without the axes. */
static qs_id scalar_of(qs_qdq *d, qs_id v) {
    const qs_const *c = d->g->values[v].data;
    return c->rank == 0 ? v : qs_pass_const(d->p, c->dtype, 0, NULL, c->data);
}

qs_id qs_qdq_zero_point(qs_qdq *d, qs_quantized *q) {
    if (q->zp == QS_NONE)
        q->zp = qs_pass_const_u8(d->p, q->dtype, 0);
    if (!d->p->standard || q->zp < 0)
        return q->zp;
    q->scale = scalar_of(d, q->scale);
    q->zp = scalar_of(d, q->zp);
    return q->scale < 0 ? q->scale : q->zp;
}

qs_id qs_qdq_replace(qs_qdq *d, const qs_target *t, const char *domain, const char *op_type,
                     const qs_id *inputs, int32_t input_count, qs_id attributes_of) {
    qs_graph *g = d->g;
    qs_id y = g->nodes[t->node].outputs[0];
    const char *name = t->core == QS_NONE ? g->nodes[t->node].name : g->nodes[t->core].name;
    qs_graph_remove_node(g, t->node);
    const qs_id made =
        attributes_of != QS_NONE
            ? qs_pass_clone(d->p, attributes_of, domain, inputs, input_count, &y, 1)
            : qs_graph_add_node(g, domain, op_type, name, inputs, input_count, &y, 1);
    if (made < 0)
        return qs_pass_no_memory(d->p);
    qs_node *n = &g->nodes[made];
    n->op_type = op_type;
    if (qs_same(domain, "com.microsoft")) /* versions count in the operator's own domain */
        n->version = (int32_t)qs_graph_import(g, domain);
    return made;
}

int qs_qdq_set_bounds(qs_qdq *d, const qs_target *t, qs_id node) {
    if (t->bounded &&
        (qs_node_set_int(d->g, node, "lo", t->lo) || qs_node_set_int(d->g, node, "hi", t->hi)))
        return qs_pass_no_memory(d->p);
    return qs_pass_resolve(d->p, node);
}

/* ---- the target ---- */

int32_t qs_qdq_quantize(const qs_quantized *q, double v) {
    float x = (float)v;
    uint8_t u;
    int8_t s;
    if (q->dtype == QSIM_UINT8) {
        qs_quantize_u8(&x, 1, q->s, q->z, &u);
        return u;
    }
    qs_quantize_s8(&x, 1, q->s, q->z, &s);
    return s;
}

/*
 * Finds the core: skips Relu and Clip before the target, whose bounds are quantized. Quantizing is
 * monotonic, so clamping the integers gives the same.
 */
static void find_core(const qs_qdq *d, qs_target *t) {
    const qs_graph *g = d->g;
    int32_t least = t->q.dtype == QSIM_UINT8 ? 0 : -128, most = least + 255;
    qs_id id;
    double lo, hi;
    t->value = g->nodes[t->node].inputs[0];
    id = g->values[t->value].producer;
    t->lo = least;
    t->hi = most;
    for (int depth = 0;
         depth < 4 && id != QS_NONE && qs_node_bounds(g, &g->nodes[id], &lo, &hi) && lo <= hi;
         depth++) {
        int32_t a = qs_qdq_quantize(&t->q, lo), b = qs_qdq_quantize(&t->q, hi);
        /* The last node, which is found first, clamps last: its bounds win. */
        int32_t low = t->lo > a ? t->lo : a, high = t->hi < b ? t->hi : b;
        t->lo = low > t->hi ? t->hi : low;
        t->hi = high < t->lo ? t->lo : high;
        t->value = g->nodes[id].inputs[0];
        id = g->values[t->value].producer;
    }
    t->bounded = t->lo > least || t->hi < most;
    t->core = id;
}

static bool read_target(const qs_qdq *d, qs_id node, qs_target *t) {
    const qs_node *n = &d->g->nodes[node];
    *t = (qs_target){.node = node};
    if (!is_quantizing(n, "QuantizeLinear") || !read_params(d->g, n, &t->q))
        return false;
    t->q.x = n->outputs[0];
    t->q.dtype = d->g->values[t->q.x].dtype;
    if (!is_usable_type(d, t->q.dtype))
        return false;
    find_core(d, t);
    return true;
}

static int match(qs_qdq *d, qs_target *t) {
    static int (*const rules[])(qs_qdq *, qs_target *, bool *) = {
        qs_qdq_table,   qs_qdq_product,   qs_qdq_binary, qs_qdq_concat,      qs_qdq_pool,
        qs_qdq_softmax, qs_qdq_layernorm, qs_qdq_move,   qs_qdq_propagate_q,
    };
    bool done = false;
    int code = QSIM_OK;
    for (size_t i = 0; i < QS_COUNT(rules) && !code && !done; i++)
        code = rules[i](d, t, &done);
    return code;
}

static int match_node(qs_qdq *d, qs_id node) {
    qs_target t;
    const int code = qs_go_on(d->p->ctx, d->p->model, d->p->error);
    if (code)
        return code;
    return read_target(d, node, &t) ? match(d, &t) : QSIM_OK;
}

static int match_all(qs_qdq *d) {
    qs_graph *g = d->g;
    int code = QSIM_OK;
    for (size_t i = 0; i < g->order_count; i++)
        d->position[g->order[i]] = i;
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = match_node(d, g->order[i]);
    /* Nodes that matches have added allow further matches. */
    for (size_t i = d->positions; i < g->node_count && !code; i++)
        code = match_node(d, (qs_id)i);
    return code;
}

int qs_pass_qdq(qs_pass *p) {
    qs_qdq d = {.p = p, .g = p->graph};
    int code = p->standard ? QSIM_OK : qs_qdq_propagate_dq(&d);
    if (code)
        return code;
    d.positions = d.g->node_count;
    d.values = d.g->value_count;
    d.position = qs_calloc(p->ctx, d.positions + 1, sizeof(*d.position));
    d.quantized = qs_alloc(p->ctx, d.values + 1, sizeof(*d.quantized));
    if (!d.position || !d.quantized || qs_graph_uses(d.g, &d.uses)) {
        code = qs_pass_no_memory(p);
    } else {
        for (size_t v = 0; v < d.values; v++)
            d.quantized[v] = QS_NONE;
        code = match_all(&d);
    }
    qs_uses_free(d.g, &d.uses);
    qs_free(p->ctx, d.quantized);
    qs_free(p->ctx, d.position);
    return code ? code : qs_pass_finish(p);
}
