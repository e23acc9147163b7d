/* SPDX-License-Identifier: MIT */
/*
 * The thread pool. Each thread has a seat with its own share of a job's tasks: the first tasks are
 * always the caller's, the next ones always the first worker's, so that a layer finds the results
 * of the layer before in the same cache. A thread that has done its own share takes tasks from the
 * ends of the others' shares. Which thread does which task has no influence on results, because
 * work is split over outputs only.
 *
 * Workers spin while a run is in progress, because the next layer follows within microseconds, and
 * for a moment after it; then they sleep. Waking one costs the caller some 5 to 10 us in a virtual
 * machine, and the worker starts 15 to 40 us later, so a run wakes its workers at the beginning.
 *
 * The caller of the first job starts the threads, while it has the pool to itself: a context that
 * only reads files or counts values has none.
 *
 * A job does not wait for workers that have taken no task of it: on a busy machine a worker may
 * wake up long after the others have done everything.
 */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity, sched_getcpu, MADV_WIPEONFORK */
#endif
#include "base/thread.h"
#include "base/ctx.h"
#include "base/posix.h"

#ifndef QS_NO_THREADS /* else base/serial.c */
#include <pthread.h>
#include <sched.h>

#define SPIN_RUN_NS                                                                                \
    1000000 /* spinning without a task during a run: a long layer that is not split */
#define SPIN_IDLE_NS 100000  /* after a run: what sleeping and waking cost together, twice */
#define LONG_NS      1000000 /* a run of this length always gains more from workers than they cost */
#define PATIENCE     2000 /* pauses, after which the caller assumes that a worker was preempted */

/* A job's number, the first task that is not taken, and their end: one word, changed as a whole. */
#define RANGE(job, first, end) ((unsigned long long)(job) << 32 | (first) << 16 | (end))
#define FIRST(range)           ((range) >> 16 & 0xffff)
#define END(range)             ((range)&0xffff)
#define MOST_UNITS             0xffff

/*
 * One cache line carries a job to its thread and the completion back, another the state for waking
 * that thread.
 */
typedef struct seat {
    _Alignas(64) atomic_ullong range; /* in units of `group` tasks */
    atomic_ullong done;               /* units that this seat's thread has done, ever */
    /* The job; unchanged until all threads that took a task of it have finished that task. */
    const qsim_ctx *ctx;
    qsim_task_fn task;
    void *arg;
    size_t n, group;
    _Alignas(64) atomic_bool asleep;
    bool called; /* woken, without a task yet */
    size_t number;
    struct qs_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
} seat;

struct qs_pool {
    seat *seats;      /* 0: the caller's */
    int32_t made;     /* whose locks and conditions exist */
    atomic_int count; /* with a thread, the caller's included */
    atomic_bool stop;
    atomic_int caller_cpu;
    atomic_int runs;     /* in progress */
    atomic_int sleepers; /* may be late: a hint */
    atomic_bool alone;   /* the run in progress does without workers */
    atomic_size_t most;  /* seats that a job of this run had tasks for */
    int32_t wanted;      /* threads, the caller's included */
    _Alignas(64) atomic_bool busy;
    bool started; /* the thread that holds `busy` starts them */
    uint32_t job;
    uint64_t ordered; /* units, ever */
    pid_t process;
    atomic_int *here; /* FORKED in the child of a fork; NULL: the system has no such memory */
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

static int this_cpu(void) {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

/*
 * Where every CPU is busy, the system puts a woken worker on the waker's CPU, where it delays the
 * caller until the load is balanced, milliseconds later. So the worker moves itself to another CPU
 * and then restores its set of allowed CPUs.
 */
static void step_aside(int cpu) {
#if defined(__linux__)
    cpu_set_t all, others;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all) != 0)
        return;
    others = all;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof(others), &others) == 0)
        (void)sched_setaffinity(0, sizeof(all), &all);
#else
    (void)cpu;
#endif
}

/* ---- tasks ---- */

static bool has_tasks(const seat *s) {
    const unsigned long long range = atomic_load_explicit(&s->range, memory_order_acquire);
    return FIRST(range) < END(range);
}

static void do_unit(const seat *s, size_t unit) {
    size_t i = unit * s->group, end = i + s->group < s->n ? i + s->group : s->n;
    for (; i < end && !qs_stopped(s->ctx); i++)
        s->task(s->arg, i);
}

/* Takes tasks of a seat: the seat's own thread from the beginning, others from the end. */
static void take_from(seat *s, seat *mine) {
    uint64_t done = 0;
    unsigned long long range = atomic_load_explicit(&s->range, memory_order_acquire);
    while (FIRST(range) < END(range)) {
        if (!atomic_compare_exchange_weak(&s->range, &range,
                                          s == mine ? range + RANGE(0, 1, 0) : range - 1))
            continue;
        do_unit(s, (size_t)(s == mine ? FIRST(range) : END(range) - 1));
        done++;
        range = atomic_load_explicit(&s->range, memory_order_acquire);
    }
    if (done) /* only this thread writes it */
        atomic_store_explicit(&mine->done,
                              atomic_load_explicit(&mine->done, memory_order_relaxed) + done,
                              memory_order_release);
}

