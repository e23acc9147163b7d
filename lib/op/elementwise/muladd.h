/* SPDX-License-Identifier: MIT */
/* Products of images with one factor per channel (op_muladd.c). */
#ifndef QS_MULADD_H
#define QS_MULADD_H

#include "op/rules.h"

/*
 * Lowers y = clamp(x * f + c), where x, f and c are indices of inputs, c 0 for none. *done: true
 * if they are floats and f is one row for many rows of x; else nothing is lowered.
 */
int qs_muladd_lower(qs_lower *l, int32_t x, int32_t f, int32_t c, bool *done);

#endif
