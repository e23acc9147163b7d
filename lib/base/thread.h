/* SPDX-License-Identifier: MIT */
/* The library's thread pool, used through qs_parallel alone. */
#ifndef QS_THREAD_H
#define QS_THREAD_H

#include "base/base.h"

struct qs_pool;

/*
 * How the executions of one plan use the threads. Whether a short plan gains from them depends on
 * the machine's load and on the distance of its cores: both ways are timed now and then, and the
 * faster one is chosen.
 */
typedef struct qs_team {
    uint64_t began_ns;     /* the execution in progress, if it is timed */
    uint64_t best_ns;      /* of the timed ones, with the present choice */
    uint64_t other_ns;     /* and with the other */
    size_t seats;          /* that its widest step had tasks for; 0: not executed yet */
    uint32_t turn, period; /* executions */
    bool alone;            /* the present choice */
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
 * Called before and after an execution: between the two, workers wait for the next step instead of
 * sleeping. Sleeping ones are woken if the plan has tasks for them and is long enough.
 */
void qs_team_begin(const qsim_ctx *ctx, qs_team *team);
void qs_team_end(const qsim_ctx *ctx, qs_team *team);

#endif
