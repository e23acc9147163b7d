/* SPDX-License-Identifier: MIT */
/*
 * Experiments of ONNX 1.0 that networks converted from CoreML have and that ONNX Runtime keeps:
 * ImageScaler and Crop of images [N, C, H, W]; Affine, ScaledTanh and ParametricSoftplus.
 */
#include "op/expand.h"

/* ---- activations ---- */

static int infer_activation(qs_infer *x) {
    const int code = qs_infer_type(x, 0, QS_T(QSIM_FLOAT));
    return code ? code : qs_infer_like(x, 0, 0);
}

/* x times an attribute, 1 by default */
static qs_id scaled(qs_expand *e, qs_id x, const char *attr) {
    const double v = (double)qs_node_float(&e->graph->nodes[e->node_id], attr, 1);
    return qs_expand_two(e, "Mul", x, qs_expand_number(e, QSIM_FLOAT, v));
}

/* alpha * x + beta */
static void expand_affine(qs_expand *e) {
    const double beta = (double)qs_node_float(e->node, "beta", 0);
    e->out[0] = qs_expand_two(e, "Add", scaled(e, qs_expand_in(e, 0), "alpha"),
                              qs_expand_number(e, QSIM_FLOAT, beta));
}

/* alpha * f(beta * x) */
static void expand_curve(qs_expand *e, const char *f) {
    const qs_id x = scaled(e, qs_expand_in(e, 0), "beta");
    e->out[0] = scaled(e, qs_expand_one(e, f, x), "alpha");
}
static void expand_scaledtanh(qs_expand *e) {
    expand_curve(e, "Tanh");
}
static void expand_softplus(qs_expand *e) {
    expand_curve(e, "Softplus");
}

static const qs_attr_rule alpha_beta[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                          {"beta", QSIM_ATTR_FLOAT, 1, 0}};

/* None of them is in an operator set that files are written in. */
static const qs_op_more in_no_opset = {.in_onnx = INT8_MAX};

QS_OP(affine, .name = "Affine", .min_in = 1, QS_ATTRS(alpha_beta), .traits = QS_PLAIN,
      .more = &in_no_opset, .infer = infer_activation, .expand = expand_affine);
QS_OP(scaledtanh, .name = "ScaledTanh", .min_in = 1, QS_ATTRS(alpha_beta), .traits = QS_PLAIN,
      .more = &in_no_opset, .infer = infer_activation, .expand = expand_scaledtanh);
QS_OP(parametricsoftplus, .name = "ParametricSoftplus", .min_in = 1, QS_ATTRS(alpha_beta),
      .traits = QS_PLAIN, .more = &in_no_opset, .infer = infer_activation,
      .expand = expand_softplus);

/* ---- images ---- */

static int infer_image(qs_infer *x) {
    const int code = qs_infer_type(x, 0, QS_T(QSIM_FLOAT));
    return code ? code : qs_infer_rank(x, 0, 4);
}

/* ---- ImageScaler ---- */

static int infer_scaler(qs_infer *x) {
    const qs_value *v = x->in[0];
    const qs_attr *bias = qs_node_attr(x->node, "bias");
    const int code = infer_image(x);
    if (code)
        return code;
    if (bias && v->rank == 4 && v->dims[1].size >= 0 && v->dims[1].size != bias->count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%d biases for %lld channels", (int)bias->count,
                             (long long)v->dims[1].size);
    return qs_infer_like(x, 0, 0);
}

/* scale * x + bias of the channel */
static void expand_scaler(qs_expand *e) {
    static const int64_t channel[] = {-1, 1, 1};
    const float scale = qs_node_float(e->node, "scale", 1.0f);
    const bool biased = qs_node_attr(e->node, "bias") != NULL;
    e->out[0] =
        qs_expand_two(e, "Mul", qs_expand_in(e, 0), qs_expand_number(e, QSIM_FLOAT, (double)scale));
    if (!biased)
        return;
    const qs_id bias = qs_expand_many(e, "Constant", NULL, 0, 1);
    qs_expand_copy(e, bias, "bias", "value_floats");
    e->out[0] = qs_expand_two(e, "Add", e->out[0], qs_expand_reshape(e, bias, channel, 3));
}

