/* SPDX-License-Identifier: MIT */
/* Tables, verdicts and JSON of qsim bench. */
#include <math.h>

#include "benching.h"
#include "common/columns.h"
#include "pace_reasons.h"

/* The distance from the fastest run to the 90th percentile, as a fraction of the median. */
static double noise(const latency *l) {
    return l->median > 0 ? (l->p90 - l->min) / l->median : 0;
}

/* Samples per run. */
static int64_t rows_of(const subject *s) {
    return s->inputs.count > 0 && s->inputs.tensors[0].rank > 0 ? s->inputs.tensors[0].dims[0] : 1;
}

static double per_second(const subject *s) {
    return s->time.median > 0 ? 1000 * (double)rows_of(s) / s->time.median : (double)NAN;
}

void bench_print_json(const tool *t, const bench *b) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_int(&j, "warmup_rounds", (int64_t)b->warmup);
    if (b->fixed)
        json_null(&j, "steady");
    else
        json_bool(&j, "steady", b->steady);
    json_number(&j, "clock_ms", b->clock_ms);
    if (b->machine.threads > 0)
        limits_json(&b->machine, &j);
    json_array(&j, "models");
    for (size_t i = 0; i < b->models; i++) {
        const subject *s = &b->subjects[i];
        json_object(&j, NULL);
        json_string(&j, "file", s->file);
        json_int(&j, "threads", qsim_ctx_threads(t->ctx));
        json_string(&j, "isa", qsim_isa_name(qsim_ctx_isa(t->ctx)));
        json_int(&j, "steps", qsim_run_step_count(s->engine.run));
        isa_counts isas = {.steps = {0}};
        isa_counts_add(&isas, s->engine.run);
        isa_counts_json(&isas, &j);
        if (args_has(&t->args, "steps"))
            steps_json(&j, "kernels", s->engine.run);
        json_int(&j, "runs", (int64_t)s->time.count);
        json_number(&j, "load_ms", s->cold.load_ms);
        json_number(&j, "first_ms", s->cold.first_ms);
        json_number(&j, "min_ms", s->time.min);
        json_number(&j, "median_ms", s->time.median);
        json_number(&j, "mean_ms", s->time.mean);
        json_number(&j, "stddev_ms", s->time.deviation);
        json_number(&j, "p90_ms", s->time.p90);
        json_number(&j, "p99_ms", s->time.p99);
        json_int(&j, "batch", rows_of(s));
        json_number(&j, "samples_per_second", per_second(s));
        json_int(&j, "bytes", qsim_model_bytes(s->engine.model));
        json_int(&j, "arena_bytes", (int64_t)qsim_run_arena_bytes(s->engine.run));
        json_int(&j, "session_bytes", (int64_t)qsim_session_bytes(s->engine.session));
        json_int(&j, "peak_rss_bytes", s->cold.peak_bytes);
        json_number(&j, "ratio", s->speed.value);
        json_number(&j, "ratio_margin", i == 0 ? 0 : s->speed.margin);
        json_number(&j, "noise", noise(&s->time));
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

/* ---- the table ---- */

static table make_table(const bench *b) {
    static const char *const heading[] = {"model",   "runs", "load",  "first",      "min",
                                          "median",  "mean", "σ",     "p90",        "p99",
                                          "samples", "size", "arena", "peak memory"};
    table rows = {.columns = "lrrrrrrrrrrrrr"};
    char buffer[32];
    for (size_t i = 0; i < 14; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < b->models; i++) {
        const subject *s = &b->subjects[i];
        const double times[] = {s->cold.load_ms, s->cold.first_ms,  s->time.min, s->time.median,
                                s->time.mean,    s->time.deviation, s->time.p90, s->time.p99};
        table_cell(&rows, "%s", tool_base_name(s->file));
        table_cell(&rows, "%zu", s->time.count);
        for (size_t k = 0; k < 8; k++)
            table_cell(&rows, "%s", tool_time(times[k], buffer));
        table_cell(&rows, "%s", tool_rate(per_second(s), buffer));
        table_cell(&rows, "%s", tool_bytes((double)qsim_model_bytes(s->engine.model), buffer));
        table_cell(&rows, "%s", tool_bytes((double)qsim_run_arena_bytes(s->engine.run), buffer));
        table_cell(&rows, "%s", tool_bytes((double)s->cold.peak_bytes, buffer));
    }
    return rows;
}

void bench_markdown(const tool *t, const bench *b, text *out) {
    table rows = make_table(b);
    (void)t;
    table_markdown(&rows, out);
}

void bench_csv(const tool *t, const bench *b, text *out) {
    text_puts(out, "file,threads,isa,batch,runs,load_ms,first_ms,min_ms,median_ms,mean_ms,"
                   "stddev_ms,p90_ms,p99_ms,samples_per_second,bytes,arena_bytes,peak_rss_bytes,"
                   "ratio,ratio_margin\n");
    for (size_t i = 0; i < b->models; i++) {
        const subject *s = &b->subjects[i];
        const latency *l = &s->time;
        const double numbers[] = {s->cold.load_ms, s->cold.first_ms, l->min, l->median,    l->mean,
                                  l->deviation,    l->p90,           l->p99, per_second(s)};
        text_csv(out, s->file);
        text_printf(out, ",%d,%s,%lld,%zu", qsim_ctx_threads(t->ctx),
                    qsim_isa_name(qsim_ctx_isa(t->ctx)), (long long)rows_of(s), l->count);
        for (size_t k = 0; k < sizeof(numbers) / sizeof(*numbers); k++)
            text_printf(out, ",%.9g", numbers[k]);
        text_printf(out, ",%lld,%lld,%lld,%.9g,%.9g\n",
                    (long long)qsim_model_bytes(s->engine.model),
                    (long long)qsim_run_arena_bytes(s->engine.run), (long long)s->cold.peak_bytes,
                    s->speed.value, i == 0 ? 0 : s->speed.margin);
    }
}

/* Prints the context's instruction set, and those of the steps if they have others. */
static void print_isa(const tool *t, const bench *b) {
    const int32_t isa = qsim_ctx_isa(t->ctx);
    int32_t others = 0;
    for (int32_t i = 0; i < STEPS_ISAS; i++)
        others += i == isa ? 0 : b->isas.steps[i];
    printf("%s", qsim_isa_name(isa));
    if (others > 0) {
        text counts = {0};
        isa_counts_text(&b->isas, &counts);
        printf(" (steps: %s)", counts.data);
        text_free(&counts);
    }
}

/* --steps: which kernel ran. */
static void print_steps(const bench *b) {
    for (size_t i = 0; i < b->models; i++) {
        printf("\n%s", tool_base_name(b->subjects[i].file));
        steps_print(b->subjects[i].engine.run);
    }
}

static void print_how(const tool *t, const bench *b) {
    int32_t threads = qsim_ctx_threads(t->ctx);
    print_isa(t, b);
    printf(", %d thread%s; %zu rounds of warm-up, then ", threads, threads == 1 ? "" : "s",
           b->warmup);
    if (b->fixed)
        printf("as many rounds as asked for\n");
    else
        printf("%s\n", b->steady ? "until the medians of both halves agreed to 1 %"
                                 : "to the end of the time: not steady");
}

/* ---- verdicts ---- */

static int integer_nodes(const subject *s) {
    int found = 0;
    for (int32_t i = 0; i < qsim_model_node_count(s->engine.model); i++)
        found += qsim_session_node_integer(s->engine.session, i);
    return found;
}

/* Prints a line if a quantized model is not faster, or if the runs cannot tell. */
static void print_gain(const subject *s, const char *name) {
    const double least = PACE_LEAST_GAIN;
    const double low = s->speed.value - s->speed.margin, high = s->speed.value + s->speed.margin;
    if (high < least) /* false for NaN */
        printf("INT8 does not pay here: %s is quantized and not clearly faster (qsim profile tells "
               "where the time goes)\n",
               name);
    else if (!(low > 1))
        printf("whether INT8 pays here cannot be told from these runs: --seconds 30 takes more of "
               "them, on a machine that does nothing else\n");
}

static void print_verdict(const subject *first, const subject *s) {
    char words[LATENCY_WORDS];
    const char *b = tool_base_name(s->file);
    printf("%s is %s\n", b, latency_verdict(s->speed, tool_base_name(first->file), words));
    if (integer_nodes(s) > 0 && integer_nodes(first) == 0)
        print_gain(s, b);
}

static void warn(const tool *t, const bench *b) {
    char spent[32];
    for (size_t i = 0; i < b->models; i++) {
        const subject *s = &b->subjects[i];
        const char *name = tool_base_name(s->file);
        if (latency_is_too_short(&s->time, b->clock_ms))
            tool_warn(
                t,
                "%s is too small to be timed well: of its %s the clock takes %.0f %% (--batch "
                "makes it larger)",
                name, tool_time(s->time.median, spent), 100 * b->clock_ms / s->time.median);
        if (noise(&s->time) > 0.25)
            tool_warn(t,
                      "%s: the machine is noisy: one run in ten takes %.1f times as long as the "
                      "fastest",
                      name, s->time.p90 / s->time.min);
    }
}

void bench_print(const tool *t, const bench *b) {
    table rows = make_table(b);
    table_print(&rows, stdout);
    print_how(t, b);
    if (b->machine.threads > 0) {
        printf("%s, %d thread%s", qsim_isa_name(qsim_ctx_isa(t->ctx)), (int)b->machine.threads,
               b->machine.threads == 1 ? "" : "s");
        limits_end_line(&b->machine);
    }
    for (size_t i = 1; i < b->models; i++)
        print_verdict(&b->subjects[0], &b->subjects[i]);
    if (args_has(&t->args, "steps"))
        print_steps(b);
    fflush(stdout);
    warn(t, b);
}
