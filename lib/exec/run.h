/* SPDX-License-Identifier: MIT */
/* A run: one caller's plans and activation memory. */
#ifndef QS_RUN_H
#define QS_RUN_H

#include "exec/exec.h"

#include <qsim/profile.h>

/*
 * Is given each output of an observed session once it is complete: the view holds during the call
 * alone. channels_last: its second axis, the channels, is its last one here. May use qs_parallel.
 * A result other than 0 ends the execution with it; `error` is set by the function.
 */
typedef int (*qs_observe_fn)(void *user, int32_t output, const qsim_tensor *value,
                             bool channels_last, qsim_error *error);

struct qsim_run {
    qsim_session *session; /* held */
    qs_plan *plans[QS_PLANS];
    qs_plan *plan; /* the one last used */
    uint8_t *arena;
    size_t room;
    uint64_t clock;
    qs_stop
        stop; /* outside of it: that of the run whose subgraph this one runs, or the context's */
    qsim_ctx view; /* what steps see */
    bool timing;
    qsim_profile_fn profile; /* NULL: nobody asked */
    void *profile_user;
    int64_t executions;    /* reported */
    qs_observe_fn observe; /* during qs_run_observe */
    void *observe_user;
    size_t shown; /* outputs given to it */
};

/* Makes it run a subgraph for `parent`, and end with that. */
void qs_run_follow(qsim_run *run, qsim_run *parent);
/* Executes a session compiled with QS_COMPILE_OBSERVED (run.c). */
int qs_run_observe(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                   qs_observe_fn observe, void *user, qsim_error *error);
/* Shows the outputs that are complete after a step; -1: before the first (observe.c). */
int qs_run_show(qsim_run *run, int32_t step, qsim_error *error);

/* Tells the profile of the execution that began at that time of qs_clock_ns (profile.c). */
void qs_run_report(qsim_run *run, uint64_t began);

#endif
