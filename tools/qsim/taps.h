/* SPDX-License-Identifier: MIT */
/* The pairs of tensors of two models that are compared. */
#ifndef QSIM_TAPS_H
#define QSIM_TAPS_H

#include "common/tool.h"

typedef struct taps {
    const char **a, **b; /* names; the models' own memory */
    size_t count;
} taps;

/* Pairs of outputs, in order; both models must have as many. The models must outlive the taps. */
int taps_outputs(const tool *t, const qsim_model *a, const qsim_model *b, taps *out);
/* Pairs of inner tensors, by qsim_model_pairs. */
int taps_layers(const tool *t, const qsim_model *a, const qsim_model *b, taps *out);
void taps_free(taps *t);

#endif
