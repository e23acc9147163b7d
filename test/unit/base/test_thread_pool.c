/* SPDX-License-Identifier: MIT */
#if defined(__linux__)
#define _GNU_SOURCE /* pthread_setattr_default_np */
#endif
/* The library's own thread pool: each task runs once; workers start when needed, sleep and end. */
#include "ptq_nets.h"
#include "no_threads.h"
#include "thread_count.h"

#include "base/ctx.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define COUNT 8

static qsim_ctx *context(int32_t threads) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    return ctx;
}

static int64_t cpu_ms(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (int64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
           (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

static void count_task(void *arg, size_t i) {
    (void)i;
    atomic_fetch_add((atomic_size_t *)arg, 1);
}

static void mark_task(void *arg, size_t i) {
    atomic_fetch_add((atomic_uchar *)arg + i, 1);
}

/* Each task runs exactly once: fewer tasks than threads, or more than are taken one by one. */
static void test_tasks(void) {
    static atomic_uchar marks[200001];
    static const size_t counts[] = {2, 3, 7, 65535, 65536, 200001};
    const struct timespec rest = {.tv_nsec = 2 * 1000 * 1000};
    for (int32_t threads = 2; threads <= 7; threads += 5) {
        const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads};
        qsim_ctx *ctx = NULL;
        CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
        for (size_t c = 0; c < 6; c++) {
            const size_t n = counts[c];
            const int rounds = n < 100 ? 2000 : 3;
            memset((void *)marks, 0, sizeof(marks));
            for (int round = 0; round < rounds; round++) {
                qs_parallel(ctx, n, mark_task, (void *)marks);
                if (round % 1000 == 1)
                    nanosleep(&rest, NULL); /* so that workers sleep */
            }
            size_t wrong = 0;
            for (size_t i = 0; i < sizeof(marks); i++)
                wrong += atomic_load(&marks[i]) != (i < n ? (unsigned char)rounds : 0);
            CHECK_INT(wrong, 0);
        }
        qsim_ctx_free(ctx);
    }
}

/* Idle workers sleep, before their first job and after one. */
static void test_idle(void) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 4};
    const struct timespec rest = {.tv_nsec = 200 * 1000 * 1000};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    for (int round = 0; round < 2; round++) {
        atomic_size_t count = 0;
        qs_parallel(ctx, 1000, count_task, &count);
        CHECK_INT(atomic_load(&count), 1000);
        int64_t begin = cpu_ms();
        nanosleep(&rest, NULL);
        CHECK(cpu_ms() - begin < 50); /* one worker that does not sleep needs up to 200 */
    }
    qsim_ctx_free(ctx);
}

/* ---- when threads start ---- */

/* Observers, files and models have a context each; none of these contexts starts a thread. */
static void test_no_threads(void) {
    const int before = settled(idle);
    qsim_observer *observers[COUNT];
    qsim_model *m = net_lenet();
    const float values[] = {1, 2};
    for (int i = 0; i < COUNT; i++) {
        CHECK_INT(qsim_observer_create(NULL, NULL, &observers[i], NULL), QSIM_OK);
        CHECK_INT(qsim_observer_feed(observers[i], values, 2), QSIM_OK);
    }
    CHECK_INT(settled(before), before);
    for (int i = 0; i < COUNT; i++)
        qsim_observer_free(observers[i]);
    qsim_model_free(m);
}

static void test_first_job(void) {
    const int before = settled(idle);
    qsim_ctx *ctx = context(4);
    atomic_size_t count = 0;
    CHECK_INT(qsim_ctx_threads(ctx), 4);
    qs_parallel(ctx, 1, count_task, &count);
    CHECK_INT(settled(before), before);
    for (int i = 0; i < 2; i++) {
        qs_parallel(ctx, 8, count_task, &count);
        CHECK_INT(settled(before < 0 ? before : before + 3), before < 0 ? before : before + 3);
    }
    CHECK_INT(atomic_load(&count), 17);
    qsim_ctx_free(ctx);
    CHECK_INT(settled(before), before);
}

typedef struct starter {
    const qsim_ctx *ctx;
    atomic_size_t *count;
    pthread_barrier_t *barrier;
} starter;

static void *first_jobs(void *arg) {
    const starter *me = arg;
    pthread_barrier_wait(me->barrier);
    for (int i = 0; i < 50; i++)
        qs_parallel(me->ctx, 7, count_task, me->count);
    return NULL;
}

/* Several callers at once: one starts the threads, the others run their jobs without them. */
static void test_first_jobs(void) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[3];
        pthread_barrier_t barrier;
        atomic_size_t count = 0;
        const int before = settled(idle);
        qsim_ctx *ctx = context(3);
        starter s = {ctx, &count, &barrier};
        CHECK_INT(pthread_barrier_init(&barrier, NULL, 3), 0);
        for (int i = 0; i < 3; i++)
            CHECK_INT(pthread_create(&threads[i], NULL, first_jobs, &s), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        CHECK_INT(atomic_load(&count), 3 * 50 * 7);
        CHECK_INT(settled(before < 0 ? before : before + 2), before < 0 ? before : before + 2);
        qsim_ctx_free(ctx);
        pthread_barrier_destroy(&barrier);
    }
}

/* Where the system refuses threads, the caller runs all tasks. */
static void test_no_thread_to_be_had(void) {
#if defined(__GLIBC__)
    const int before = settled(idle);
    refuse_threads(true);
    qsim_ctx *ctx = context(4);
    atomic_size_t count = 0;
    for (int i = 0; i < 3; i++)
        qs_parallel(ctx, 100, count_task, &count);
    CHECK_INT(atomic_load(&count), 300);
    CHECK_INT(settled(before), before);
    qsim_ctx_free(ctx);
    refuse_threads(false);
#endif
}

int main(void) {
    thread_count_start();
    test_no_threads();
    test_first_job();
    test_first_jobs();
    test_no_thread_to_be_had();
    test_tasks();
    test_idle();
    return test_done();
}
