/* SPDX-License-Identifier: MIT */
/* The own thread pool, used through qs_parallel alone. */
#ifndef QS_THREAD_H
#define QS_THREAD_H

#include "base/base.h"

struct qs_pool;

/*
 * How the executions of one plan use the threads. Whether a short one gains anything from them
 * depends on what else the machine does and on how far its cores are from each other: it is tried
 * now and then, and the better way kept.
 */
typedef struct qs_team {
    uint64_t began_ns;     /* the execution in progress, if it is timed */
    uint64_t best_ns;      /* of the timed ones, in the way that is kept */
    uint64_t other_ns;     /* and in the other */
    size_t seats;          /* that its widest step had tasks for; 0: not executed yet */
    uint32_t turn, period; /* executions */
    bool alone;            /* what is kept */
    bool running;          /* between begin and end */
} qs_team;

/* CPUs that this process may run on, at least 1. */
int32_t qs_cpu_count(void);

/*
 * `threads` - 1 workers, which the first qs_parallel of several tasks starts; its caller is the
 * last one. NULL when out of memory.
 */
struct qs_pool *qs_pool_create(qsim_ctx *ctx, int32_t threads);
void qs_pool_free(qsim_ctx *ctx, struct qs_pool *pool);

/*
 * Around an execution: between the two, workers wait for the next step instead of sleeping. Those
 * that sleep are woken if the plan has tasks for them and is long enough.
 */
void qs_team_begin(const qsim_ctx *ctx, qs_team *team);
void qs_team_end(const qsim_ctx *ctx, qs_team *team);

#endif
