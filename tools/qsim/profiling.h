/* SPDX-License-Identifier: MIT */
/* The profile of a model, and its report. */
#ifndef QSIM_PROFILING_H
#define QSIM_PROFILING_H

#include <qsim/profile.h>

#include "engine.h"
#include "inputs.h"
#include "latency.h"

/* A step of the plan, and its times. */
typedef struct profiled_step {
    qsim_step_info info;
    latency time; /* in nanoseconds */
    double ns;    /* median */
    double ideal; /* ns at the machine's limits; NaN where they are not known */
    char *shapes; /* "[1,28,28,8] [8,8,3,3] -> [1,28,28,8]" */
} profiled_step;

typedef struct profiling {
    const char *file;
    engine engine;
    inputs inputs;
    qsim_machine machine;
    uint64_t origin, loaded,
        ready; /* times of the events' clock: start, model read, session made */
    profiled_step *steps;
    size_t step_count;
    latency plain, timed;       /* times of whole runs in ms, without and with the profile */
    latency deferred;           /* ns of each run for nodes without steps; empty: all have steps */
    qsim_profile_event *events; /* `execution` counts over all runs */
    size_t event_count, event_capacity, dropped;
    bool interrupted;
} profiling;

/* Reads the facts about steps that do not change; call it after the first run. */
void profiling_describe(profiling *p);
/* Computes medians and limits; call it after the last run. */
void profiling_summarize(profiling *p);
/* The cost of profiling in nanoseconds per step; *percent: of a run. */
double profiling_overhead(const profiling *p, double *percent);
void profiling_free(profiling *p);

/* Writes the trace of all events as JSON, also after an interrupt. */
void trace_write(const profiling *p, json *j);

void profile_print(const tool *t, const profiling *p, size_t top);
void profile_print_json(const tool *t, const profiling *p, size_t top, const char *trace);

#endif
