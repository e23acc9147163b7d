/* SPDX-License-Identifier: MIT */
/* The steps of a model on this machine: their kernels and instruction sets. */
#ifndef QSIM_STEPS_H
#define QSIM_STEPS_H

#include "engine.h"
#include "inputs.h"

typedef struct steps {
    engine engine;
    inputs inputs;
    int32_t count;
} steps;

/* Plans for the sizes of the model or --shape; runs nothing. `s` may be closed either way. */
int steps_open(const tool *t, const char *file, const qsim_model *m, steps *s);
void steps_print(const steps *s);
/* The array "steps". */
void steps_json(json *j, const steps *s);
void steps_close(steps *s);

#endif
