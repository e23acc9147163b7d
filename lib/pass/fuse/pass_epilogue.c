/* SPDX-License-Identifier: MIT */
/*
 * Fuses a node into the convolution or product that makes its operand, if the node is the only
 * reader. Integer ones take tables and a residual sum; those with float results take a sum or a
 * curve. A residual sum of an image scaled by channel becomes MulAdd, and a curve of dequantized
 * bytes a table.
 */
#include "pass/pass.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/nn/conv_float.h"
#include "op/nn/finish.h"
#include "op/int8/int8_post_ops.h"
#include "op/int8/scaled.h"

#include <math.h>

typedef struct epilogue {
    qs_pass *p;
    qs_graph *g;
    qs_uses uses;
    qs_sizes sizes;
    int32_t *position; /* by node: its place in the order */
    size_t fused;
} epilogue;

/* ---- integers ---- */

static bool is_product(const qs_graph *g, const qs_node *n) {
    if (n->removed || !qs_node_is_constant(g, n, 1, QS_I8_OTHER) ||
        g->values[n->outputs[0]].dtype != QSIM_UINT8)
        return false;
    if (qs_node_is(n, "qsim", "QLinearConv"))
        return qs_node_int(n, "channels_last", 0) == 1 && !qs_node_attr(n, "into");
    const bool product = qs_same(n->op_type, "QLinearMatMul");
    return product && g->values[n->inputs[3]].rank == 2 && g->values[n->inputs[0]].rank > 1 &&
           g->values[n->inputs[1]].data->elements == 1 &&
           (qs_node_input(n, 2) == QS_NONE || g->values[n->inputs[2]].data->elements == 1);
}

/*
 * The integer convolution or product that makes `v` for one reader and has no input `index` yet; or
 * QS_NONE.
 */
static qs_id product_of(const epilogue *e, qs_id v, int32_t index) {
    const qs_id id = qs_only_producer(e->g, &e->uses, v);
    return id != QS_NONE && is_product(e->g, &e->g->nodes[id]) &&
                   e->g->nodes[id].input_count <= index
               ? id
               : QS_NONE;
}

/* Makes node `end` part of the product, which gets the inputs `in` from `first` on. */
static int absorb(epilogue *e, qs_id product, qs_id end, int32_t first, const qs_id *in,
                  int32_t count) {
    qs_graph *g = e->g;
    const qs_id y = g->nodes[end].outputs[0];
    qs_graph_remove_node(g, end);
    if (qs_node_grow_inputs(g, product, first + count))
        return qs_pass_no_memory(e->p);
    for (int32_t i = 0; i < count; i++)
        qs_node_set_input(g, product, first + i, in[i]);
    qs_pass_set_output(e->p, product, 0, y);
    g->nodes[product].domain = "qsim";
    e->position[product] = e->position[end];
    e->fused++;
    return qs_pass_resolve(e->p, product);
}

static bool is_table(const qs_graph *g, const qs_node *n) {
    const qs_value *t = qs_node_is(n, "qsim", "QTable") ? &g->values[n->inputs[1]] : NULL;
    return t && t->data && t->dtype == QSIM_UINT8;
}

static int fuse_table(epilogue *e, qs_id table) {
    const qs_node *n = &e->g->nodes[table];
    const qs_id id = product_of(e, n->inputs[0], QS_I8_LAST), t = n->inputs[1];
    if (id == QS_NONE)
        return QSIM_OK;
    const int32_t count = e->g->nodes[id].input_count;
    if (count == QS_I8_OTHER) /* a table of a table: pass_table.c composes them */
        return QSIM_OK;
    return absorb(e, id, table, count < QS_I8_OTHER ? QS_I8_FIRST : QS_I8_LAST, &t, 1);
}

