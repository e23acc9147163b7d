/* SPDX-License-Identifier: MIT */
/*
 * Runs with and without a profile alternate, so that the cost of profiling is measured on the
 * machine in the same state.
 */
#include <stdlib.h>
#include <string.h>

#include "pages.h"
#include "profiling.h"
#include "verbs.h"

/* The most events of a trace: some 60 MB of JSON. */
#define EVENT_LIMIT 200000
#define WARMUP      2

static uint64_t now_ns(void) {
    return (uint64_t)(tool_now() * 1e6);
}

static int profile_open(tool *t, profiling *p) {
    qsim_model *model = NULL;
    qsim_error e;
    p->machine.struct_size = sizeof(p->machine);
    qsim_ctx *before = tool_begin_work(t->ctx);
    int code = qsim_machine_measure(t->ctx, &p->machine, &e);
    tool_end_work(t->ctx, before);
    if (code)
        return tool_error(t, p->file, &e);
    p->origin = now_ns();
    code = tool_go_on(t, p->file, tool_load_model(t, p->file, 0, &model));
    p->loaded = now_ns();
    if (code == EXIT_OK)
        code = tool_go_on(t, p->file, engine_of_model(t, p->file, model, NULL, 0, &p->engine));
    p->engine.model = model;
    if (code == EXIT_OK)
        p->ready = now_ns();
    return code == EXIT_OK ? inputs_open(t, model, true, &p->inputs) : code;
}

/* Only records the event: other work would add to the time of the execution. */
static void on_event(void *user, const qsim_profile_event *event) {
    profiling *p = user;
    if (p->event_count == p->event_capacity) {
        p->event_capacity = p->event_capacity * 2 + 1024;
        p->events = tool_grow(p->events, p->event_capacity, sizeof(*p->events));
    }
    p->events[p->event_count++] = *event;
}

/* Adds the times of one run's events, from `first` on; drops them if there are too many. */
static void take_events(profiling *p, size_t first, bool whole) {
    for (size_t i = first; i < p->event_count; i++) {
        qsim_profile_event *e = &p->events[i];
        e->execution = (int64_t)p->timed.count;
        if (whole && e->step >= 0)
            latency_add(&p->steps[e->step].time, (double)e->duration_ns);
        else if (whole && e->step == QSIM_STEP_DEFERRED)
            latency_add(&p->deferred, (double)e->duration_ns);
    }
    if (p->event_count > EVENT_LIMIT && first > 0) {
        p->event_count = first;
        p->dropped++;
    }
}

static int execute(profiling *p, bool profiled, double *ms) {
    qsim_error e;
    const size_t first = p->event_count;
    if (profiled)
        qsim_run_profile_begin(p->engine.run, on_event, p);
    double start = tool_now();
    int code = engine_try(&p->engine, p->inputs.tensors, p->inputs.count, &e);
    *ms = tool_now() - start;
    if (profiled) {
        qsim_run_profile_end(p->engine.run);
        take_events(p, first, code == QSIM_OK);
    }
    p->interrupted |= code == QSIM_E_CANCELLED;
    return code;
}

/* One run without and one with a profile. */
static int measure_pair(profiling *p) {
    double plain, timed;
    int code = execute(p, false, &plain);
    if (!code)
        code = execute(p, true, &timed);
    if (code)
        return code;
    latency_add(&p->plain, plain);
    latency_add(&p->timed, timed);
    return QSIM_OK;
}

