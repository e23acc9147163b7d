/* SPDX-License-Identifier: MIT */
/* Which tensors of two models are compared with each other. */
#ifndef QSIM_TAPS_H
#define QSIM_TAPS_H

#include "common/tool.h"

typedef struct taps {
    const char **a, **b; /* names; the models' own memory */
    size_t count;
} taps;

/* The outputs, in order; their numbers must be equal. The models must outlive the taps. */
int taps_outputs(const tool *t, const qsim_model *a, const qsim_model *b, taps *out);
/* The tensors between, as qsim_model_pairs has them. */
int taps_layers(const tool *t, const qsim_model *a, const qsim_model *b, taps *out);
void taps_free(taps *t);

#endif