static void take_others(struct qs_pool *pool, size_t number) {
    const size_t seats = (size_t)atomic_load_explicit(&pool->count, memory_order_relaxed);
    for (size_t i = number + 1; i < seats; i++)
        take_from(&pool->seats[i], &pool->seats[number]);
    for (size_t i = 0; i < number; i++)
        take_from(&pool->seats[i], &pool->seats[number]);
}

static bool all_done(const struct qs_pool *pool) {
    const size_t seats = (size_t)atomic_load_explicit(&pool->count, memory_order_relaxed);
    uint64_t done = 0;
    for (size_t i = 0; i < seats; i++)
        done += atomic_load_explicit(&pool->seats[i].done, memory_order_acquire);
    return done == pool->ordered;
}

/* ---- sleeping and waking ---- */

/* Wakes the worker of that seat, which wakes those below it in the tree. */
static void rouse(struct qs_pool *pool, size_t number) {
    if (number >= atomic_load(&pool->most) || number >= (size_t)atomic_load(&pool->count))
        return;
    seat *s = &pool->seats[number];
    if (atomic_load(&s->asleep)) {
        pthread_mutex_lock(&s->lock);
        s->called = true;
        pthread_mutex_unlock(&s->lock);
        pthread_cond_signal(&s->wake);
        return;
    }
    rouse(pool, 2 * number);
    rouse(pool, 2 * number + 1);
}

/* A worker that is about to sleep announces it and checks once more, so one is rarely missed. */
static void sleep_until_called(seat *s) {
    struct qs_pool *pool = s->pool;
    pthread_mutex_lock(&s->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    atomic_store(&s->asleep, true);
    while (!s->called && !has_tasks(s) && !atomic_load(&pool->stop))
        pthread_cond_wait(&s->wake, &s->lock);
    atomic_store(&s->asleep, false);
    atomic_fetch_sub(&pool->sleepers, 1);
    s->called = false;
    pthread_mutex_unlock(&s->lock);
    const int cpu = this_cpu();
    if (cpu >= 0 && cpu == atomic_load(&pool->caller_cpu))
        step_aside(cpu);
    rouse(pool, 2 * s->number);
    rouse(pool, 2 * s->number + 1);
}

/* Spins until there is a task or the pool ends; false when that takes too long. */
static bool spin(const seat *s) {
    struct qs_pool *pool = s->pool;
    const uint64_t begin = qs_clock_ns();
    uint64_t last = begin;
    for (unsigned i = 1; !has_tasks(s); i++) {
        pause_cpu();
        if (i % 16 != 0)
            continue;
        if (atomic_load_explicit(&pool->stop, memory_order_relaxed))
            return true;
        const uint64_t now = qs_clock_ns();
        if (atomic_load_explicit(&pool->runs, memory_order_relaxed) > 0)
            last = now;
        if (now - last > SPIN_IDLE_NS || now - begin > SPIN_RUN_NS)
            return false;
    }
    return true;
}

static void *work(void *arg) {
    seat *s = arg;
    struct qs_pool *pool = s->pool;
    (void)qs_fp_enter();
    while (!atomic_load(&pool->stop)) {
        if (!spin(s))
            sleep_until_called(s);
        if (has_tasks(s)) {
            take_from(s, s);
            take_others(pool, s->number);
        }
    }
    return NULL;
}

/* ---- life ---- */

static bool make_seat(struct qs_pool *pool, seat *s) {
    s->pool = pool;
    s->number = (size_t)(s - pool->seats);
    if (pthread_mutex_init(&s->lock, NULL) != 0)
        return false;
    if (pthread_cond_init(&s->wake, NULL) != 0) {
        pthread_mutex_destroy(&s->lock);
        return false;
    }
    return true;
}

/*
 * A forked child has the parent's memory without its threads, and locks as they were at the fork.
 * The system clears one page of the child's memory, and reading that page costs nothing.
 */
#define FORKED   0
#define RENEWING 1
#define AT_HOME  2

static void mark_process(struct qs_pool *pool) {
    pool->process = getpid();
    pool->here = NULL;
#if defined(__linux__) && defined(MADV_WIPEONFORK)
    void *page =
        mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, sizeof(atomic_int), MADV_WIPEONFORK) != 0) {
        munmap(page, sizeof(atomic_int));
        return;
    }
    pool->here = page;
    atomic_store(pool->here, AT_HOME);
#endif
}

