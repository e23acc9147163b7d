/* SPDX-License-Identifier: MIT */
/* Which tensors of two models are compared with each other. */
#ifndef QSIM_TAPS_H
#define QSIM_TAPS_H

#include "common/tool.h"

typedef struct taps {
    const char **a, **b; /* names; the models' own memory */
    size_t count;
} taps;

/*
 * The outputs, in order; with `layers` then every float tensor that a node of A computes and that B
 * has too, dequantized (NAME_DequantizeLinear_Output) where it can be had. `outputs` says how many
 * are outputs. The models must outlive the taps.
 */
int taps_choose(const tool *t, const qsim_model *a, const qsim_model *b, bool layers, taps *out,
                size_t *outputs);
void taps_free(taps *t);

#endif
