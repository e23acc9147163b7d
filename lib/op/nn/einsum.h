/* SPDX-License-Identifier: MIT */
/* The plan of an Einsum, and its innermost loops. */
#ifndef QS_EINSUM_H
#define QS_EINSUM_H

#include "op/rules.h"

#define QS_EINSUM_OPERANDS 16
/* a to z, A to Z, and the axes of the ellipsis */
#define QS_EINSUM_LETTERS (52 + QSIM_MAX_RANK)
/* Outputs that are computed side by side. */
#define QS_EINSUM_BESIDE ((size_t)64)

/* A sum so far. */
typedef union qs_total {
    double real;
    uint64_t whole;
} qs_total;

struct qs_einsum;
/* Adds terms [from, from + count) of the loop `inner` to *sum; at: offsets of the operands. */
typedef void (*qs_einsum_row)(const struct qs_einsum *p, const void *const *x, const size_t *at,
                              size_t from, size_t count, qs_total *sum);
/* The same for n outputs side by side, in the same order; count: a multiple of 4. */
typedef void (*qs_einsum_columns)(const struct qs_einsum *p, const void *const *x, const size_t *at,
                                  size_t from, size_t count, size_t n, qs_total *sums);

/* Loops: first the result's axes, then those summed over, the last of which is `inner`. */
typedef struct qs_einsum {
    int32_t operands, kept, loops, dtype;
    size_t outputs, sums, inner;
    qs_einsum_row row;
    qs_einsum_columns columns; /* NULL: outputs are computed one by one */
    int32_t dense;             /* of `columns`: the operand whose elements lie side by side */
    size_t dims[QS_EINSUM_LETTERS];
    /* Strides of each operand along each loop, in elements. */
    size_t steps[QS_EINSUM_LETTERS][QS_EINSUM_OPERANDS];
    size_t inner_steps[QS_EINSUM_OPERANDS];
} qs_einsum;

/* Sets the loops for the plan's type and strides. */
void qs_einsum_loops(qs_einsum *p);

#endif
