/* SPDX-License-Identifier: MIT */
/* Compares the speed of a quantized model with the float model's, and explains it. */
#ifndef QSIM_PACE_H
#define QSIM_PACE_H

#include "engine.h"
#include "latency.h"

typedef struct pace {
    time_ratio ratio; /* the float model's time over the quantized one's; value 0: not measured */
    double ms[2];     /* medians */
    int64_t rows;     /* samples per run */
    text why;         /* reasons; empty where it is faster */
} pace;

/*
 * Runs both models (the float one first) in turns for a quarter of a second, or less where runs are
 * short, on one sample if they take any number of samples.
 */
int pace_measure(const tool *t, const char *const file[2], const qsim_model *const model[2],
                 const qsim_tensor *inputs, size_t count, pace *p);
/* Is the quantized model certainly not faster? False if noise hides the difference. */
bool pace_fails(time_ratio r);
/*
 * Writes to `why` the reasons that the second model, which is quantized, is not faster: operators
 * that stay float, conversions, a small model, layers that became slower.
 */
int pace_explain(const tool *t, const char *const file[2], engine e[2],
                 const qsim_tensor *const inputs[2], size_t count, text *why);
/* Did any step of the last execution compute on 8 bits? */
bool pace_is_integer(const engine *e);
void pace_print(const pace *p);
void pace_json(const pace *p, json *out);
void pace_free(pace *p);

#endif
