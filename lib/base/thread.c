/* SPDX-License-Identifier: MIT */
/*
 * Workers wait on a condition variable; before that they spin for a moment, because the next layer
 * of a network follows within microseconds. Tasks are taken from a shared counter: which thread
 * does which task has no influence on results, because work is split over outputs only.
 *
 * Nobody waits for a worker that has not taken a task: on a busy machine one may wake up long after
 * the others have done everything.
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
    atomic_ullong job;        /* number of the job, and below it 32 bits: tasks to be taken */
    atomic_size_t unfinished; /* tasks of this job */
    atomic_int asleep;        /* workers */
    /* Of the job: stay until all who have taken a task of it have finished that. */
    size_t n;
    qsim_task_fn task;
    void *arg;
};

#define TASKS 0xffffffffull

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
    unsigned long long job = atomic_load(&pool->job);
    while (job & TASKS) {
        if (!atomic_compare_exchange_weak(&pool->job, &job, job - 1))
            continue;
        pool->task(pool->arg, pool->n - (size_t)(job & TASKS));
        atomic_fetch_sub(&pool->unfinished, 1);
        job = atomic_load(&pool->job);
    }
}

static bool has_tasks(struct qs_pool *pool) {
    return (atomic_load(&pool->job) & TASKS) || atomic_load(&pool->stop);
}

static void wait_for_job(struct qs_pool *pool) {
    for (int i = 0; i < SPINS; i++) {
        if (has_tasks(pool))
            return;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->asleep, 1);
    while (!has_tasks(pool))
        pthread_cond_wait(&pool->wake, &pool->lock);
    atomic_fetch_sub(&pool->asleep, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *arg) {
    struct qs_pool *pool = arg;
    (void)qs_fp_enter();
    for (;;) {
        wait_for_job(pool);
        if (atomic_load(&pool->stop))
            return NULL;
        take_tasks(pool);
    }
}

/* Who is about to sleep has counted himself and looks once more; so nobody is missed. */
static void announce(struct qs_pool *pool, size_t workers) {
    if (atomic_load(&pool->asleep) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < workers; i++)
        pthread_cond_signal(&pool->wake);
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
    announce(pool, (size_t)pool->count);
    for (int32_t i = 0; i < pool->count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    qs_free(ctx, pool->threads);
    qs_free(ctx, pool);
}

bool qs_pool_run(struct qs_pool *pool, size_t n, qsim_task_fn task, void *arg) {
    if (n > TASKS || atomic_exchange(&pool->busy, true))
        return false;
    size_t workers = (size_t)pool->count < n ? (size_t)pool->count : n - 1;
    pool->n = n;
    pool->task = task;
    pool->arg = arg;
    atomic_store(&pool->unfinished, n);
    atomic_store(&pool->job, ((atomic_load(&pool->job) | TASKS) + 1) | n);
    announce(pool, workers);
    take_tasks(pool);
    /* A worker that has just been preempted may hold its task for a slice: yield after a while. */
    for (unsigned i = 0; atomic_load(&pool->unfinished) > 0; i++)
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
