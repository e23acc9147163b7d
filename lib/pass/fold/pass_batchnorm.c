/* SPDX-License-Identifier: MIT */
/*
 * Folds a BatchNormalization, or a Mul or Div by one number per channel, into the Conv or
 * ConvTranspose before it. Float weights are multiplied. If the weights are int8 with a
 * DequantizeLinear, as in networks trained with quantization, their scales are multiplied. A number
 * that is added goes into the bias.
 */
#include "op/rules.h"
#include "pass/pass.h"

#include <math.h>

/* y = (x - mean) * scale / sqrt(var + epsilon) + shift. Mul, Div and Add have a part of these. */
typedef struct folding {
    const qs_const *scale, *shift, *mean, *var; /* NULL: 1, 0, 0, none */
    double epsilon;
    bool divide;       /* by the scale */
    const qs_const *b; /* of the convolution; may be NULL */
    const qs_const *w; /* floats, or int8 that `steps` scale */
    const qs_const *steps;
    size_t channels, run; /* run: contiguous weights of one channel */
    bool transposed;
} folding;

static double at(const qs_const *c, size_t i, double otherwise) {
    return c ? qs_const_at(c, c->elements == 1 ? 0 : i) : otherwise;
}

static double factor_at(const folding *f, size_t c) {
    const double scale = at(f->scale, c, 1);
    return f->var      ? scale / sqrt(qs_const_at(f->var, c) + f->epsilon)
           : f->divide ? 1 / scale
                       : scale;
}

/* ---- the node that is folded ---- */

static bool read_normalization(const qs_graph *g, const qs_node *n, folding *f) {
    f->scale = qs_node_floats(g, n, 1);
    f->shift = qs_node_floats(g, n, 2);
    f->mean = qs_node_floats(g, n, 3);
    f->var = qs_node_floats(g, n, 4);
    f->epsilon = (double)qs_node_float(n, "epsilon", 1e-5f);
    if (!f->scale || !f->shift || !f->mean || !f->var || qs_node_int(n, "training_mode", 0) != 0)
        return false;
    for (int32_t i = 1; i < n->output_count; i++)
        if (n->outputs[i] != QS_NONE)
            return false;
    return true;
}

/*
 * Reads the constants of a node that may be folded. Returns the input that the node normalizes, or
 * QS_NONE. An Add is folded only if weights are quantized: else qs_pass_bias folds it.
 */
static qs_id read_node(const qs_graph *g, const qs_node *n, bool quantized, folding *f) {
    *f = (folding){.divide = qs_node_is_onnx(n, "Div")};
    if (qs_node_is_onnx(n, "BatchNormalization"))
        return read_normalization(g, n, f) ? n->inputs[0] : QS_NONE;
    const bool add = quantized && qs_node_is_onnx(n, "Add");
    if (!f->divide && !add && !qs_node_is_onnx(n, "Mul"))
        return QS_NONE;
    const int32_t k = !f->divide && qs_node_floats(g, n, 0) != NULL; /* the other operand */
    *(add ? &f->shift : &f->scale) = qs_node_floats(g, n, 1 - k);
    return f->scale || f->shift ? n->inputs[k] : QS_NONE;
}

/* ---- the convolution ---- */

/* Reads int8 weights with one scale, or one per channel, and zero point 0; false: others. */
static bool read_quantized(const qs_graph *g, const qs_node *conv, folding *f) {
    const qs_id back = qs_pass_producer(g, conv->inputs[1], "DequantizeLinear");
    const qs_node *n = back == QS_NONE ? NULL : &g->nodes[back];
    f->w = n ? qs_node_const(g, n, 0) : NULL;
    f->steps = n ? qs_node_floats(g, n, 1) : NULL;
    if (!f->w || !f->steps || f->w->dtype != QSIM_INT8 || qs_node_int(n, "block_size", 0) != 0 ||
        !qs_node_zero(g, n, 2) || n->version < 13)
        return false;
    const int64_t axis = qs_node_int(n, "axis", 1);
    return f->steps->elements == 1 ||
           (f->steps->rank == 1 && (axis < 0 ? axis + f->w->rank : axis) == f->transposed);
}