static bool is_sum(const epilogue *e, const qs_node *n) {
    const qs_graph *g = e->g;
    if (!qs_same(n->op_type, "QLinearAdd") || !qs_node_is_constant(g, n, 1, 3) ||
        !qs_node_is_constant(g, n, 4, n->input_count))
        return false;
    const qs_value *x = &g->values[n->inputs[0]], *y = &g->values[n->inputs[3]];
    return n->inputs[0] != n->inputs[3] && !x->data && !y->data && x->dtype == QSIM_UINT8 &&
           y->dtype == QSIM_UINT8 && g->values[n->outputs[0]].dtype == QSIM_UINT8 &&
           qs_sizes_same(&e->sizes, n->inputs[0], n->inputs[3]);
}

/*
 * Fuses a sum into the later one of its producers, since the other operand has to exist when that
 * runs.
 */
static int fuse_sum(epilogue *e, qs_id sum) {
    qs_graph *g = e->g;
    const qs_node *s = &g->nodes[sum];
    const qs_id first = product_of(e, s->inputs[0], QS_I8_OTHER);
    const qs_id second = product_of(e, s->inputs[3], QS_I8_OTHER);
    const bool swap =
        first == QS_NONE || (second != QS_NONE && e->position[second] > e->position[first]);
    const qs_id id = swap ? second : first;
    if (id == QS_NONE)
        return QSIM_OK;
    const int32_t own = swap ? 3 : 0, other = 3 - own;
    const qs_id in[] = {s->inputs[other],     s->inputs[own + 1],   s->inputs[own + 2],
                        s->inputs[other + 1], s->inputs[other + 2], s->inputs[6],
                        qs_node_input(s, 7)};
    const int64_t lo = qs_node_int(s, "lo", 0), hi = qs_node_int(s, "hi", 255);
    int code = absorb(e, id, sum, QS_I8_OTHER, in, QS_COUNT(in));
    if (!code && (qs_node_set_int(g, id, "sum_lo", lo) || qs_node_set_int(g, id, "sum_hi", hi)))
        code = qs_pass_no_memory(e->p);
    return code;
}

/* ---- floats ---- */

/* Index of the input that a node with float results adds to them; 0: it takes none. */
static int32_t sum_input(const qs_node *n) {
    const bool conv = qs_node_is(n, "qsim", "Conv");
    if (qs_node_is(n, "qsim", "MatMulIntegerScaled"))
        return QS_SCALED_OTHER;
    if ((!conv && !qs_node_is(n, "qsim", "ConvIntegerScaled")) ||
        qs_node_int(n, "channels_last", 0) != 1)
        return 0;
    return conv ? QS_CONV_OTHER : QS_SCALED_OTHER;
}

/*
 * The producer of floats `v` if `v` has one reader and the producer can take a sum, or a curve if
 * `sum` is false; or QS_NONE.
 */
static qs_id float_producer(const epilogue *e, qs_id v, bool sum) {
    const qs_id id = qs_only_producer(e->g, &e->uses, v);
    const qs_node *n = id == QS_NONE ? NULL : &e->g->nodes[id];
    const int32_t other = n ? sum_input(n) : 0;
    const bool fits = sum ? n && n->input_count <= other
                          : n && n->input_count <= other + 1 && !qs_node_attr(n, "then");
    return other && fits ? id : QS_NONE;
}

static int fuse_curve(epilogue *e, qs_id node) {
    qs_graph *g = e->g;
    const qs_id y = g->nodes[node].outputs[0],
                conv = float_producer(e, g->nodes[node].inputs[0], false);
    if (conv == QS_NONE)
        return QSIM_OK;
    if (qs_finish_then(g, conv, &g->nodes[node]))
        return qs_pass_no_memory(e->p);
    qs_graph_remove_node(g, node);
    qs_pass_set_output(e->p, conv, 0, y);
    e->fused++;
    return QSIM_OK;
}

