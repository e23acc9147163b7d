/* SPDX-License-Identifier: MIT */
/* Element-wise operators of one tensor. */
#include "op/elementwise/curve.h"

#include "base/ctx.h"
#include "kernel/elementary64.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "quant/requantize.h"

#include <math.h>

QS_COLD static int infer_f32(qs_infer *x) {
    return qs_infer_map(x, QS_T_FLOAT, 0);
}
QS_COLD static int infer_real(qs_infer *x) {
    return qs_infer_map(x, QS_T_REAL, 0);
}
QS_COLD static int infer_signed(qs_infer *x) {
    return qs_infer_map(x, QS_T_REAL | QS_T_SIGNED, 0);
}
QS_COLD static int infer_bool(qs_infer *x) {
    return qs_infer_map(x, QS_T(QSIM_BOOL), 0);
}
QS_COLD static int infer_any(qs_infer *x) {
    return qs_infer_map(x, QS_T_ARITH, 0);
}

#define UNARY(RARE, name, suffix, T, U, expression)                                                \
    RARE static void name##_##suffix(const void *vx, void *vy, size_t n, const double *param) {    \
        const T *px = vx;                                                                          \
        T *py = vy;                                                                                \
        (void)param;                                                                               \
        QS_IVDEP                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            const T x = px[i];                                                                     \
            py[i] = (T)(expression);                                                               \
        }                                                                                          \
    }

#define REALS(name, expression)                                                                    \
    UNARY(, name, f32, float, float, expression)                                                   \
    UNARY(QS_COLD, name, f64, double, double, expression)

#define SIGNED(name, RULE)                                                                         \
    UNARY(QS_COLD, name, s8, int8_t, uint32_t, RULE(uint32_t))                                     \
    UNARY(QS_COLD, name, s16, int16_t, uint32_t, RULE(uint32_t))                                   \
    UNARY(QS_COLD, name, s32, int32_t, uint32_t, RULE(uint32_t))                                   \
    UNARY(QS_COLD, name, s64, int64_t, uint64_t, RULE(uint64_t))

#define SIGNED_ROWS(name)                                                                          \
    [QSIM_INT8] = name##_s8, [QSIM_INT16] = name##_s16, [QSIM_INT32] = name##_s32,                 \
    [QSIM_INT64] = name##_s64
#define UNSIGNED_ROWS(name)                                                                        \
    [QSIM_UINT8] = name##_u8, [QSIM_UINT16] = name##_u16, [QSIM_UINT32] = name##_u32,              \
    [QSIM_UINT64] = name##_u64
#define REAL_ROWS(name) [QSIM_FLOAT] = name##_f32, [QSIM_DOUBLE] = name##_f64

#define LOWER(name, function)                                                                      \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        return qs_lower_map(l, function, 0, 0);                                                    \
    }
#define LOWER_REAL(name) LOWER(name, DTYPE == QSIM_FLOAT ? name##_f32 : name##_f64)
/* Floats by the row's curve, doubles by a loop. */
#define LOWER_CURVE(name)                                                                          \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        return qs_curve_lower(l, name##_f64);                                                      \
    }
#define DTYPE (qs_lower_in(l, 0)->dtype)

/* NaN and -0 are kept. */
#define RELU(U) (x < 0 ? 0 : x)
UNARY(QS_COLD, relu, f64, double, double, x < 0 ? 0 : x)
SIGNED(relu, RELU)
static const qs_map_fn relu_fns[] = {[QSIM_DOUBLE] = relu_f64, SIGNED_ROWS(relu)};
static void relu_curve(const qk_ew *k, const double *param, const float *x, float *y, size_t n) {
    (void)param;
    k->bound(x, NULL, 0.0f, INFINITY, y, n);
}
QS_COLD static int lower_relu(qs_lower *l) {
    return qs_curve_lower(l, relu_fns[DTYPE]);
}

#define NEG(U) ((U)0 - (U)x)
REALS(neg, -x)
SIGNED(neg, NEG)
static const qs_map_fn neg_fns[] = {REAL_ROWS(neg), SIGNED_ROWS(neg)};
LOWER(neg, neg_fns[DTYPE])

#define ABS(U) (x < 0 ? (U)0 - (U)x : (U)x)
UNARY(, abs, f32, float, float, fabsf(x))
UNARY(QS_COLD, abs, f64, double, double, fabs(x))
SIGNED(abs, ABS)
static const qs_map_fn abs_fns[QS_TYPES] = {REAL_ROWS(abs), SIGNED_ROWS(abs)};
QS_COLD static int lower_abs(qs_lower *l) {
    l->alias = !abs_fns[DTYPE]; /* an unsigned number is its own */
    return l->alias ? QSIM_OK : qs_lower_map(l, abs_fns[DTYPE], 0, 0);
}

