/* SPDX-License-Identifier: MIT */
/* Factors of MatMul, QLinearMatMul and MatMulInteger as stacks of matrices. */
#ifndef QS_FACTOR_H
#define QS_FACTOR_H

#include "op/rules.h"

/* Rank 1 is a row on the left, a column on the right. */
typedef struct qs_factor {
    qs_dim dims[QSIM_MAX_RANK];
    int32_t rank;       /* at least 2; the axes before the last two count matrices */
    int64_t rows, cols; /* -1: unknown */
} qs_factor;

/* `v` has a known rank of at least 1. */
qs_factor qs_factor_of(const qs_value *v, bool right);

/* Shape rule of the product: output 0 of type `dtype`. */
int qs_infer_product(const qs_infer *x, const qs_value *a, const qs_value *b, int32_t dtype);

/* Sets the sizes of both factors' batch axes, broadcast; *rank: their number. */
int qs_infer_batches(const qs_infer *x, const qs_factor *a, const qs_factor *b, int32_t *rank,
                     qs_dim dims[QSIM_MAX_RANK]);

/* Index of the matrix of `f` that product `batch` of these batch axes multiplies. */
size_t qs_factor_matrix(const qs_factor *f, const qs_dim *dims, int32_t rank, size_t batch);

#endif
