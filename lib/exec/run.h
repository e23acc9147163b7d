/* SPDX-License-Identifier: MIT */
/* A run: one caller's plans and activation memory. */
#ifndef QS_RUN_H
#define QS_RUN_H

#include "exec/exec.h"

#include <qsim/profile.h>

struct qsim_run {
    qsim_session *session; /* held */
    qs_plan *plans[QS_PLANS];
    qs_plan *plan; /* the one last used */
    uint8_t *arena;
    size_t room;
    uint64_t clock;
    atomic_int cancel;
    const struct qsim_run *parent; /* whose subgraph it runs, and which is cancelled for it */
    bool timing;
    qsim_profile_fn profile; /* NULL: nobody asked */
    void *profile_user;
    int64_t executions; /* reported */
};

/* Whether it, or a run whose subgraph it runs, has been told to stop. */
bool qs_run_is_cancelled(const qsim_run *run);
/* Tells the profile of the execution that began at that time of qs_clock_ns (profile.c). */
void qs_run_report(qsim_run *run, uint64_t began);

#endif
