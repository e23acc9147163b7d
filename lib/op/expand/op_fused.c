/* SPDX-License-Identifier: MIT */
/*
 * Operators that ONNX Runtime's optimizer makes: FusedMatMul, FusedConv and FusedGemm are a product
 * or convolution fused with the nodes around it; NhwcConv, NhwcFusedConv, NhwcMaxPool, GroupNorm
 * and QLinearConv of com.microsoft are channels-last.
 */
#include <assert.h>

#include "op/expand.h"
#include "op/nn/window.h"

/* ---- activations ---- */

static const char *const curves[] = {"Relu",     "Sigmoid",   "Tanh",           "Softplus",
                                     "Softsign", "Clip",      "Selu",           "HardSigmoid",
                                     "Elu",      "LeakyRelu", "ThresholdedRelu"};
enum { CLIP = 5, SELU, HARD_SIGMOID }; /* SELU and later: alpha; SELU, HARD_SIGMOID: 2 parameters */

/* Index of the curve that attribute "activation" names; -1: none, QS_COUNT(curves): unknown. */
static int32_t curve_of(const qs_node *n) {
    int32_t i = 0;
    if (!qs_node_attr(n, "activation") || qs_node_string_is(n, "activation", "", false))
        return -1;
    while (i < (int32_t)QS_COUNT(curves) && !qs_node_string_is(n, "activation", curves[i], false))
        i++;
    return i;
}

QS_COLD static int check_curve(const qs_infer *x) {
    const int32_t curve = curve_of(x->node);
    const qs_attr *a = qs_node_attr(x->node, "activation_params");
    if (curve == (int32_t)QS_COUNT(curves))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "this activation is not supported; Relu, Sigmoid, Tanh, Softplus, "
                             "Softsign, Clip, Selu, HardSigmoid, Elu, LeakyRelu and "
                             "ThresholdedRelu are");
    if (curve == CLIP && (a ? a->count : 0) < 2)
        return qs_infer_fail(x, QSIM_E_VALUE, "activation_params are missing");
    return QSIM_OK;
}

/*
 * Adds the curve's node. Parameters are a list, or single attributes (FusedGemm); missing ones keep
 * the operator's defaults.
 */
static qs_id add_curve(qs_expand *e, qs_id y) {
    const qs_node *n = &e->graph->nodes[e->node_id];
    const qs_attr *a = qs_node_attr(n, "activation_params");
    const int32_t curve = curve_of(n);
    if (curve < 0)
        return y;
    if (curve == CLIP && a)
        return qs_expand_add(e, "Clip", y, qs_expand_number(e, QSIM_FLOAT, (double)a->u.floats[0]),
                             qs_expand_number(e, QSIM_FLOAT, (double)a->u.floats[1]));
    const qs_id made = qs_expand_one(e, curves[curve], y);
    const char *second = curve == SELU ? "gamma" : curve == HARD_SIGMOID ? "beta" : NULL;
    if (curve < SELU)
        return made;
    if (a && a->count > 0)
        qs_expand_float(e, made, "alpha", a->u.floats[0]);
    if (a && a->count > 1 && second)
        qs_expand_float(e, made, second, a->u.floats[1]);
    qs_expand_copy(e, made, "activation_alpha", "alpha");
    if (second)
        qs_expand_copy(e, made, curve == SELU ? "activation_gamma" : "activation_beta", second);
    return made;
}

/* ---- FusedMatMul ---- */

/*
 * The permutation that brings factor A or B, rank 2 at least, into MatMul's order of axes: with
 * transBatchA its rows are axis 0, before the batches; transA swaps the last two. False: it is the
 * identity.
 */
static bool transpose_order(const qs_node *n, bool second, int32_t rank, int64_t *perm) {
    const bool last = qs_node_int(n, second ? "transB" : "transA", 0) != 0;
    const bool batch = qs_node_int(n, second ? "transBatchB" : "transBatchA", 0) != 0 && rank > 2;
    for (int32_t i = 0; i < rank - 2; i++)
        perm[i] = i + batch;
    perm[rank - 2 + last] = batch ? 0 : rank - 2;
    perm[rank - 1 - last] = rank - 1;
    return last || batch;
}

