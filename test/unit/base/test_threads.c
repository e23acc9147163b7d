/* SPDX-License-Identifier: MIT */
#if defined(__linux__)
#define _GNU_SOURCE /* pthread_setattr_default_np */
#endif
/*
 * What several threads may do at once: run one session, cancel each other, save, free in any order;
 * and whatever a caller's parallel_for does with tasks, the results are the same.
 */
#include "process_memory.h"
#include "ptq_nets.h"
#include "thread_count.h"

#include "base/ctx.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT   8
#define SAMPLES 3

/* ---- a caller's parallel_for ---- */

typedef struct task {
    qsim_task_fn run;
    void *arg;
    size_t i;
} task;

static atomic_size_t tasks_seen;

static void serial(void *user, size_t n, qsim_task_fn run, void *arg) {
    (void)user;
    atomic_fetch_add(&tasks_seen, n);
    for (size_t i = 0; i < n; i++)
        run(arg, i);
}

static void reversed(void *user, size_t n, qsim_task_fn run, void *arg) {
    (void)user;
    for (size_t i = n; i-- > 0;)
        run(arg, i);
}

static void *one_task(void *arg) {
    task *t = arg;
    t->run(t->arg, t->i);
    return NULL;
}

static void threaded(void *user, size_t n, qsim_task_fn run, void *arg) {
    pthread_t threads[16];
    task tasks[16];
    (void)user;
    CHECK(n <= 16);
    for (size_t i = 0; i < n && i < 16; i++) {
        tasks[i] = (task){run, arg, i};
        CHECK_INT(pthread_create(&threads[i], NULL, one_task, &tasks[i]), 0);
    }
    for (size_t i = 0; i < n && i < 16; i++)
        pthread_join(threads[i], NULL);
}

/* ---- models ---- */

/* The network of net_lenet, saved and loaded in another context. */
static qsim_model *model_in(qsim_ctx *ctx, const qsim_model *m, uint8_t *file, size_t capacity) {
    size_t size = 0;
    qsim_model *out = NULL;
    CHECK_INT(qsim_model_save_memory(m, file, capacity, &size, NULL), QSIM_OK);
    CHECK(size <= capacity);
    CHECK_INT(qsim_model_load_memory(ctx, file, size, NULL, &out, NULL), QSIM_OK);
    return out;
}

static qsim_ctx *context(qsim_parallel_fn parallel, int32_t threads) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .parallel_for = parallel, .threads = threads};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    return ctx;
}

static void batch(float *data, int64_t *dims, qsim_tensor *x, uint64_t seed) {
    net_batch(data, SAMPLES, seed);
    memcpy(dims, (int64_t[]){SAMPLES, 1, 12, 12}, 4 * sizeof(*dims));
    *x = (qsim_tensor){QSIM_FLOAT, 4, dims, data, SAMPLES * 144 * sizeof(float)};
}

/* Large enough for its layers to be split: 1.7 million products a sample. */
static qsim_model *wide_net(void) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "wide", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){SAMPLES, 8, 16, 16}, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 4, (int64_t[]){SAMPLES, 32, 12, 12}, NULL);
    net_constant(b, "w", 4, (int64_t[]){32, 8, 3, 3}, 0.2f, 1);
    net_constant(b, "v", 4, (int64_t[]){32, 32, 3, 3}, 0.1f, 2);
    qsim_builder_node(b, "", "Conv", "first", "x,w", "c");
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "Conv", "second", "r,v", "y");
    return net_finish(b);
}

static qsim_model *quantized(const qsim_model *m, const qsim_tensor *x) {
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, x, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_quantize(m, c, NULL, &q, NULL), QSIM_OK);
    qsim_calibration_free(c);
    return q;
}

/* Few pixels, many weights: threads share the columns, also of a single row. */
static qsim_model *deep_net(void) {
    static const int64_t pads[] = {1, 1, 1, 1}, pool[] = {4, 4};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "deep", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, (int64_t[]){1, 64, 4, 4}, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, (int64_t[]){1, 400}, NULL);
    net_constant(b, "w", 4, (int64_t[]){1024, 64, 3, 3}, 0.2f, 1);
    net_constant(b, "v", 2, (int64_t[]){1024, 400}, 0.1f, 2);
    qsim_builder_node(b, "", "Conv", "conv", "x,w", "c");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "MaxPool", "pool", "c", "p");
    qsim_builder_attr_ints(b, "kernel_shape", pool, 2);
    qsim_builder_node(b, "", "Flatten", "flat", "p", "f");
    qsim_builder_node(b, "", "MatMul", "product", "f,v", "y");
    return net_finish(b);
}

