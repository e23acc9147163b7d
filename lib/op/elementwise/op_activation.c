/* SPDX-License-Identifier: MIT */
/*
 * Elu, Selu, Celu, Mish, Softsign, ThresholdedRelu by the kernel `map`; Swish, Shrink, IsNaN and
 * IsInf by loops, whose floats are computed in double and rounded once.
 */
#include "kernel/elementary64.h"
#include "op/elementwise/curve.h"
#include "op/elementwise/maps.h"
#include "op/expand.h"

QS_COLD static int infer_real(qs_infer *x) {
    return qs_infer_map(x, QS_T_REAL, 0);
}

/* Defines lower_NAME: floats by name_curve, doubles by name_f64. */
#define LOWER(name)                                                                                \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        return qs_curve_lower(l, name##_f64);                                                      \
    }

/* ---- exponentials ---- */

QS_MAP(elu_f64, double, double, x < 0 ? param[0] * qk_expm164(x) : x)
QS_CURVE_MAP(elu, QK_ELU, param[0], 1, 1)
LOWER(elu)

/* Default alpha and gamma of version 6; version 1 had fewer digits. */
QS_MAP(selu_f64, double, double, param[1] * (x <= 0 ? param[0] * qk_expm164(x) : x))
QS_CURVE_MAP(selu, QK_ELU, param[0] * param[1], param[1], 1)
QS_COLD static int lower_selu(qs_lower *l) {
    const bool old = l->node->version < 6;
    const float alpha = qs_node_float(l->node, "alpha", old ? 1.6732f : 1.67326319217681884766f);
    const float gamma = qs_node_float(l->node, "gamma", old ? 1.0507f : 1.05070102214813232422f);
    return qs_curve_lower_by(l, (qs_curve){selu_curve, {(double)alpha, (double)gamma}}, selu_f64);
}

/* The kernel needs x / alpha < 0. */
QS_MAP(celu_f64, double, double, x < 0 ? param[0] * qk_expm164(x / param[0]) : x)
static void celu_curve(const qk_ew *k, const double *param, const float *x, float *y, size_t n) {
    const float own[3] = {(float)param[0], 1, (float)param[0]};
    if (param[0] > 0)
        k->map(QK_ELU, own, x, y, n);
    else
        qs_map_floats(celu_f64, x, y, n, param);
}
LOWER(celu)

/* tanh(log(n)) is (n^2 - 1) / (n^2 + 1). */
static double mish(double x) {
    const double e = qk_exp64(x < 20 ? x : 20), n = e * (e + 2);
    return x > 20 || x != x ? x : x * (n / (n + 2));
}
QS_MAP(mish_f64, double, double, mish(x))
QS_CURVE_MAP(mish, QK_MISH, 0, 0, 0)
LOWER(mish)

QS_MAP(swish_f64, double, double, x / (1 + qk_exp64(-param[0] * x)))
QS_CURVE_DOUBLES(swish)
LOWER(swish)

/* ---- piecewise linear ---- */

QS_MAP(softsign_f64, double, double, x / (1 + fabs(x)))
QS_CURVE_MAP(softsign, QK_SOFTSIGN, 0, 0, 0)
LOWER(softsign)

QS_MAP(thresholdedrelu_f64, double, double, x != x || x > param[0] ? x : 0)
QS_CURVE_MAP(thresholdedrelu, QK_THRESHOLD, param[0], 0, 0)
LOWER(thresholdedrelu)

QS_MAP(shrink_f64, double, double, x<-param[0] ? x + param[1] : x> param[0] ? x - param[1] : x * 0)
QS_COLD static int lower_shrink(qs_lower *l) {
    return qs_lower_reals(l, shrink_f64, (double)qs_node_float(l->node, "lambd", 0.5f),
                          (double)qs_node_float(l->node, "bias", 0));
}

/* ---- tests of values ---- */

QS_COLD static int infer_question(qs_infer *x) {
    return qs_infer_map(x, QS_T_REAL | QS_T_FLOAT8, QSIM_BOOL);
}

/* Floats of 8 bits are converted to float first. */
QS_COLD static void expand_question(qs_expand *e) {
    if (QS_T_FLOAT8 & QS_T(qs_expand_value(e, 0)->dtype))
        e->out[0] = qs_expand_as(e, 0, QSIM_FLOAT);
}

