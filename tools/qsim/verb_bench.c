/* SPDX-License-Identifier: MIT */
/*
 * Models are timed interleaved, one run of each after the other, so that a disturbance or a change
 * of clock speed meets all of them. Loading, the first run and peak memory are measured in a child
 * process per model.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/columns.h"
#include "engine.h"
#include "inputs.h"
#include "latency.h"
#include "verbs.h"

/* What a child process sends back. */
typedef struct cold {
    double load_ms, first_ms;
    int64_t peak_bytes;
} cold;

typedef struct subject {
    const char *file;
    engine engine;
    inputs inputs;
    cold cold;
    latency time;
} subject;

/* ---- a fresh process ---- */

static int measure_cold(tool *t, const char *file, cold *c) {
    engine e;
    inputs in = {0};
    struct rusage usage;
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
    getrusage(RUSAGE_SELF, &usage);
    c->peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    inputs_close(&in);
    engine_close(&e);
    return code;
}

static int in_child(tool *t, const char *file, int pipe_end) {
    cold c = {0};
    /* The pool's threads did not come along: a context of the child's own. */
    qsim_ctx_options options = {
        .struct_size = sizeof(options), .threads = t->threads, .isa = t->isa};
    qsim_error e;
    if (qsim_ctx_create(&options, &t->ctx, &e))
        return tool_error(t, NULL, &e);
    int code = measure_cold(t, file, &c);
    if (code == EXIT_OK && write(pipe_end, &c, sizeof(c)) != sizeof(c))
        code = EXIT_INTERNAL;
    fflush(stdout);
    return code;
}

static int spawn(tool *t, const char *file, cold *c) {
    int ends[2], status = 0;
    if (pipe(ends))
        return tool_fail(t, QSIM_E_INTERNAL, "%s: cannot make a pipe", file);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(in_child(t, file, ends[1]));
    }
    close(ends[1]);
    bool complete = child > 0 && read(ends[0], c, sizeof(*c)) == (ssize_t)sizeof(*c);
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return tool_fail(t, QSIM_E_INTERNAL, "%s: cannot start a process", file);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
        return WEXITSTATUS(status); /* the child has said why */
    return complete ? EXIT_OK : tool_fail(t, QSIM_E_INTERNAL, "%s: the process died", file);
}

/* ---- timing ---- */

/* The medians of the older and the newer half agree to one percent. */
static bool is_steady(const subject *s, size_t models) {
    for (size_t i = 0; i < models; i++) {
        size_t half = s[i].time.count / 2;
        if (half < 10)
            return false;
        const latency *l = &s[i].time;
        double a = latency_median(l->ms, half), b = latency_median(l->ms + half, l->count - half);
        if (fabs(a - b) > 0.01 * a)
            return false;
    }
    return true;
}

static int time_once(const tool *t, subject *s) {
    double start = tool_now();
    int code = engine_execute(t, s->file, &s->engine, s->inputs.tensors, s->inputs.count);
    latency_add(&s->time, tool_now() - start);
    return code;
}

static int measure(const tool *t, subject *s, size_t models) {
    int64_t runs, warmup;
    double seconds, next = 0;
    if (!tool_int(t, "runs", 1, INT32_MAX, 0, &runs) ||
        !tool_int(t, "warmup", 0, INT32_MAX, 3, &warmup) ||
        !tool_number(t, "seconds", 0.01, 86400, 3, &seconds))
        return EXIT_USAGE;
    for (int64_t i = 0; i < warmup; i++)
        for (size_t k = 0; k < models; k++) {
            int code = time_once(t, &s[k]);
            s[k].time.count = 0;
            if (code)
                return code;
        }
    double start = tool_now(), limit = seconds * 1000 * (double)models;
    for (int64_t i = 0; runs ? i < runs : true; i++) {
        for (size_t k = 0; k < models; k++) {
            int code = time_once(t, &s[k]);
            if (code)
                return code;
        }
        double elapsed = tool_now() - start;
        if (runs || elapsed < next)
            continue;
        next = elapsed + limit / 20;
        if (elapsed >= limit || (elapsed >= limit / 5 && is_steady(s, models)))
            break;
    }
    return EXIT_OK;
}

/* ---- printing ---- */

