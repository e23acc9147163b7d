/* SPDX-License-Identifier: MIT */
/*
 * What optimizers of ONNX Runtime fuse: FusedMatMul, FusedConv and FusedGemm are a product or a
 * convolution and what stood around it; NhwcMaxPool and QLinearConv of com.microsoft have their
 * channels last.
 */
#include "op/expand.h"
#include "op/nn/window.h"

/* ---- what follows ---- */

static const char *const curves[] = {"Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid"};

/* The known operator that attribute "activation" names; *found false: it is another. */
static const char *curve_of(const qs_node *n, bool *found) {
    *found = true;
    if (!qs_node_attr(n, "activation") || qs_node_string_is(n, "activation", "", false))
        return NULL;
    for (size_t i = 0; i < QS_COUNT(curves); i++)
        if (qs_node_string_is(n, "activation", curves[i], false))
            return curves[i];
    *found = false;
    return NULL;
}

QS_COLD static int check_curve(const qs_infer *x) {
    bool found;
    const char *curve = curve_of(x->node, &found);
    const qs_attr *a = qs_node_attr(x->node, "activation_params");
    if (!found)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "this activation is not supported");
    const int32_t least = !curve ? 0 : strcmp(curve, "Clip") == 0 ? 2 : 0;
    if (least && (a ? a->count : 0) < least)
        return qs_infer_fail(x, QSIM_E_VALUE, "activation_params are missing");
    return QSIM_OK;
}

/* Parameters are a list, or attributes of their own (FusedGemm); alpha and beta stay if left out.
 */
static qs_id add_curve(qs_expand *e, qs_id y) {
    const qs_node *n = &e->graph->nodes[e->node_id];
    const qs_attr *a = qs_node_attr(n, "activation_params");
    bool found;
    const char *curve = curve_of(n, &found);
    if (!curve)
        return y;
    if (strcmp(curve, "Clip") == 0 && a)
        return qs_expand_add(e, "Clip", y, qs_expand_number(e, QSIM_FLOAT, (double)a->u.floats[0]),
                             qs_expand_number(e, QSIM_FLOAT, (double)a->u.floats[1]));
    const qs_id made = qs_expand_add(e, curve, y, QS_NONE, QS_NONE);
    const bool has_beta = strcmp(curve, "HardSigmoid") == 0;
    if (!has_beta && strcmp(curve, "LeakyRelu") != 0)
        return made;
    if (a && a->count > 0)
        qs_expand_float(e, made, "alpha", a->u.floats[0]);
    if (a && a->count > 1 && has_beta)
        qs_expand_float(e, made, "beta", a->u.floats[1]);
    qs_expand_copy(e, made, "activation_alpha", "alpha");
    if (has_beta)
        qs_expand_copy(e, made, "activation_beta", "beta");
    return made;
}

/* ---- FusedMatMul ---- */

/* Input `index` with its last two axes changed where `name` says so. */
static qs_value turned(const qs_infer *x, int32_t index, const char *name, qs_dim *dims) {
    qs_value v = *x->in[index];
    if (v.rank < 2 || !qs_node_int(x->node, name, 0))
        return v;
    memcpy(dims, v.dims, (size_t)v.rank * sizeof(*dims));
    dims[v.rank - 1] = v.dims[v.rank - 2];
    dims[v.rank - 2] = v.dims[v.rank - 1];
    v.dims = dims;
    return v;
}

QS_COLD static int infer_fusedmatmul(qs_infer *x) {
    qs_dim a[QSIM_MAX_RANK], b[QSIM_MAX_RANK];
    if (qs_node_int(x->node, "transBatchA", 0) || qs_node_int(x->node, "transBatchB", 0))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "transBatchA and transBatchB are not supported");
    const qs_value in[2] = {turned(x, 0, "transA", a), turned(x, 1, "transB", b)};
    return qs_expand_infer(x, "MatMul", in, 2);
}

static qs_id factor(qs_expand *e, int32_t index, const char *name) {
    const qs_value *v = qs_expand_value(e, index);
    const int32_t rank = v->rank;
    int64_t perm[QSIM_MAX_RANK];
    if (rank < 2 || !qs_node_int(&e->graph->nodes[e->node_id], name, 0))
        return qs_expand_in(e, index);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return qs_expand_transpose(e, qs_expand_in(e, index), perm, rank);
}

static void expand_fusedmatmul(qs_expand *e) {
    const float alpha = qs_node_float(e->node, "alpha", 1.0f);
    if (qs_expand_value(e, 0)->rank < 0 || qs_expand_value(e, 1)->rank < 0)
        return;
    qs_id y = qs_expand_add(e, "MatMul", factor(e, 0, "transA"), factor(e, 1, "transB"), QS_NONE);
    if (alpha != 1.0f)
        y = qs_expand_add(e, "Mul", y, qs_expand_number(e, QSIM_FLOAT, (double)alpha), QS_NONE);
    e->out[0] = y;
}

static const qs_attr_rule matmul_attrs[] = {{"alpha", QS_ATTR_FLOAT, 1, 0},
                                            {"transA", QS_ATTR_INT, 1, 0},
                                            {"transB", QS_ATTR_INT, 1, 0},
                                            {"transBatchA", QS_ATTR_INT, 1, 0},
                                            {"transBatchB", QS_ATTR_INT, 1, 0}};

