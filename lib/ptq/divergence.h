/* SPDX-License-Identifier: MIT */
/* Rows of outputs, for divergence and verdicts. */
#ifndef QS_DIVERGENCE_H
#define QS_DIVERGENCE_H

#include "base/base.h"

#include <qsim/ptq.h>

/*
 * Checks that both tensors have the same shape and memory for all elements, and sets *count to the
 * number of elements. Returns QSIM_OK or an error's code.
 */
int qs_pair_size(const qsim_tensor *a, const qsim_tensor *b, size_t *count);
/*
 * qsim_divergence_add that also adds the share of each row, kl / total or for values noise / total,
 * to the loss of its sample. `losses` has `samples` numbers; each sample has the same number of
 * rows. If rows cannot be divided so, all shares go to the first sample.
 */
int qs_divergence_split(qsim_divergence *d, const qsim_tensor *a, const qsim_tensor *b,
                        double total, double *losses, size_t samples);
/* Element i of floats of any width, integers or booleans. */
double qs_element(const qsim_tensor *t, size_t i);
/* Elements of a row: of the last axis that is longer than 1. */
size_t qs_row_length(const qsim_tensor *t);
/*
 * Whether it may have a row of classes for each sample: one axis behind the first is longer than 1.
 * With three axes it is rather [samples, boxes, 1], or a step of states or spectra.
 */
bool qs_is_row(const qsim_tensor *t);
/* QSIM_ANSWER_* of a tensor of `count` floats, by its shape and its numbers. */
int32_t qs_answer_kind(const qsim_tensor *t, size_t count);
/* The index of the greatest of n > 0 elements; of the first among equals. */
size_t qs_first_largest(const float *x, size_t n);

/* The greatest probability: of n > 0 probabilities, or of scores by softmax. */
double qs_first_probability(const float *x, size_t n);

#endif
