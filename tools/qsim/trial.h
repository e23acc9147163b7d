/* SPDX-License-Identifier: MIT */
/* Models beside the float one on samples that no search has seen. */
#ifndef QSIM_TRIAL_H
#define QSIM_TRIAL_H

#include "samples.h"

/* How one model answers. */
typedef struct trial_result {
    double loss, agreement; /* as qsim_divergence has them; agreement NaN: no classes */
    double top1;            /* percent; NaN without labels */
    double drop, error; /* percent lost against float, and its standard error (NaN: not known) */
    double p;           /* McNemar's, against float; NaN without labels */
    uint64_t lost, won; /* samples that only float, only this one gets right */
} trial_result;

typedef struct trial {
    uint64_t samples, rows, labelled;
    double float_top1;
    trial_result of[2]; /* of the models given */
} trial;

/* Runs all three on the samples; the first outputs are compared. Prints what is wrong. */
int trial_run(const tool *t, const char *file, const qsim_model *reference,
              const qsim_model *const models[2], const samples *s, trial *out);

#endif
