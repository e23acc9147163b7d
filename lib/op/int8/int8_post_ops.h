/* SPDX-License-Identifier: MIT */
/*
 * Post-ops: operations on each block of results of the internal QLinearConv and QLinearMatMul while
 * it is in the cache, with the bits of separate operators:
 *
 *     y = last[sum(first[result], other)]
 *
 * `first` and `last` are tables of 256 bytes, `sum` is QLinearAdd; each may be missing. Their
 * inputs begin at QS_I8_FIRST; all but `other` have to be constant, weights and parameters as well.
 * Attributes sum_lo and sum_hi bound the sum.
 */
#ifndef QS_INT8_POST_OPS_H
#define QS_INT8_POST_OPS_H

#include "kernel/u8.h"
#include "op/int8/int8_op.h"

/* Inputs (9 is QS_I8_CONV_OVER); S, ZP: scale and zero point of the sum's operands and result. */
#define QS_I8_FIRST    10
#define QS_I8_OTHER    11
#define QS_I8_OWN_S    12
#define QS_I8_OWN_ZP   13
#define QS_I8_OTHER_S  14
#define QS_I8_OTHER_ZP 15
#define QS_I8_SUM_S    16
#define QS_I8_SUM_ZP   17
#define QS_I8_LAST     18
#define QS_I8_INPUTS   19

#define QS_I8_POST_OPS_ATTRS                                                                       \
    {"sum_lo", QSIM_ATTR_INT, 0, 0}, {                                                             \
        "sum_hi", QSIM_ATTR_INT, 0, 0                                                              \
    }

/* Checks the inputs of post-ops; output 0 is inferred already. */
int qs_i8_infer_post_ops(const qs_infer *x);

typedef struct qs_i8_post_ops {
    qs_i8_plan product; /* first member: the step's parameters are read as a qs_i8_plan, too */
    const qk_u8 *t;
    bool sums;
    qk_u8_pair pair;
} qs_i8_post_ops;

/* Sets conv.after if there are post-ops; to be called before qs_i8_lower. */
void qs_i8_plan_post_ops(const qs_lower *l, qs_i8_post_ops *b);
/* Makes the step run the post-ops; to be called after qs_i8_lower. */
int qs_i8_lower_post_ops(qs_lower *l, qs_i8_post_ops *b);

#endif
