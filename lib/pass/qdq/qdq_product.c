/* SPDX-License-Identifier: MIT */
/* Conv, Gemm and MatMul between quantized tensors, and of quantized tensors with float results. */
#include "pass/qdq/qdq.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/rules.h"

#include <math.h>

/* Constant integer weights with one scale, or one for each output channel. */
typedef struct weights {
    qs_id w, scale, zp;
    const qs_const *data, *scales, *zero_points; /* the last may be NULL */
    int64_t channels, inner; /* output channels; elements from one channel to the next */
    bool transposed;         /* a Transpose is between DequantizeLinear and product */
} weights;

/*
 * The DequantizeLinear that makes `value`, directly or through a Transpose of a matrix; or
 * QS_NONE.
 */
static qs_id find_dequantize(const qs_graph *g, qs_id value, bool *transposed) {
    qs_id id = qs_pass_producer(g, value, "Transpose");
    *transposed = false;
    if (id != QS_NONE) {
        const qs_attr *perm = qs_node_attr(&g->nodes[id], "perm");
        if (perm && (perm->count != 2 || perm->u.ints[0] != 1 || perm->u.ints[1] != 0))
            return QS_NONE;
        value = g->nodes[id].inputs[0];
        *transposed = true;
        if (g->values[value].rank != 2)
            return QS_NONE;
    }
    id = g->values[value].producer;
    bool is = id != QS_NONE && (qs_node_is_onnx(&g->nodes[id], "DequantizeLinear") ||
                                qs_node_is(&g->nodes[id], "com.microsoft", "DequantizeLinear"));
    return is ? id : QS_NONE;
}

static bool is_4bit(const qs_const *c) {
    return c->dtype == QSIM_INT4 || c->dtype == QSIM_UINT4;
}

/* Reads the operands of the DequantizeLinear of weights; false: they are not constant, or of other
 * types. */
static bool read_operands(const qs_qdq *d, const qs_node *n, weights *w) {
    const qs_graph *g = d->g;
    w->w = n->inputs[0];
    w->scale = n->inputs[1];
    w->zp = qs_node_input(n, 2);
    w->data = g->values[w->w].data;
    w->scales = qs_node_floats(g, n, 1);
    w->zero_points = w->zp == QS_NONE ? NULL : g->values[w->zp].data;
    if (!w->data || !w->scales || (w->zp != QS_NONE && !w->zero_points))
        return false;
    const int32_t type = w->data->dtype;
    if (type != QSIM_INT8 && type != QSIM_UINT8 && (d->p->standard || !is_4bit(w->data)))
        return false;
    return w->scales->rank <= 1 && qs_node_int(n, "block_size", 0) == 0;
}

/* Finds the output channels; false: the scales are those of another axis. */
static bool find_channels(const qs_node *n, int32_t axis, weights *w) {
    const int32_t rank = w->data->rank;
    int32_t at = axis >= 0 ? axis : rank + axis;
    if (w->transposed)
        at = 1 - at;
    if (at < 0 || at >= rank)
        return false;
    w->channels = w->data->dims[at];
    w->inner = 1;
    for (int32_t i = at + 1; i < rank; i++)
        w->inner *= w->data->dims[i];
    if (w->scales->elements == 1)
        return true;
    int64_t given = qs_node_int(n, "axis", 1);
    given += given < 0 ? rank : 0;
    return given == at && (int64_t)w->scales->elements == w->channels;
}

/*
 * Reads weights. `axis` is that of the output channels in `value`; negative: counted from the end.
 */
static bool read_weights(const qs_qdq *d, qs_id value, int32_t axis, weights *w) {
    const qs_id id = find_dequantize(d->g, value, &w->transposed);
    if (id == QS_NONE || !read_operands(d, &d->g->nodes[id], w) ||
        !find_channels(&d->g->nodes[id], axis, w))
        return false;
    for (size_t i = 0; i < w->scales->elements; i++)
        if (!(qs_const_at(w->scales, i) > 0) || !isfinite(qs_const_at(w->scales, i)))
            return false;
    return !w->zero_points || w->zero_points->elements == w->scales->elements;
}

