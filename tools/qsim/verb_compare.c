/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/ptq.h>

#include "common/columns.h"
#include "common/dataset.h"
#include "common/progress.h"
#include "engine.h"
#include "latency.h"
#include "taps.h"
#include "verbs.h"

typedef struct bounds {
    double rtol, atol;
    bool allclose; /* a tolerance was given: it is a gate */
    double max_abs, min_sqnr, min_cosine, min_agreement;
} bounds;

typedef struct comparison {
    const char *file[2];
    engine engine[2];
    latency time[2];
    taps taps;
    size_t outputs; /* the first so many taps are outputs, the rest layers */
    qsim_metrics *metrics;
    bounds bounds;
} comparison;

static int read_bounds(const tool *t, bounds *b) {
    b->allclose = args_has(&t->args, "rtol") || args_has(&t->args, "atol");
    return tool_number(t, "rtol", 0, 1e9, 1e-3, &b->rtol) &&
                   tool_number(t, "atol", 0, 1e30, 1e-5, &b->atol) &&
                   tool_number(t, "max-abs", 0, 1e30, INFINITY, &b->max_abs) &&
                   tool_number(t, "min-sqnr", -1e3, 1e3, -INFINITY, &b->min_sqnr) &&
                   tool_number(t, "min-cosine", -1, 1, -INFINITY, &b->min_cosine) &&
                   tool_number(t, "min-agreement", 0, 100, 0, &b->min_agreement)
               ? EXIT_OK
               : EXIT_USAGE;
}

/* Both models on the same data, batch by batch; the metrics grow. */
static int compare_batch(const tool *t, comparison *c, const batch *b) {
    for (int k = 0; k < 2; k++) {
        double start = tool_now();
        int code = engine_execute(t, c->file[k], &c->engine[k], b->inputs, b->input_count);
        if (code)
            return code;
        latency_add(&c->time[k], tool_now() - start);
    }
    for (size_t i = 0; i < c->taps.count; i++) {
        int code = qsim_metrics_add(&c->metrics[i], &c->engine[0].outputs[i],
                                    &c->engine[1].outputs[i], c->bounds.rtol, c->bounds.atol);
        if (code)
            return tool_fail(t, code, "%s: output '%.100s' differs in type or shape: %s",
                             c->file[1], c->taps.a[i], qsim_error_text(code));
    }
    return EXIT_OK;
}

static int compare_all(const tool *t, comparison *c, dataset *d) {
    progress p;
    batch b;
    uint64_t done = 0;
    int code;
    progress_begin(&p, t);
    for (;;) {
        code = dataset_next(d, &b);
        if (code || b.samples == 0)
            break;
        code = compare_batch(t, c, &b);
        if (code)
            break;
        done += (uint64_t)b.samples;
        progress_step(&p, "comparing", done, (uint64_t)dataset_samples(d));
    }
    progress_end(&p);
    for (int k = 0; k < 2; k++)
        latency_summarize(&c->time[k]);
    return code;
}

static double agreement(const comparison *c) {
    const qsim_metrics *m = &c->metrics[0];
    return m->rows ? 100.0 * (double)m->agree / (double)m->rows : NAN;
}

/* ---- printing ---- */

static void json_metrics(json *j, const comparison *c, size_t i) {
    const qsim_metrics *m = &c->metrics[i];
    json_object(j, NULL);
    json_string(j, "name", c->taps.a[i]);
    json_number(j, "max_abs", m->max_abs);
    json_number(j, "max_rel", m->max_rel);
    json_number(j, "sqnr_db", qsim_metrics_sqnr(m));
    json_number(j, "cosine", qsim_metrics_cosine(m));
    json_bool(j, "allclose", m->outside == 0);
    json_end(j);
}

static void print_json(const tool *t, const comparison *c) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    for (int k = 0; k < 2; k++) {
        json_object(&j, k ? "b" : "a");
        json_string(&j, "file", c->file[k]);
        json_int(&j, "bytes", qsim_model_bytes(c->engine[k].model));
        json_number(&j, "median_ms", c->time[k].median);
        json_end(&j);
    }
    json_array(&j, "outputs");
    for (size_t i = 0; i < c->outputs; i++)
        json_metrics(&j, c, i);
    json_end(&j);
    json_number(&j, "agreement", agreement(c));
    json_array(&j, "layers");
    for (size_t i = c->outputs; i < c->taps.count; i++)
        json_metrics(&j, c, i);
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

static void print_models(const comparison *c) {
    const char *const heading[] = {"", "model", "size", "median"};
    table rows = {.columns = "llrr"};
    char text_buffer[32];
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    for (int k = 0; k < 2; k++) {
        table_cell(&rows, k ? "B" : "A");
        table_cell(&rows, "%s", tool_base_name(c->file[k]));
        table_cell(&rows, "%s",
                   tool_bytes((double)qsim_model_bytes(c->engine[k].model), text_buffer));
        table_cell(&rows, "%s", tool_time(c->time[k].median, text_buffer));
    }
    table_print(&rows, stdout);
    putchar('\n');
}