QS_COLD static int infer_fusedmatmul(qs_infer *x) {
    qs_dim dims[2][QSIM_MAX_RANK];
    int64_t perm[QSIM_MAX_RANK];
    qs_value in[2] = {*x->in[0], *x->in[1]};
    for (int32_t i = 0; i < 2; i++) {
        if (in[i].rank < 2 || !transpose_order(x->node, i == 1, in[i].rank, perm))
            continue;
        for (int32_t k = 0; k < in[i].rank; k++)
            dims[i][k] = x->in[i]->dims[perm[k]];
        in[i].dims = dims[i];
    }
    return qs_expand_infer(x, "MatMul", in, 2);
}

static qs_id factor(qs_expand *e, int32_t index) {
    const int32_t rank = qs_expand_value(e, index)->rank;
    int64_t perm[QSIM_MAX_RANK];
    if (rank < 2 || !transpose_order(&e->graph->nodes[e->node_id], index == 1, rank, perm))
        return qs_expand_in(e, index);
    return qs_expand_transpose(e, qs_expand_in(e, index), perm, rank);
}

static void expand_fusedmatmul(qs_expand *e) {
    const float alpha = qs_node_float(e->node, "alpha", 1.0f);
    if (qs_expand_value(e, 0)->rank < 0 || qs_expand_value(e, 1)->rank < 0)
        return;
    qs_id y = qs_expand_two(e, "MatMul", factor(e, 0), factor(e, 1));
    if (alpha != 1.0f)
        y = qs_expand_two(e, "Mul", y, qs_expand_number(e, QSIM_FLOAT, (double)alpha));
    e->out[0] = y;
}

static const qs_attr_rule matmul_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                            {"transA", QSIM_ATTR_INT, 1, 0},
                                            {"transB", QSIM_ATTR_INT, 1, 0},
                                            {"transBatchA", QSIM_ATTR_INT, 1, 0},
                                            {"transBatchB", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_fusedmatmul, .domain = QS_DOMAIN_MICROSOFT, .name = "FusedMatMul", .min_in = 2,
      QS_ATTRS(matmul_attrs), .traits = QS_PLAIN, .infer = infer_fusedmatmul,
      .expand = expand_fusedmatmul);
/* The older name of FusedMatMul. */
QS_OP(ms_transposematmul, .domain = QS_DOMAIN_MICROSOFT, .name = "TransposeMatMul", .min_in = 2,
      QS_ATTRS(matmul_attrs), .traits = QS_PLAIN, .infer = infer_fusedmatmul,
      .expand = expand_fusedmatmul);

/* ---- FusedGemm ---- */

QS_COLD static int infer_fusedgemm(qs_infer *x) {
    const int code = check_curve(x);
    return code ? code : qs_expand_infer(x, "Gemm", NULL, 0);
}

static void expand_fusedgemm(qs_expand *e) {
    static const char *const names[] = {"alpha", "beta", "transA", "transB"};
    const qs_id c = qs_expand_in(e, 2);
    const qs_id y = qs_expand_add(e, "Gemm", qs_expand_in(e, 0), qs_expand_in(e, 1), c);
    for (size_t i = 0; i < QS_COUNT(names); i++)
        qs_expand_copy(e, y, names[i], names[i]);
    e->out[0] = add_curve(e, y);
}