static void print_json(const tool *t, const subject *s, size_t models) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_array(&j, "models");
    for (size_t i = 0; i < models; i++) {
        json_object(&j, NULL);
        json_string(&j, "file", s[i].file);
        json_int(&j, "threads", qsim_ctx_threads(t->ctx));
        json_string(&j, "isa", qsim_isa_name(qsim_ctx_isa(t->ctx)));
        json_int(&j, "runs", (int64_t)s[i].time.count);
        json_number(&j, "load_ms", s[i].cold.load_ms);
        json_number(&j, "first_ms", s[i].cold.first_ms);
        json_number(&j, "min_ms", s[i].time.min);
        json_number(&j, "median_ms", s[i].time.median);
        json_number(&j, "mean_ms", s[i].time.mean);
        json_number(&j, "stddev_ms", s[i].time.deviation);
        json_number(&j, "p90_ms", s[i].time.p90);
        json_number(&j, "p99_ms", s[i].time.p99);
        json_int(&j, "arena_bytes", (int64_t)qsim_run_arena_bytes(s[i].engine.run));
        json_int(&j, "session_bytes", (int64_t)qsim_session_bytes(s[i].engine.session));
        json_int(&j, "peak_rss_bytes", s[i].cold.peak_bytes);
        json_number(&j, "ratio", s[0].time.median / s[i].time.median);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

static void print_ratio(const subject *a, const subject *b) {
    bool faster = b->time.median <= a->time.median;
    double ratio = a->time.median / b->time.median;
    printf("%s is %.2f times %s %s\n", tool_base_name(b->file), faster ? ratio : 1 / ratio,
           faster ? "as fast as" : "slower than", tool_base_name(a->file));
}

static void print_table(const tool *t, const subject *s, size_t models) {
    static const char *const heading[] = {"model", "runs", "load", "first", "min",   "median",
                                          "mean",  "σ",    "p90",  "p99",   "arena", "peak memory"};
    table rows = {.columns = "lrrrrrrrrrrr"};
    char b[32];
    for (size_t i = 0; i < 12; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < models; i++) {
        const double times[] = {s[i].cold.load_ms, s[i].cold.first_ms, s[i].time.min,
                                s[i].time.median,  s[i].time.mean,     s[i].time.deviation,
                                s[i].time.p90,     s[i].time.p99};
        table_cell(&rows, "%s", tool_base_name(s[i].file));
        table_cell(&rows, "%zu", s[i].time.count);
        for (size_t k = 0; k < 8; k++)
            table_cell(&rows, "%s", tool_time(times[k], b));
        table_cell(&rows, "%s", tool_bytes((double)qsim_run_arena_bytes(s[i].engine.run), b));
        table_cell(&rows, "%s", tool_bytes((double)s[i].cold.peak_bytes, b));
    }
    table_print(&rows, stdout);
    printf("%s, %d thread%s\n", qsim_isa_name(qsim_ctx_isa(t->ctx)), qsim_ctx_threads(t->ctx),
           qsim_ctx_threads(t->ctx) == 1 ? "" : "s");
    for (size_t i = 1; i < models; i++)
        print_ratio(&s[0], &s[i]);
}

static int judge(const tool *t, const subject *s, size_t models) {
    double bound;
    if (!tool_number(t, "min-ratio", 0, 1e9, 0, &bound))
        return EXIT_USAGE;
    for (size_t i = 1; i < models && bound > 0; i++)
        if (s[0].time.median / s[i].time.median < bound) {
            fprintf(stderr, "qsim: %s: %.3f times as fast as %s, the gate is %g\n", s[i].file,
                    s[0].time.median / s[i].time.median, s[0].file, bound);
            return EXIT_GATE;
        }
    return EXIT_OK;
}

static int bench_all(tool *t, subject *s, size_t models) {
    int code = EXIT_OK;
    for (size_t i = 0; i < models && code == EXIT_OK; i++)
        code = spawn(t, s[i].file, &s[i].cold);
    for (size_t i = 0; i < models && code == EXIT_OK; i++) {
        code = engine_open(t, s[i].file, &s[i].engine);
        if (code == EXIT_OK)
            code = inputs_open(t, s[i].engine.model, true, &s[i].inputs);
    }
    if (code == EXIT_OK)
        code = measure(t, s, models);
    if (code)
        return code;
    for (size_t i = 0; i < models; i++)
        latency_summarize(&s[i].time);
    if (t->json)
        print_json(t, s, models);
    else
        print_table(t, s, models);
    return judge(t, s, models);
}

static int run(tool *t) {
    size_t models = t->args.operand_count;
    if (!tool_operands(t, 1, 64))
        return EXIT_USAGE;
    if (models < 2 && args_has(&t->args, "min-ratio"))
        return tool_usage(t, NULL, "--min-ratio compares at least two models");
    tool_catch_interrupt();
    subject *s = tool_alloc(models, sizeof(*s));
    for (size_t i = 0; i < models; i++)
        s[i].file = t->args.operands[i];
    int code = bench_all(t, s, models);
    for (size_t i = 0; i < models; i++) {
        inputs_close(&s[i].inputs);
        engine_close(&s[i].engine);
        latency_free(&s[i].time);
    }
    free(s);
    return code;
}

static const option options[] = {
    OPTION_INPUT,
    OPTION_LEVEL,
    {"runs", "N", "exactly N runs of each model, instead of until steady", 0, NULL},
    {"warmup", "N", "runs before timing (3)", 0, NULL},
    {"seconds", "S", "at most S seconds of timing per model (3)", 0, NULL},
    {"min-ratio", "R", "exit 3 unless all are R times as fast as the first", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_bench = {"bench", "MODEL [MODEL...]", "time models, interleaved, and compare them",
                         options, run};
