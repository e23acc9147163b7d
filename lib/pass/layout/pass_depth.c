/* SPDX-License-Identifier: MIT */
/*
 * Rewrites convolutions over three axes of space, the first of which is the depth, as ones over two
 * (op/space/op_depth.c): the slices that a window covers become channels, in the order of the
 * weights, which only have to be reshaped. Where a window is one pixel wide and high, slices become
 * rows instead, without a copy. Operators named Plane... compute in the model's layout:
 * pools over three axes whose sizes are unknown or whose indices are read, convolutions over three
 * axes whose weights' sizes are unknown, and all convolutions and pools of doubles.
 */
#include "pass/pass.h"

#include "op/rules.h"

#define RANK 5

/* Reads an attribute that is a list of `count` numbers; each is `fallback` where it is left out. */
static void read_list(const qs_node *n, const char *name, int64_t fallback, int32_t count,
                      int64_t *out) {
    const qs_attr *a = qs_node_attr(n, name);
    for (int32_t i = 0; i < count; i++)
        out[i] = a && a->count == count ? a->u.ints[i] : fallback;
}

/*
 * Leaves two of three axes in the node's attributes: with `last` the last two, else the first two.
 */
QS_COLD static int keep_two(qs_pass *p, qs_id node, bool last) {
    static const char *const names[] = {"strides", "dilations", "output_padding", "output_shape",
                                        "pads"};
    int code = QSIM_OK;
    qs_node_drop_attr(p->graph, node, "kernel_shape");
    for (size_t i = 0; i < QS_COUNT(names) && !code; i++) {
        const qs_attr *a = qs_node_attr(&p->graph->nodes[node], names[i]);
        if (a && a->count == 3) {
            const int64_t kept[2] = {a->u.ints[last], a->u.ints[last + 1]};
            code = qs_node_set_ints(p->graph, node, names[i], kept, 2);
        } else if (a && a->count == 6) {
            const int64_t kept[4] = {a->u.ints[last], a->u.ints[last + 1], a->u.ints[last + 3],
                                     a->u.ints[last + 4]};
            code = qs_node_set_ints(p->graph, node, names[i], kept, 4);
        }
    }
    return code ? qs_pass_no_memory(p) : QSIM_OK;
}

/* Attributes along the depth. same: 1: SAME_UPPER, 2: SAME_LOWER, 0: padding is given. */
typedef struct depth_attrs {
    int64_t kernel, stride, dilation, before, after, same;
} depth_attrs;

QS_COLD static int set_attrs(qs_pass *p, qs_id node, const depth_attrs *a) {
    if (node < 0)
        return node;
    return qs_node_set_int(p->graph, node, "kernel", a->kernel) ||
                   qs_node_set_int(p->graph, node, "stride", a->stride) ||
                   qs_node_set_int(p->graph, node, "dilation", a->dilation) ||
                   qs_node_set_int(p->graph, node, "before", a->before) ||
                   qs_node_set_int(p->graph, node, "after", a->after) ||
                   qs_node_set_int(p->graph, node, "same", a->same)
               ? qs_pass_no_memory(p)
               : QSIM_OK;
}

QS_COLD static int reshape_input(qs_pass *p, qs_id node, int32_t index, const int64_t shape[4]) {
    qs_graph *g = p->graph;
    const qs_id w = g->nodes[node].inputs[index], to = qs_pass_value(p, w);
    if (to < 0)
        return to;
    int code = qs_pass_reshape(p, w, shape, 4, to);
    if (!code)
        qs_node_set_input(g, node, index, to);
    return code;
}

/* Joins the depth of the weights' window to their channels. */
QS_COLD static int reshape_weights(qs_pass *p, qs_id node, int32_t index) {
    const qs_value *w = &p->graph->values[p->graph->nodes[node].inputs[index]];
    const int64_t shape[4] = {0, -1, w->dims[3].size, w->dims[4].size};
    return reshape_input(p, node, index, shape);
}

/*
 * Whether windows cover one pixel of each slice that they cover, and the result has the pixels of
 * the input, whose number is known: then a slice may be a row of an image.
 */
static bool is_through(const qs_node *n, const qs_value *x, const qs_value *w) {
    int64_t strides[3], pads[6];
    read_list(n, "strides", 1, 3, strides);
    read_list(n, "pads", 0, 6, pads);
    return w->dims[3].size * w->dims[4].size == 1 && strides[1] * strides[2] == 1 && !pads[1] &&
           !pads[2] && !pads[4] && !pads[5] && x->dims[3].size > 0 && x->dims[4].size > 0;
}

