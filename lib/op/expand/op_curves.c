/* SPDX-License-Identifier: MIT */
/*
 * Activations that are expanded into other operators: SwiGLU, MeanVarianceNormalization, and ONNX
 * Runtime's BiasGelu, FastGelu, QuickGelu and BiasSplitGelu.
 */
#include "op/expand.h"

/* ---- SwiGLU ---- */

QS_COLD static int infer_swiglu(qs_infer *x) {
    const qs_value *a = x->in[0], *b = x->in[1];
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    bool fits = a->rank < 0 || b->rank < 0 || a->rank == b->rank;
    for (int32_t i = 0; i < a->rank && i < b->rank && fits; i++)
        fits = a->dims[i].size < 0 || b->dims[i].size < 0 || a->dims[i].size == b->dims[i].size;
    if (!code && !fits)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "gate and value have different shapes");
    return code ? code : qs_infer_like(x, 0, 0);
}

/* x * Sigmoid(alpha * x), which a pass turns into one curve. */
static qs_id swish(qs_expand *e, qs_id x, int32_t dtype, float alpha) {
    const qs_id by =
        alpha == 1.0f ? x : qs_expand_two(e, "Mul", x, qs_expand_number(e, dtype, (double)alpha));
    return qs_expand_two(e, "Mul", x, qs_expand_one(e, "Sigmoid", by));
}

static void expand_swiglu(qs_expand *e) {
    const qs_id x = qs_expand_in(e, 0);
    const float alpha = qs_node_float(e->node, "alpha", 1.0f);
    e->out[0] =
        qs_expand_two(e, "Mul", swish(e, x, e->graph->values[x].dtype, alpha), qs_expand_in(e, 1));
}

static const qs_attr_rule swiglu_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 28, 0}};

QS_OP(swiglu, .name = "SwiGLU", .since = 28, .min_in = 2, QS_ATTRS(swiglu_attrs),
      .traits = QS_PLAIN, .infer = infer_swiglu, .expand = expand_swiglu);

/* ---- MeanVarianceNormalization ---- */

static int read_axes(const qs_infer *x, int64_t *axes, int32_t *count) {
    static const int64_t plain[] = {0, 2, 3};
    uint32_t mask;
    int code = qs_infer_attr_ints(x, "axes", axes, QSIM_MAX_RANK, count);
    if (!code && *count < 0)
        memcpy(axes, plain, (size_t)(*count = 3) * sizeof(*axes));
    return code || x->in[0]->rank < 0 ? code
                                      : qs_infer_axes(x, axes, *count, x->in[0]->rank, &mask);
}

QS_COLD static int infer_mean_variance(qs_infer *x) {
    int64_t axes[QSIM_MAX_RANK];
    int32_t count;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = read_axes(x, axes, &count);
    return code ? code : qs_infer_like(x, 0, 0);
}

/* (x - mean) / (deviation + 1e-9) */
static void expand_mean_variance(qs_expand *e) {
    static const int64_t plain[] = {0, 2, 3};
    const qs_attr *a = qs_node_attr(e->node, "axes");
    const int64_t *axes = a ? a->u.ints : plain;
    const int32_t count = a ? a->count : 3, dtype = qs_expand_value(e, 0)->dtype;
    const qs_id x = qs_expand_in(e, 0);
    const qs_id rest = qs_expand_two(e, "Sub", x, qs_expand_mean(e, x, axes, count, true));
    const qs_id variance =
        qs_expand_mean(e, qs_expand_two(e, "Mul", rest, rest), axes, count, true);
    const qs_id deviation = qs_expand_one(e, "Sqrt", variance);
    const qs_id by = qs_expand_two(e, "Add", deviation, qs_expand_number(e, dtype, 1e-9));
    e->out[0] = qs_expand_two(e, "Div", rest, by);
}

static const qs_attr_rule mvn_attrs[] = {{"axes", QSIM_ATTR_INTS, 9, 0}};

QS_OP(mean_variance, .name = "MeanVarianceNormalization", .since = 9, .min_in = 1,
      QS_ATTRS(mvn_attrs), .traits = QS_PLAIN, .infer = infer_mean_variance,
      .expand = expand_mean_variance);

/* ---- Gelus ---- */

/* Checks that the bias is left out or a vector along the last axis. */
QS_COLD static int check_bias(const qs_infer *x) {
    const qs_value *v = x->in[0];
    if (!qs_infer_in(x, 1))
        return QSIM_OK;
    int code = qs_infer_same_type(x, 0, 1);
    if (!code)
        code = qs_infer_least_rank(x, 0, 1);
    return code ? code : qs_infer_list(x, 1, v->rank < 0 ? -1 : v->dims[v->rank - 1].size);
}

QS_COLD static int infer_gelu(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = check_bias(x);
    return code ? code : qs_infer_like(x, 0, 0);
}