static int32_t code4(const qs_const *c, size_t i) {
    const int32_t code = qs_const_code4(c, i);
    return c->dtype == QSIM_INT4 && code > 7 ? code - 16 : code;
}

/* Widens weights of 4 bits to int8 and subtracts their zero points, which are 0 then. */
static int widen_weights(qs_qdq *d, weights *w) {
    const qs_const *c = w->data, *zero = w->zero_points;
    if (!is_4bit(c))
        return QSIM_OK;
    int8_t *bytes = qs_arena_raw64(&d->g->arena, c->elements + 1);
    if (!bytes)
        return qs_pass_no_memory(d->p);
    for (size_t i = 0; i < c->elements; i++) {
        const size_t channel = i / (size_t)w->inner % (size_t)w->channels;
        const int32_t z = zero ? code4(zero, zero->elements > 1 ? channel : 0) : 0;
        bytes[i] = (int8_t)(code4(c, i) - z);
    }
    w->w = qs_pass_placed_const(d->p, QSIM_INT8, c->rank, c->dims, bytes);
    if (w->w < 0)
        return QSIM_E_NOMEM;
    w->data = d->g->values[w->w].data;
    w->zero_points = NULL;
    return QSIM_OK;
}

/* Makes the constants that the operator reads; `swap`: the matrix is transposed. */
static int prepare_weights(qs_qdq *d, weights *w, bool swap) {
    int code = widen_weights(d, w);
    if (code)
        return code;
    const qs_const *c = w->data;
    if (swap) {
        uint8_t *bytes = qs_arena_raw64(&d->g->arena, c->bytes + 1);
        if (!bytes)
            return qs_pass_no_memory(d->p);
        const int64_t swapped[2] = {c->dims[1], c->dims[0]};
        d->p->ctx->kernels->u8->transpose8(c->data, (size_t)c->dims[1], bytes, (size_t)c->dims[1],
                                           (size_t)c->dims[0]);
        w->w = qs_pass_placed_const(d->p, c->dtype, c->rank, swapped, bytes);
    }
    if (!w->zero_points) {
        uint8_t *bytes = qs_arena_alloc64(&d->g->arena, w->scales->elements + 1);
        if (!bytes)
            return qs_pass_no_memory(d->p);
        w->zp = qs_pass_placed_const(d->p, c->dtype, w->scales->rank, w->scales->dims, bytes);
    }
    return w->w < 0 || w->zp < 0 ? QSIM_E_NOMEM : QSIM_OK;
}

/* ---- bias ---- */

/* A bias: a float constant f, an int32 constant q with scales, or none. */
typedef struct bias {
    const qs_const *q, *f, *scales;
} bias;

static bool read_bias(const qs_graph *g, qs_id value, bias *b) {
    *b = (bias){0};
    if (value == QS_NONE)
        return true;
    const qs_value *v = &g->values[value];
    if (v->data) {
        b->f = v->data;
        return b->f->dtype == QSIM_FLOAT;
    }
    if (v->producer == QS_NONE || !qs_node_is_onnx(&g->nodes[v->producer], "DequantizeLinear"))
        return false;
    const qs_node *n = &g->nodes[v->producer];
    b->q = g->values[n->inputs[0]].data;
    b->scales = g->values[n->inputs[1]].data;
    if (!b->q || !b->scales || b->q->dtype != QSIM_INT32 || b->scales->dtype != QSIM_FLOAT ||
        (b->scales->elements != 1 && b->scales->elements != b->q->elements))
        return false;
    return qs_node_zero(g, n, 2);
}

static bool is_vector(const qs_const *c, int64_t channels) {
    return c->elements == 1 ||
           ((int64_t)c->elements == channels && c->rank > 0 && c->dims[c->rank - 1] == channels);
}