/* Resets the pool and its seats to those of a new pool, without threads. */
static void renew(struct qs_pool *pool) {
    const int32_t made = pool->made;
    atomic_store(&pool->count, 1);
    atomic_store(&pool->stop, false);
    atomic_store(&pool->runs, 0);
    atomic_store(&pool->sleepers, 0);
    atomic_store(&pool->alone, false);
    atomic_store(&pool->busy, false);
    pool->started = false;
    pool->ordered = 0;
    memset(pool->seats, 0, (size_t)made * sizeof(*pool->seats));
    pool->seats[0].pool = pool;
    pool->made = 0;
    while (pool->made < made && make_seat(pool, &pool->seats[pool->made]))
        pool->made++;
    pool->process = getpid();
}

/* After a fork: makes the pool the child's own; false: another thread of the child is doing so. */
static bool is_here(struct qs_pool *pool) {
    if (!pool->here) {
        if (pool->process != getpid())
            renew(pool);
        return true;
    }
    int where = atomic_load_explicit(pool->here, memory_order_acquire);
    if (where == FORKED && atomic_compare_exchange_strong(pool->here, &where, RENEWING)) {
        renew(pool);
        atomic_store(pool->here, where = AT_HOME);
    }
    return where == AT_HOME;
}

struct qs_pool *qs_pool_create(qsim_ctx *ctx, int32_t threads) {
    struct qs_pool *pool = qs_calloc(ctx, 1, sizeof(*pool));
    if (!pool)
        return NULL;
    pool->seats = qs_calloc(ctx, (size_t)threads, sizeof(*pool->seats));
    if (!pool->seats) {
        qs_free(ctx, pool);
        return NULL;
    }
    atomic_store(&pool->caller_cpu, -1);
    pool->seats[0].pool = pool;
    while (pool->made < threads && make_seat(pool, &pool->seats[pool->made]))
        pool->made++;
    pool->wanted = threads;
    atomic_store(&pool->count, 1);
    mark_process(pool);
    return pool;
}

/* A thread that the system refuses costs speed only: results do not depend on their number. */
static void start(const qsim_ctx *ctx, struct qs_pool *pool) {
    int32_t count = 1;
    while (count < pool->made &&
           pthread_create(&pool->seats[count].thread, NULL, work, &pool->seats[count]) == 0)
        count++;
    atomic_store(&pool->count, count);
    pool->started = true;
    if (count < pool->wanted)
        qs_log(ctx, QSIM_LOG_WARNING, "the system started %d of %d threads", (int)count,
               (int)pool->wanted);
}

void qs_pool_free(qsim_ctx *ctx, struct qs_pool *pool) {
    if (!pool)
        return;
    if (is_here(pool) && pool->process != getpid()) /* a child has no threads to wait for */
        renew(pool);
    atomic_store(&pool->stop, true);
    const int32_t count = atomic_load(&pool->count);
    for (int32_t i = 1; i < count; i++) {
        pthread_mutex_lock(&pool->seats[i].lock);
        pthread_mutex_unlock(&pool->seats[i].lock);
        pthread_cond_signal(&pool->seats[i].wake);
    }
    for (int32_t i = 1; i < count; i++)
        pthread_join(pool->seats[i].thread, NULL);
    for (int32_t i = 0; i < pool->made; i++) {
        pthread_cond_destroy(&pool->seats[i].wake);
        pthread_mutex_destroy(&pool->seats[i].lock);
    }
    if (pool->here)
        munmap(pool->here, sizeof(*pool->here));
    qs_free(ctx, pool->seats);
    qs_free(ctx, pool);
}

/* ---- jobs ---- */

/* Gives the seats their tasks. Does not wait for cache lines: the caller's tasks begin at once. */
static void publish(const qsim_ctx *ctx, size_t n, qsim_task_fn task, void *arg) {
    struct qs_pool *pool = ctx->pool;
    const size_t count = (size_t)atomic_load_explicit(&pool->count, memory_order_relaxed);
    const size_t group = n / MOST_UNITS + 1, units = (n + group - 1) / group;
    const size_t seats = count < units ? count : units;
    const size_t most = atomic_load_explicit(&pool->most, memory_order_relaxed);
    if (most < seats || (most > seats && atomic_load(&pool->runs) == 0))
        atomic_store_explicit(&pool->most, seats, memory_order_relaxed);
    const int cpu = this_cpu();
    if (cpu != atomic_load_explicit(&pool->caller_cpu, memory_order_relaxed))
        atomic_store_explicit(&pool->caller_cpu, cpu, memory_order_relaxed);
    pool->job++;
    pool->ordered += units;
    /* The last seat is first, since its thread is woken through the most others. */
    for (size_t i = seats; i-- > 0;) {
        seat *s = &pool->seats[i];
        s->ctx = ctx;
        s->task = task;
        s->arg = arg;
        s->n = n;
        s->group = group;
        atomic_store_explicit(&s->range,
                              RANGE(pool->job, units * i / seats, units * (i + 1) / seats),
                              memory_order_release);
    }
}

