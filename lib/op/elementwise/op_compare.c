/* SPDX-License-Identifier: MIT */
/* Equal, Greater, Less, GreaterOrEqual, LessOrEqual, And, Or, Xor of two broadcast tensors. */
#include "op/elementwise/dense.h"
#include "op/elementwise/pairs.h"

#define LOWER(name, lower, fns)                                                                    \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        return lower(l, &fns);                                                                     \
    }
LOWER(less, qs_lower_pair, qs_dense_less)
LOWER(less_or_equal, qs_lower_pair, qs_dense_less_or_equal)
LOWER(greater, qs_lower_swapped, qs_dense_less)
LOWER(greater_or_equal, qs_lower_swapped, qs_dense_less_or_equal)
LOWER(equal, qs_lower_pair, qs_dense_same)
LOWER(and, qs_lower_pair, qs_dense_both)
LOWER(or, qs_lower_pair, qs_dense_either)
LOWER(xor, qs_lower_pair, qs_dense_one_of)

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