static void try_ways(const qsim_model *source, qsim_tensor *x, size_t n) {
    static const qsim_parallel_fn ways[] = {serial, reversed, threaded, NULL, NULL, NULL, NULL};
    static const int32_t counts[] = {5, 5, 5, 5, 2, 3, 7};
    static uint8_t file[1 << 22];
    static float want[SAMPLES * 32 * 144], got[SAMPLES * 32 * 144];
    CHECK(n <= SAMPLES * 32 * 144);
    CHECK_INT(net_run(source, x, want, n), (long long)n);
    atomic_store(&tasks_seen, 0);
    for (size_t w = 0; w < 7; w++) {
        qsim_ctx *ctx = context(ways[w], counts[w]);
        qsim_model *m = model_in(ctx, source, file, sizeof(file));
        memset(got, 0xff, sizeof(got));
        CHECK_INT(net_run(m, x, got, n), (long long)n);
        CHECK(memcmp(want, got, n * sizeof(*want)) == 0);
        qsim_model_free(m);
        qsim_ctx_free(ctx);
    }
    CHECK(atomic_load(&tasks_seen) > 1); /* work was split */
}

static void test_parallel(void) {
    static float data[SAMPLES * 8 * 256];
    const int64_t dims[] = {SAMPLES, 8, 16, 16};
    qsim_tensor x = {QSIM_FLOAT, 4, dims, data, sizeof(data)};
    uint64_t seed = 5;
    for (size_t i = 0; i < SAMPLES * 8 * 256; i++)
        data[i] = (float)test_random(&seed) / 4294967296.0f;
    qsim_model *m = wide_net(), *q = quantized(m, &x);
    try_ways(m, &x, SAMPLES * 32 * 144);
    try_ways(q, &x, SAMPLES * 32 * 144);
    qsim_model_free(m);
    qsim_model_free(q);
    const int64_t few[] = {1, 64, 4, 4};
    x = (qsim_tensor){QSIM_FLOAT, 4, few, data, 64 * 16 * sizeof(float)};
    m = deep_net();
    q = quantized(m, &x);
    try_ways(m, &x, 400);
    try_ways(q, &x, 400);
    qsim_model_free(m);
    qsim_model_free(q);
}

/* ---- runs of one session ---- */

typedef struct worker {
    qsim_run *run;
    const float *want;
    int index, wrong;
} worker;

static void *work(void *arg) {
    worker *me = arg;
    static _Thread_local float data[SAMPLES * 144];
    int64_t dims[4];
    qsim_tensor x;
    batch(data, dims, &x, (uint64_t)me->index);
    for (int round = 0; round < 20; round++) {
        qsim_tensor y = {0};
        if (qsim_run_execute(me->run, &x, 1, &y, 1, NULL))
            me->wrong++;
        else
            me->wrong += memcmp(y.data, me->want, y.bytes) != 0;
    }
    qsim_run_free(me->run);
    return NULL;
}

/* Context, model and session are freed while runs of the session execute. */
static void test_shared_session(const qsim_model *source) {
    static uint8_t file[1 << 16];
    static float data[SAMPLES * 144], want[COUNT][64];
    qsim_ctx *ctx = context(NULL, 3);
    qsim_model *m = model_in(ctx, source, file, sizeof(file));
    qsim_session *s = NULL;
    pthread_t threads[COUNT];
    worker workers[COUNT];
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    for (int i = 0; i < COUNT; i++) {
        int64_t dims[4];
        qsim_tensor x;
        batch(data, dims, &x, (uint64_t)i);
        CHECK_INT(net_run(source, &x, want[i], 64), SAMPLES * 5);
        workers[i] = (worker){.index = i, .want = want[i]};
        CHECK_INT(qsim_run_create(s, &workers[i].run, NULL), QSIM_OK);
    }
    for (int i = 0; i < COUNT; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    qsim_ctx_free(ctx);
    qsim_model_free(m);
    qsim_session_free(s);
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(workers[i].wrong, 0);
    }
}

