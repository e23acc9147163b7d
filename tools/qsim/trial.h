/* SPDX-License-Identifier: MIT */
/* Trial of two models against the float one, on samples that no search has seen. */
#ifndef QSIM_TRIAL_H
#define QSIM_TRIAL_H

#include "samples.h"
#include "scores.h"

/* Measurements of one model. */
typedef struct trial_result {
    double loss, agreement; /* as in qsim_divergence; agreement NaN: no classes */
    double top1;            /* percent; NaN without labels */
    double drop, error; /* percent lost against float, and its standard error (NaN: not known) */
    double p;           /* McNemar's test against float; NaN without labels */
    pairing pair;       /* with float, of samples with labels */
} trial_result;

typedef struct trial {
    uint64_t samples, rows, labelled;
    double float_top1;
    trial_result of[2]; /* of `models` */
} trial;

/* Runs all three models on the samples and compares first outputs. Prints errors. */
int trial_run(const tool *t, const char *file, const qsim_model *reference,
              const qsim_model *const models[2], const samples *s, trial *out);

#endif