static int measure(const tool *t, profiling *p) {
    int64_t runs;
    double ms;
    qsim_error e = {0};
    if (!tool_int(t, "runs", 1, INT32_MAX, 0, &runs))
        return EXIT_USAGE;
    int code = engine_try(&p->engine, p->inputs.tensors, p->inputs.count, &e);
    if (code && code != QSIM_E_CANCELLED)
        return tool_error(t, p->file, &e);
    p->interrupted = code == QSIM_E_CANCELLED;
    profiling_describe(p);
    for (int i = 1; i < WARMUP && !code; i++)
        code = execute(p, false, &ms);
    const double start = tool_now();
    for (int64_t i = 0; !code && (runs ? i < runs : i < 3 || (i < 50 && tool_now() < start + 3000));
         i++)
        code = measure_pair(p);
    profiling_summarize(p);
    return p->interrupted || !code ? EXIT_OK : tool_fail(t, code, "%s: a run failed", p->file);
}

static int save_trace(const tool *t, const profiling *p, const char *path) {
    json j = {0};
    trace_write(p, &j);
    int code = tool_write(t, path, j.out.data, j.out.size);
    text_free(&j.out);
    if (code == EXIT_OK && p->dropped)
        tool_warn(t, "%s: %zu runs did not fit into the trace", path, p->dropped);
    return code;
}

#define MOST_STEPS 60

static void report(const tool *t, page *sheet, const profiling *p, size_t top, const char *path) {
    const size_t n = p->step_count < MOST_STEPS ? p->step_count : MOST_STEPS;
    chart_value *values = tool_alloc(n, sizeof(*values));
    char(*texts)[32] = tool_alloc(n, sizeof(*texts));
    text svg = {0};
    for (size_t i = 0; i < n; i++) {
        const profiled_step *s = &p->steps[i];
        (void)tool_time(s->ns / 1e6, texts[i]);
        values[i] = (chart_value){*s->info.node ? s->info.node : s->info.op_type, s->ns, texts[i],
                                  strstr(s->info.op_type, "QuantizeLinear") != NULL};
    }
    chart_values(&svg, "Time of the first steps in order; conversions in orange", values, n);
    page_chart(sheet, &svg);
    text_free(&svg);
    free(texts);
    free(values);
    if (sheet->path || (!t->json && !(path && strcmp(path, "-") == 0))) {
        page_report_begin(t, sheet);
        profile_print(t, p, top);
        page_report_end(t, sheet);
    }
    if (t->json)
        profile_print_json(t, p, top, path);
}

static int profile(tool *t, page *sheet, profiling *p) {
    const char *path = args_value(&t->args, "output");
    int64_t top;
    if (!tool_int(t, "top", 1, 1000000, 10, &top))
        return EXIT_USAGE;
    int code = profile_open(t, p);
    if (code == EXIT_OK)
        code = measure(t, p);
    if (code == EXIT_OK && path)
        code = save_trace(t, p, path);
    if (code)
        return code;
    if (p->interrupted)
        return tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted after %zu runs%s%s", p->file,
                         p->plain.count, path ? "; they are in " : "", path ? path : "");
    report(t, sheet, p, (size_t)top, path);
    return EXIT_OK;
}

static int run(tool *t) {
    profiling p = {0};
    page sheet;
    const char *path = args_value(&t->args, "output");
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    if (path && !tool_may_write(t, path, &code))
        return code;
    if (!page_open(t, &sheet, &code))
        return code;
    p.file = t->args.operands[0];
    tool_catch_interrupt(NULL);
    code = page_close(t, &sheet, "qsim profile", profile(t, &sheet, &p));
    profiling_free(&p);
    return code;
}

static const option options[] = {
    OPTION_INPUT("batch size of random inputs and of --data (1)"),
    OPTION_FIRST_BATCH,
    OPTION_LEVEL,
    {"runs", "N", "exactly N runs, instead of 50 or as many as 3 seconds allow", 0, NULL},
    {"top", "N", "rows of each table (10)", 0, NULL},
    OPTION_OUTPUT("write trace events for Perfetto, as JSON; '-': stdout"),
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_profile = {"profile",
                           "MODEL [-o TRACE.json]",
                           "measure which steps of a model take how long",
                           options,
                           run,
                           false,
                           "model.onnx --top 5 -o trace.json"};
