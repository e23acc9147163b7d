/* SPDX-License-Identifier: MIT */
/*
 * Pow: the result has the base's type. Integers to integer powers wrap; everything else is computed
 * in double. Also PRelu and Mod.
 */
#include "op/elementwise/dense.h"
#include "op/elementwise/pairs.h"

#include "kernel/elementary.h"

#include <math.h>

/* a^b in wrapping arithmetic; negative powers are 0 except those of 1 and -1. */
static uint64_t integer_power(uint64_t a, uint64_t b, bool negative, bool negative_one) {
    uint64_t y = 1;
    if (negative)
        return a == 1 ? 1 : negative_one ? (b & 1 ? a : 1) : 0;
    for (uint64_t n = b; n; n >>= 1, a *= a)
        y = n & 1 ? y * a : y;
    return y;
}

/* The result of a real power, converted to an integer type as Cast does. */
static int64_t to_integer(double v, double low, double high) {
    return v != v ? 0 : v <= low ? (int64_t)low : v >= high ? (int64_t)high : (int64_t)v;
}

static bool is_real(int32_t type) {
    return type == QSIM_FLOAT || type == QSIM_DOUBLE;
}

/* Element i of integers, its sign extended. */
QS_COLD static uint64_t whole_at(const void *p, size_t i, int32_t type) {
    switch (type) {
    case QSIM_INT8: return (uint64_t)((const int8_t *)p)[i];
    case QSIM_INT16: return (uint64_t)((const int16_t *)p)[i];
    case QSIM_INT32: return (uint64_t)((const int32_t *)p)[i];
    case QSIM_UINT8: return ((const uint8_t *)p)[i];
    case QSIM_UINT16: return ((const uint16_t *)p)[i];
    case QSIM_UINT32: return ((const uint32_t *)p)[i];
    default: return ((const uint64_t *)p)[i];
    }
}

QS_COLD static double real_at(const void *p, size_t i, int32_t type) {
    if (type == QSIM_FLOAT)
        return (double)((const float *)p)[i];
    if (type == QSIM_DOUBLE)
        return ((const double *)p)[i];
    const uint64_t v = whole_at(p, i, type);
    return type == QSIM_UINT64 ? (double)v : (double)(int64_t)v;
}

/* An integer to a real or to an integer power. */
QS_COLD static int64_t power_of(int64_t x, const void *b, size_t i, int32_t type, bool is_short) {
    if (!is_real(type)) {
        const uint64_t n = whole_at(b, i, type);
        return (int64_t)integer_power((uint64_t)x, n, type != QSIM_UINT64 && (int64_t)n < 0,
                                      x == -1);
    }
    const double v = qk_pow64((double)x, real_at(b, i, type));
    return is_short ? to_integer(v, -2147483648.0, 2147483647.0)
                    : to_integer(v, -9223372036854775808.0, 9223372036854774784.0);
}

QS_COLD static void power(const int32_t types[2], const void *a, size_t sa, const void *b,
                          size_t sb, void *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (types[0] == QSIM_FLOAT)
            ((float *)y)[i] =
                (float)qk_pow64(real_at(a, i * sa, QSIM_FLOAT), real_at(b, i * sb, types[1]));
        else if (types[0] == QSIM_DOUBLE)
            ((double *)y)[i] =
                qk_pow64(real_at(a, i * sa, QSIM_DOUBLE), real_at(b, i * sb, types[1]));
        else {
            const bool is_short = types[0] == QSIM_INT32;
            const int64_t x = (int64_t)whole_at(a, i * sa, types[0]);
            const int64_t v = power_of(x, b, i * sb, types[1], is_short);
            if (is_short)
                ((int32_t *)y)[i] = (int32_t)v;
            else
                ((int64_t *)y)[i] = v;
        }
    }
}

/* A root of -0 is +0, of minus infinity plus infinity. */
static double root_of(float x) {
    return sqrt(x == -INFINITY ? (double)INFINITY : (double)x + 0.0);
}

#define EACH(value)                                                                                \
    QS_IVDEP                                                                                       \
    for (size_t i = 0; i < n; i++)                                                                 \
        y[i] = value;

/*
 * Exponents that networks have get the rounded double result, too: a square is exact in double, and
 * a float quotient of 1 is what the double one is rounded to.
 */
static void power_f32(const int32_t types[2], const void *va, size_t sa, const void *vb, size_t sb,
                      void *vy, size_t n) {
    const float *a = va, e = sb ? NAN : *(const float *)vb;
    float *y = vy;
    if (!sa)
        power(types, va, sa, vb, sb, vy, n);
    else if (e == 2.0f)
        EACH(a[i] * a[i])
    else if (e == 3.0f)
        EACH((float)((double)a[i] * a[i] * a[i]))
    else if (e == -1.0f)
        EACH(1.0f / a[i])
    else if (e == 0.5f)
        EACH((float)root_of(a[i]))
    else if (e == -0.5f)
        EACH((float)(1.0 / root_of(a[i])))
    else
        power(types, va, sa, vb, sb, vy, n);
}

QS_COLD static int infer_pow(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_REAL | QS_T(QSIM_INT32) | QS_T(QSIM_INT64));
    if (!code)
        code = qs_infer_type(x, 1, QS_T_ARITH);
    return code ? code : qs_infer_pair(x, x->in[0]->dtype);
}

QS_COLD static int lower_pow(qs_lower *l) {
    const qs_value *a = qs_lower_in(l, 0), *b = qs_lower_in(l, 1);
    const bool floats = a->dtype == QSIM_FLOAT && b->dtype == QSIM_FLOAT;
    return qs_lower_types(l, floats ? power_f32 : power);
}