/* ---- sessions with contexts of their own ---- */

/*
 * One model, compiled for several thread counts and instruction sets at once; contexts and model
 * are freed before the first run.
 */
static void test_own_contexts(void) {
    static float data[SAMPLES * 8 * 256], want[SAMPLES * 32 * 144], got[SAMPLES * 32 * 144];
    static const int32_t counts[] = {1, 2, 5, 0}, isas[] = {0, QSIM_ISA_C, 0, QSIM_ISA_C};
    const int64_t dims[] = {SAMPLES, 8, 16, 16};
    qsim_tensor x = {QSIM_FLOAT, 4, dims, data, sizeof(data)};
    const int before = settled(idle);
    uint64_t seed = 5;
    for (size_t i = 0; i < SAMPLES * 8 * 256; i++)
        data[i] = (float)test_random(&seed) / 4294967296.0f;
    qsim_model *m = wide_net();
    qsim_session *sessions[4] = {0};
    CHECK_INT(net_run(m, &x, want, SAMPLES * 32 * 144), SAMPLES * 32 * 144);
    for (int i = 0; i < 4; i++) {
        const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = counts[i], .isa = isas[i]};
        qsim_session_options s = {.struct_size = sizeof(s)};
        CHECK_INT(qsim_ctx_create(&o, &s.ctx, NULL), QSIM_OK);
        CHECK_INT(qsim_session_create(m, &s, &sessions[i], NULL), QSIM_OK);
        qsim_ctx_free(s.ctx);
    }
    qsim_model_free(m);
    for (int i = 0; i < 3; i++) {
        const int threads = thread_count();
        qsim_tensor y = {.data = got, .bytes = sizeof(got)};
        qsim_run *run = NULL;
        CHECK_INT(qsim_run_create(sessions[i], &run, NULL), QSIM_OK);
        CHECK_INT(qsim_run_execute(run, &x, 1, &y, 1, NULL), QSIM_OK);
        CHECK(memcmp(want, got, sizeof(want)) == 0);
        CHECK(threads < 0 || thread_count() - threads == counts[i] - 1);
        qsim_run_free(run);
    }
    for (int i = 0; i < 4; i++)
        qsim_session_free(sessions[i]);
    CHECK(before < 0 || settled(before) <= before);
}

/* ---- cancelling ---- */

typedef struct canceller {
    qsim_run *run;
    atomic_int executions; /* that have begun */
    atomic_int stop;
} canceller;

static void *cancel(void *arg) {
    canceller *c = arg;
    while (!atomic_load(&c->stop))
        if (atomic_load(&c->executions) >= 3) {
            qsim_run_cancel(c->run);
            return NULL;
        }
    return NULL;
}

static void test_cancel(const qsim_model *m) {
    static float data[SAMPLES * 144];
    int64_t dims[4];
    qsim_tensor x, y = {0};
    qsim_session *s = NULL;
    canceller c = {0};
    pthread_t thread;
    int code = QSIM_OK;
    batch(data, dims, &x, 1);
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &c.run, NULL), QSIM_OK);
    CHECK_INT(pthread_create(&thread, NULL, cancel, &c), 0);
    for (int i = 0; i < 10000000 && code == QSIM_OK; i++) {
        atomic_fetch_add(&c.executions, 1);
        y = (qsim_tensor){0};
        code = qsim_run_execute(c.run, &x, 1, &y, 1, NULL);
    }
    CHECK_INT(code, QSIM_E_CANCELLED);
    atomic_store(&c.stop, 1);
    pthread_join(thread, NULL);
    y = (qsim_tensor){0};
    CHECK_INT(qsim_run_execute(c.run, &x, 1, &y, 1, NULL), QSIM_OK); /* one cancel ends one run */
    qsim_run_free(c.run);
    qsim_session_free(s);
}

/* ---- saving ---- */

/*
 * Replaces the C library's umask(). A library may not call it: the mask belongs to the process, and
 * between two calls another thread would create its files with the wrong mask.
 */
static atomic_int masks_set;
mode_t umask(mode_t mask) {
    atomic_fetch_add(&masks_set, 1);
    return mask;
}

typedef struct saver {
    const qsim_model *model;
    char path[64];
    mode_t mode; /* of a file created by open() with mode 0666 */
    int wrong;
} saver;

