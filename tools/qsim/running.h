/* SPDX-License-Identifier: MIT */
/* Reports of qsim run. */
#ifndef QSIM_RUNNING_H
#define QSIM_RUNNING_H

#include "common/class_names.h"
#include "engine.h"
#include "inputs.h"

/*
 * A report lists classes where the first output has a row of scores per sample and --top or
 * --labels asks for them, or the input is a picture or a sound; else ranges of the outputs.
 */
typedef struct run_report {
    class_names names;
    size_t classes; /* 0: ranges of the outputs */
    size_t top;     /* number of classes to list */
    double scale;   /* of scores that are integers with a scale; else 1 and 0 */
    int64_t zero_point;
} run_report;

/* Call it after a run; `single`: its input is a picture or a sound. Prints errors. */
int run_report_open(const tool *t, const engine *e, bool single, run_report *r);
void run_report_print(const tool *t, const char *input, const engine *e, const run_report *r);
/* Writes the keys of an object. */
void run_report_json(const engine *e, const run_report *r, double ms, json *j);

#endif