QS_OP(pow, .name = "Pow", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_POW, .infer = infer_pow, .more = &qs_legacy_more, .lower = lower_pow);

/* ---- PRelu ---- */

#define QS_T_PRELU                                                                                 \
    (QS_T_REAL | QS_T(QSIM_INT32) | QS_T(QSIM_INT64) | QS_T(QSIM_UINT32) | QS_T(QSIM_UINT64))

/* Before version 7 a list of slopes is per channel, axis 1: axes of size 1 are appended to it. */
static qs_value slope_of(const qs_node *n, const qs_value *x, const qs_value *slope,
                         qs_dim dims[QSIM_MAX_RANK]) {
    qs_value v = *slope;
    if (n->version >= 7 || v.rank != 1 || x->rank < 2 || v.dims[0].size == 1)
        return v;
    v.rank = x->rank - 1;
    v.dims = dims;
    for (int32_t i = 0; i < v.rank; i++)
        dims[i] = i ? (qs_dim){1, NULL} : slope->dims[0];
    return v;
}

/* The slope broadcasts to the input, not the other way round. */
QS_COLD static int infer_prelu(qs_infer *x) {
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_PRELU);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    const qs_value slope = slope_of(x->node, x->in[0], x->in[1], dims);
    if (!code)
        code = qs_infer_pair_of(x, x->in[0]->dtype, &slope);
    if (!code && x->in[0]->rank >= 0 && x->out[0].rank > x->in[0]->rank)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "the slope has more axes than the input");
    for (int32_t i = 0; !code && i < x->out[0].rank && x->in[0]->rank >= 0; i++)
        if (x->in[0]->dims[i].size >= 0 && x->out[0].dims[i].size >= 0 &&
            x->in[0]->dims[i].size != x->out[0].dims[i].size)
            code = qs_infer_fail(x, QSIM_E_SHAPE, "the slope is larger than the input");
    return code;
}

QS_COLD static int lower_prelu(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    qs_dim dims[QSIM_MAX_RANK];
    const qs_value slope = slope_of(l->node, x, qs_lower_in(l, 1), dims);
    l->step->in_place = x->dtype == QSIM_FLOAT; /* the slope broadcasts to x */
    return qs_lower_pair_of(l, &qs_dense_slope, &slope);
}

/* To version 7: the axes of size 1 after the channels become an Unsqueeze. */
QS_COLD static int upgrade_prelu(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    const qs_node *n = &g->nodes[node];
    const qs_value *x = &g->values[n->inputs[0]], *slope = &g->values[n->inputs[1]];
    qs_dim dims[QSIM_MAX_RANK];
    int64_t axes[QSIM_MAX_RANK];
    if (n->version >= 7 || to < 7)
        return QSIM_OK;
    if (x->rank < 0 || slope->rank < 0)
        return qs_fail(error, QSIM_E_UNSUPPORTED, "PRelu '%s': its rank is not known", n->name);
    const int64_t count = slope_of(n, x, slope, dims).rank - slope->rank;
    if (!count)
        return QSIM_OK;
    for (int64_t i = 0; i < count; i++)
        axes[i] = i + 1;
    return qs_upgrade_unsqueeze(g, node, to, axes, count, error);
}

static const qs_attr_rule prelu_attrs[] = {{"consumed_inputs", QSIM_ATTR_INTS, 1, 5}};

QS_OP(prelu, .name = "PRelu", .min_in = 2, QS_ATTRS(prelu_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_PRELU, .infer = infer_prelu,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_prelu)), .lower = lower_prelu);

/* ---- Mod ---- */

/*
 * The result has the sign of the divisor; with fmod, of the dividend. Division by 0 gives 0, as in
 * Div.
 */
#define MOD_U (b == 0 ? 0 : a % (b == 0 ? 1 : b))
#define MOD_S(T)                                                                                   \
    (b == 0 || b == -1 ? 0 : (a % b) + ((a % b) != 0 && ((a % b) < 0) != (b < 0) ? (b) : (T)0))
#define FMOD_S (b == 0 || b == -1 ? 0 : a % b)

QS_DENSE_RARE(mod_s64, int64_t, int64_t, MOD_S(int64_t))
QS_DENSE_RARE(mod_u64, uint64_t, uint64_t, MOD_U)
QS_DENSE_RARE(fmod_f32, float, float, (float)fmod((double)a, (double)b))
QS_DENSE_RARE(fmod_f64, double, double, fmod(a, b))
QS_DENSE_RARE(fmod_s64, int64_t, int64_t, FMOD_S)

QS_COLD static int infer_mod(qs_infer *x) {
    bool fmod = qs_node_int(x->node, "fmod", 0) != 0;
    int code = qs_infer_type(x, 0, fmod ? QS_T_ARITH : QS_T_INT);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    return code ? code : qs_infer_pair(x, x->in[0]->dtype);
}

QS_COLD static int lower_mod(qs_lower *l) {
    static const qs_dense_fns fns[2] = {
        {.s64 = mod_s64, .u64 = mod_u64},
        {.f32 = fmod_f32, .f64 = fmod_f64, .s64 = fmod_s64, .u64 = mod_u64}};
    bool fmod = qs_node_int(l->node, "fmod", 0) != 0;
    return qs_lower_pair(l, &fns[fmod]);
}

static const qs_attr_rule mod_attrs[] = {{"fmod", QSIM_ATTR_INT, 10, 0}};

QS_OP(mod, .name = "Mod", .since = 10, .min_in = 2, QS_ATTRS(mod_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS, .kernel = QS_KERNEL_MOD, .infer = infer_mod,
      .lower = lower_mod);
