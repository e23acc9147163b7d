/* SPDX-License-Identifier: MIT */
/* BitShift, BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitCast. */
#include "op/elementwise/dense.h"
#include "op/elementwise/maps.h"
#include "op/elementwise/pairs.h"

QS_COLD static int infer_bits(qs_infer *x, uint32_t types) {
    int code = qs_infer_type(x, 0, types);
    if (!code)
        code = qs_infer_type(x, 1, types);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    return code ? code : qs_infer_pair(x, x->in[0]->dtype);
}

/* Results do not depend on the type: the low bits of one of 64 bits. */
#define BITS(name, expression)                                                                     \
    QS_DENSE_RARE(name, uint64_t, uint64_t, expression)                                            \
    QS_COLD static int lower_##name(qs_lower *l) {                                                 \
        static const qs_dense_fns fns = {.s64 = name, .u64 = name};                                \
        return qs_lower_pair(l, &fns);                                                             \
    }

BITS(bitwise_and, a &b)
BITS(bitwise_or, a | b)
BITS(bitwise_xor, a ^ b)
/* Shifts by the width or more give 0. */
BITS(shift_left, b >= 64 ? 0 : a << b)
BITS(shift_right, b >= 64 ? 0 : a >> b)

QS_COLD static int infer_integers(qs_infer *x) {
    return infer_bits(x, QS_T_INT);
}

static bool shifts_left(const qs_node *n) {
    return qs_node_string_is(n, "direction", "LEFT", false);
}

QS_COLD static int infer_shift(qs_infer *x) {
    if (!qs_node_attr(x->node, "direction"))
        return qs_infer_fail(x, QSIM_E_VALUE, "attribute direction is neither LEFT nor RIGHT");
    const int code = qs_infer_word(x, "direction", "LEFT|RIGHT", &(int32_t){0});
    return code ? code : infer_bits(x, QS_T_UNSIGNED);
}

QS_COLD static int lower_shift(qs_lower *l) {
    return shifts_left(l->node) ? lower_shift_left(l) : lower_shift_right(l);
}

/* ---- BitwiseNot ---- */

QS_MAP(not_8, uint8_t, uint8_t, ~x)
QS_MAP(not_16, uint16_t, uint16_t, ~x)
QS_MAP(not_32, uint32_t, uint32_t, ~x)
QS_MAP(not_64, uint64_t, uint64_t, ~x)
static const qs_map_fn not_fns[] = {
    [QSIM_INT8] = not_8,   [QSIM_UINT8] = not_8,   [QSIM_INT16] = not_16, [QSIM_UINT16] = not_16,
    [QSIM_INT32] = not_32, [QSIM_UINT32] = not_32, [QSIM_INT64] = not_64, [QSIM_UINT64] = not_64};

QS_COLD static int infer_not(qs_infer *x) {
    return qs_infer_map(x, QS_T_INT, 0);
}

QS_COLD static int lower_not(qs_lower *l) {
    return qs_lower_map(l, not_fns[qs_lower_in(l, 0)->dtype], 0, 0);
}

/* ---- BitCast ---- */

QS_COLD static int infer_bitcast(qs_infer *x) {
    const int64_t to = qs_node_int(x->node, "to", 0);
    const int32_t from = x->in[0]->dtype;
    const int code = qs_infer_type(x, 0, QS_T_ANY);
    if (code)
        return code;
    if (to <= 0 || to >= 32 || !(QS_T_ANY & QS_T(to)))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "type %lld is not supported", (long long)to);
    if (from && qsim_dtype_bits(from) != qsim_dtype_bits((int32_t)to))
        return qs_infer_fail(x, QSIM_E_DTYPE, "%s and %s do not have the same number of bits",
                             qsim_dtype_name(from), qsim_dtype_name((int32_t)to));
    return qs_infer_out(x, 0, (int32_t)to, x->in[0]->rank, x->in[0]->dims);
}

QS_COLD static int lower_bitcast(qs_lower *l) {
    l->alias = true;
    return QSIM_OK;
}

static const qs_attr_rule shift_attrs[] = {{"direction", QSIM_ATTR_STRING, 11, 0}};
static const qs_attr_rule bitcast_attrs[] = {{"to", QSIM_ATTR_INT, 26, 0}};

QS_OP(bitcast, .name = "BitCast", .since = 26, .min_in = 1, QS_ATTRS(bitcast_attrs),
      .traits = QS_READS_EXACTLY, .infer = infer_bitcast, .lower = lower_bitcast);
QS_OP(bitshift, .name = "BitShift", .since = 11, .min_in = 2, QS_ATTRS(shift_attrs),
      .traits = QS_ELEMENTWISE, .kernel = QS_KERNEL_BITS, .infer = infer_shift,
      .lower = lower_shift);
QS_OP(bitwise_and, .name = "BitwiseAnd", .since = 18, .min_in = 2, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_BITS, .infer = infer_integers, .lower = lower_bitwise_and);
QS_OP(bitwise_not, .name = "BitwiseNot", .since = 18, .min_in = 1, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_UNARY, .infer = infer_not, .lower = lower_not);
QS_OP(bitwise_or, .name = "BitwiseOr", .since = 18, .min_in = 2, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_BITS, .infer = infer_integers, .lower = lower_bitwise_or);
QS_OP(bitwise_xor, .name = "BitwiseXor", .since = 18, .min_in = 2, .traits = QS_ELEMENTWISE,
      .kernel = QS_KERNEL_BITS, .infer = infer_integers, .lower = lower_bitwise_xor);
