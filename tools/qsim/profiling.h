/* SPDX-License-Identifier: MIT */
/* The profile of a model, and its report. */
#ifndef QSIM_PROFILING_H
#define QSIM_PROFILING_H

#include <qsim/profile.h>

#include "engine.h"
#include "inputs.h"
#include "latency.h"

/* A step of the plan and its times. */
typedef struct profiled_step {
    qsim_step_info info;
    latency time; /* in nanoseconds */
    double ns;    /* the median */
    double ideal; /* ns that the machine's limits allow; NaN where they are not known */
    char *shapes; /* "[1,28,28,8] [8,8,3,3] -> [1,28,28,8]" */
} profiled_step;

typedef struct profiling {
    const char *file;
    engine engine;
    inputs inputs;
    qsim_machine machine;
    uint64_t origin, loaded,
        ready; /* on the clock of the events: start, model read, session made */
    profiled_step *steps;
    size_t step_count;
    latency plain, timed;       /* whole runs in ms, without and with the profile */
    qsim_profile_event *events; /* `execution` counted over all */
    size_t event_count, event_room, dropped;
    bool interrupted;
} profiling;

/* Reads of the steps what does not change; after the first run. */
void profiling_describe(profiling *p);
/* Medians and limits; after the last run. */
void profiling_summarize(profiling *p);
/* The cost of profiling: nanoseconds a step, and percent of the run. */
double profiling_overhead(const profiling *p, double *percent);
void profiling_free(profiling *p);

/* The trace of all events, as JSON; valid whatever was seen. */
void trace_write(const profiling *p, json *j);

void profile_print(const tool *t, const profiling *p, size_t top);
void profile_print_json(const tool *t, const profiling *p, size_t top, const char *trace);

#endif
