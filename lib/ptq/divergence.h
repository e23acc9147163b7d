/* SPDX-License-Identifier: MIT */
/* Rows of outputs, for divergence and verdicts. */
#ifndef QS_DIVERGENCE_H
#define QS_DIVERGENCE_H

#include "base/base.h"

#include <qsim/ptq.h>

/*
 * Whether both have the same shape and memory for all their elements: an error's code. Sets the
 * number of elements.
 */
int qs_pair_size(const qsim_tensor *a, const qsim_tensor *b, size_t *count);
/*
 * qsim_divergence_add that also adds what rows bring to kl, or for values to noise, over `total` to
 * the losses of `samples` samples, each with as many rows; if there are not as many, all to the
 * first.
 */
int qs_divergence_split(qsim_divergence *d, const qsim_tensor *a, const qsim_tensor *b,
                        double total, double *losses, size_t samples);
/* Elements of a row: of the last axis that is longer than 1. */
size_t qs_row_length(const qsim_tensor *t);
/* The greatest of n > 0 elements; the first of equals. */
size_t qs_first_largest(const float *x, size_t n);

/* The greatest probability: of n > 0 probabilities, or of scores by softmax. */
double qs_first_probability(const float *x, size_t n);

#endif
