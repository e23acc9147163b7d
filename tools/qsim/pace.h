/* SPDX-License-Identifier: MIT */
/* Is the quantized model faster, and if not: why. */
#ifndef QSIM_PACE_H
#define QSIM_PACE_H

#include "engine.h"
#include "latency.h"

typedef struct pace {
    time_ratio ratio; /* of the float model's time to the quantized one's; value 0: not measured */
    double ms[2];     /* medians */
    int64_t rows;     /* samples of one run */
    text why;         /* empty where it is faster */
} pace;

/*
 * Runs both models (the float one first) in turns for a quarter of a second, on one sample of the
 * inputs where the models take any number of them.
 */
int pace_measure(const tool *t, const char *const file[2], const qsim_model *const model[2],
                 const qsim_tensor *inputs, size_t count, pace *p);
/* Is it known not to be worth it? Not where noise leaves that open. */
bool pace_fails(time_ratio r);
/*
 * Says in `why` what keeps the second of two models, which is quantized, from being faster: work
 * that stays in floats, conversions, a model that is too small, layers that got slower.
 */
int pace_explain(const tool *t, const char *const file[2], engine e[2], const qsim_tensor *inputs,
                 size_t count, text *why);
/* Whether any step of the last execution computes on 8 bits. */
bool pace_is_integer(const engine *e);
void pace_print(const pace *p);
void pace_json(const pace *p, json *out);
void pace_free(pace *p);

#endif
