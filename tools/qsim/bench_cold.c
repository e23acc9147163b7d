/* SPDX-License-Identifier: MIT */
/* Measures loading and running a model for the first time, in a fresh process. */
#include <errno.h>
#include <string.h>

#include "benching.h"
#include "common/system.h"

static int measure_cold(tool *t, const char *file, cold *c) {
    engine e;
    inputs in = {0};
    double start = tool_now();
    int code = engine_open(t, file, &e);
    c->load_ms = tool_now() - start;
    if (code == EXIT_OK)
        code = inputs_open(t, e.model, true, &in);
    for (int i = 0; i < 2 && code == EXIT_OK; i++) {
        start = tool_now();
        code = engine_execute(t, file, &e, in.tensors, in.count);
        if (i == 0)
            c->first_ms = tool_now() - start;
    }
    c->peak_bytes = system_peak_memory();
    inputs_close(&in);
    engine_close(&e);
    return code;
}

#ifdef _WIN32

/* There is no fork: the measurement runs in this process, and the peak is that of all models. */
int bench_cold(tool *t, const char *file, cold *c) {
    return measure_cold(t, file, c);
}

#else
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int in_child(tool *t, const char *file, int pipe_end) {
    cold c = {0};
    /* Threads do not survive fork: the child makes a context of its own. */
    qsim_limits limits = {.struct_size = sizeof(limits)};
    const qsim_ctx_options options = {
        .struct_size = sizeof(options), .threads = t->threads, .isa = t->isa, .limits = &limits};
    qsim_error e;
    qsim_ctx_limits(t->ctx, &limits);
    t->quiet = true;         /* the parent warns of the same */
    signal(SIGINT, SIG_IGN); /* the parent ends this process, and says so */
    if (qsim_ctx_create(&options, &t->ctx, &e))
        return tool_error(t, NULL, &e);
    int code = measure_cold(t, file, &c);
    if (code == EXIT_OK && write(pipe_end, &c, sizeof(c)) != sizeof(c))
        code = tool_fail(t, QSIM_E_IO, "%s: cannot tell the times: %s", file, strerror(errno));
    fflush(stdout);
    return code;
}

int bench_cold(tool *t, const char *file, cold *c) {
    int ends[2], status = 0;
    if (pipe(ends))
        return tool_fail(t, QSIM_E_IO, "%s: cannot make a pipe: %s", file, strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(in_child(t, file, ends[1]));
    }
    close(ends[1]);
    bool complete = child > 0 && read(ends[0], c, sizeof(*c)) == (ssize_t)sizeof(*c);
    close(ends[0]);
    if (child > 0 && tool_interrupted())
        kill(child, SIGKILL);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return tool_fail(t, QSIM_E_INTERNAL, "%s: cannot start a process", file);
    const int code = tool_go_on(t, file, EXIT_OK);
    if (code)
        return code;
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        return WEXITSTATUS(status); /* the child has printed why */
    return complete ? EXIT_OK : tool_fail(t, QSIM_E_IO, "%s: the process that measures died", file);
}

#endif
