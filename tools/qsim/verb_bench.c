/* SPDX-License-Identifier: MIT */
/*
 * Models are timed in turns, one run of each per round, in changing order, so that a disturbance or
 * a change of clock rate affects all of them. Loading, the first run and peak memory are measured
 * in a child process per model.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "benching.h"
#include "pages.h"
#include "verbs.h"

/* ---- timing ---- */

/* Do the medians of the older and the newer half of the last `count` times agree to `part`? */
static bool halves_agree(const subject *s, size_t models, size_t count, double part) {
    for (size_t i = 0; i < models; i++) {
        const latency *l = &s[i].time;
        const double *from = l->ms + (l->count - count);
        double a = latency_median(from, count / 2);
        double b = latency_median(from + count / 2, count - count / 2);
        if (fabs(a - b) > part * a)
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

static int time_round(const tool *t, bench *b, size_t round) {
    int code = EXIT_OK;
    for (size_t k = 0; k < b->models && code == EXIT_OK; k++)
        code = time_once(t, &b->subjects[(k + round) % b->models]);
    return code;
}

/* Runs rounds that are not counted: `rounds`, or if that is negative, until ten agree. */
static int warm_up(const tool *t, bench *b, int64_t rounds, double limit) {
    enum { WINDOW = 10 };
    double start = tool_now();
    int code = EXIT_OK;
    for (b->warmup = 0; code == EXIT_OK; b->warmup++) {
        if (rounds >= 0 ? b->warmup >= (size_t)rounds
                        : b->warmup >= 3 && tool_now() - start >= limit)
            break;
        if (rounds < 0 && b->warmup >= WINDOW && halves_agree(b->subjects, b->models, WINDOW, 0.02))
            break;
        code = time_round(t, b, b->warmup);
    }
    for (size_t k = 0; k < b->models; k++)
        b->subjects[k].time.count = 0;
    return code;
}

static int measure(const tool *t, bench *b) {
    int64_t runs, warmup;
    double seconds, next = 0;
    if (!tool_int(t, "runs", 1, INT32_MAX, 0, &runs) ||
        !tool_int(t, "warmup", 0, INT32_MAX, -1, &warmup) ||
        !tool_number(t, "seconds", 0.01, 86400, 3, &seconds))
        return EXIT_USAGE;
    double limit = seconds * 1000 * (double)b->models;
    int code = warm_up(t, b, warmup, limit / 10);
    double start = tool_now();
    b->fixed = runs > 0;
    for (int64_t i = 0; code == EXIT_OK && (runs ? i < runs : true); i++) {
        code = time_round(t, b, (size_t)i);
        double elapsed = tool_now() - start;
        if (runs || elapsed < next)
            continue;
        next = elapsed + limit / 20;
        size_t count = b->subjects[0].time.count;
        b->steady = count >= 20 && halves_agree(b->subjects, b->models, count, 0.01);
        if (elapsed >= limit || (elapsed >= limit / 5 && b->steady))
            break;
    }
    return code;
}

/* The least cost of reading the clock. */
static double clock_cost(void) {
    double least = INFINITY;
    for (int i = 0; i < 1000; i++) {
        double start = tool_now(), cost = tool_now() - start;
        least = cost < least ? cost : least;
    }
    return least;
}

static int judge(const bench *b, double bound) {
    for (size_t i = 1; i < b->models && bound > 0; i++) {
        const subject *s = &b->subjects[i];
        if (!(s->speed.value >= bound)) {
            fprintf(stderr, "qsim: %s: %.3f times as fast as %s, the bound is %g\n", s->file,
                    s->speed.value, b->subjects[0].file, bound);
            return EXIT_BOUND;
        }
    }
    return EXIT_OK;
}

static void summarize(bench *b) {
    const latency *first = &b->subjects[0].time;
    for (size_t i = 0; i < b->models; i++)
        b->subjects[i].speed = latency_ratio(first->ms, b->subjects[i].time.ms, first->count);
    b->clock_ms = clock_cost();
    for (size_t i = 0; i < b->models; i++) {
        subject *s = &b->subjects[i];
        latency_summarize(&s->time);
        /* A difference cannot be more exact than the clock's ticks. */
        double tick = s->speed.value * b->clock_ms / s->time.median;
        if (s->speed.margin < tick)
            s->speed.margin = tick;
    }
}

/*
 * Counts the steps of each instruction set, and measures the machine for --steps; for tiles always,
 * since virtual machines swing between two speeds of AMX.
 */
static int describe(const tool *t, bench *b) {
    qsim_error e;
    for (size_t i = 0; i < b->models; i++)
        isa_counts_add(&b->isas, b->subjects[i].engine.run);
    if (!args_has(&t->args, "steps") && b->isas.steps[QSIM_ISA_AMX] == 0)
        return EXIT_OK;
    b->machine.struct_size = sizeof(b->machine);
    return qsim_machine_measure(t->ctx, &b->machine, &e) ? tool_error(t, NULL, &e) : EXIT_OK;
}

static void report(const tool *t, page *p, const bench *b) {
    page_model *models = tool_alloc(b->models, sizeof(*models));
    for (size_t i = 0; i < b->models; i++) {
        const subject *s = &b->subjects[i];
        models[i] = (page_model){tool_base_name(s->file), qsim_model_bytes(s->engine.model),
                                 s->time.median};
    }
    page_models(p, models, b->models);
    free(models);
    if (!t->json || p->path) {
        page_report_begin(t, p);
        bench_print(t, b);
        page_report_end(t, p);
    }
    if (t->json)
        bench_print_json(t, b);
}

/* Are all files of options free to be written? */
static bool may_write(const tool *t, int *code) {
    const char *const names[] = {"csv", "markdown"};
    for (size_t i = 0; i < 2; i++)
        if (args_has(&t->args, names[i]) &&
            !tool_may_write(t, args_value(&t->args, names[i]), code))
            return false;
    return true;
}

static int write_file(const tool *t, const char *name, const bench *b,
                      void (*print)(const tool *t, const bench *b, text *out)) {
    const char *path = args_value(&t->args, name);
    text out = {0};
    if (!path)
        return EXIT_OK;
    print(t, b, &out);
    const int code = tool_write(t, path, out.data, out.size);
    text_free(&out);
    return code;
}

static int bench_all(tool *t, page *p, bench *b) {
    int code = EXIT_OK;
    subject *s = b->subjects;
    double bound;
    if (!tool_number(t, "min-ratio", 0, 1e9, 0, &bound))
        return EXIT_USAGE;
    for (size_t i = 0; i < b->models && code == EXIT_OK; i++)
        code = bench_cold(t, s[i].file, &s[i].cold);
    for (size_t i = 0; i < b->models && code == EXIT_OK; i++) {
        code = tool_go_on(t, s[i].file, engine_open(t, s[i].file, &s[i].engine));
        if (code == EXIT_OK)
            code = inputs_open(t, s[i].engine.model, true, &s[i].inputs);
    }
    if (code == EXIT_OK)
        code = measure(t, b);
    if (code)
        return code;
    summarize(b);
    code = describe(t, b);
    if (code)
        return code;
    report(t, p, b);
    code = write_file(t, "csv", b, bench_csv);
    if (code == EXIT_OK)
        code = write_file(t, "markdown", b, bench_markdown);
    return code ? code : judge(b, bound);
}

/* Is a file read from standard input? Each is read twice: the child process reads it again. */
static bool reads_stdin(const tool *t) {
    static const char *const options[] = {"input", "data"};
    const char *spec;
    for (size_t i = 0; i < t->args.operand_count; i++)
        if (strcmp(t->args.operands[i], "-") == 0)
            return true;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; (spec = args_repeated(&t->args, options[k], i)) != NULL; i++) {
            const char *equals = strrchr(spec, '=');
            if (strcmp(equals ? equals + 1 : spec, "-") == 0)
                return true;
        }
    return false;
}

static int run(tool *t) {
    bench b = {.models = t->args.operand_count};
    page p;
    int wrong = EXIT_OK;
    if (!tool_operands(t, 1, 64))
        return EXIT_USAGE;
    if (b.models < 2 && args_has(&t->args, "min-ratio"))
        return tool_usage(t, NULL, "--min-ratio compares at least two models");
    if (reads_stdin(t))
        return tool_usage(t, NULL, "bench: files are read twice, standard input is not");
    if (!may_write(t, &wrong) || !page_open(t, &p, &wrong))
        return wrong;
    tool_catch_interrupt(NULL);
    b.subjects = tool_alloc(b.models, sizeof(*b.subjects));
    for (size_t i = 0; i < b.models; i++)
        b.subjects[i].file = t->args.operands[i];
    int code = page_close(t, &p, "qsim bench", bench_all(t, &p, &b));
    for (size_t i = 0; i < b.models; i++) {
        inputs_close(&b.subjects[i].inputs);
        engine_close(&b.subjects[i].engine);
        latency_free(&b.subjects[i].time);
    }
    free(b.subjects);
    return code;
}

static const option options[] = {
    OPTION_INPUT("batch size of random inputs and of --data (1)"),
    OPTION_FIRST_BATCH,
    OPTION_LEVEL,
    {"runs", "N", "time exactly N runs of each model", 0, NULL},
    {"warmup", "N", "rounds before timing (until times are steady)", 0, NULL},
    {"seconds", "S", "at most S seconds of timing per model (3)", 0, NULL},
    {"min-ratio", "R", "exit 3 unless every model is R times as fast as the first", 0, NULL},
    {"steps", NULL,
     "list each model's steps, with kernel and instruction set, and this machine's limits", 0,
     NULL},
    {"csv", "FILE", "write the table as CSV", 0, NULL},
    {"markdown", "FILE", "write the table as Markdown", 0, NULL},
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_bench = {"bench",
                         "MODEL [MODEL...]",
                         "time models alternately and compare them",
                         options,
                         run,
                         false,
                         "model.onnx int8.onnx --batch 8"};