static qs_id biased(qs_expand *e) {
    const qs_id x = qs_expand_in(e, 0), bias = qs_expand_in(e, 1);
    return bias == QS_NONE ? x : qs_expand_two(e, "Add", x, bias);
}

static qs_id times(qs_expand *e, qs_id a, qs_id b) {
    return qs_expand_two(e, "Mul", a, b);
}

/* x (1 + f) / 2 */
static qs_id half_of(qs_expand *e, qs_id x, qs_id f, int32_t dtype) {
    const qs_id more = qs_expand_two(e, "Add", f, qs_expand_number(e, dtype, 1));
    return times(e, times(e, x, more), qs_expand_number(e, dtype, 0.5));
}

/* Uses Erf, which old opsets have; the pass for curves makes one step of it. */
static qs_id gelu(qs_expand *e, qs_id x, int32_t dtype) {
    const qs_id root = qs_expand_number(e, dtype, 1.41421356237309504880);
    const qs_id scaled = qs_expand_two(e, "Div", x, root);
    return half_of(e, x, qs_expand_one(e, "Erf", scaled), dtype);
}

static void expand_biasgelu(qs_expand *e) {
    const int32_t dtype = qs_expand_value(e, 0)->dtype;
    e->out[0] = gelu(e, biased(e), dtype);
}

/* x (1 + tanh(x (a + b x^2))) / 2 */
static void expand_fastgelu(qs_expand *e) {
    const int32_t dtype = qs_expand_value(e, 0)->dtype;
    const qs_id x = biased(e);
    if (!e->standard) {
        const qs_attr tanh = {
            .name = "approximate", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)"tanh", 4}};
        e->out[0] = qs_expand_one(e, "Gelu", x);
        qs_expand_attr(e, e->out[0], &tanh);
        return;
    }
    const qs_id square = times(e, times(e, x, x), qs_expand_number(e, dtype, 0.035677408136));
    const qs_id factor = qs_expand_two(e, "Add", square, qs_expand_number(e, dtype, 0.7978845608));
    const qs_id curve = qs_expand_one(e, "Tanh", times(e, x, factor));
    e->out[0] = half_of(e, x, curve, dtype);
}

static void expand_quickgelu(qs_expand *e) {
    const float alpha = qs_node_float(e->node, "alpha", 1.702f);
    e->out[0] = swish(e, qs_expand_in(e, 0), qs_expand_value(e, 0)->dtype, alpha);
}

QS_COLD static int infer_splitgelu(qs_infer *x) {
    const qs_value *v = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = check_bias(x);
    const int64_t last = v->rank > 0 ? v->dims[v->rank - 1].size : -1;
    if (!code && (last < 0 ? v->rank >= 0 : last % 2))
        code = qs_infer_fail(x, QSIM_E_SHAPE, "the last axis is %lld, not an even number",
                             (long long)last);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    qs_value_dims(v, dims);
    dims[v->rank - 1] = (qs_dim){last / 2, NULL};
    return qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

/* The first half of the last axis times the Gelu of the second. */
static void expand_splitgelu(qs_expand *e) {
    const qs_value *v = qs_expand_value(e, 0);
    const int32_t dtype = v->dtype;
    if (v->rank < 1)
        return;
    const int64_t half = v->dims[v->rank - 1].size / 2;
    const qs_id parts = qs_expand_split(e, biased(e), -1, (const int64_t[]){half, half}, 2);
    e->out[0] = times(e, parts, gelu(e, e->code ? parts : parts + 1, dtype));
}

static const qs_attr_rule quick_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(ms_biasgelu, .domain = QS_DOMAIN_MICROSOFT, .name = "BiasGelu", .min_in = 2,
      .traits = QS_PLAIN, .infer = infer_gelu, .expand = expand_biasgelu);
QS_OP(ms_biassplitgelu, .domain = QS_DOMAIN_MICROSOFT, .name = "BiasSplitGelu", .min_in = 2,
      .traits = QS_PLAIN, .infer = infer_splitgelu, .expand = expand_splitgelu);
QS_OP(ms_fastgelu, .domain = QS_DOMAIN_MICROSOFT, .name = "FastGelu", .min_in = 1, .max_in = 2,
      .traits = QS_PLAIN, .infer = infer_gelu, .expand = expand_fastgelu);
QS_OP(ms_gelu, .domain = QS_DOMAIN_MICROSOFT, .name = "Gelu", .min_in = 1, .traits = QS_PLAIN,
      .infer = infer_gelu, .expand = expand_biasgelu);
QS_OP(ms_quickgelu, .domain = QS_DOMAIN_MICROSOFT, .name = "QuickGelu", .min_in = 1,
      QS_ATTRS(quick_attrs), .traits = QS_PLAIN, .infer = infer_gelu, .expand = expand_quickgelu);