/* Bias i divided by `unit`, x_scale * w_scale; int32 with that scale, up to rounding, is kept. */
static double quantized_bias(const bias *b, size_t i, float unit, double beta) {
    const qs_const *c = b->f ? b->f : b->q;
    double v = qs_const_at(c, c->elements == 1 ? 0 : i);
    if (b->q) {
        double s = qs_const_at(b->scales, b->scales->elements == 1 ? 0 : i);
        if (fabs(s - (double)unit) <= (double)unit * 0x1p-20)
            return v;
        v *= s;
    }
    return beta * v / (double)unit;
}

/*
 * The bias as int32 [channels]; QS_NONE: there is none. *fits: false if it overflows, or if
 * rounding it changes the result by more than half a step, since x_scale * w_scale is far coarser
 * than y_scale.
 */
static qs_id make_bias(qs_qdq *d, const bias *b, const weights *w, float x_scale, float y_scale,
                       double beta, bool *fits) {
    *fits = true;
    if (!b->f && !b->q)
        return QS_NONE;
    int32_t *v = qs_arena_alloc64(&d->g->arena, (size_t)w->channels * sizeof(*v) + 1);
    if (!v)
        return qs_pass_no_memory(d->p);
    for (size_t i = 0; i < (size_t)w->channels; i++) {
        float s = (float)qs_const_at(w->scales, w->scales->elements == 1 ? 0 : i);
        double exact = quantized_bias(b, i, x_scale * s, beta), q = rint(exact);
        double moved = fabs(exact - q) * (double)(x_scale * s / y_scale);
        if (!(fabs(q) <= 2147483647.0 && moved <= 0.5)) {
            *fits = false;
            return QS_NONE;
        }
        v[i] = (int32_t)q;
    }
    return qs_pass_placed_const(d->p, QSIM_INT32, 1, &w->channels, v);
}

/* ---- operators ---- */

typedef struct product {
    qs_quantized x;
    weights w;
    bias b;
    double beta;
    bool swap; /* the weights' matrix is transposed */
} product;

/*
 * Replaces the target by a node that reads x, x_scale, x_zp, w, w_scale, w_zp, y_scale, y_zp, bias.
 */
