/* SPDX-License-Identifier: MIT */
/* A run: one caller's plans and activation memory. */
#ifndef QS_RUN_H
#define QS_RUN_H

#include "exec/exec.h"

#include <qsim/profile.h>

/*
 * Called with each output of an observed session once it is complete, and with those of subgraphs
 * that are watched, each time that they run; the view is valid during the call. channels_last: axis
 * 1 of the model's tensor is the last axis of the view. The function may use qs_parallel. A result
 * other than 0 ends the execution with that code, and the function has set `error`.
 */
typedef int (*qs_observe_fn)(void *user, const char *output, const qsim_tensor *value,
                             bool channels_last, qsim_error *error);

struct qsim_run {
    qsim_session *session; /* counted reference */
    qsim_run *outer;       /* of a subgraph's run; NULL: it is none */
    qs_plan *plans[QS_PLANS];
    qs_plan *plan; /* the one last used */
    uint8_t *arena;
    size_t capacity;
    uint64_t clock;
    qs_stop stop;  /* its outer: that of the outer run if this is a subgraph's, or the context's */
    qsim_ctx view; /* context of the steps, with `stop` */
    uint64_t seed, turn; /* of random numbers: qs_frame */
    bool timing;
    qsim_profile_fn profile; /* NULL: no profile was begun */
    void *profile_user;
    int64_t executions;    /* number of those reported to `profile` */
    qs_observe_fn observe; /* during qs_run_observe */
    void *observe_user;
    size_t shown; /* number of outputs that it was called with */
};

/* Makes a run that of a subgraph, which stops when `outer` stops. */
void qs_run_follow(qsim_run *run, qsim_run *outer);
/* Executes a session compiled with QS_COMPILE_OBSERVED (run.c). */
int qs_run_observe(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                   qs_observe_fn observe, void *user, qsim_error *error);
/* Shows the outputs that are complete after a step; -1: before the first (observe.c). */
int qs_run_show(qsim_run *run, int32_t step, qsim_error *error);

/* Reports an execution that began at `began` (qs_clock_ns) to the profile (profile.c). */
void qs_run_report(qsim_run *run, uint64_t began);

#endif
