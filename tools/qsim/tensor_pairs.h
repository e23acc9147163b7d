/* SPDX-License-Identifier: MIT */
/* The pairs of tensors of two models that are compared. */
#ifndef QSIM_TENSOR_PAIRS_H
#define QSIM_TENSOR_PAIRS_H

#include <qsim/ptq.h>

#include "common/tool.h"

typedef struct tensor_pairs {
    const char **a, **b; /* names; the models' own memory */
    size_t count;
    qsim_metrics *metrics; /* of each pair; NULL until the caller allocates them */
} tensor_pairs;

/* Pairs of outputs, in order; both models must have as many. The models must outlive the pairs. */
int tensor_pairs_outputs(const tool *t, const qsim_model *a, const qsim_model *b,
                         tensor_pairs *out);
/* Pairs of inner tensors, by qsim_model_pairs. */
int tensor_pairs_layers(const tool *t, const qsim_model *a, const qsim_model *b, tensor_pairs *out);
/* Percentage of rows of pair i with the same greatest element; NaN: there are none. */
double tensor_pairs_agreement(const tensor_pairs *p, size_t i);
void tensor_pairs_free(tensor_pairs *p);

#endif
