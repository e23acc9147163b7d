/* SPDX-License-Identifier: MIT */
/* Says from the times of two models' steps why the quantized one is not faster. */
#ifndef QSIM_PACE_REASONS_H
#define QSIM_PACE_REASONS_H

#include "../common/text.h"

/* A quantized model or layer that is less than this many times as fast gains nothing. */
#define PACE_LEAST_GAIN 1.05

/* What a step computes with: 8 bits, floats, or both, where it converts between them. */
typedef enum pace_kind { IN_INTEGERS, IN_FLOATS, CONVERTING } pace_kind;

typedef struct pace_step {
    const char *node, *op_type; /* borrowed */
    pace_kind kind;
    double us; /* the least of several runs */
} pace_step;

/*
 * Writes to `why`, divided by semicolons, the reasons that the `n` steps `b` of a quantized model
 * take as long as the `m` steps `a` of the float model: operators that stay float, conversions, a
 * small model, layers that became slower. It always writes one.
 */
void pace_reasons(const pace_step *a, size_t m, const pace_step *b, size_t n, text *why);

#endif
