/* SPDX-License-Identifier: MIT */
/*
 * Curves that other operators make up: SwiGLU, MeanVarianceNormalization, and the Gelus of ONNX
 * Runtime: BiasGelu, FastGelu, QuickGelu, BiasSplitGelu.
 */
#include "op/expand.h"

#define MEAN_AXES 18 /* version from which on the axes of ReduceMean are an input */

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

/* x * Sigmoid(alpha * x) */
static qs_id swish(qs_expand *e, qs_id x, int32_t dtype, float alpha) {
    const qs_id by =
        alpha == 1.0f
            ? x
            : qs_expand_add(e, "Mul", x, qs_expand_number(e, dtype, (double)alpha), QS_NONE);
    return qs_expand_add(e, "Mul", x, qs_expand_add(e, "Sigmoid", by, QS_NONE, QS_NONE), QS_NONE);
}

static void expand_swiglu(qs_expand *e) {
    const qs_id x = qs_expand_in(e, 0);
    const float alpha = qs_node_float(e->node, "alpha", 1.0f);
    e->out[0] = qs_expand_add(e, "Mul", swish(e, x, e->graph->values[x].dtype, alpha),
                              qs_expand_in(e, 1), QS_NONE);
}

static const qs_attr_rule swiglu_attrs[] = {{"alpha", QS_ATTR_FLOAT, 28, 0}};

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

static qs_id mean(qs_expand *e, qs_id x, const int64_t *axes, int32_t count) {
    const qs_id in[2] = {x, qs_expand_list(e, axes, count)};
    const bool as_input = !e->standard || qs_graph_import(e->graph, "") >= MEAN_AXES;
    const qs_id y = qs_expand_many(e, "ReduceMean", in, as_input ? 2 : 1, 1);
    if (!as_input)
        qs_expand_ints(e, y, "axes", axes, count);
    return y;
}

/* (x - mean) / (deviation + 1e-9) */
static void expand_mean_variance(qs_expand *e) {
    static const int64_t plain[] = {0, 2, 3};
    const qs_attr *a = qs_node_attr(e->node, "axes");
    const int64_t *axes = a ? a->u.ints : plain;
    const int32_t count = a ? a->count : 3, dtype = qs_expand_value(e, 0)->dtype;
    const qs_id x = qs_expand_in(e, 0);
    const qs_id rest = qs_expand_add(e, "Sub", x, mean(e, x, axes, count), QS_NONE);
    const qs_id variance = mean(e, qs_expand_add(e, "Mul", rest, rest, QS_NONE), axes, count);
    const qs_id deviation = qs_expand_add(e, "Sqrt", variance, QS_NONE, QS_NONE);
    const qs_id by = qs_expand_add(e, "Add", deviation, qs_expand_number(e, dtype, 1e-9), QS_NONE);
    e->out[0] = qs_expand_add(e, "Div", rest, by, QS_NONE);
}

static const qs_attr_rule mvn_attrs[] = {{"axes", QS_ATTR_INTS, 9, 0}};

QS_OP(mean_variance, .name = "MeanVarianceNormalization", .since = 9, .min_in = 1,
      QS_ATTRS(mvn_attrs), .traits = QS_PLAIN, .infer = infer_mean_variance,
      .expand = expand_mean_variance);
