/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/columns.h"
#include "common/dataset.h"
#include "common/progress.h"
#include "comparison.h"
#include "pace.h"
#include "verbs.h"

static int read_bounds(const tool *t, bounds *b) {
    b->allclose = args_has(&t->args, "rtol") || args_has(&t->args, "atol");
    return tool_number(t, "rtol", 0, 1e9, 1e-3, &b->rtol) &&
                   tool_number(t, "atol", 0, 1e30, 1e-5, &b->atol) &&
                   tool_number(t, "max-abs", 0, 1e30, NAN, &b->max_abs) &&
                   tool_number(t, "min-sqnr", -1e3, 1e3, NAN, &b->min_sqnr) &&
                   tool_number(t, "min-cosine", -1, 1, NAN, &b->min_cosine) &&
                   tool_percent(t, "min-agreement", NAN, &b->min_agreement)
               ? EXIT_OK
               : EXIT_USAGE;
}

static int add_metrics(const tool *t, const comparison *c, const engine e[2], tensor_pairs *m) {
    for (size_t i = 0; i < m->count; i++) {
        int code = qsim_metrics_add(&m->metrics[i], &e[0].outputs[i], &e[1].outputs[i],
                                    c->bounds.rtol, c->bounds.atol);
        if (code)
            return tool_fail(t, code, "%s: '%.100s' differs in type or shape: %s", c->file[1],
                             m->a[i], qsim_error_text(code));
    }
    return EXIT_OK;
}

#define MOST_SECONDS 0.5
#define MOST_ROUNDS  1000

/* Times runs of both in turns, in changing order; earlier runs have warmed up. */
static int time_both(const tool *t, comparison *c, const batch b[2]) {
    double begin = tool_now();
    int code = EXIT_OK;
    c->rows = b->samples;
    for (int i = 0; i < MOST_ROUNDS && code == EXIT_OK; i++) {
        for (int n = 0; n < 2 && code == EXIT_OK; n++) {
            int k = (i + n) % 2;
            double start = tool_now();
            code = engine_execute(t, c->file[k], &c->engine[k], b[k].inputs, b[k].input_count);
            latency_add(&c->time[k], tool_now() - start);
        }
        if (tool_now() - begin > MOST_SECONDS * 1000 * (i < 9 ? 10 : 1))
            break;
    }
    if (code)
        return code;
    c->speed = latency_ratio(c->time[0].ms, c->time[1].ms, c->time[0].count);
    if (pace_is_integer(&c->engine[1]) && !pace_is_integer(&c->engine[0]) && pace_fails(c->speed))
        code = pace_explain(t, c->file, c->engine,
                            (const qsim_tensor *const[]){b[0].inputs, b[1].inputs}, b->input_count,
                            &c->why);
    for (int k = 0; k < 2; k++)
        latency_summarize(&c->time[k]);
    return code;
}

/* Notes the samples whose first outputs differ most. */
static void note_worst(comparison *c, const dataset *d, const batch *b) {
    const qsim_tensor *x = &c->engine[0].outputs[0], *y = &c->engine[1].outputs[0];
    const size_t n = b->samples > 0 ? elements(x) / (size_t)b->samples : 0;
    for (size_t i = 0; i < (size_t)b->samples && c->worst.wanted && n > 0; i++) {
        double signal = 0, noise = 0;
        text caption = {0};
        for (size_t k = i * n; k < (i + 1) * n; k++) {
            const double a = element(x, k), off = a - element(y, k);
            signal += a * a;
            noise += off * off;
        }
        if (!(noise > 0 && signal > 0))
            continue;
        dataset_name_row(d, b, i, &caption);
        text_printf(&caption,
                    ": %.1f\xc2\xa0"
                    "dB",
                    10 * log10(signal / noise));
        thumbs_add(&c->worst, &b->inputs[0], i, noise / signal, caption.data);
        text_free(&caption);
    }
}

/* Runs both models, each on the batch in its own types, and adds the metrics. */
static int compare_batch(const tool *t, comparison *c, const dataset *d, const batch b[2]) {
    int code = EXIT_OK;
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        code = engine_execute(t, c->file[k], &c->engine[k], b[k].inputs, b[k].input_count);
    if (code == EXIT_OK)
        code = add_metrics(t, c, c->engine, &c->outputs);
    if (code == EXIT_OK)
        note_worst(c, d, b);
    for (int k = 0; k < 2 && code == EXIT_OK && c->layers.count > 0; k++)
        code = engine_execute(t, c->file[k], &c->layer_engine[k], b[k].inputs, b[k].input_count);
    if (code == EXIT_OK)
        code = add_metrics(t, c, c->layer_engine, &c->layers);
    if (code == EXIT_OK && c->time[0].count == 0)
        code = time_both(t, c, b);
    return code;
}

static int compare_all(const tool *t, comparison *c, dataset *d) {
    progress p;
    batch b[2];
    uint64_t done = 0;
    int code;
    progress_begin(&p, t);
    for (;;) {
        code = dataset_next(d, &b[0]);
        if (code || b[0].samples == 0)
            break;
        b[1] = b[0];
        code = dataset_retype(d, c->engine[1].model, &b[1]);
        if (code == EXIT_OK)
            code = compare_batch(t, c, d, b);
        if (code)
            break;
        done += (uint64_t)b->samples;
        progress_step(&p, "comparing", done, (uint64_t)dataset_samples(d));
    }
    progress_end(&p);
    c->samples = (int64_t)done;
    return code;
}