UNARY(, sqrt, f32, float, float, sqrtf(x))
UNARY(QS_COLD, sqrt, f64, double, double, sqrt(x))
LOWER_REAL(sqrt)

/* log(1 + e^x) without overflow. */
static double softplus(double x) {
    return (x < 0.0 ? 0.0 : x) + qk_log64(1.0 + qk_exp64(-fabs(x)));
}

UNARY(, reciprocal, f32, float, float, 1.0f / x)
UNARY(QS_COLD, reciprocal, f64, double, double, 1.0 / x)
LOWER_REAL(reciprocal)

REALS(sign, x > 0 ? 1 : x < 0 ? -1 : x)
#define SIGN(U) (x > 0 ? 1 : x < 0 ? -1 : 0)
SIGNED(sign, SIGN)
UNARY(QS_COLD, sign, u8, uint8_t, uint8_t, x > 0)
UNARY(QS_COLD, sign, u16, uint16_t, uint16_t, x > 0)
UNARY(QS_COLD, sign, u32, uint32_t, uint32_t, x > 0)
UNARY(QS_COLD, sign, u64, uint64_t, uint64_t, x > 0)
static const qs_map_fn sign_fns[] = {REAL_ROWS(sign), SIGNED_ROWS(sign), UNSIGNED_ROWS(sign)};
LOWER(sign, sign_fns[DTYPE])

