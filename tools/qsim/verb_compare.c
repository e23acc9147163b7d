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

/* Pairs of tensors and what was found of each. */
typedef struct matched {
    taps taps;
    qsim_metrics *metrics;
} matched;

typedef struct comparison {
    const char *file[2];
    engine engine[2];
    latency time[2];
    matched outputs;
    /* Layers are compared in sessions of their own: giving out a tensor keeps it from being fused.
     */
    engine layer_engine[2];
    matched layers;
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

static int add_metrics(const tool *t, const comparison *c, const engine e[2], matched *m) {
    for (size_t i = 0; i < m->taps.count; i++) {
        int code = qsim_metrics_add(&m->metrics[i], &e[0].outputs[i], &e[1].outputs[i],
                                    c->bounds.rtol, c->bounds.atol);
        if (code)
            return tool_fail(t, code, "%s: '%.100s' differs in type or shape: %s", c->file[1],
                             m->taps.a[i], qsim_error_text(code));
    }
    return EXIT_OK;
}

/* Both models on the same data. */
static int compare_batch(const tool *t, comparison *c, const batch *b) {
    int code = EXIT_OK;
    for (int k = 0; k < 2 && code == EXIT_OK; k++) {
        double start = tool_now();
        code = engine_execute(t, c->file[k], &c->engine[k], b->inputs, b->input_count);
        latency_add(&c->time[k], tool_now() - start);
    }
    if (code == EXIT_OK)
        code = add_metrics(t, c, c->engine, &c->outputs);
    for (int k = 0; k < 2 && code == EXIT_OK && c->layers.taps.count > 0; k++)
        code = engine_execute(t, c->file[k], &c->layer_engine[k], b->inputs, b->input_count);
    if (code == EXIT_OK)
        code = add_metrics(t, c, c->layer_engine, &c->layers);
    return code;
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
    const qsim_metrics *m = &c->outputs.metrics[0];
    return m->rows ? 100.0 * (double)m->agree / (double)m->rows : NAN;
}

/* ---- printing ---- */

static void json_metrics(json *j, const matched *pairs, size_t i) {
    const qsim_metrics *m = &pairs->metrics[i];
    json_object(j, NULL);
    json_string(j, "name", pairs->taps.a[i]);
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
    for (size_t i = 0; i < c->outputs.taps.count; i++)
        json_metrics(&j, &c->outputs, i);
    json_end(&j);
    json_number(&j, "agreement", agreement(c));
    json_array(&j, "layers");
    for (size_t i = 0; i < c->layers.taps.count; i++)
        json_metrics(&j, &c->layers, i);
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

static void metrics_cells(table *rows, const matched *pairs, size_t i) {
    const qsim_metrics *m = &pairs->metrics[i];
    table_cell(rows, "%s", pairs->taps.a[i]);
    table_cell(rows, "%.6g", m->max_abs);
    table_cell(rows, "%.6g", m->max_rel);
    table_cell(rows, "%.2f dB", qsim_metrics_sqnr(m));
    table_cell(rows, "%.6f", qsim_metrics_cosine(m));
    table_cell(rows, m->outside ? "no" : "yes");
}

static void print_metrics(const matched *pairs, const char *what) {
    const char *const heading[] = {what, "max abs", "max rel", "SQNR", "cosine", "all close"};
    table rows = {.columns = "lrrrrl"};
    for (size_t i = 0; i < 6; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < pairs->taps.count; i++)
        metrics_cells(&rows, pairs, i);
    table_print(&rows, stdout);
}

static void print_tables(const tool *t, const comparison *c) {
    print_models(c);
    print_metrics(&c->outputs, "output");
    printf("top-1 agreement %.2f %% of %llu rows\n", agreement(c),
           (unsigned long long)c->outputs.metrics[0].rows);
    if (!args_has(&t->args, "layers"))
        return;
    putchar('\n');
    if (c->layers.taps.count > 0)
        print_metrics(&c->layers, "layer");
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
    for (size_t i = 0; i < c->outputs.taps.count; i++) {
        const qsim_metrics *m = &c->outputs.metrics[i];
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

static int open_pair(const tool *t, const comparison *c, qsim_model *const m[2], engine e[2],
                     matched *pairs) {
    int code = EXIT_OK;
    size_t count = pairs->taps.count;
    pairs->metrics = tool_alloc(count, sizeof(*pairs->metrics));
    for (size_t i = 0; i < count; i++)
        pairs->metrics[i].struct_size = sizeof(*pairs->metrics);
    for (int k = 0; k < 2 && code == EXIT_OK && count > 0; k++)
        code =
            engine_of_model(t, c->file[k], m[k], k ? pairs->taps.b : pairs->taps.a, count, &e[k]);
    return code;
}

static int open_both(const tool *t, comparison *c) {
    qsim_model *m[2] = {NULL, NULL};
    int code = tool_load_model(t, c->file[0], 0, &m[0]);
    if (code == EXIT_OK)
        code = tool_load_model(t, c->file[1], 0, &m[1]);
    if (code == EXIT_OK)
        code = taps_outputs(t, m[0], m[1], &c->outputs.taps);
    if (code == EXIT_OK)
        code = open_pair(t, c, m, c->engine, &c->outputs);
    if (code == EXIT_OK && args_has(&t->args, "layers")) {
        taps_layers(m[0], m[1], &c->layers.taps);
        code = open_pair(t, c, m, c->layer_engine, &c->layers);
    }
    c->engine[0].model = m[0];
    c->engine[1].model = m[1];
    return code;
}

static int run(tool *t) {
    comparison c = {.file = {NULL, NULL}};
    dataset *d = NULL;
    if (!tool_operands(t, 2, 2) || read_bounds(t, &c.bounds))
        return EXIT_USAGE;
    for (int k = 0; k < 2; k++)
        c.file[k] = t->args.operands[k];
    int code = open_both(t, &c);
    if (code == EXIT_OK)
        code = dataset_open(t, c.engine[0].model, &d);
    if (code == EXIT_OK)
        code = compare_all(t, &c, d);
    if (code == EXIT_OK) {
        if (t->json)
            print_json(t, &c);
        else
            print_tables(t, &c);
        code = judge(&c);
    }
    dataset_close(d);
    for (int k = 0; k < 2; k++) {
        engine_close(&c.layer_engine[k]);
        engine_close(&c.engine[k]);
        latency_free(&c.time[k]);
    }
    free(c.outputs.metrics);
    free(c.layers.metrics);
    taps_free(&c.outputs.taps);
    taps_free(&c.layers.taps);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    OPTION_LEVEL,
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