/* Whether factors are finite, and none of a weight -128, whose negation does not fit, negative. */
static bool check_channels(const folding *f) {
    const int8_t *q = f->w->data;
    for (size_t c = 0; c < f->channels; c++)
        if (!isfinite(factor_at(f, c)))
            return false;
    for (size_t i = 0; f->steps && i < f->w->elements; i++)
        if (q[i] == INT8_MIN && factor_at(f, i / f->run % f->channels) < 0)
            return false;
    return true;
}

/* Whether every constant has one number for each channel, or one for all where that is allowed. */
static bool check_sizes(const folding *f) {
    const qs_const *own[] = {f->scale, f->shift, f->mean, f->var};
    for (size_t i = 0; i < QS_COUNT(own); i++)
        if (own[i] && (f->var ? own[i]->elements != f->channels
                              : !qs_pass_is_per_channel(own[i], f->w->rank, (int64_t)f->channels)))
            return false;
    return (!f->b || f->b->elements == f->channels) &&
           (!f->steps || f->steps->elements == 1 || f->steps->elements == f->channels);
}

/* Reads the constants of `conv`; false: the node in `f` cannot be folded into it. */
static bool read_conv(const qs_graph *g, const qs_node *conv, bool quantized, folding *f) {
    /* Weights of ConvTranspose are [C, M / groups, kh, kw]. */
    f->transposed = qs_node_is_onnx(conv, "ConvTranspose");
    f->b = qs_node_floats(g, conv, 2);
    if (!quantized)
        f->w = qs_node_floats(g, conv, 1);
    if ((quantized ? !read_quantized(g, conv, f) : !f->w) || f->w->rank < 3 ||
        f->w->elements == 0 || (f->transposed && qs_node_int(conv, "group", 1) != 1) ||
        (!f->b && qs_node_input(conv, 2) != QS_NONE))
        return false;
    f->channels = (size_t)f->w->dims[f->transposed];
    f->run = f->w->elements / (size_t)f->w->dims[0] / (f->transposed ? f->channels : 1);
    return check_sizes(f) && check_channels(f);
}

/* ---- folding ---- */

/* Adds a constant named after `like`; its shape is that of `shape`, or (count). */
static qs_id add_constant(qs_pass *p, qs_id like, const char *suffix, const qs_const *shape,
                          int64_t count, const float *data) {
    qs_graph *g = p->graph;
    const char *base = g->values[like].name;
    const size_t n = strlen(base), m = strlen(suffix);
    char *name = qs_arena_alloc(&g->arena, n + m + 1, 1);
    if (!name)
        return qs_pass_no_memory(p);
    memcpy(name, base, n);
    memcpy(name + n, suffix, m);
    const char *fresh = qs_graph_fresh_name(g, name);
    const qs_id id = !fresh ? QSIM_E_NOMEM
                            : qs_graph_add_const(g, fresh, QSIM_FLOAT, shape ? shape->rank : 1,
                                                 shape ? shape->dims : &count, data, false);
    return id < 0 ? qs_pass_no_memory(p) : id;
}

static qs_id scale_floats(qs_pass *p, qs_id weights, const folding *f) {
    float *w = qs_arena_alloc64(&p->graph->arena, f->w->bytes);
    if (!w)
        return qs_pass_no_memory(p);
    for (size_t c = 0; c < f->channels; c++) {
        const double s = factor_at(f, c);
        for (size_t k = c * f->run; k < f->w->elements; k += f->channels * f->run)
            for (size_t i = k; i < k + f->run; i++)
                w[i] = (float)(qs_const_at(f->w, i) * s);
    }
    return add_constant(p, weights, "_folded", f->w, 0, w);
}

/*
 * Multiplies the scales of int8 weights by the factors. Weights with a negative factor change their
 * sign, those with factor 0 become 0.
 */