static const qs_attr_rule gemm_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                          {"beta", QSIM_ATTR_FLOAT, 1, 0},
                                          {"transA", QSIM_ATTR_INT, 1, 0},
                                          {"transB", QSIM_ATTR_INT, 1, 0},
                                          {"activation", QSIM_ATTR_STRING, 1, 0},
                                          {"activation_alpha", QSIM_ATTR_FLOAT, 1, 0},
                                          {"activation_beta", QSIM_ATTR_FLOAT, 1, 0},
                                          {"activation_gamma", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(ms_fusedgemm, .domain = QS_DOMAIN_MICROSOFT, .name = "FusedGemm", .min_in = 2, .max_in = 3,
      QS_ATTRS(gemm_attrs), .traits = QS_PLAIN, .infer = infer_fusedgemm,
      .expand = expand_fusedgemm);

/* ---- FusedConv ---- */

static const char *const window_names[] = {"auto_pad", "dilations", "group",    "kernel_shape",
                                           "pads",     "strides",   "ceil_mode"};

static void copy_window(qs_expand *e, qs_id y) {
    for (size_t i = 0; i < QS_COUNT(window_names); i++)
        qs_expand_copy(e, y, window_names[i], window_names[i]);
}

QS_COLD static int infer_fusedconv(qs_infer *x) {
    const int code = check_curve(x);
    return code ? code : qs_expand_infer(x, "Conv", NULL, 0);
}

/* Input 3 is added to the convolution before the curve. */
static void expand_fusedconv(qs_expand *e) {
    const qs_id z = qs_expand_in(e, 3);
    const qs_id y =
        qs_expand_add(e, "Conv", qs_expand_in(e, 0), qs_expand_in(e, 1), qs_expand_in(e, 2));
    copy_window(e, y);
    e->out[0] = add_curve(e, z == QS_NONE ? y : qs_expand_two(e, "Add", y, z));
}

static const qs_attr_rule conv_attrs[] = {QS_CONV_ATTRS(1),
                                          {"activation", QSIM_ATTR_STRING, 1, 0},
                                          {"activation_params", QSIM_ATTR_FLOATS, 1, 0}};

QS_OP(ms_fusedconv, .domain = QS_DOMAIN_MICROSOFT, .name = "FusedConv", .min_in = 2, .max_in = 4,
      QS_ATTRS(conv_attrs), .traits = QS_PLAIN, .infer = infer_fusedconv,
      .expand = expand_fusedconv);

/* ---- ConvTransposeWithDynamicPads ---- */

QS_COLD static int infer_dynamicpads(qs_infer *x) {
    const qs_value *given = qs_infer_in(x, 2);
    qs_infer own = *x;
    qs_dim dims[QSIM_MAX_RANK];
    own.in[2] = qs_infer_in(x, 3);
    own.in[3] = NULL;
    int code = given ? qs_infer_type(x, 2, QS_T(QSIM_INT64)) : QSIM_OK;
    if (!code)
        code = qs_expand_infer(&own, "ConvTranspose", NULL, 0);
    const qs_value y = x->out[0];
    if (code || !given || y.rank < 2)
        return code;
    const int32_t axes = y.rank - 2;
    int64_t pads[2 * QSIM_MAX_RANK]; /* all begins, then all ends */
    int32_t count;
    code = qs_infer_ints(x, 2, pads, QS_COUNT(pads), &count);
    if (code)
        return code;
    if (given->rank >= 0 &&
        (given->rank != 1 || (given->dims[0].size >= 0 && given->dims[0].size != 2 * axes)))
        return qs_infer_fail(x, QSIM_E_SHAPE, "pads are not %d numbers", 2 * (int)axes);
    qs_value_dims(&y, dims);
    for (int32_t i = 0; i < axes; i++) {
        int64_t *size = &dims[2 + i].size;
        dims[2 + i].symbol = NULL;
        if (count != 2 * axes || *size < 0)
            *size = -1;
        else if (pads[i] < 0 || pads[axes + i] < 0 || pads[i] >= *size ||
                 pads[axes + i] >= *size - pads[i])
            return qs_infer_fail(x, QSIM_E_VALUE, "pads %lld and %lld leave nothing of axis %d",
                                 (long long)pads[i], (long long)pads[axes + i], 2 + (int)i);
        else
            *size -= pads[i] + pads[axes + i];
    }
    return qs_infer_out(x, 0, y.dtype, y.rank, dims);
}

/* Slices the result of a ConvTranspose without padding. */
static void expand_dynamicpads(qs_expand *e) {
    const qs_id pads = qs_expand_in(e, 2), bias = qs_expand_in(e, 3);
    const int32_t rank = qs_expand_value(e, 0)->rank, n = rank - 2;
    if (n < 1)
        return;
    const qs_id y = qs_expand_add(e, "ConvTranspose", qs_expand_in(e, 0), qs_expand_in(e, 1), bias);
    copy_window(e, y);
    qs_expand_copy(e, y, "output_padding", "output_padding");
    e->out[0] = y;
    if (pads == QS_NONE)
        return;
    const int64_t sizes[2] = {n, n}, axes[] = {2, 3, 4, 5, 6, 7};
    const qs_id parts = qs_expand_split(e, pads, 0, sizes, 2);
    const qs_id all = qs_expand_one(e, "Shape", y);
    const qs_id space = qs_expand_two(e, "Gather", all, qs_expand_list(e, axes, n));
    const qs_id in[4] = {y, parts, e->code ? QS_NONE : qs_expand_two(e, "Sub", space, parts + 1),
                         qs_expand_list(e, axes, n)};
    e->out[0] = qs_expand_many(e, "Slice", in, 4, 1);
}

static const qs_attr_rule dynamicpads_attrs[] = {
    {"auto_pad", QSIM_ATTR_STRING, 1, 0},     {"dilations", QSIM_ATTR_INTS, 1, 0},
    {"group", QSIM_ATTR_INT, 1, 0},           {"kernel_shape", QSIM_ATTR_INTS, 1, 0},
    {"output_padding", QSIM_ATTR_INTS, 1, 0}, {"strides", QSIM_ATTR_INTS, 1, 0}};

QS_OP(ms_convtransposedynamicpads, .domain = QS_DOMAIN_MICROSOFT,
      .name = "ConvTransposeWithDynamicPads", .min_in = 2, .max_in = 4, QS_ATTRS(dynamicpads_attrs),
      .traits = QS_PLAIN, .shape_inputs = 1 << 2, .infer = infer_dynamicpads,
      .expand = expand_dynamicpads);

/* ---- channels last ---- */

static int64_t first_of(int32_t axis, int32_t rank) { /* place in NHWC of an axis of NCHW */
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

static int64_t last_of(int32_t axis, int32_t rank) {
    return axis == 0 ? 0 : axis == rank - 1 ? 1 : axis + 1;
}

/* Applies an operator's shape rule with the first `count` inputs and the output channels last. */
QS_COLD static int infer_last(qs_infer *x, const char *op_type, int32_t count) {
    qs_dim dims[2][QSIM_MAX_RANK], y[QSIM_MAX_RANK];
    qs_value in[2];
    for (int32_t k = 0; k < count; k++) {
        in[k] = *x->in[k];
        for (int32_t i = 0; i < in[k].rank; i++)
            dims[k][i] = x->in[k]->dims[first_of(i, in[k].rank)];
        in[k].dims = dims[k];
    }
    const int code = qs_expand_infer(x, op_type, in, count);
    const qs_value out = x->out[0];
    if (code || out.rank < 0)
        return code;
    for (int32_t i = 0; i < out.rank; i++)
        y[i] = out.dims[last_of(i, out.rank)];
    return qs_infer_out(x, 0, out.dtype, out.rank, y);
}

static qs_id permuted(qs_expand *e, qs_id x, int32_t rank, int64_t (*from)(int32_t, int32_t)) {
    int64_t perm[QSIM_MAX_RANK];
    for (int32_t i = 0; i < rank; i++)
        perm[i] = from(i, rank);
    return qs_expand_transpose(e, x, perm, rank);
}

/* Adds the operator of ai.onnx on the first `most` inputs; `last`: how many are channels last. */
static void expand_last(qs_expand *e, const char *op_type, int32_t last, int32_t most) {
    const int32_t rank = qs_expand_value(e, 0)->rank;
    const int32_t count = e->node->input_count < most ? e->node->input_count : most;
    qs_id in[9];
    if (rank < 0 && last)
        return;
    assert(count > 0 && last <= count && (size_t)count <= QS_COUNT(in));
    for (int32_t i = 0; i < count; i++)
        in[i] = qs_expand_in(e, i);
    for (int32_t i = 0; i < last; i++)
        in[i] = permuted(e, in[i], rank, first_of);
    const qs_id y = qs_expand_many(e, op_type, in, count, 1);
    copy_window(e, y);
    e->out[0] = last ? permuted(e, y, rank, last_of) : y;
}

QS_COLD static int infer_nhwcmaxpool(qs_infer *x) {
    const int code = qs_infer_type(x, 0, QS_T_8BIT);
    return code ? code : infer_last(x, "MaxPool", 1);
}

static void expand_nhwcmaxpool(qs_expand *e) {
    if (!qs_expand_stays(e))
        expand_last(e, "MaxPool", 1, 1);
}

/* The shape rule knows "channels_last" from the internal QLinearConv. */
QS_COLD static int infer_qlinearconv(qs_infer *x) {
    return qs_expand_infer(x, "QLinearConv", NULL, 0);
}

static void expand_qlinearconv(qs_expand *e) {
    if (!qs_expand_stays(e))
        expand_last(e, "QLinearConv", qs_node_int(e->node, "channels_last", 0) != 0, 9);
}

/* The weights are channels last, too. */
QS_COLD static int infer_nhwcconv(qs_infer *x) {
    return infer_last(x, "Conv", 2);
}

static void expand_nhwcconv(qs_expand *e) {
    expand_last(e, "Conv", 2, 3);
}

/* The weights are those of Conv; input 3 is added before the curve. */
QS_COLD static int infer_nhwcfusedconv(qs_infer *x) {
    const int code = check_curve(x);
    return code ? code : infer_last(x, "Conv", 1);
}

static void expand_nhwcfusedconv(qs_expand *e) {
    const qs_id z = qs_expand_in(e, 3);
    expand_last(e, "Conv", 1, 3);
    if (e->out[0] == QS_NONE)
        return;
    if (z != QS_NONE)
        e->out[0] = qs_expand_two(e, "Add", e->out[0], z);
    e->out[0] = add_curve(e, e->out[0]);
}

static const qs_attr_rule pool_attrs[] = {
    QS_WINDOW_ATTRS(1), {"ceil_mode", QSIM_ATTR_INT, 1, 0}, {"dilations", QSIM_ATTR_INTS, 1, 0}};
static const qs_attr_rule qconv_attrs[] = {QS_CONV_ATTRS(1),
                                           {"channels_last", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_nhwcmaxpool, .domain = QS_DOMAIN_MICROSOFT, .name = "NhwcMaxPool", .min_in = 1,
      QS_ATTRS(pool_attrs), .traits = QS_PLAIN, .infer = infer_nhwcmaxpool,
      .expand = expand_nhwcmaxpool);
QS_OP(ms_qlinearconv, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearConv", .min_in = 8,
      .max_in = 9, QS_ATTRS(qconv_attrs), .traits = QS_PLAIN,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .w = {3, 4, 5}, .y = {0, 6, 7}, .prefix = 7)),
      .infer = infer_qlinearconv, .expand = expand_qlinearconv);
QS_OP(ms_nhwcconv, .domain = QS_DOMAIN_MICROSOFT, .name = "NhwcConv", .min_in = 2, .max_in = 3,
      .attrs = qconv_attrs, .attr_count = QS_COUNT(qconv_attrs) - 1, .traits = QS_PLAIN,
      .infer = infer_nhwcconv, .expand = expand_nhwcconv);
QS_OP(ms_nhwcfusedconv, .domain = QS_DOMAIN_MICROSOFT, .name = "NhwcFusedConv", .min_in = 2,
      .max_in = 4, QS_ATTRS(conv_attrs), .traits = QS_PLAIN, .infer = infer_nhwcfusedconv,
      .expand = expand_nhwcfusedconv);

/* ---- BiasAdd, GroupNorm, SkipGroupNorm ---- */

enum { GAMMA = 1, BETA, SKIP, BIAS };

/* Checks types, and that input `index` is a list of the channels. */
static int check_channels(const qs_infer *x, int32_t index, int32_t axis) {
    const qs_value *v = x->in[0];
    const int64_t n = v->rank > 0 ? v->dims[axis < 0 ? v->rank - 1 : axis].size : -1;
    const int code = qs_infer_type(x, index, QS_T_FLOAT);
    return code ? code : qs_infer_list(x, index, n);
}

/* Checks that input `index` broadcasts to input 0, or may do so without the axes of an image. */
static int check_skip(const qs_infer *x, int32_t index, bool lists) {
    const qs_value *v = x->in[0], *s = x->in[index];
    int32_t rank;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, index, QS_T_FLOAT);
    if (code || v->rank < 0 || s->rank < 0)
        return code;
    if (!lists || s->rank != 2)
        code = qs_infer_rank(x, index, v->rank);
    return code || s->rank != v->rank ? code : qs_infer_broadcast(x, v, s, &rank, dims);
}