QS_MAP(isnan_f32, float, uint8_t, x != x)
QS_MAP(isnan_f64, double, uint8_t, x != x)
QS_COLD static int lower_isnan(qs_lower *l) {
    return qs_lower_map(l, qs_lower_in(l, 0)->dtype == QSIM_FLOAT ? isnan_f32 : isnan_f64, 0, 0);
}

/* most: the largest number of the type. */
#define IS_INF(v, most) (((v) > (most) && param[0] != 0) || ((v) < -(most) && param[1] != 0))
QS_MAP(isinf_f32, float, uint8_t, IS_INF(x, 3.40282347e38f))
QS_MAP(isinf_f64, double, uint8_t, IS_INF(x, 1.7976931348623157e308))
QS_COLD static int lower_isinf(qs_lower *l) {
    return qs_lower_map(l, qs_lower_in(l, 0)->dtype == QSIM_FLOAT ? isinf_f32 : isinf_f64,
                        (double)qs_node_int(l->node, "detect_positive", 1),
                        (double)qs_node_int(l->node, "detect_negative", 1));
}

static const qs_attr_rule alpha_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                           {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};
static const qs_attr_rule selu_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                          {"gamma", QSIM_ATTR_FLOAT, 1, 0},
                                          {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};
static const qs_attr_rule shrink_attrs[] = {{"lambd", QSIM_ATTR_FLOAT, 9, 0},
                                            {"bias", QSIM_ATTR_FLOAT, 9, 0}};
static const qs_attr_rule isinf_attrs[] = {{"detect_positive", QSIM_ATTR_INT, 10, 0},
                                           {"detect_negative", QSIM_ATTR_INT, 10, 0}};

QS_OP(celu, .name = "Celu", .since = 12, .min_in = 1, QS_ATTRS(alpha_attrs),
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = celu_curve, .alpha = 1.0f)),
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_celu);
QS_OP(elu, .name = "Elu", .min_in = 1, QS_ATTRS(alpha_attrs), .traits = QS_ELEMENTWISE | QS_COSTLY,
      QS_MORE(QS_CURVE(.fn = elu_curve, .alpha = 1.0f)), .kernel = QS_KERNEL_UNARY,
      .infer = infer_real, .lower = lower_elu);
QS_OP(isinf, .name = "IsInf", .since = 10, .min_in = 1, QS_ATTRS(isinf_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_UNARY, .infer = infer_question,
      .lower = lower_isinf, .expand = expand_question);
QS_OP(isnan, .name = "IsNaN", .since = 9, .min_in = 1, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_question, .lower = lower_isnan,
      .expand = expand_question);
QS_OP(mish, .name = "Mish", .since = 18, .min_in = 1, .traits = QS_ELEMENTWISE | QS_COSTLY,
      QS_MORE(QS_CURVE(.fn = mish_curve)), .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_mish);
QS_OP(selu, .name = "Selu", .min_in = 1, QS_ATTRS(selu_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_selu);
QS_OP(shrink, .name = "Shrink", .since = 9, .min_in = 1, QS_ATTRS(shrink_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS, .integers_as = QSIM_DOUBLE, .kernel = QS_KERNEL_UNARY,
      .infer = infer_real, .lower = lower_shrink);
QS_OP(softsign, .name = "Softsign", .min_in = 1, .traits = QS_ELEMENTWISE,
      QS_MORE(QS_CURVE(.fn = softsign_curve)), .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_softsign);
QS_OP(swish, .name = "Swish", .since = 24, .min_in = 1, QS_ATTRS(alpha_attrs),
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = swish_curve, .alpha = 1.0f)),
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_swish);
/* Before version 10 an experimental operator of the same form. */
QS_OP(thresholdedrelu, .name = "ThresholdedRelu", .min_in = 1, QS_ATTRS(alpha_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS,
      QS_MORE(QS_CURVE(.fn = thresholdedrelu_curve, .alpha = 1.0f)), .kernel = QS_KERNEL_UNARY,
      .infer = infer_real, .lower = lower_thresholdedrelu);
