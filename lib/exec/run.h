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
    bool timing;
    qsim_profile_fn profile; /* NULL: nobody asked */
    void *profile_user;
    int64_t executions; /* reported */
};

/* Tells the profile of the execution that began at that time of qs_clock_ns (profile.c). */
void qs_run_report(qsim_run *run, uint64_t began);

#endif