QS_COLD static int infer_biasadd(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = check_channels(x, 1, -1);
    if (!code)
        code = check_skip(x, 2, false);
    return code ? code : qs_infer_like(x, 0, 0);
}

static void expand_biasadd(qs_expand *e) {
    const qs_id skip = qs_expand_in(e, 2);
    e->out[0] = qs_expand_two(
        e, "Add", qs_expand_two(e, "Add", qs_expand_in(e, 0), qs_expand_in(e, 1)), skip);
}

QS_COLD static int infer_groupnorm(qs_infer *x) {
    const qs_value *v = x->in[0];
    const bool last = qs_node_int(x->node, "channels_last", 1) != 0;
    const int64_t groups = qs_node_int(x->node, "groups", 0);
    const int64_t curve = qs_node_int(x->node, "activation", 0);
    const int64_t channels = v->rank > 1 ? v->dims[last ? v->rank - 1 : 1].size : -1;
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (groups < 1 || (channels >= 0 && channels % groups))
        return qs_infer_fail(x, QSIM_E_VALUE, "%lld groups of %lld channels", (long long)groups,
                             (long long)channels);
    if (curve < 0 || curve > 1 || (!last && x->node->input_count > SKIP))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "activation %lld, channels_last %d",
                             (long long)curve, (int)last);
    if (!code && v->rank >= 0 && v->rank < 3)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "rank %d, expected 3 at least", (int)v->rank);
    for (int32_t i = GAMMA; i <= BIAS && !code; i++)
        code = i != SKIP           ? check_channels(x, i, last ? -1 : 1)
               : qs_infer_in(x, i) ? check_skip(x, i, true)
                                   : QSIM_OK;
    if (!code)
        code = qs_infer_like(x, 0, 0);
    return code || x->node->output_count < 2 ? code : qs_infer_like(x, 1, 0);
}