static void metrics_cells(table *rows, const comparison *c, size_t i) {
    const qsim_metrics *m = &c->metrics[i];
    table_cell(rows, "%s", c->taps.a[i]);
    table_cell(rows, "%.6g", m->max_abs);
    table_cell(rows, "%.6g", m->max_rel);
    table_cell(rows, "%.2f dB", qsim_metrics_sqnr(m));
    table_cell(rows, "%.6f", qsim_metrics_cosine(m));
    table_cell(rows, m->outside ? "no" : "yes");
}

static void print_metrics(const comparison *c, size_t first, size_t end, const char *what) {
    const char *const heading[] = {what, "max abs", "max rel", "SQNR", "cosine", "all close"};
    table rows = {.columns = "lrrrrl"};
    for (size_t i = 0; i < 6; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = first; i < end; i++)
        metrics_cells(&rows, c, i);
    table_print(&rows, stdout);
}

static void print_tables(const tool *t, const comparison *c) {
    print_models(c);
    print_metrics(c, 0, c->outputs, "output");
    printf("top-1 agreement %.2f %% of %llu rows\n", agreement(c),
           (unsigned long long)c->metrics[0].rows);
    if (!args_has(&t->args, "layers"))
        return;
    putchar('\n');
    if (c->taps.count > c->outputs)
        print_metrics(c, c->outputs, c->taps.count, "layer");
    else
        printf("no layer of A has a counterpart in B\n");
}

/* ---- gates ---- */

static bool missed(const char *file, const char *what, double value, double bound, bool bad) {
    if (bad)
        fprintf(stderr, "qsim: %s: %s is %g, the gate is %g\n", file, what, value, bound);
    return bad;
}

static int judge(const comparison *c) {
    const bounds *b = &c->bounds;
    bool bad = false;
    for (size_t i = 0; i < c->outputs; i++) {
        const qsim_metrics *m = &c->metrics[i];
        double sqnr = qsim_metrics_sqnr(m), cosine = qsim_metrics_cosine(m);
        bad |= missed(c->file[1], "max abs", m->max_abs, b->max_abs, !(m->max_abs <= b->max_abs));
        bad |= missed(c->file[1], "SQNR", sqnr, b->min_sqnr, !(sqnr >= b->min_sqnr));
        bad |= missed(c->file[1], "cosine", cosine, b->min_cosine, !(cosine >= b->min_cosine));
        bad |= missed(c->file[1], "the number of elements that are not close", (double)m->outside,
                      0, b->allclose && m->outside > 0);
    }
    double same = agreement(c);
    bad |= missed(c->file[1], "top-1 agreement", same, b->min_agreement,
                  b->min_agreement > 0 && !(same >= b->min_agreement));
    return bad ? EXIT_GATE : EXIT_OK;
}

static int open_both(tool *t, comparison *c) {
    qsim_model *m[2] = {NULL, NULL};
    int code = tool_load_model(t, c->file[0], 0, &m[0]);
    if (code == EXIT_OK)
        code = tool_load_model(t, c->file[1], 0, &m[1]);
    if (code == EXIT_OK)
        code = taps_choose(t, m[0], m[1], args_has(&t->args, "layers"), &c->taps, &c->outputs);
    for (int k = 0; k < 2; k++) {
        if (code == EXIT_OK)
            code = engine_of_model(t, c->file[k], m[k], k ? c->taps.b : c->taps.a, c->taps.count,
                                   &c->engine[k]);
        c->engine[k].model = m[k];
    }
    return code;
}

static int run(tool *t) {
    comparison c = {.outputs = 0};
    dataset *d = NULL;
    if (!tool_operands(t, 2, 2) || read_bounds(t, &c.bounds))
        return EXIT_USAGE;
    for (int k = 0; k < 2; k++)
        c.file[k] = t->args.operands[k];
    int code = open_both(t, &c);
    if (code == EXIT_OK)
        code = dataset_open(t, c.engine[0].model, &d);
    if (code == EXIT_OK) {
        c.metrics = tool_alloc(c.taps.count, sizeof(*c.metrics));
        for (size_t i = 0; i < c.taps.count; i++)
            c.metrics[i].struct_size = sizeof(*c.metrics);
        code = compare_all(t, &c, d);
    }
    if (code == EXIT_OK) {
        if (t->json)
            print_json(t, &c);
        else
            print_tables(t, &c);
        code = judge(&c);
    }
    dataset_close(d);
    for (int k = 0; k < 2; k++) {
        engine_close(&c.engine[k]);
        latency_free(&c.time[k]);
    }
    free(c.metrics);
    taps_free(&c.taps);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    {"layers", NULL, "compare the layers that both models have, too", 0, NULL},
    {"rtol", "X", "relative tolerance of 'all close' (0.001); given: exit 3 beyond", 0, NULL},
    {"atol", "X", "absolute tolerance of 'all close' (0.00001); given: exit 3 beyond", 0, NULL},
    {"max-abs", "X", "exit 3 if an output differs by more", 0, NULL},
    {"min-sqnr", "DB", "exit 3 if an output's SQNR is lower", 0, NULL},
    {"min-cosine", "X", "exit 3 if an output's cosine is lower", 0, NULL},
    {"min-agreement", "P", "exit 3 if fewer than P percent of the top-1 agree", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_compare = {"compare", "A B --data SPEC", "how far model B is from model A", options,
                           run};