QS_COLD static int rewrite_through(qs_pass *p, qs_id node, int32_t weights) {
    static const int64_t window[4] = {0, 0, 0, 1};
    qs_graph *g = p->graph;
    const qs_value *x = &g->values[g->nodes[node].inputs[0]];
    const int64_t rows[4] = {0, 0, 0, x->dims[3].size * x->dims[4].size};
    const int64_t shape[RANK] = {0, 0, 0, x->dims[3].size, x->dims[4].size};
    const qs_id y = g->nodes[node].outputs[0], from = qs_pass_value(p, y);
    int code = from < 0 ? from : reshape_input(p, node, 0, rows);
    if (!code)
        code = reshape_input(p, node, weights, window);
    if (!code)
        code = keep_two(p, node, false);
    if (code)
        return code;
    qs_pass_set_output(p, node, 0, from);
    return qs_pass_reshape(p, from, shape, RANK, y);
}

QS_COLD static int add_columns(qs_pass *p, qs_id node, qs_id zero_point, const depth_attrs *a) {
    qs_graph *g = p->graph;
    const qs_id x = g->nodes[node].inputs[0], to = qs_pass_value(p, x);
    const qs_id in[2] = {x, zero_point};
    if (to < 0)
        return to;
    int code = set_attrs(
        p,
        qs_pass_node(p, "qsim", "DepthColumns", "", 0, in, zero_point == QS_NONE ? 1 : 2, &to, 1),
        a);
    if (!code)
        qs_node_set_input(g, node, 0, to);
    return code;
}

/*
 * Adds a node that turns output 0 of the node into the value it was; `more` are its further inputs.
 */
QS_COLD static int add_after(qs_pass *p, qs_id node, const char *op_type, const qs_id *more,
                             int32_t count, const depth_attrs *a) {
    qs_graph *g = p->graph;
    const qs_id y = g->nodes[node].outputs[0], from = qs_pass_value(p, y);
    const qs_id in[3] = {from, more[0], count > 1 ? more[1] : QS_NONE};
    if (from < 0)
        return from;
    qs_pass_set_output(p, node, 0, from);
    return set_attrs(p, qs_pass_node(p, "qsim", op_type, "", 0, in, 1 + count, &y, 1), a);
}

static depth_attrs attrs_of(const qs_node *n, const qs_value *w) {
    int64_t strides[3], dilations[3], pads[6];
    const int32_t pad = qs_node_word(n, "auto_pad", QS_AUTO_PADS);
    const bool valid = pad == QS_PAD_VALID;
    read_list(n, "strides", 1, 3, strides);
    read_list(n, "dilations", 1, 3, dilations);
    read_list(n, "pads", 0, 6, pads);
    return (depth_attrs){w->dims[2].size,     strides[0],
                         dilations[0],        valid ? 0 : pads[0],
                         valid ? 0 : pads[3], pad < QS_PAD_VALID ? pad : QS_PAD_NOTSET};
}

QS_COLD static int rewrite_conv(qs_pass *p, qs_id node, int32_t weights) {
    qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    const qs_id x = n->inputs[0];
    const depth_attrs a = attrs_of(n, &g->values[n->inputs[weights]]);
    const bool bytes = qs_dtype_bytes(g->values[x].dtype) == 1;
    const int32_t zero = qs_op_operands(n->op)->x[0].zero_point;
    int code = add_columns(p, node, bytes && zero ? qs_node_input(n, zero) : QS_NONE, &a);
    if (!code)
        code = reshape_weights(p, node, weights);
    if (!code)
        code = keep_two(p, node, true);
    return code ? code : add_after(p, node, "DepthRows", &x, 1, &a);
}

/* Padding of the depth of a transposed convolution, as ONNX defines it. */
QS_COLD static int transposed_pads(qs_pass *p, const qs_node *n, int64_t in, depth_attrs *a) {
    int64_t extra[3], shape[3];
    const qs_attr *given = qs_node_attr(n, "output_shape");
    read_list(n, "output_padding", 0, 3, extra);
    read_list(n, "output_shape", 0, 3, shape);
    const int64_t tail = (a->kernel - 1) * a->dilation + 1 + extra[0];
    if (given && in < 0)
        return qs_node_fail(p->error, QSIM_E_UNSUPPORTED, p->model, n,
                            "output_shape of an image whose depth is not known");
    if (given || a->same) {
        const int64_t rest = given ? (in - 1) * a->stride + tail - shape[0] : tail - a->stride;
        const int64_t total = rest > 0 ? rest : 0;
        a->before = a->same == 1 ? total / 2 : total - total / 2;
        a->after = rest - a->before;
    }
    a->after -= extra[0];
    return QSIM_OK;
}