/* With input SKIP the sum x + skip + bias is normalized; it is output 1. */
static void expand_groupnorm(qs_expand *e) {
    const qs_node n = *e->node;
    const bool last = qs_node_int(&n, "channels_last", 1) != 0;
    const bool curved = qs_node_int(&n, "activation", 0) != 0;
    const int32_t rank = qs_expand_value(e, 0)->rank;
    qs_id x = qs_expand_in(e, 0), skip = qs_expand_in(e, SKIP);
    if (qs_expand_stays(e) || rank < 0)
        return;
    if (skip != QS_NONE) {
        const int64_t axes[] = {1, 2, 3, 4, 5, 6};
        if (qs_expand_value(e, SKIP)->rank < 0)
            return;
        if (qs_expand_value(e, SKIP)->rank != rank)
            skip = qs_expand_two(e, "Unsqueeze", skip, qs_expand_list(e, axes, rank - 2));
        x = qs_expand_two(e, "Add", x, skip);
        if (qs_expand_in(e, BIAS) != QS_NONE)
            x = qs_expand_two(e, "Add", x, qs_expand_in(e, BIAS));
        e->out[1] = x;
    }
    qs_id y = qs_expand_add(e, "GroupNormalization", last ? permuted(e, x, rank, first_of) : x,
                            qs_expand_in(e, GAMMA), qs_expand_in(e, BETA));
    qs_expand_copy(e, y, "groups", "num_groups");
    qs_expand_copy(e, y, "epsilon", "epsilon");
    if (curved)
        y = qs_expand_two(e, "Mul", y, qs_expand_one(e, "Sigmoid", y));
    e->out[0] = last ? permuted(e, y, rank, last_of) : y;
}

static const qs_attr_rule groupnorm_attrs[] = {{"activation", QSIM_ATTR_INT, 1, 0},
                                               {"channels_last", QSIM_ATTR_INT, 1, 0},
                                               {"epsilon", QSIM_ATTR_FLOAT, 1, 0},
                                               {"groups", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_biasadd, .domain = QS_DOMAIN_MICROSOFT, .name = "BiasAdd", .min_in = 3, .traits = QS_PLAIN,
      .infer = infer_biasadd, .expand = expand_biasadd);
QS_OP(ms_groupnorm, .domain = QS_DOMAIN_MICROSOFT, .name = "GroupNorm", .min_in = 3,
      QS_ATTRS(groupnorm_attrs), .traits = QS_PLAIN, .infer = infer_groupnorm,
      .expand = expand_groupnorm);
QS_OP(ms_skipgroupnorm, .domain = QS_DOMAIN_MICROSOFT, .name = "SkipGroupNorm", .min_in = 4,
      .max_in = 5, .max_out = 2, QS_ATTRS(groupnorm_attrs), .traits = QS_PLAIN,
      .infer = infer_groupnorm, .expand = expand_groupnorm);
