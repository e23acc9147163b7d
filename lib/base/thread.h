/* SPDX-License-Identifier: MIT */
/* The own thread pool, used through qs_parallel alone. */
#ifndef QS_THREAD_H
#define QS_THREAD_H

#include "base/base.h"

struct qs_pool;

/* CPUs that this process may run on, at least 1. */
int32_t qs_cpu_count(void);

/* `threads` - 1 workers; the caller of qs_pool_run is the last one. NULL when out of memory. */
struct qs_pool *qs_pool_create(qsim_ctx *ctx, int32_t threads);
void qs_pool_free(qsim_ctx *ctx, struct qs_pool *pool);
/* False, having done nothing, if the pool is busy. */
bool qs_pool_run(struct qs_pool *pool, size_t n, qsim_task_fn task, void *arg);

#endif