static bool is_float_sum(const epilogue *e, const qs_node *n) {
    if (!qs_same(n->op_type, "Add") || qs_node_attr(n, "broadcast"))
        return false;
    const qs_value *x = &e->g->values[n->inputs[0]], *y = &e->g->values[n->inputs[1]];
    return n->inputs[0] != n->inputs[1] && !x->data && !y->data && x->dtype == QSIM_FLOAT &&
           y->dtype == QSIM_FLOAT && qs_sizes_same(&e->sizes, n->inputs[0], n->inputs[1]);
}

static int fuse_float_sum(epilogue *e, qs_id sum) {
    qs_graph *g = e->g;
    const qs_node *s = &g->nodes[sum];
    const qs_id first = float_producer(e, s->inputs[0], true);
    const int32_t side = first == QS_NONE;
    const qs_id conv = side ? float_producer(e, s->inputs[1], true) : first;
    if (conv == QS_NONE)
        return QSIM_OK;
    const qs_id y = s->outputs[0], other = s->inputs[1 - side];
    const int32_t at = sum_input(&g->nodes[conv]);
    const float lo = qs_node_float(s, "lo", -INFINITY), hi = qs_node_float(s, "hi", INFINITY);
    qs_graph_remove_node(g, sum);
    if (qs_node_grow_inputs(g, conv, at + 1))
        return qs_pass_no_memory(e->p);
    qs_node_set_input(g, conv, at, other);
    qs_pass_set_output(e->p, conv, 0, y);
    e->fused++;
    qs_finish_then_is_first(g, conv);
    if (qs_node_set_float(g, conv, "sum_lo", lo) || qs_node_set_float(g, conv, "sum_hi", hi))
        return qs_pass_no_memory(e->p);
    return qs_pass_resolve(e->p, conv);
}

/* Whether f has one factor for each channel of image x: of each image of a batch, or of all. */
static bool are_factors(const epilogue *e, qs_id x, qs_id f) {
    const qs_value *v = &e->g->values[x], *w = &e->g->values[f];
    const int32_t last = v->rank - 1;
    if (last < 2 || w->rank != v->rank || v->dims[last].size < 2 ||
        v->dims[last].size != w->dims[last].size ||
        (w->dims[0].size != 1 && (v->dims[0].size < 0 || v->dims[0].size != w->dims[0].size) &&
         e->sizes.batch[x] != e->sizes.batch[f]))
        return false;
    for (int32_t i = 1; i < last; i++)
        if (w->dims[i].size != 1)
            return false;
    return true;
}

/* Fuses x * factors + y into MulAdd if the sum is the only reader of the product. */
static int fuse_factors(epilogue *e, qs_id sum) {
    qs_graph *g = e->g;
    const qs_node *s = &g->nodes[sum];
    for (int32_t i = 0; i < 2; i++) {
        const qs_id mul = qs_only_producer(e->g, &e->uses, s->inputs[i]);
        const qs_node *m = mul == QS_NONE ? NULL : &g->nodes[mul];
        if (!m || m->removed || !qs_node_is_onnx(m, "Mul") || qs_node_attr(m, "broadcast"))
            continue;
        const bool swap = are_factors(e, m->inputs[1], m->inputs[0]);
        const qs_id in[3] = {m->inputs[swap], m->inputs[!swap], s->inputs[1 - i]};
        const qs_id y = s->outputs[0];
        const float lo = qs_node_float(s, "lo", -INFINITY), hi = qs_node_float(s, "hi", INFINITY);
        if (!are_factors(e, in[0], in[1]))
            continue;
        qs_graph_remove_node(g, mul);
        qs_graph_remove_node(g, sum);
        const qs_id made = qs_pass_node(e->p, "qsim", "MulAdd", s->name, 0, in, 3, &y, 1);
        if (made < 0)
            return made;
        e->fused++;
        return qs_node_set_float(g, made, "lo", lo) || qs_node_set_float(g, made, "hi", hi)
                   ? qs_pass_no_memory(e->p)
                   : QSIM_OK;
    }
    return QSIM_OK;
}

/* ---- curves of dequantized bytes ---- */

