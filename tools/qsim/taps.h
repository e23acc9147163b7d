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
/*
 * Every float tensor, not an output, that a node of A computes and that B has too: dequantized
 * (NAME_DequantizeLinear_Output) or, where B computes it in floats, under its own name.
 */
void taps_layers(const qsim_model *a, const qsim_model *b, taps *out);
void taps_free(taps *t);

#endif
