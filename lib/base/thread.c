/* SPDX-License-Identifier: MIT */
/*
 * Workers wait on a condition variable; before that they spin for a moment, because the next layer
 * of a network follows within microseconds. Tasks are taken from a shared counter: which thread
 * does which task has no influence on results, because work is split over outputs only.
 */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "base/thread.h"
#include "base/ctx.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

/* About 20 µs of pauses: longer than the gap between layers, shorter than a scheduler's slice. */
#define SPINS 2000

struct qs_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t *threads;
    int32_t count; /* workers running */
    atomic_bool busy;
    atomic_bool stop;
    atomic_uint generation; /* counts jobs; a worker waits for it to change */
    atomic_size_t next;     /* task to take */
    atomic_int active;      /* workers that have not finished this job */
    size_t n;
    qsim_task_fn task;
    void *arg;
};

int32_t qs_cpu_count(void) {
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 && n < 4096 ? (int32_t)n : 1;
}

static void pause_cpu(void) {
#if defined(__x86_64__)
    __asm__ volatile("pause");
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_tasks(struct qs_pool *pool) {
    size_t i;
    while ((i = atomic_fetch_add(&pool->next, 1)) < pool->n)
        pool->task(pool->arg, i);
}

static unsigned wait_for_job(struct qs_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pool->generation) != seen)
            return atomic_load(&pool->generation);
        pause_cpu();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->generation) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    return atomic_load(&pool->generation);
}

static void *work(void *arg) {
    struct qs_pool *pool = arg;
    unsigned seen = 0;
    (void)qs_fp_enter();
    for (;;) {
        seen = wait_for_job(pool, seen);
        if (atomic_load(&pool->stop))
            return NULL;
        take_tasks(pool);
        atomic_fetch_sub(&pool->active, 1);
    }
}

static void announce(struct qs_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
}

struct qs_pool *qs_pool_create(qsim_ctx *ctx, int32_t threads) {
    struct qs_pool *pool = qs_calloc(ctx, 1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->threads = qs_calloc(ctx, (size_t)threads, sizeof(*pool->threads));
    if (!pool->threads) {
        qs_free(ctx, pool);
        return NULL;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    /* A thread that the system refuses costs speed only: results do not depend on their number. */
    while (pool->count < threads - 1 &&
           pthread_create(&pool->threads[pool->count], NULL, work, pool) == 0)
        pool->count++;
    if (pool->count < threads - 1)
        qs_log(ctx, QSIM_LOG_WARNING, "the system started %d of %d threads", (int)pool->count + 1,
               (int)threads);
    return pool;
}

void qs_pool_free(qsim_ctx *ctx, struct qs_pool *pool) {
    if (!pool)
        return;
    atomic_store(&pool->stop, true);
    announce(pool);
    for (int32_t i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    qs_free(ctx, pool->threads);
    qs_free(ctx, pool);
}

bool qs_pool_run(struct qs_pool *pool, size_t n, qsim_task_fn task, void *arg) {
    if (atomic_exchange(&pool->busy, true))
        return false;
    pool->n = n;
    pool->task = task;
    pool->arg = arg;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->active, pool->count);
    announce(pool);
    take_tasks(pool);
    /* A worker that has just been preempted may hold its task for a slice: yield after a while. */
    for (unsigned i = 0; atomic_load(&pool->active) > 0; i++)
        if (i < SPINS)
            pause_cpu();
        else
            sched_yield();
    atomic_store(&pool->busy, false);
    return true;
}

void qs_parallel(const qsim_ctx *ctx, size_t n, qsim_task_fn task, void *arg) {
    if (n > 1 && ctx->parallel) {
        ctx->parallel(ctx->parallel_user, n, task, arg);
        return;
    }
    if (n > 1 && ctx->pool && qs_pool_run(ctx->pool, n, task, arg))
        return;
    for (size_t i = 0; i < n; i++)
        task(arg, i);
}