static bool is_byte_pair(const qs_graph *g, const qs_node *n) {
    const qs_value *scale = &g->values[n->inputs[1]];
    const qs_value *zp = qs_node_input(n, 2) == QS_NONE ? NULL : &g->values[n->inputs[2]];
    return zp && scale->data && zp->data && scale->data->elements == 1 && zp->data->elements == 1 &&
           scale->dtype == QSIM_FLOAT && zp->dtype == QSIM_UINT8;
}

/* A DequantizeLinear that this curve alone reads becomes, with the curve, a table of floats. */
static int fuse_lookup(epilogue *e, qs_id node) {
    qs_graph *g = e->g;
    const qsim_ctx *ctx = e->p->ctx;
    const qs_id producer = qs_only_producer(e->g, &e->uses, g->nodes[node].inputs[0]),
                y = g->nodes[node].outputs[0];
    const qs_node *d = producer == QS_NONE ? NULL : &g->nodes[producer];
    const qs_curve curve = qs_curve_of(&g->nodes[node]);
    const int64_t count = 256;
    float table[256];
    uint8_t bytes[256];
    if (!d || !qs_node_is_onnx(d, "DequantizeLinear") || !is_byte_pair(g, d))
        return QSIM_OK;
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    const float scale = (float)qs_const_at(g->values[d->inputs[1]].data, 0);
    const int32_t zp = (int32_t)qs_const_at(g->values[d->inputs[2]].data, 0);
    ctx->kernels->u8->dequantize(bytes, 256, scale, zp, 0, table);
    qs_curve_run(&curve, ctx->kernels->ew, table, table, 256);
    const qs_id in[2] = {d->inputs[0], qs_pass_const(e->p, QSIM_FLOAT, 1, &count, table)};
    if (in[1] < 0)
        return in[1];
    e->sizes.values = g->values; /* adding a constant may have moved the array */
    qs_graph_remove_node(g, producer);
    qs_graph_remove_node(g, node);
    const qs_id made = qs_pass_node(e->p, "qsim", "Lookup", g->nodes[node].name, 0, in, 2, &y, 1);
    e->fused++;
    return made < 0 ? made : QSIM_OK;
}

/* Fuses node `id` into its producer if they fit. */
static int fuse_at(epilogue *e, qs_id id) {
    const qs_node *n = &e->g->nodes[id];
    if (n->removed)
        return QSIM_OK;
    if (is_table(e->g, n))
        return fuse_table(e, id);
    if (is_sum(e, n))
        return fuse_sum(e, id);
    if (is_float_sum(e, n)) {
        const int code = fuse_float_sum(e, id);
        return code || e->g->nodes[id].removed ? code : fuse_factors(e, id);
    }
    if (!qs_op_more_of(n->op)->curve || e->g->values[n->inputs[0]].dtype != QSIM_FLOAT)
        return QSIM_OK;
    const bool costly = n->op->traits & QS_COSTLY;
    const int code = fuse_curve(e, id);
    return code || e->g->nodes[id].removed || !costly ? code : fuse_lookup(e, id);
}

int qs_pass_epilogue(qs_pass *p) {
    qs_graph *g = p->graph;
    epilogue e = {.p = p, .g = g};
    e.position = qs_calloc(p->ctx, g->node_count + 1, sizeof(*e.position));
    int code = !e.position || qs_graph_uses(g, &e.uses) ? qs_pass_no_memory(p) : QSIM_OK;
    if (!code)
        code = qs_sizes_find(p, &e.sizes);
    for (size_t i = 0; i < g->order_count && !code; i++)
        e.position[g->order[i]] = (int32_t)i;
    for (size_t i = 0; i < g->order_count && !code; i++)
        code = fuse_at(&e, g->order[i]);
    qs_sizes_free(p, &e.sizes);
    qs_uses_free(g, &e.uses);
    qs_free(p->ctx, e.position);
    return code || !e.fused ? code : qs_pass_finish(p);
}