QS_OP(ms_fusedmatmul, .domain = "com.microsoft", .name = "FusedMatMul", .min_in = 2,
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

static const qs_attr_rule gemm_attrs[] = {{"alpha", QS_ATTR_FLOAT, 1, 0},
                                          {"beta", QS_ATTR_FLOAT, 1, 0},
                                          {"transA", QS_ATTR_INT, 1, 0},
                                          {"transB", QS_ATTR_INT, 1, 0},
                                          {"activation", QS_ATTR_STRING, 1, 0},
                                          {"activation_alpha", QS_ATTR_FLOAT, 1, 0},
                                          {"activation_beta", QS_ATTR_FLOAT, 1, 0},
                                          {"activation_gamma", QS_ATTR_FLOAT, 1, 0}};

QS_OP(ms_fusedgemm, .domain = "com.microsoft", .name = "FusedGemm", .min_in = 2, .max_in = 3,
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

/* Input 3 is added before the curve. */
static void expand_fusedconv(qs_expand *e) {
    const qs_id z = qs_expand_in(e, 3);
    const qs_id y =
        qs_expand_add(e, "Conv", qs_expand_in(e, 0), qs_expand_in(e, 1), qs_expand_in(e, 2));
    copy_window(e, y);
    e->out[0] = add_curve(e, z == QS_NONE ? y : qs_expand_add(e, "Add", y, z, QS_NONE));
}

static const qs_attr_rule conv_attrs[] = {QS_CONV_ATTRS(1),
                                          {"activation", QS_ATTR_STRING, 1, 0},
                                          {"activation_params", QS_ATTR_FLOATS, 1, 0}};

QS_OP(ms_fusedconv, .domain = "com.microsoft", .name = "FusedConv", .min_in = 2, .max_in = 4,
      QS_ATTRS(conv_attrs), .traits = QS_PLAIN, .infer = infer_fusedconv,
      .expand = expand_fusedconv);

/* ---- channels last ---- */

static int64_t first_of(int32_t axis, int32_t rank) { /* axis of NCHW: where NHWC has it */
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

static int64_t last_of(int32_t axis, int32_t rank) {
    return axis == 0 ? 0 : axis == rank - 1 ? 1 : axis + 1;
}

/* The rules of an operator whose input 0 and output have their channels last. */
QS_COLD static int infer_last(qs_infer *x, const char *op_type) {
    qs_dim dims[QSIM_MAX_RANK], y[QSIM_MAX_RANK];
    qs_value first = *x->in[0];
    for (int32_t i = 0; i < first.rank; i++)
        dims[i] = x->in[0]->dims[first_of(i, first.rank)];
    first.dims = dims;
    const int code = qs_expand_infer(x, op_type, &first, 1);
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

/* Transpose, the operator of ai.onnx on all inputs, Transpose. */
static void expand_last(qs_expand *e, const char *op_type, bool last) {
    const qs_node *n = e->node;
    const int32_t rank = qs_expand_value(e, 0)->rank, count = n->input_count;
    qs_id in[9];
    if (e->standard || (rank < 0 && last))
        return;
    for (int32_t i = 0; i < count; i++)
        in[i] = n->inputs[i];
    in[0] = last ? permuted(e, in[0], rank, first_of) : in[0];
    const qs_id y = qs_expand_many(e, op_type, in, count, 1);
    copy_window(e, y);
    e->out[0] = last ? permuted(e, y, rank, last_of) : y;
}

QS_COLD static int infer_nhwcmaxpool(qs_infer *x) {
    const int code = qs_infer_type(x, 0, QS_T_8BIT);
    return code ? code : infer_last(x, "MaxPool");
}

static void expand_nhwcmaxpool(qs_expand *e) {
    expand_last(e, "MaxPool", true);
}

/* The rules know "channels_last", since ours has it too. */
QS_COLD static int infer_qlinearconv(qs_infer *x) {
    return qs_expand_infer(x, "QLinearConv", NULL, 0);
}

static void expand_qlinearconv(qs_expand *e) {
    expand_last(e, "QLinearConv", qs_node_int(e->node, "channels_last", 0) != 0);
}

static const qs_attr_rule pool_attrs[] = {
    QS_WINDOW_ATTRS(1), {"ceil_mode", QS_ATTR_INT, 1, 0}, {"dilations", QS_ATTR_INTS, 1, 0}};
static const qs_attr_rule qconv_attrs[] = {QS_CONV_ATTRS(1), {"channels_last", QS_ATTR_INT, 1, 0}};

QS_OP(ms_nhwcmaxpool, .domain = "com.microsoft", .name = "NhwcMaxPool", .min_in = 1,
      QS_ATTRS(pool_attrs), .traits = QS_PLAIN, .infer = infer_nhwcmaxpool,
      .expand = expand_nhwcmaxpool);
QS_OP(ms_qlinearconv, .domain = "com.microsoft", .name = "QLinearConv", .min_in = 8, .max_in = 9,
      QS_ATTRS(qconv_attrs), .traits = QS_PLAIN, .infer = infer_qlinearconv,
      .expand = expand_qlinearconv);
