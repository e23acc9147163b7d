/* SPDX-License-Identifier: MIT */
/* The steps of a model on this machine: their kernels and instruction sets. */
#ifndef QSIM_STEPS_H
#define QSIM_STEPS_H

#include "engine.h"
#include "inputs.h"

typedef struct steps {
    engine engine;
    inputs inputs;
} steps;

/* Plans for the sizes of the model or --shape; runs nothing. `s` may be closed either way. */
int steps_open(const tool *t, const char *file, const qsim_model *m, steps *s);
void steps_close(steps *s);

/* The steps of a run that is planned. */
void steps_print(const qsim_run *run);
/* The array `name`. */
void steps_json(json *j, const char *name, const qsim_run *run);

/* How many steps of one or more runs have kernels of each instruction set, QSIM_ISA_*. */
#define STEPS_ISAS 16
typedef struct isa_counts {
    int32_t steps[STEPS_ISAS];
} isa_counts;
void isa_counts_add(isa_counts *c, const qsim_run *run);
/* "avx512vnni 20, c 2" */
void isa_counts_text(const isa_counts *c, text *out);
/* The object "isas": the same. */
void isa_counts_json(const isa_counts *c, json *j);

#endif