/* Runs a job on the pool; false: the pool is busy, and nothing was done. */
static bool run_tasks(const qsim_ctx *ctx, size_t n, qsim_task_fn task, void *arg) {
    struct qs_pool *pool = ctx->pool;
    if (!is_here(pool) || atomic_load_explicit(&pool->alone, memory_order_relaxed) ||
        atomic_exchange(&pool->busy, true))
        return false;
    if (!pool->started)
        start(ctx, pool);
    publish(ctx, n, task, arg);
    /* A worker that falls asleep just now may be missed: it misses this job. */
    if (atomic_load_explicit(&pool->sleepers, memory_order_relaxed) > 0)
        rouse(pool, 1);
    take_from(&pool->seats[0], &pool->seats[0]);
    if (!all_done(pool))
        take_others(pool, 0);
    /* A worker that has just been preempted may hold its task for a slice: yield after a while. */
    for (unsigned i = 0; !all_done(pool); i++)
        if (i < PATIENCE)
            pause_cpu();
        else
            sched_yield();
    atomic_store_explicit(&pool->busy, false, memory_order_release);
    return true;
}

void qs_parallel(const qsim_ctx *ctx, size_t n, qsim_task_fn task, void *arg) {
    if (n > 1 && ctx->parallel) {
        ctx->parallel(ctx->parallel_user, n, task, arg);
        return;
    }
    if (n > 1 && ctx->pool && run_tasks(ctx, n, task, arg))
        return;
    for (size_t i = 0; i < n && !qs_stopped(ctx); i++)
        task(arg, i);
}

/* ---- runs ---- */

/*
 * Executions of a plan come in periods. All but the last TRIED of a period use the present choice,
 * with workers or without; the last ones are timed both ways. The first of either kind finds caches
 * that the other has filled, and does not count. A period is short after a change of the choice,
 * and grows each time the choice is confirmed.
 */
#define SHORTEST 32
#define LONGEST  512
#define TRIED    4
#define COUNTED  8 /* of the present choice, before those */

static bool is_tried(const qs_team *team) {
    return team->turn + TRIED >= team->period;
}

static bool is_timed(const qs_team *team) {
    return team->turn + TRIED + COUNTED >= team->period;
}

static void note_time(qs_team *team, uint64_t ns) {
    if (is_tried(team) && team->turn + TRIED > team->period)
        team->other_ns = ns < team->other_ns ? ns : team->other_ns;
    else if (!is_tried(team) && team->turn + TRIED + COUNTED > team->period)
        team->best_ns = ns < team->best_ns ? ns : team->best_ns;
}

static void new_period(qs_team *team, uint32_t length) {
    team->period = length;
    team->turn = 0;
    team->best_ns = team->other_ns = UINT64_MAX;
}

static void next_turn(qs_team *team) {
    team->turn++;
    if (team->turn + TRIED == team->period && team->best_ns > LONG_NS && !team->alone)
        new_period(team, LONGEST); /* long enough to be sure */
    if (team->turn < team->period)
        return;
    const bool wrong = team->other_ns < team->best_ns - team->best_ns / 64;
    team->alone = team->alone != wrong;
    new_period(team, wrong ? SHORTEST : team->period < LONGEST ? 2 * team->period : LONGEST);
}

void qs_team_begin(const qsim_ctx *ctx, qs_team *team) {
    struct qs_pool *pool = ctx->pool;
    if (!pool || !is_here(pool) || team->seats == 1)
        return;
    if (team->period == 0)
        new_period(team, 1 + COUNTED + TRIED); /* the first one is not timed */
    if (is_timed(team))
        team->began_ns = qs_clock_ns();
    team->running = true;
    const bool alone = team->alone != is_tried(team);
    atomic_store(&pool->alone, alone);
    atomic_store(&pool->most, team->seats);
    if (alone)
        return;
    atomic_store(&pool->caller_cpu, this_cpu());
    atomic_fetch_add(&pool->runs, 1);
    if (atomic_load(&pool->sleepers) > 0)
        rouse(pool, 1);
}

void qs_team_end(const qsim_ctx *ctx, qs_team *team) {
    struct qs_pool *pool = ctx->pool;
    if (!team->running)
        return;
    if (team->alone == is_tried(team))
        atomic_fetch_sub(&pool->runs, 1);
    atomic_store(&pool->alone, false);
    if (is_timed(team))
        note_time(team, qs_clock_ns() - team->began_ns);
    const size_t most = atomic_load(&pool->most);
    if (team->seats == 0)
        team->seats = most > 1 ? most : 1;
    team->running = false;
    next_turn(team);
}
#endif