static void *save(void *arg) {
    saver *me = arg;
    qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_REPLACE};
    for (int i = 0; i < 10; i++) {
        struct stat st;
        me->wrong += qsim_model_save(me->model, me->path, &o, NULL) != QSIM_OK;
        me->wrong += stat(me->path, &st) != 0 || st.st_mode != me->mode;
    }
    return NULL;
}

/* Several threads save to one path at once: one file wins, no temporary file remains. */
static void test_save(const qsim_model *m) {
    char folder[] = "qsim-threads-XXXXXX", path[64];
    pthread_t threads[COUNT];
    saver savers[COUNT];
    struct stat st = {0};
    qsim_model *again = NULL;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/m.onnx", folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0666);
    CHECK_INT(fstat(fd, &st), 0);
    close(fd);
    unlink(path);
    for (int i = 0; i < COUNT; i++) {
        savers[i] = (saver){.model = m, .mode = st.st_mode};
        snprintf(savers[i].path, sizeof(path), "%s/m.onnx", folder);
        CHECK_INT(pthread_create(&threads[i], NULL, save, &savers[i]), 0);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(savers[i].wrong, 0);
    }
    CHECK_INT(qsim_model_load(NULL, path, NULL, &again, NULL), QSIM_OK);
    qsim_model_free(again);
    CHECK_INT(atomic_load(&masks_set), 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
}

/*
 * One plan, executed often, runs with and without the workers by turns, and after pauses; the
 * result is always the same.
 */
static void test_turns(void) {
    static float data[64 * 16], want[400];
    const int64_t few[] = {1, 64, 4, 4};
    const struct timespec rest = {.tv_nsec = 1000 * 1000};
    qsim_tensor x = {QSIM_FLOAT, 4, few, data, sizeof(data)};
    for (size_t i = 0; i < 64 * 16; i++)
        data[i] = (float)(i % 37) - 18.0f;
    static uint8_t file[1 << 22];
    qsim_model *source = deep_net();
    qsim_ctx *ctx = context(NULL, 4);
    qsim_model *m = model_in(ctx, source, file, sizeof(file));
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    CHECK_INT(net_run(source, &x, want, 400), 400);
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), QSIM_OK);
    CHECK_INT(qsim_run_create(s, &run, NULL), QSIM_OK);
    for (int i = 0; i < 600; i++) {
        qsim_tensor y = {0};
        CHECK_INT(qsim_run_execute(run, &x, 1, &y, 1, NULL), QSIM_OK);
        CHECK(memcmp(want, y.data, sizeof(want)) == 0);
        if (i % 16 == 0)
            nanosleep(&rest, NULL);
    }
    qsim_run_free(run);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_model_free(source);
    qsim_ctx_free(ctx);
}

/* A model's whole way: made, calibrated, quantized, executed. */
static void *whole_way(void *arg) {
    static float data[SAMPLES * 144], y[SAMPLES * 10];
    int64_t dims[4];
    qsim_tensor x;
    qsim_model *m = net_lenet();
    batch(data, dims, &x, 3);
    qsim_model *q = quantized(m, &x);
    *(size_t *)arg = net_run(q, &x, y, SAMPLES * 10);
    qsim_model_free(q);
    qsim_model_free(m);
    return NULL;
}

/* A thread whose stack is 64 KiB is enough; sanitizers want more. */
static void test_small_stack(void) {
    const size_t more = SANITIZED ? (size_t)1 << 20 : 0;
    size_t count = 0;
    pthread_attr_t a;
    pthread_t t;
    CHECK_INT(pthread_attr_init(&a), 0);
    CHECK_INT(pthread_attr_setstacksize(&a, more + 65536), 0);
    const int code = pthread_create(&t, &a, whole_way, &count); /* whose checks are counted, too */
    if (!code)
        CHECK_INT(pthread_join(t, NULL), 0);
    CHECK_INT(code, 0);
    CHECK(count > 0);
    pthread_attr_destroy(&a);
}

int main(void) {
    thread_count_start();
    qsim_model *m = net_lenet();
    test_parallel();
    test_turns();
    test_shared_session(m);
    test_own_contexts();
    test_cancel(m);
    test_save(m);
    test_small_stack();
    qsim_model_free(m);
    return test_done();
}