static int replace_target(qs_qdq *d, qs_target *t, product *m, const char *op_type,
                          qs_id attributes, bool *done) {
    bool fits;
    qs_id bias_id = make_bias(d, &m->b, &m->w, m->x.s, t->q.s, m->beta, &fits);
    if (bias_id < 0 && bias_id != QS_NONE)
        return bias_id;
    if (!fits)
        return QSIM_OK;
    const bool transposed = m->swap && !d->p->standard; /* packing transposes */
    int code = prepare_weights(d, &m->w, m->swap && !transposed);
    if (code)
        return qs_pass_no_memory(d->p);
    if (qs_qdq_zero_point(d, &m->x) < 0 || qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    const qs_id in[9] = {m->x.x,  m->x.scale, m->x.zp, m->w.w, m->w.scale,
                         m->w.zp, t->q.scale, t->q.zp, bias_id};
    const qs_id made = qs_qdq_replace(d, t, d->p->standard ? "" : "qsim", op_type, in,
                                      bias_id == QS_NONE ? 8 : 9, attributes);
    *done = true;
    if (made >= 0 && transposed && qs_node_set_int(d->g, made, "transB", 1))
        return qs_pass_no_memory(d->p);
    return made < 0 ? made : qs_qdq_set_bounds(d, t, made);
}

static bool read_conv(qs_qdq *d, const qs_node *n, product *m) {
    return read_weights(d, n->inputs[1], 0, &m->w) && !m->w.transposed &&
           read_bias(d->g, qs_node_input(n, 2), &m->b);
}

static bool read_gemm(qs_qdq *d, const qs_node *n, product *m) {
    bool trans = qs_node_int(n, "transB", 0) != 0;
    if (qs_node_int(n, "transA", 0) || qs_node_float(n, "alpha", 1) != 1.0f ||
        !read_weights(d, n->inputs[1], trans ? -2 : -1, &m->w) || m->w.data->rank != 2 ||
        !read_bias(d->g, qs_node_input(n, 2), &m->b))
        return false;
    const qs_const *c = m->b.f ? m->b.f : m->b.q;
    m->beta = (double)qs_node_float(n, "beta", 1);
    m->swap = trans != m->w.transposed;
    /* An int32 bias is only taken with beta 1, since the product would have to be rounded again. */
    return !c || (is_vector(c, m->w.channels) && (!m->b.q || m->beta == 1));
}

static bool read_matmul(qs_qdq *d, const qs_node *n, product *m) {
    m->swap = false;
    if (!read_weights(d, n->inputs[1], -1, &m->w) || m->w.data->rank < 2 ||
        (m->w.data->rank > 2 && m->w.scales->elements != 1))
        return false;
    m->swap = m->w.transposed;
    return true;
}

/* Matches the Add of a MatMul and a vector, the bias, in either order. */
static bool read_matmul_add(qs_qdq *d, const qs_node *n, qs_id *matmul, product *m) {
    for (int k = 0; k < 2; k++) {
        *matmul = qs_pass_producer(d->g, n->inputs[k], "MatMul");
        if (*matmul == QS_NONE || !read_bias(d->g, n->inputs[1 - k], &m->b) ||
            !read_matmul(d, &d->g->nodes[*matmul], m))
            continue;
        const qs_const *c = m->b.f ? m->b.f : m->b.q;
        if (c->rank <= 1 && is_vector(c, m->w.channels))
            return true;
    }
    return false;
}

/* Number of products of two differences of bytes whose sum always fits int32. */
#define MOST_TERMS (INT32_MAX / 255 / 255)

/* MatMul of two quantized activations, as in attention. */
static int match_activations(qs_qdq *d, qs_target *t, bool *done) {
    qs_quantized a, b;
    const qs_node *n = &d->g->nodes[t->core];
    if (!qs_node_is_onnx(n, "MatMul") || !qs_qdq_source(d, n->inputs[0], &a) ||
        !qs_qdq_source(d, n->inputs[1], &b))
        return QSIM_OK;
    const qs_value *x = &d->g->values[n->inputs[0]];
    const int64_t terms = x->rank < 1 ? -1 : x->dims[x->rank - 1].size;
    if (terms < 0 || terms > MOST_TERMS ||
        (d->p->standard && (a.dtype != t->q.dtype || b.dtype != t->q.dtype)))
        return QSIM_OK;
    if (qs_qdq_zero_point(d, &a) < 0 || qs_qdq_zero_point(d, &b) < 0 ||
        qs_qdq_zero_point(d, &t->q) < 0)
        return QSIM_E_NOMEM;
    const qs_id in[8] = {a.x, a.scale, a.zp, b.x, b.scale, b.zp, t->q.scale, t->q.zp};
    const qs_id made =
        qs_qdq_replace(d, t, d->p->standard ? "" : "qsim", "QLinearMatMul", in, 8, QS_NONE);
    *done = true;
    return made < 0 ? made : qs_qdq_set_bounds(d, t, made);
}

/*
 * Reads the operands of node *core: a product of a quantized tensor and constant weights, or the
 * Add of a vector to one, when *core becomes the product.
 */
static bool read_product(qs_qdq *d, qs_id *core, product *m) {
    const qs_node *n = &d->g->nodes[*core];
    *m = (product){.beta = 1};
    return (qs_node_is_onnx(n, "Conv")   ? read_conv(d, n, m)
            : qs_node_is_onnx(n, "Gemm") ? read_gemm(d, n, m)
            : qs_node_is_onnx(n, "MatMul")
                ? read_matmul(d, n, m)
                : qs_node_is_onnx(n, "Add") && read_matmul_add(d, n, core, m)) &&
           qs_qdq_source(d, d->g->nodes[*core].inputs[0], &m->x);
}

int qs_qdq_product(qs_qdq *d, qs_target *t, bool *done) {
    product m;
    qs_id core = t->core;
    if (core == QS_NONE || (d->p->standard && t->bounded))
        return QSIM_OK;
    if (!read_product(d, &core, &m))
        return match_activations(d, t, done);
    const bool conv = qs_node_is_onnx(&d->g->nodes[core], "Conv");
    if (d->p->standard && !conv && (m.b.f || m.b.q))
        return QSIM_OK;
    t->core = core;
    return replace_target(d, t, &m, conv ? "QLinearConv" : "QLinearMatMul", conv ? core : QS_NONE,
                          done);
}

/* ---- results that stay floats ---- */

/* A vector of factor * c[i] * scales[i], for each channel; `scales` NULL: 1. */
static qs_id make_floats(qs_qdq *d, const qs_const *c, const qs_const *scales, double factor,
                         int64_t channels) {
    float *v = qs_arena_alloc64(&d->g->arena, (size_t)channels * sizeof(*v) + 1);
    if (!v)
        return qs_pass_no_memory(d->p);
    for (size_t i = 0; i < (size_t)channels; i++) {
        const double s = scales ? qs_const_at(scales, scales->elements == 1 ? 0 : i) : 1;
        v[i] = (float)(factor * qs_const_at(c, c->elements == 1 ? 0 : i) * s);
    }
    return qs_pass_placed_const(d->p, QSIM_FLOAT, 1, &channels, v);
}

static int make_scaled(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    qs_graph *g = p->graph;
    qs_qdq own = {.p = p, .g = g, .uses = *uses}, *d = &own;
    const qs_node *n = &g->nodes[node];
    product m;
    qs_id core = node, add = QS_NONE;
    if (qs_node_is_onnx(n, "MatMul"))
        add = qs_pass_reader(g, uses, n->outputs[0], "Add");
    if (add != QS_NONE && read_product(d, &add, &m))
        return QSIM_OK; /* this node becomes part of the Add's operator, later */
    if (!read_product(d, &core, &m) || g->values[m.x.x].rank < 2)
        return QSIM_OK;
    const bool conv = qs_node_is_onnx(&g->nodes[core], "Conv");
    if ((core != node && qs_only_reader(g, uses, g->nodes[core].outputs[0]) == QS_NONE) ||
        (!conv && m.w.data->rank != 2))
        return QSIM_OK;
    const qs_const *added = m.b.f ? m.b.f : m.b.q;
    if (prepare_weights(d, &m.w, m.swap) || qs_qdq_zero_point(d, &m.x) < 0)
        return qs_pass_no_memory(p);
    const qs_id in[7] = {
        m.x.x,
        m.w.w,
        m.x.zp,
        m.w.zp,
        m.x.scale,
        make_floats(d, m.w.scales, NULL, 1, m.w.channels),
        added ? make_floats(d, added, m.b.q ? m.b.scales : NULL, m.beta, m.w.channels) : QS_NONE};
    const qs_id y = g->nodes[node].outputs[0];
    if (in[5] < 0 || (added && in[6] < 0))
        return QSIM_E_NOMEM;
    qs_graph_remove_node(g, node);
    const qs_id made =
        conv ? qs_pass_clone(p, core, "qsim", in, 7, &y, 1)
             : qs_pass_node(p, "qsim", "MatMulIntegerScaled", g->nodes[core].name, 1, in, 7, &y, 1);
    *changed = true;
    if (made < 0 || !conv)
        return made < 0 ? made : QSIM_OK;
    g->nodes[made].op_type = "ConvIntegerScaled";
    return qs_pass_resolve(p, made);
}

int qs_pass_products(qs_pass *p) {
    return p->literal ? QSIM_OK : qs_pass_nodes(p, make_scaled);
}
