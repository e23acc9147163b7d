/* SPDX-License-Identifier: MIT */
/* What QLinearConcat and operators that rearrange its result share. */
#ifndef QS_QCONCAT_H
#define QS_QCONCAT_H

#include "op/rules.h"

/* Inputs y_scale, y_zp, (x, x_scale, x_zp)...: output 0 as the operands joined along `axis`. */
int qs_qconcat_infer(qs_infer *x);
/* 256 bytes for each operand, from its bytes to those of the result; no result: not constant. */
int qs_qconcat_pack(qs_pack *p);

#endif
