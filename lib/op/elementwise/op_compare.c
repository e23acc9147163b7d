/* SPDX-License-Identifier: MIT */
/* Equal, Greater, Less, GreaterOrEqual, LessOrEqual, And, Or, Xor of two broadcast tensors. */
#include "op/elementwise/floats.h"
#include "op/elementwise/pairs.h"

#define TYPES(name, op, floats)                                                                    \
    static void name##_f32(const void *a, size_t sa, const void *b, size_t sb, void *y,            \
                           size_t n) {                                                             \
        qs_compare_floats(floats, a, sa, b, sb, y, n);                                             \
    }                                                                                              \
    QS_PAIR(QS_COLD, name##_f64, double, double, uint8_t, a op b)                                  \
    QS_PAIR(QS_COLD, name##_s8, int8_t, int8_t, uint8_t, a op b)                                   \
    QS_PAIR(QS_COLD, name##_s16, int16_t, int16_t, uint8_t, a op b)                                \
    QS_PAIR(QS_COLD, name##_s32, int32_t, int32_t, uint8_t, a op b)                                \
    QS_PAIR(QS_COLD, name##_s64, int64_t, int64_t, uint8_t, a op b)                                \
    QS_PAIR(QS_COLD, name##_u8, uint8_t, uint8_t, uint8_t, a op b)                                 \
    QS_PAIR(QS_COLD, name##_u16, uint16_t, uint16_t, uint8_t, a op b)                              \
    QS_PAIR(QS_COLD, name##_u32, uint32_t, uint32_t, uint8_t, a op b)                              \
    QS_PAIR(QS_COLD, name##_u64, uint64_t, uint64_t, uint8_t, a op b)                              \
    static const qs_pair_fn name##_fns[] = {                                                       \
        [QSIM_FLOAT] = name##_f32, [QSIM_DOUBLE] = name##_f64, [QSIM_INT8] = name##_s8,            \
        [QSIM_INT16] = name##_s16, [QSIM_INT32] = name##_s32,  [QSIM_INT64] = name##_s64,          \
        [QSIM_UINT8] = name##_u8,  [QSIM_UINT16] = name##_u16, [QSIM_UINT32] = name##_u32,         \
        [QSIM_UINT64] = name##_u64};

TYPES(less, <, QS_LESS)
TYPES(less_or_equal, <=, QS_LESS_OR_EQUAL)
TYPES(same, ==, QS_SAME)
#define LOWER(name, lower, rule)                                                                   \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        return lower(l, rule##_fns[qs_lower_in(l, 0)->dtype]);                                     \
    }
LOWER(less, qs_lower_pair, less)
LOWER(less_or_equal, qs_lower_pair, less_or_equal)
LOWER(greater, qs_lower_swapped, less)
LOWER(greater_or_equal, qs_lower_swapped, less_or_equal)

static void same_bits(const void *a, size_t sa, const void *b, size_t sb, void *y, size_t n) {
    qs_compare_floats(QS_SAME_BITS, a, sa, b, sb, y, n);
}

QS_COLD static int lower_same(qs_lower *l) {
    const int32_t dtype = qs_lower_in(l, 0)->dtype;
    const bool ints = dtype == QSIM_INT32 || dtype == QSIM_UINT32;
    return qs_lower_pair(l, ints ? same_bits : same_fns[dtype]);
}

typedef uint8_t truth_lanes __attribute__((vector_size(16)));

/* 16 truths, of which each byte but 0 becomes 1, from x + i or, if step is 0, one for all. */
static truth_lanes truths_at(const uint8_t *x, size_t step, size_t i) {
    truth_lanes v = {0};
    if (step)
        memcpy(&v, x + i, sizeof(v));
    else
        v += *x;
    return (truth_lanes)(v != 0) & 1;
}

typedef enum logic { LOGIC_AND, LOGIC_OR, LOGIC_XOR } logic;

/* A qs_pair_fn for each operator. */
static void truths(logic op, const uint8_t *a, size_t sa, const uint8_t *b, size_t sb, uint8_t *y,
                   size_t n) {
    size_t i = 0;
    for (; n - i >= sizeof(truth_lanes); i += sizeof(truth_lanes)) {
        const truth_lanes u = truths_at(a, sa, i), v = truths_at(b, sb, i);
        const truth_lanes w = op == LOGIC_AND ? u & v : op == LOGIC_OR ? u | v : u ^ v;
        memcpy(y + i, &w, sizeof(w));
    }
    for (; i < n; i++) {
        const int u = a[i * sa] != 0, v = b[i * sb] != 0;
        y[i] = (uint8_t)(op == LOGIC_AND ? u & v : op == LOGIC_OR ? u | v : u ^ v);
    }
}

#define TRUTHS(name, op)                                                                           \
    static void name##_b8(const void *a, size_t sa, const void *b, size_t sb, void *y, size_t n) { \
        truths(op, a, sa, b, sb, y, n);                                                            \
    }                                                                                              \
    static int lower_##name(qs_lower *l) {                                                         \
        return qs_lower_pair(l, name##_b8);                                                        \
    }
TRUTHS(and, LOGIC_AND)
TRUTHS(or, LOGIC_OR)
TRUTHS(xor, LOGIC_XOR)
QS_PAIR(, iff_b8, uint8_t, uint8_t, uint8_t, !a == !b)

QS_COLD static int lower_equal(qs_lower *l) {
    return qs_lower_in(l, 0)->dtype == QSIM_BOOL ? qs_lower_pair(l, iff_b8) : lower_same(l);
}

QS_COLD static int infer(qs_infer *x, uint32_t types) {
    int code = qs_infer_type(x, 0, types);
    if (!code)
        code = qs_infer_type(x, 1, types);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    return code ? code : qs_infer_pair(x, QSIM_BOOL);
}

QS_COLD static int infer_order(qs_infer *x) {
    return infer(x, QS_T_ARITH);
}
QS_COLD static int infer_equal(qs_infer *x) {
    return infer(x, QS_T_ARITH | QS_T(QSIM_BOOL));
}
QS_COLD static int infer_logic(qs_infer *x) {
    return infer(x, QS_T(QSIM_BOOL));
}

QS_OP(and, .name = "And", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_LOGIC, .infer = infer_logic, .more = &qs_legacy_more, .lower = lower_and);
QS_OP(equal, .name = "Equal", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_COMPARE, .infer = infer_equal, .more = &qs_legacy_more,
      .lower = lower_equal);
QS_OP(greater, .name = "Greater", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_COMPARE, .infer = infer_order, .more = &qs_legacy_more,
      .lower = lower_greater);
QS_OP(greater_or_equal, .name = "GreaterOrEqual", .since = 12, .min_in = 2,
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_COMPARE, .infer = infer_order,
      .lower = lower_greater_or_equal);
QS_OP(less, .name = "Less", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_COMPARE, .infer = infer_order, .more = &qs_legacy_more,
      .lower = lower_less);
QS_OP(less_or_equal, .name = "LessOrEqual", .since = 12, .min_in = 2, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_COMPARE, .infer = infer_order, .lower = lower_less_or_equal);
QS_OP(or, .name = "Or", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_LOGIC, .infer = infer_logic, .more = &qs_legacy_more, .lower = lower_or);
QS_OP(xor, .name = "Xor", .min_in = 2, QS_ATTRS(qs_legacy_attrs), .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_LOGIC, .infer = infer_logic, .more = &qs_legacy_more, .lower = lower_xor);