static int open_pair(const tool *t, const comparison *c, qsim_model *const m[2], engine e[2],
                     tensor_pairs *pairs) {
    int code = EXIT_OK;
    size_t count = pairs->count;
    pairs->metrics = tool_alloc(count, sizeof(*pairs->metrics));
    for (size_t i = 0; i < count; i++)
        pairs->metrics[i].struct_size = sizeof(*pairs->metrics);
    for (int k = 0; k < 2 && code == EXIT_OK && count > 0; k++)
        code = engine_of_model(t, c->file[k], m[k], k ? pairs->b : pairs->a, count, &e[k]);
    return code;
}

static int open_both(const tool *t, comparison *c) {
    qsim_model *m[2] = {NULL, NULL};
    int code = EXIT_OK;
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        code = tool_go_on(t, c->file[k], tool_load_model(t, c->file[k], 0, &m[k]));
    if (code == EXIT_OK)
        code = tensor_pairs_outputs(t, m[0], m[1], &c->outputs);
    if (code == EXIT_OK)
        code = tool_go_on(t, c->file[0], open_pair(t, c, m, c->engine, &c->outputs));
    for (int k = 0; k < 2 && code == EXIT_OK; k++)
        engine_dequantize(&c->engine[k], m[k]);
    if (code == EXIT_OK && (args_has(&t->args, "layers") || args_has(&t->args, "html"))) {
        code = tensor_pairs_layers(t, m[0], m[1], &c->layers);
        if (code == EXIT_OK)
            code = open_pair(t, c, m, c->layer_engine, &c->layers);
    }
    c->engine[0].model = m[0];
    c->engine[1].model = m[1];
    return code;
}

static void draw_layers(page *p, const comparison *c) {
    const size_t n = c->layers.count;
    chart_value *values = tool_alloc(n, sizeof(*values));
    char(*texts)[24] = tool_alloc(n, sizeof(*texts));
    text svg = {0};
    for (size_t i = 0; i < n; i++) {
        const double sqnr = qsim_metrics_sqnr(&c->layers.metrics[i]);
        snprintf(texts[i], sizeof(texts[i]), "%.1f dB", table_number(sqnr));
        values[i] = (chart_value){c->layers.a[i], sqnr, texts[i], sqnr < 20};
    }
    chart_values(&svg, "SQNR of each layer in dB, in order; below 20 dB in orange", values, n);
    if (n > 0)
        page_chart(p, &svg);
    text_free(&svg);
    free(texts);
    free(values);
}

static void report(const tool *t, page *p, const comparison *c) {
    page_model models[2];
    for (int k = 0; k < 2; k++)
        models[k] = (page_model){tool_base_name(c->file[k]), qsim_model_bytes(c->engine[k].model),
                                 c->time[k].median};
    if (p->path) {
        page_models(p, models, 2);
        draw_layers(p, c);
        page_thumbs(p, "Samples that differ most", &c->worst);
    }
    if (!t->json || p->path) {
        page_report_begin(t, p);
        comparison_print(t, c);
        page_report_end(t, p);
    }
    if (t->json)
        comparison_print_json(t, c);
}

static int run(tool *t) {
    page p;
    int wrong = EXIT_OK;
    comparison c = {.file = {NULL, NULL}};
    dataset *d = NULL;
    if (!tool_operands(t, 2, 2) || read_bounds(t, &c.bounds))
        return EXIT_USAGE;
    if (!page_open(t, &p, &wrong))
        return wrong;
    c.worst.wanted = p.path != NULL;
    for (int k = 0; k < 2; k++)
        c.file[k] = t->args.operands[k];
    c.data = args_value(&t->args, "data");
    tool_catch_interrupt(NULL);
    int code = open_both(t, &c);
    if (code == EXIT_OK)
        code =
            dataset_open_spec(t, c.data ? c.data : "random", DATASET_BATCH, c.engine[0].model, &d);
    if (code == EXIT_OK)
        code = compare_all(t, &c, d);
    if (code == EXIT_OK) {
        report(t, &p, &c);
        code = comparison_fails(c.file[1], &c.outputs, &c.bounds) ? EXIT_BOUND : EXIT_OK;
    }
    code = page_close(t, &p, "qsim compare", code);
    thumbs_free(&c.worst);
    dataset_close(d);
    for (int k = 0; k < 2; k++) {
        engine_close(&c.layer_engine[k]);
        engine_close(&c.engine[k]);
        latency_free(&c.time[k]);
    }
    text_free(&c.why);
    tensor_pairs_free(&c.outputs);
    tensor_pairs_free(&c.layers);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    OPTION_LEVEL,
    {"layers", NULL, "also compare the layers of both models, and mark the first bad one", 0, NULL},
    {"rtol", "X", "relative tolerance of 'all close' (0.001); if given, exit 3 beyond it", 0, NULL},
    {"atol", "X", "absolute tolerance of 'all close' (0.00001); if given, exit 3 beyond it", 0,
     NULL},
    {"max-abs", "X", "exit 3 if an output differs by more", 0, NULL},
    {"min-sqnr", "DB", "exit 3 if an output's SQNR is lower", 0, NULL},
    {"min-cosine", "X", "exit 3 if an output's cosine is lower", 0, NULL},
    {"min-agreement", "P", "exit 3 if fewer than P percent of the classes agree", 0, NULL},
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_compare = {"compare",
                           "A B [--data SPEC]",
                           "compare two models: outputs, speed, size",
                           options,
                           run,
                           false,
                           "model.onnx int8.onnx --data photos --preprocess imagenet --layers"};