static qs_id scale_quantized(qs_pass *p, qs_id weights, const folding *f) {
    qs_graph *g = p->graph;
    int8_t *q = qs_arena_alloc64(&g->arena, f->w->bytes);
    float *steps = qs_arena_alloc64(&g->arena, f->channels * sizeof(*steps));
    if (!q || !steps)
        return qs_pass_no_memory(p);
    for (size_t c = 0; c < f->channels; c++) {
        const double s = factor_at(f, c), step = at(f->steps, c, 1);
        steps[c] = (float)(s == 0 ? step : step * fabs(s));
        for (size_t k = c * f->run; k < f->w->elements; k += f->channels * f->run)
            for (size_t i = k; i < k + f->run; i++) {
                const int8_t v = ((const int8_t *)f->w->data)[i];
                q[i] = (int8_t)(s > 0 ? v : s < 0 ? -v : 0);
            }
    }
    const int64_t channels = (int64_t)f->channels;
    const qs_id in[2] = {qs_pass_const(p, QSIM_INT8, f->w->rank, f->w->dims, q),
                         qs_pass_const(p, QSIM_FLOAT, 1, &channels, steps)};
    const qs_id y = in[0] < 0 || in[1] < 0 ? QSIM_E_NOMEM : qs_pass_value(p, weights);
    const qs_id back = y < 0 ? y : qs_pass_node(p, "", "DequantizeLinear", "", 0, in, 2, &y, 1);
    if (back >= 0 && qs_node_set_int(g, back, "axis", f->transposed))
        return qs_pass_no_memory(p);
    return back < 0 ? back : y;
}

static int fold(qs_pass *p, qs_id conv, qs_id node, const folding *f) {
    qs_graph *g = p->graph;
    const qs_id weights = g->nodes[conv].inputs[1];
    float *b = qs_arena_alloc64(&g->arena, f->channels * sizeof(float));
    if (!b)
        return qs_pass_no_memory(p);
    for (size_t c = 0; c < f->channels; c++)
        b[c] = (float)((at(f->b, c, 0) - at(f->mean, c, 0)) * factor_at(f, c) + at(f->shift, c, 0));
    const qs_id w = f->steps ? scale_quantized(p, weights, f) : scale_floats(p, weights, f);
    const qs_id bias = w < 0 ? w : add_constant(p, weights, "_bias", NULL, (int64_t)f->channels, b);
    if (bias < 0)
        return bias;
    if (qs_node_grow_inputs(g, conv, 3))
        return qs_pass_no_memory(p);
    qs_node_set_input(g, conv, 1, w);
    qs_node_set_input(g, conv, 2, bias);
    const qs_id y = g->nodes[node].outputs[0];
    qs_graph_remove_node(g, node);
    qs_pass_set_output(p, conv, 0, y);
    return QSIM_OK;
}

static int fold_node(qs_pass *p, const qs_uses *uses, qs_id node, bool quantized, bool *changed) {
    const qs_graph *g = p->graph;
    folding f;
    const qs_id x = read_node(g, &g->nodes[node], quantized, &f);
    if (x == QS_NONE || g->values[x].dtype != QSIM_FLOAT)
        return QSIM_OK;
    qs_id conv = qs_pass_producer(g, x, "Conv");
    if (conv == QS_NONE)
        conv = qs_pass_producer(g, x, "ConvTranspose");
    if (conv == QS_NONE || qs_only_reader(g, uses, x) == QS_NONE ||
        !read_conv(g, &g->nodes[conv], quantized, &f))
        return QSIM_OK;
    *changed = true;
    return fold(p, conv, node, &f);
}

static int fold_floats(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    return fold_node(p, uses, node, false, changed);
}

static int fold_quantized(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    return fold_node(p, uses, node, true, changed);
}

int qs_pass_batchnorm(qs_pass *p) {
    return qs_pass_nodes(p, fold_floats);
}

int qs_pass_rescale(qs_pass *p) {
    return p->literal ? QSIM_OK : qs_pass_nodes(p, fold_quantized);
}