static const qs_attr_rule scaler_attrs[] = {{"bias", QSIM_ATTR_FLOATS, 1, 0},
                                            {"scale", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(imagescaler, .name = "ImageScaler", .min_in = 1, QS_ATTRS(scaler_attrs), .traits = QS_PLAIN,
      .more = &in_no_opset, .infer = infer_scaler, .expand = expand_scaler);

/* ---- Crop ---- */

typedef struct cut {
    int64_t from[2], to[2]; /* of rows and columns; `to` may count from the end, as Slice's */
    int64_t size[2];        /* that are left, -1 if the image's are not known */
} cut;

static int read_cut(const qs_infer *x, const qs_value *image, cut *c) {
    int64_t border[4], size[2]; /* left, top, right, bottom; height, width */
    int32_t borders, sizes;
    int code = qs_infer_attr_ints(x, "border", border, 4, &borders);
    if (!code)
        code = qs_infer_attr_ints(x, "scale", size, 2, &sizes);
    if (!code && (borders != 4 || (sizes != QS_ABSENT && sizes != 2)))
        code = qs_infer_fail(x, QSIM_E_VALUE, "border is not four sizes, or scale not two");
    for (int32_t i = 0; i < 2 && !code; i++) {
        const bool known = image->rank == 4 && image->dims[2 + i].size >= 0;
        const int64_t low = border[1 - i], high = border[3 - i], given = sizes == 2 ? size[i] : 0;
        const int64_t all = known ? image->dims[2 + i].size : INT32_MAX;
        if (low < 0 || low > all || high < 0 || high > all - low || given < 0 || given > all - low)
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d of size %lld cannot be cropped so",
                                 (int)i + 2, (long long)all);
        c->from[i] = low;
        c->to[i] = sizes == 2 ? low + given : high ? -high : INT64_MAX;
        c->size[i] = sizes == 2 ? given : known ? all - high - low : -1;
    }
    return code;
}

static int infer_crop(qs_infer *x) {
    qs_dim dims[4] = {{-1, NULL}, {-1, NULL}, {-1, NULL}, {-1, NULL}};
    const qs_value *v = x->in[0];
    cut c;
    int code = infer_image(x);
    if (!code)
        code = read_cut(x, v, &c);
    if (code)
        return code;
    if (v->rank == 4)
        memcpy(dims, v->dims, 2 * sizeof(*dims));
    for (int32_t i = 0; i < 2; i++)
        dims[2 + i].size = c.size[i];
    return qs_infer_out(x, 0, QSIM_FLOAT, 4, dims);
}

static void expand_crop(qs_expand *e) {
    static const int64_t axes[] = {2, 3};
    const qs_infer x = {.graph = e->graph, .node = e->node, .node_id = e->node_id};
    cut c;
    if (read_cut(&x, qs_expand_value(e, 0), &c))
        return;
    const qs_id in[] = {qs_expand_in(e, 0), qs_expand_list(e, c.from, 2),
                        qs_expand_list(e, c.to, 2), qs_expand_list(e, axes, 2)};
    e->out[0] = qs_expand_many(e, "Slice", in, 4, 1);
    if (c.size[0] >= 0 && c.size[1] >= 0) { /* refuses an image that is too small */
        const int64_t shape[] = {0, 0, c.size[0], c.size[1]};
        e->out[0] = qs_expand_reshape(e, e->out[0], shape, 4);
    }
}

static const qs_attr_rule crop_attrs[] = {{"border", QSIM_ATTR_INTS, 1, 0},
                                          {"scale", QSIM_ATTR_INTS, 1, 0}};

QS_OP(crop, .name = "Crop", .min_in = 1, QS_ATTRS(crop_attrs), .traits = QS_PLAIN,
      .more = &in_no_opset, .infer = infer_crop, .expand = expand_crop);
