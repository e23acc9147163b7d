/* SPDX-License-Identifier: MIT */
/* A context made before fork() works in the child, and is freed in both. */
#include "test.h"

#include <qsim/qsim.h>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIDE 192

typedef struct things {
    qsim_ctx *ctx;
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
} things;

static float values[SIDE * SIDE], expected[SIDE * SIDE];
static const int64_t sizes[] = {SIDE, SIDE};

static int make(things *t, int32_t threads) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads};
    qsim_builder *b = NULL;
    uint64_t seed = 5;
    for (int i = 0; i < SIDE * SIDE; i++)
        values[i] = (float)(test_random(&seed) % 256) / 256.0f;
    int code = qsim_ctx_create(&o, &t->ctx, NULL);
    if (!code)
        code = qsim_builder_create(t->ctx, 13, "g", &b, NULL);
    qsim_builder_input_as(b, "x", "float[192,192]");
    qsim_builder_constant_as(b, "w", "float[192,192]", values);
    qsim_builder_node(b, "", "MatMul", "", "x,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    if (!code)
        code = qsim_builder_finish(b, &t->model, NULL);
    qsim_builder_free(b);
    if (!code)
        code = qsim_session_create(t->model, NULL, &t->session, NULL);
    return code ? code : qsim_run_create(t->session, &t->run, NULL);
}

static void drop(things *t) {
    qsim_run_free(t->run);
    qsim_session_free(t->session);
    qsim_model_free(t->model);
    qsim_ctx_free(t->ctx);
}

static int execute(qsim_run *run, float *out) {
    qsim_tensor x = {QSIM_FLOAT, 2, sizes, values, sizeof(values)};
    qsim_tensor y = {QSIM_FLOAT, 2, sizes, out, sizeof(values)};
    return qsim_run_execute(run, &x, 1, &y, 1, NULL);
}

/* 0, or the number of the failed step. */
static int child(things *t) {
    static float got[SIDE * SIDE];
    qsim_run *another;
    alarm(120); /* a child that waits for the parent's threads would wait for ever */
    for (int i = 0; i < 3; i++)
        if (execute(t->run, got) || memcmp(got, expected, sizeof(got)) != 0)
            return 1;
    memset(got, 0, sizeof(got));
    if (qsim_run_create(t->session, &another, NULL) || execute(another, got) ||
        memcmp(got, expected, sizeof(got)) != 0)
        return 2;
    qsim_run_free(another);
    drop(t);
    return 0;
}

/*
 * AddressSanitizer copies its allocator's locks to a child as they are; a starting thread holds
 * these locks for a moment, and no call reports when it has started.
 */
static void let_threads_start(void) {
#if defined(__SANITIZE_ADDRESS__)
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
#endif
}

/* `before`: executions in the parent, the first of which starts the threads. */
static void fork_after(int32_t threads, int before) {
    things t = {0};
    CHECK_INT(make(&t, threads), QSIM_OK);
    for (int i = 0; i < before; i++)
        CHECK_INT(execute(t.run, expected), QSIM_OK);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        let_threads_start();
        const pid_t id = fork();
        if (id == 0)
            _exit(child(&t));
        CHECK(id > 0 && waitpid(id, &status, 0) == id);
        CHECK(WIFEXITED(status));
        CHECK_INT(WEXITSTATUS(status), 0);
        CHECK_INT(execute(t.run, expected), QSIM_OK); /* the parent goes on */
    }
    drop(&t);
}

int main(void) {
    things t = {0};
#if defined(__SANITIZE_THREAD__)
    test_skip("ThreadSanitizer ends the child of a process with threads");
#endif
    CHECK_INT(make(&t, 1), QSIM_OK);
    CHECK_INT(execute(t.run, expected), QSIM_OK);
    drop(&t);
    fork_after(4, 3);
    fork_after(4, 0);
    fork_after(2, 1);
    fork_after(1, 1);
    return test_done();
}