QS_COLD static int rewrite_transposed(qs_pass *p, qs_id node) {
    qs_graph *g = p->graph;
    qs_node *n = &g->nodes[node];
    const qs_id more[2] = {n->inputs[0], qs_node_input(n, 2)};
    const depth_attrs slices = {1, 1, 1, 0, 0, 0};
    depth_attrs a = attrs_of(n, &g->values[n->inputs[1]]);
    int code = transposed_pads(p, n, g->values[more[0]].dims[2].size, &a);
    if (!code)
        code = add_columns(p, node, QS_NONE, &slices);
    if (!code)
        code = reshape_weights(p, node, 1);
    if (!code)
        code = keep_two(p, node, true);
    if (code)
        return code;
    a.same = 0;
    g->nodes[node].input_count = 2; /* DepthSum adds the bias */
    return add_after(p, node, "DepthSum", more, more[1] == QS_NONE ? 1 : 2, &a);
}

/*
 * ---- pools over three axes: over the first, then over the last two ----
 *
 * The first reads slices where they are, as pixels of a column whose channels are the elements of a
 * slice; so it computes in the model's layout and leaves less for the second to bring into its own.
 * A window's taps inside the image, and those that an average counts, are a product of numbers for
 * each axis, so the average of averages is the average, also at the borders.
 */

/* A node's window along each axis; along a fourth one it is one pixel. */
typedef struct pool_window {
    int64_t kernel[4], strides[4], dilations[4], pads[8];
} pool_window;

static pool_window window_of(const qs_node *n) {
    pool_window w = {{0, 0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1}, {0}};
    int64_t pads[6];
    read_list(n, "kernel_shape", 1, 3, w.kernel);
    read_list(n, "strides", 1, 3, w.strides);
    read_list(n, "dilations", 1, 3, w.dilations);
    read_list(n, "pads", 0, 6, pads);
    memcpy(w.pads, pads, sizeof(pads) / 2);
    memcpy(w.pads + 4, pads + 3, sizeof(pads) / 2);
    return w;
}

/* Makes the node a pool over two of the axes; what it does not say it still does not. */
QS_COLD static int pool_over(qs_pass *p, qs_id node, const pool_window *w, int32_t a, int32_t b) {
    const struct {
        const char *name;
        int64_t list[4];
        int32_t count;
    } attrs[] = {{"kernel_shape", {w->kernel[a], w->kernel[b]}, 2},
                 {"strides", {w->strides[a], w->strides[b]}, 2},
                 {"dilations", {w->dilations[a], w->dilations[b]}, 2},
                 {"pads", {w->pads[a], w->pads[b], w->pads[a + 4], w->pads[b + 4]}, 4}};
    int code = a ? QSIM_OK : qs_node_set_int(p->graph, node, "channels_last", 1);
    for (size_t i = 0; i < QS_COUNT(attrs) && !code; i++)
        if (qs_node_attr(&p->graph->nodes[node], attrs[i].name))
            code = qs_node_set_ints(p->graph, node, attrs[i].name, attrs[i].list, attrs[i].count);
    return code ? qs_pass_no_memory(p) : QSIM_OK;
}

/* Whether sizes of input and output are known, and only the pool's values are read. */
static bool is_separable(const qs_graph *g, const qs_node *n, const qs_value *x) {
    const qs_value *y = &g->values[n->outputs[0]];
    bool known = n->output_count < 2 || n->outputs[1] == QS_NONE;
    for (int32_t i = 1; i < RANK; i++)
        known = known && x->dims[i].size > 0 && y->dims[i].size > 0;
    return known;
}

/*
 * Reads `from` as `shape` and writes `to` of four axes by a copy of the node, over axes a and b;
 * over the first and the fourth with channels last.
 */
QS_COLD static int add_pool(qs_pass *p, qs_id node, qs_id from, const int64_t shape[4], int32_t a,
                            int32_t b, qs_id *to) {
    const pool_window w = window_of(&p->graph->nodes[node]);
    const qs_id in = qs_pass_value(p, from);
    *to = in < 0 ? in : qs_pass_value(p, from);
    int code = *to < 0 ? *to : qs_pass_reshape(p, from, shape, 4, in);
    const qs_id pool = code ? code : qs_pass_clone(p, node, a ? "" : "qsim", &in, 1, to, 1);
    code = pool < 0 ? pool : pool_over(p, pool, &w, a, b);
    return code ? code : qs_pass_resolve(p, pool);
}

