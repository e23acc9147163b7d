/* SPDX-License-Identifier: MIT */
/* Finds the threads and the optimization level that are fastest for a model on this machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset.h"
#include "engine.h"
#include "job.h"

#define RUNS 30

static const char *const level_names[] = {"disable", "basic", "extended", "all"};

/* ONNX Runtime numbers its levels 0, 1, 2 and 99. */
static int32_t level_of(int64_t theirs) {
    return theirs >= 3 ? QSIM_LEVEL_ALL : (int32_t)(QSIM_LEVEL_DISABLE + theirs);
}

/* The shortest of RUNS runs, in ms. */
static int time_model(const tool *own, const char *file, const qsim_model *m, int32_t level,
                      double *best) {
    qsim_session_options options = {.struct_size = sizeof(options), .level = level};
    engine e = {0};
    dataset *d = NULL;
    batch b;
    qsim_error error;
    *best = INFINITY;
    int code = dataset_open(own, m, &d);
    if (code == EXIT_OK)
        code = dataset_next(d, &b);
    if (code == EXIT_OK && (qsim_session_create(m, &options, &e.session, &error) ||
                            qsim_run_create(e.session, &e.run, &error)))
        code = tool_error(own, file, &error);
    if (code == EXIT_OK) {
        e.output_count = (size_t)qsim_session_output_count(e.session);
        e.outputs = tool_alloc(e.output_count, sizeof(*e.outputs));
    }
    for (int i = 0; i < RUNS && code == EXIT_OK; i++) {
        double start = tool_now();
        code = engine_execute(own, file, &e, b.inputs, b.input_count);
        double took = tool_now() - start;
        *best = took < *best ? took : *best;
    }
    dataset_close(d);
    engine_close(&e);
    return code;
}

/* Loads the model into a context with that many threads. */
static int with_threads(const tool *t, const char *file, const void *bytes, size_t size,
                        int32_t threads, qsim_ctx **ctx, qsim_model **m) {
    qsim_limits limits = {.struct_size = sizeof(limits)};
    const qsim_ctx_options options = {
        .struct_size = sizeof(options), .threads = threads, .isa = t->isa, .limits = &limits};
    qsim_load_options load = {.struct_size = sizeof(load), .name = file};
    qsim_error e;
    qsim_ctx_limits(t->ctx, &limits);
    limits.memory -= qsim_ctx_memory(t->ctx); /* the limit is for both contexts together */
    if (qsim_ctx_create(&options, ctx, &e) ||
        qsim_model_load_memory(*ctx, bytes, size, &load, m, &e))
        return tool_error(t, file, &e);
    return EXIT_OK;
}

/* A search for the fastest settings: the model as a file, the least time, and its settings. */
typedef struct tuning {
    const tool *t;
    const job *j;
    const job_pass *p;
    void *bytes;
    size_t size;
    double best;
    text *found;
} tuning;

static int try_threads(tuning *u, int32_t threads) {
    const tool *t = u->t;
    const job *j = u->j;
    const job_pass *p = u->p;
    job_data data = p->data;
    qsim_model *m = NULL;
    tool own;
    qsim_ctx *ctx = NULL;
    data.batch = data.batch ? data.batch : 1;
    int code = with_threads(t, j->model, u->bytes, u->size, threads, &ctx, &m);
    if (code) {
        qsim_ctx_free(ctx);
        return code;
    }
    job_tool(t, &data, m, &own);
    own.quiet = true;
    own.ctx = ctx;
    for (size_t i = 0; i < (p->levels ? p->levels->count : 1) && code == EXIT_OK; i++) {
        int32_t level = p->levels ? level_of(p->levels->items[i].whole) : QSIM_LEVEL_ALL;
        double ms;
        code = time_model(&own, j->model, m, level, &ms);
        if (code == EXIT_OK && ms < u->best * 0.98) { /* more threads must pay: 2 % */
            u->best = ms;
            text_free(u->found);
            text_printf(u->found, "--threads %d, level %s", threads,
                        level_names[level - QSIM_LEVEL_DISABLE]);
        }
    }
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    job_tool_close(&own);
    return code;
}

int job_tune(const tool *t, const job *j, const job_pass *p, const qsim_model *m, text *found) {
    tuning u = {.t = t, .j = j, .p = p, .best = INFINITY, .found = found};
    qsim_error e;
    if (qsim_model_save_memory(m, NULL, 0, &u.size, &e))
        return tool_error(t, j->model, &e);
    u.bytes = tool_alloc(u.size, 1);
    int code = EXIT_OK;
    if (qsim_model_save_memory(m, u.bytes, u.size, &u.size, &e))
        code = tool_error(t, j->model, &e);
    if (p->threads)
        for (size_t i = 0; i < p->threads->count && code == EXIT_OK; i++)
            code = try_threads(&u, (int32_t)p->threads->items[i].whole);
    else
        for (int32_t n = 1; n <= qsim_ctx_threads(t->ctx) && code == EXIT_OK; n *= 2)
            code = try_threads(&u, n);
    free(u.bytes);
    return code;
}
