/* SPDX-License-Identifier: MIT */
/*
 * Post-ops: what runs on each block of the internal QLinearConv's and QLinearMatMul's results while
 * it is in the cache; the bits are those of the operators alone:
 *
 *     y = last[sum(first[result], other)]
 *
 * with tables of 256 bytes and QLinearAdd, each of which may be missing. Inputs from QS_I8_FIRST
 * on; all but `other` are constant, as weights and parameters then have to be. Attributes sum_lo
 * and sum_hi bound the sum.
 */
#ifndef QS_INT8_POST_OPS_H
#define QS_INT8_POST_OPS_H

#include "kernel/u8.h"
#include "op/int8/int8_op.h"

/* Inputs; 9 is QS_I8_CONV_OVER. Scales and zero points of the sum's operands and of itself. */
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
    {"sum_lo", QS_ATTR_INT, 0, 0}, {                                                               \
        "sum_hi", QS_ATTR_INT, 0, 0                                                                \
    }

/* With output 0 inferred. */
int qs_i8_infer_post_ops(const qs_infer *x);

typedef struct qs_i8_post_ops {
    qs_i8_plan product; /* first: qs_i8_lower takes it for the step's parameters */
    const qk_u8 *t;
    bool sums;
    qk_u8_pair pair;
} qs_i8_post_ops;

/* Before the product is lowered: sets what runs on its results, if anything does. */
void qs_i8_plan_post_ops(const qs_lower *l, qs_i8_post_ops *b);
/* And after it: the step runs that, too. */
int qs_i8_lower_post_ops(qs_lower *l, qs_i8_post_ops *b);

#endif
