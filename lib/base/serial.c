/* SPDX-License-Identifier: MIT */
/*
 * A build without threads (QS_NO_THREADS) has this file in place of thread.c: every task runs on
 * the calling thread, or where the host's parallel_for puts it.
 */
#include "base/ctx.h"
#include "base/thread.h"

#ifdef QS_NO_THREADS

int32_t qs_cpu_count(void) {
    return 1;
}

struct qs_pool *qs_pool_create(qsim_ctx *ctx, int32_t threads) {
    (void)ctx, (void)threads;
    return NULL;
}

void qs_pool_free(qsim_ctx *ctx, struct qs_pool *pool) {
    (void)ctx, (void)pool;
}

void qs_parallel(const qsim_ctx *ctx, size_t n, qsim_task_fn task, void *arg) {
    if (n > 1 && ctx->parallel) {
        ctx->parallel(ctx->parallel_user, n, task, arg);
        return;
    }
    for (size_t i = 0; i < n && !qs_stopped(ctx); i++)
        task(arg, i);
}

void qs_team_begin(const qsim_ctx *ctx, qs_team *team) {
    (void)ctx, (void)team;
}

void qs_team_end(const qsim_ctx *ctx, qs_team *team) {
    (void)ctx, (void)team;
}
#endif
