/* SPDX-License-Identifier: MIT */
/*
 * Pow: the result has the base's type. Integers to integer powers wrap; everything else is computed
 * in double. Also PRelu and Mod.
 */
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

#define WHOLE  integer_power((uint64_t)(int64_t)a, (uint64_t)b, b < 1 && b != 0, a == -1)
#define REAL   qk_pow64((double)a, (double)b)
#define TO_S32 to_integer(REAL, -2147483648.0, 2147483647.0)
#define TO_S64 to_integer(REAL, -9223372036854775808.0, 9223372036854774784.0)

/* Exponents by type: floats, and integers of 32 and 64 bits. */
#define EXPONENTS(suffix, T, real, whole)                                                          \
    QS_PAIR(QS_COLD, suffix##_f32, T, float, T, real)                                              \
    QS_PAIR(QS_COLD, suffix##_f64, T, double, T, real)                                             \
    QS_PAIR(QS_COLD, suffix##_s32, T, int32_t, T, whole)                                           \
    QS_PAIR(QS_COLD, suffix##_s64, T, int64_t, T, whole)                                           \
    QS_PAIR(QS_COLD, suffix##_u32, T, uint32_t, T, whole)                                          \
    QS_PAIR(QS_COLD, suffix##_u64, T, uint64_t, T, whole)
#define ROW(suffix)                                                                                \
    { suffix##_f32, suffix##_f64, suffix##_s32, suffix##_s64, suffix##_u32, suffix##_u64 }

EXPONENTS(f32, float, REAL, REAL)
EXPONENTS(f64, double, REAL, REAL)
EXPONENTS(s32, int32_t, TO_S32, WHOLE)
EXPONENTS(s64, int64_t, TO_S64, WHOLE)

/* Squares, the usual case: the float product has the bits of the rounded double result. */
static void square(const void *va, size_t sa, const void *vb, size_t sb, void *vy, size_t n) {
    const float *a = va;
    float *y = vy;
    (void)vb;
    (void)sb;
    for (size_t i = 0; i < n; i++)
        y[i] = a[i * sa] * a[i * sa];
}

static int32_t type_index(int32_t dtype) {
    static const int8_t types[] = {QSIM_FLOAT, QSIM_DOUBLE, QSIM_INT32, QSIM_INT64, QSIM_UINT32};
    int32_t i = 0;
    while (i < (int32_t)QS_COUNT(types) && types[i] != dtype)
        i++;
    return i;
}

#define QS_T_POWER (QS_T_REAL | QS_T(QSIM_INT32) | QS_T(QSIM_INT64))

QS_COLD static int infer_pow(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_POWER);
    if (!code)
        code = qs_infer_type(x, 1, QS_T_POWER | QS_T(QSIM_UINT32) | QS_T(QSIM_UINT64));
    return code ? code : qs_infer_pair(x, x->in[0]->dtype);
}

QS_COLD static int lower_pow(qs_lower *l) {
    static const qs_pair_fn functions[4][6] = {ROW(f32), ROW(f64), ROW(s32), ROW(s64)};
    const qs_value *a = qs_lower_in(l, 0), *b = qs_lower_in(l, 1);
    qs_pair_fn fn = functions[type_index(a->dtype)][type_index(b->dtype)];
    float two = 0;
    if (fn == f32_f32 && b->data && b->data->elements == 1)
        memcpy(&two, b->data->data, sizeof(two));
    return qs_lower_pair(l, two == 2.0f ? square : fn);
}

QS_OP(pow, .name = "Pow", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_POW, .infer = infer_pow, .upgrade = qs_upgrade_legacy,
      .lower = lower_pow);

/* ---- PRelu ---- */

QS_PAIR(, prelu_f32, float, float, float, a < 0 ? a * b : a)
QS_PAIR(QS_COLD, prelu_f64, double, double, double, a < 0 ? a * b : a)
QS_PAIR(QS_COLD, prelu_s32, int32_t, int32_t, int32_t,
        a < 0 ? (uint32_t)a * (uint32_t)b : (uint32_t)a)
QS_PAIR(QS_COLD, prelu_s64, int64_t, int64_t, int64_t,
        a < 0 ? (uint64_t)a * (uint64_t)b : (uint64_t)a)
QS_PAIR(QS_COLD, prelu_u32, uint32_t, uint32_t, uint32_t, a + 0 * b)
QS_PAIR(QS_COLD, prelu_u64, uint64_t, uint64_t, uint64_t, a + 0 * b)

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
    static const qs_pair_fn functions[QS_TYPES] = {
        [QSIM_FLOAT] = prelu_f32, [QSIM_DOUBLE] = prelu_f64, [QSIM_INT32] = prelu_s32,
        [QSIM_INT64] = prelu_s64, [QSIM_UINT32] = prelu_u32, [QSIM_UINT64] = prelu_u64};
    const qs_value *x = qs_lower_in(l, 0);
    qs_dim dims[QSIM_MAX_RANK];
    const qs_value slope = slope_of(l->node, x, qs_lower_in(l, 1), dims);
    return qs_lower_pair_of(l, functions[x->dtype], &slope);
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
    const char *name = to < 13 ? NULL : qs_graph_fresh_name(g, "axes");
    const qs_id list =
        name ? qs_graph_add_const(g, name, QSIM_INT64, 1, &count, axes, true) : QS_NONE;
    const qs_id out = qs_upgrade_add(g, "Unsqueeze", "slope", g->nodes[node].inputs[1], list);
    if (out < 0 || (to < 13 && qs_node_set_ints(g, g->values[out].producer, "axes", axes,
                                                (int32_t)count) != QSIM_OK))
        return qs_fail(error, QSIM_E_NOMEM, "out of memory");
    qs_node_set_input(g, node, 1, out);
    return QSIM_OK;
}

static const qs_attr_rule prelu_attrs[] = {{"consumed_inputs", QS_ATTR_INTS, 1, 5}};

QS_OP(prelu, .name = "PRelu", .min_in = 2, QS_ATTRS(prelu_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_PRELU, .infer = infer_prelu, .upgrade = upgrade_prelu,
      .lower = lower_prelu);

/* ---- Mod ---- */

/*
 * The result has the sign of the divisor; with fmod, of the dividend. Division by 0 gives 0, as in
 * Div.
 */
#define MOD_U (b == 0 ? 0 : a % (b == 0 ? 1 : b))
#define MOD_S(T)                                                                                   \
    (b == 0 || b == -1 ? 0 : (a % b) + ((a % b) != 0 && ((a % b) < 0) != (b < 0) ? (b) : (T)0))
#define FMOD_S (b == 0 || b == -1 ? 0 : a % b)

#define MODS(suffix, T)                                                                            \
    QS_PAIR(QS_COLD, mod_##suffix, T, T, T, MOD_S(T))                                              \
    QS_PAIR(QS_COLD, fmod_##suffix, T, T, T, FMOD_S)
MODS(s8, int8_t)
MODS(s16, int16_t)
MODS(s32, int32_t)
MODS(s64, int64_t)
QS_PAIR(QS_COLD, mod_u8, uint8_t, uint8_t, uint8_t, MOD_U)
QS_PAIR(QS_COLD, mod_u16, uint16_t, uint16_t, uint16_t, MOD_U)
QS_PAIR(QS_COLD, mod_u32, uint32_t, uint32_t, uint32_t, MOD_U)
QS_PAIR(QS_COLD, mod_u64, uint64_t, uint64_t, uint64_t, MOD_U)
QS_PAIR(QS_COLD, fmod_f32, float, float, float, fmodf(a, b))
QS_PAIR(QS_COLD, fmod_f64, double, double, double, fmod(a, b))

QS_COLD static int infer_mod(qs_infer *x) {
    bool fmod = qs_node_int(x->node, "fmod", 0) != 0;
    int code = qs_infer_type(x, 0, fmod ? QS_T_ARITH : QS_T_INT);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    return code ? code : qs_infer_pair(x, x->in[0]->dtype);
}

QS_COLD static int lower_mod(qs_lower *l) {
#define UNSIGNED_MODS                                                                              \
    [QSIM_UINT8] = mod_u8, [QSIM_UINT16] = mod_u16, [QSIM_UINT32] = mod_u32, [QSIM_UINT64] = mod_u64
    static const qs_pair_fn functions[2][QS_TYPES] = {
        {UNSIGNED_MODS, [QSIM_INT8] = mod_s8, [QSIM_INT16] = mod_s16, [QSIM_INT32] = mod_s32,
         [QSIM_INT64] = mod_s64},
        {UNSIGNED_MODS, [QSIM_INT8] = fmod_s8, [QSIM_INT16] = fmod_s16, [QSIM_INT32] = fmod_s32,
         [QSIM_INT64] = fmod_s64, [QSIM_FLOAT] = fmod_f32, [QSIM_DOUBLE] = fmod_f64}};
    bool fmod = qs_node_int(l->node, "fmod", 0) != 0;
    return qs_lower_pair(l, functions[fmod][qs_lower_in(l, 0)->dtype]);
}

static const qs_attr_rule mod_attrs[] = {{"fmod", QS_ATTR_INT, 10, 0}};

QS_OP(mod, .name = "Mod", .since = 10, .min_in = 2, QS_ATTRS(mod_attrs),
      .traits = QS_ELEMENTWISE | QS_JUMPS, .kernel = QS_KERNEL_MOD, .infer = infer_mod,
      .lower = lower_mod);