/* Floats by kernel `map`, doubles by an expression. */
#define MAP(name, which, expression)                                                               \
    UNARY(QS_COLD, name, f64, double, double, expression)                                          \
    QS_CURVE_MAP(name, which, 0, 0, 0)                                                             \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        return qs_curve_lower_by(l, (qs_curve){name##_curve, {0, 0}}, name##_f64);                 \
    }
MAP(log, QK_LOG, qk_log64(x))
MAP(floor, QK_FLOOR, floor(x))
MAP(ceil, QK_CEIL, ceil(x))
/* Halves are rounded to even: steps run with that rounding mode. */
MAP(round, QK_ROUND, rint(x))

UNARY(QS_COLD, softplus, f64, double, double, softplus(x))
QS_CURVE_MAP(softplus, QK_SOFTPLUS, 0, 0, 0)
LOWER_CURVE(softplus)

UNARY(, not, b8, uint8_t, uint8_t, !x)
LOWER(not, not_b8)

/* NaN is kept. */
static double clamp01_f64(double v) {
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

/* x * 1 is x, and compilers make vectors of a product by one of two factors. */
static void leakyrelu_f32(const void *vx, void *vy, size_t n, const double *param) {
    const float alpha = (float)param[0], *x = vx;
    float *y = vy;
    QS_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * (x[i] < 0.0f ? alpha : 1.0f);
}
UNARY(QS_COLD, leakyrelu, f64, double, double, x < 0 ? x * param[0] : x)
QS_CURVE_LOOP(leakyrelu)
LOWER_CURVE(leakyrelu)
UNARY(QS_COLD, hardsigmoid, f64, double, double, clamp01_f64(param[0] * x + param[1]))
QS_CURVE_MAP(hardsigmoid, QK_HARDSIGMOID, param[0], param[1], 0)
LOWER_CURVE(hardsigmoid)

/*
 * 2 / sqrt(pi) e^(-x^2) times the sum of 2^n x^(2n + 1) / (1 3 5 ... (2n + 1)); for x > 0 no term
 * is negative. From 6 on the result is 1.
 */
QS_COLD static double erf_f64_of(double x) {
    const double a = fabs(x);
    double term = a, sum = a;
    if (!(a < 6))
        return x != x ? x : x < 0 ? -1 : 1;
    for (int n = 1; term > sum * 1e-17; n++) {
        term *= 2 * a * a / (2 * n + 1);
        sum += term;
    }
    sum *= 1.1283791670955126 * qk_exp64(-a * a);
    return x < 0 ? -sum : a == 0 ? x : sum;
}

/* Floats from the kernel table, doubles by the expression. */
#define KERNEL(name, expression)                                                                   \
    UNARY(QS_COLD, name, f64, double, double, expression)                                          \
    QS_CURVE_KERNEL(name)                                                                          \
    LOWER_CURVE(name)
KERNEL(exp, qk_exp64(x))
KERNEL(tanh, qk_tanh64(x))
KERNEL(sigmoid, 1 / (1 + qk_exp64(-x)))
KERNEL(silu, x / (1 + qk_exp64(-x)))
KERNEL(hardswish, x *clamp01_f64(x / 6 + 0.5))
KERNEL(erf, erf_f64_of(x))

UNARY(QS_COLD, gelu, f64, double, double, 0.5 * x * (1 + erf_f64_of(x * 0.70710678118654752440)))
UNARY(QS_COLD, gelu_tanh, f64, double, double,
      0.5 * x * (1 + qk_tanh64(0.79788456080286535588 * (x + 0.044715 * x * x * x))))
QS_CURVE_KERNEL(gelu)
QS_CURVE_KERNEL(gelu_tanh)
QS_COLD static int lower_gelu(qs_lower *l) {
    const bool by_tanh = qs_node_string_is(l->node, "approximate", "tanh", false);
    const qs_curve curve = {by_tanh ? gelu_tanh_curve : gelu_curve, {0, 0}};
    return qs_curve_lower_by(l, curve, by_tanh ? gelu_tanh_f64 : gelu_f64);
}

QS_COLD static int infer_gelu(qs_infer *x) {
    const int code = qs_infer_word(x, "approximate", "none|tanh", &(int32_t){0});
    return code ? code : qs_infer_map(x, QS_T_REAL, 0);
}

static const qs_attr_rule plain_attrs[] = {{"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};
static const qs_attr_rule alpha_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                           {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};
static const qs_attr_rule alpha_beta_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                                {"beta", QSIM_ATTR_FLOAT, 1, 0},
                                                {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};

static const qs_attr_rule gelu_attrs[] = {{"approximate", QSIM_ATTR_STRING, 20, 0}};

QS_OP(abs, .name = "Abs", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_any, .lower = lower_abs);
QS_OP(ceil, .name = "Ceil", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE | QS_JUMPS,
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_ceil);
QS_OP(erf, .name = "Erf", .since = 9, .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = erf_curve)),
      .integers_as = QSIM_FLOAT, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_erf);
QS_OP(floor, .name = "Floor", .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_floor);
QS_OP(gelu, .name = "Gelu", .since = 20, .min_in = 1, QS_ATTRS(gelu_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_UNARY, .infer = infer_gelu,
      .lower = lower_gelu);
QS_OP(log, .name = "Log", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_log);
QS_OP(not, .name = "Not", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_bool, .lower = lower_not);
QS_OP(reciprocal, .name = "Reciprocal", .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_reciprocal);
QS_OP(round, .name = "Round", .since = 11, .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_round);
QS_OP(sign, .name = "Sign", .since = 9, .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS, .kernel = QS_KERNEL_UNARY, .infer = infer_any,
      .lower = lower_sign);
QS_OP(softplus, .name = "Softplus", .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = softplus_curve)),
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_softplus);
QS_OP(exp, .name = "Exp", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE | QS_COSTLY,
      QS_MORE(QS_CURVE(.fn = exp_curve)), .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_exp);
QS_OP(hardsigmoid, .name = "HardSigmoid", .min_in = 1, QS_ATTRS(alpha_beta_attrs),
      .traits = QS_ELEMENTWISE,
      QS_MORE(QS_CURVE(.fn = hardsigmoid_curve, .alpha = 0.2f, .beta = 0.5f)),
      .kind = QS_KIND_ARITHMETIC, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_hardsigmoid);
QS_OP(leakyrelu, .name = "LeakyRelu", .min_in = 1, QS_ATTRS(alpha_attrs), .traits = QS_ELEMENTWISE,
      QS_MORE(QS_CURVE(.fn = leakyrelu_curve, .alpha = 0.01f)), .kind = QS_KIND_ARITHMETIC,
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_leakyrelu);
QS_OP(neg, .name = "Neg", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_signed, .lower = lower_neg);
QS_OP(relu, .name = "Relu", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE,
      QS_MORE(QS_CURVE(.fn = relu_curve)), .kind = QS_KIND_POOL, .kernel = QS_KERNEL_UNARY,
      .infer = infer_signed, .lower = lower_relu);
QS_OP(sigmoid, .name = "Sigmoid", .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = sigmoid_curve)),
      .kind = QS_KIND_ARITHMETIC, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_sigmoid);
QS_OP(sqrt, .name = "Sqrt", .min_in = 1, QS_ATTRS(plain_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_sqrt);
QS_OP(tanh, .name = "Tanh", .min_in = 1, QS_ATTRS(plain_attrs),
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = tanh_curve)),
      .kind = QS_KIND_ARITHMETIC, .kernel = QS_KERNEL_UNARY, .infer = infer_real,
      .lower = lower_tanh);

/* x * Sigmoid(x), made by a pass. */
QS_OP(qsim_silu, .domain = QS_DOMAIN_QSIM, .name = "Silu", .min_in = 1,
      .traits = QS_ELEMENTWISE | QS_COSTLY, QS_MORE(QS_CURVE(.fn = silu_curve)),
      .kernel = QS_KERNEL_UNARY, .infer = infer_f32, .lower = lower_silu);

QS_OP(hardswish, .name = "HardSwish", .since = 14, .min_in = 1, .traits = QS_ELEMENTWISE,
      QS_MORE(QS_CURVE(.fn = hardswish_curve)), .kind = QS_KIND_ARITHMETIC,
      .kernel = QS_KERNEL_UNARY, .infer = infer_real, .lower = lower_hardswish);