QS_COLD static int rewrite_pool(qs_pass *p, qs_id node) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    const qs_id x = n->inputs[0], y = n->outputs[0];
    const qs_dim *in = g->values[x].dims, *out = g->values[y].dims;
    const int64_t columns[4] = {-1, in[2].size, 1, in[3].size * in[4].size};
    const int64_t images[4] = {-1, in[1].size * out[2].size, in[3].size, in[4].size};
    const int64_t shape[RANK] = {-1, in[1].size, out[2].size, out[3].size, out[4].size};
    const pool_window w = window_of(n);
    qs_id deep = x, flat;
    int code = QSIM_OK;
    if (w.kernel[0] * w.strides[0] > 1 || w.pads[0] || w.pads[4])
        code = add_pool(p, node, x, columns, 0, 3, &deep);
    if (!code)
        code = add_pool(p, node, deep, images, 1, 2, &flat);
    if (code)
        return code;
    qs_graph_remove_node(p->graph, node);
    return qs_pass_reshape(p, flat, shape, RANK, y);
}

/* Turns the node into an operator of domain qsim with the same attributes. */
QS_COLD static int rename_to(qs_pass *p, qs_id node, const char *op_type) {
    p->graph->nodes[node].domain = "qsim";
    p->graph->nodes[node].op_type = op_type;
    return qs_pass_resolve(p, node);
}

/* Index of the weights of a convolution over three axes with a known window; -1: another node. */
static int32_t weights_of(const qs_graph *g, const qs_node *n) {
    for (int32_t i = 1; i < n->input_count; i++)
        if (qs_op_in(n->op->weight_inputs, i) && n->inputs[i] != QS_NONE) {
            const qs_value *w = &g->values[n->inputs[i]];
            return w->rank == RANK && w->dims[2].size > 0 && w->dims[3].size > 0 &&
                           w->dims[4].size > 0
                       ? i
                       : -1;
        }
    return -1;
}

QS_COLD static int rewrite_node(qs_pass *p, qs_id node, bool *changed) {
    const qs_graph *g = p->graph;
    const qs_node *n = &g->nodes[node];
    if (n->input_count < 1 || n->inputs[0] == QS_NONE)
        return QSIM_OK;
    const qs_value *x = &g->values[n->inputs[0]];
    const bool is_double = x->dtype == QSIM_DOUBLE,
               transposed = qs_node_is_onnx(n, "ConvTranspose");
    if (!is_double && x->rank != RANK)
        return QSIM_OK;
    const int32_t weights = weights_of(g, n);
    *changed = true;
    const bool maxima = qs_node_is_onnx(n, "MaxPool");
    if ((maxima || qs_node_is_onnx(n, "AveragePool")) && !is_double && is_separable(g, n, x))
        return rewrite_pool(p, node);
    if (maxima || qs_node_is_onnx(n, "AveragePool"))
        return rename_to(p, node, maxima ? "PlaneMaxPool" : "PlaneAveragePool");
    if (transposed && weights > 0 && !is_double)
        return rewrite_transposed(p, node);
    if ((n->op->traits & QS_CONVOLVES) && weights > 0 && !is_double)
        return is_through(n, x, &g->values[n->inputs[weights]]) ? rewrite_through(p, node, weights)
                                                                : rewrite_conv(p, node, weights);
    if (transposed || qs_node_is_onnx(n, "Conv"))
        return rename_to(p, node, transposed ? "PlaneConvTranspose" : "PlaneConv");
    if (n->op->traits & QS_CONVOLVES) {
        const qs_infer at = {
            .graph = g, .node = n, .node_id = node, .model = p->model, .error = p->error};
        return qs_infer_fail(&at, QSIM_E_UNSUPPORTED,
                             "the sizes of weights over three axes must be in the file");
    }
    *changed = false;
    return QSIM_OK;
}

int qs_pass_depth(qs_pass *p) {
    bool any = false;
    int code = QSIM_OK;
    const size_t count = p->graph->order_count;
    for (size_t i = 0; i < count && !code; i++) {
        bool changed = false;
        code = rewrite_node(p, p->graph->order[i], &changed);
        any = any || changed;
    }
    if (!code && any)
        code = qs_pass_finish(p);
    /* the Reshapes of weights */
    return code || !any ? code : qs_pass_fold(p, QS_FOLD_QUANTIZE | QS_FOLD_DEQUANTIZE);
}
