/* SPDX-License-Identifier: MIT */
/*
 * --search: the data is held in memory and every candidate is run over it. The score is the
 * accuracy where there are labels, else the agreement with the float model, in percent.
 */
#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "engine.h"
#include "quantizing.h"
#include "scores.h"

typedef struct samples {
    const tool *tool;
    const char *file;
    qsim_tensor *inputs; /* one per batch */
    size_t batches, count;
    int64_t *wanted; /* classes */
    size_t classes;
} samples;

static void samples_free(samples *s) {
    for (size_t i = 0; i < s->batches; i++) {
        free(s->inputs[i].data);
        free((void *)(uintptr_t)s->inputs[i].dims);
    }
    free(s->inputs);
    free(s->wanted);
}

static qsim_tensor keep(const qsim_tensor *x) {
    qsim_tensor copy = *x;
    int64_t *dims = tool_alloc((size_t)x->rank, sizeof(*dims));
    memcpy(dims, x->dims, (size_t)x->rank * sizeof(*dims));
    copy.dims = dims;
    copy.data = tool_alloc(x->bytes, 1);
    memcpy(copy.data, x->data, x->bytes);
    return copy;
}

static int read_samples(quantizing *q, samples *s) {
    batch b;
    dataset_rewind(q->data);
    for (;;) {
        int code = dataset_next(q->data, &b);
        if (code || b.samples == 0)
            return code;
        size_t n = (size_t)b.samples;
        s->inputs = tool_grow(s->inputs, s->batches + 1, sizeof(*s->inputs));
        s->inputs[s->batches++] = keep(&b.inputs[0]);
        s->wanted = tool_grow(s->wanted, s->count + n, sizeof(*s->wanted));
        for (size_t i = 0; i < n; i++)
            s->wanted[s->count + i] = b.labels ? b.labels[i] : -1;
        s->count += n;
    }
}

/* Runs a model over all samples: its classes go to `guess`. Silent where it is interrupted. */
static int classify(const samples *s, const qsim_model *m, int64_t *guess) {
    engine e;
    qsim_error error;
    size_t at = 0;
    int code = engine_of_model(s->tool, s->file, m, NULL, 0, &e);
    for (size_t i = 0; i < s->batches && code == EXIT_OK; i++) {
        int failed = engine_try(&e, &s->inputs[i], 1, &error);
        if (failed)
            code = failed == QSIM_E_CANCELLED ? EXIT_INTERRUPTED
                                              : tool_error(s->tool, s->file, &error);
        const qsim_tensor *y = &e.outputs[0];
        size_t rows = s->inputs[i].rank > 0 ? (size_t)s->inputs[i].dims[0] : 1;
        size_t classes = code == EXIT_OK && rows > 0 ? elements(y) / rows : 0;
        for (size_t k = 0; k < rows && classes > 0; k++)
            guess[at++] = (int64_t)largest(y, k * classes, classes);
    }
    engine_close(&e);
    return code;
}

static double percent_right(const samples *s, const int64_t *guess) {
    size_t right = 0;
    for (size_t i = 0; i < s->count; i++)
        right += guess[i] == s->wanted[i];
    return s->count ? 100.0 * (double)right / (double)s->count : 0;
}

/* A qsim_score_fn. */
static int score_model(void *user, const qsim_model *candidate, double *score) {
    const samples *s = user;
    int64_t *guess = tool_alloc(s->count, sizeof(*guess));
    int code = classify(s, candidate, guess);
    *score = percent_right(s, guess);
    free(guess);
    return code || tool_interrupted();
}

static int score_float(quantizing *q, samples *s, double *score) {
    int64_t *guess = tool_alloc(s->count, sizeof(*guess));
    int code = classify(s, q->model, guess);
    if (!dataset_has_labels(q->data))
        memcpy(s->wanted, guess, s->count * sizeof(*guess));
    *score = percent_right(s, guess);
    free(guess);
    return code == EXIT_INTERRUPTED
               ? tool_fail(s->tool, QSIM_E_CANCELLED, "%s: interrupted", s->file)
               : code;
}

static int read_options(const tool *t, qsim_search_options *o) {
    const char *kind = args_value(&t->args, "search");
    const char *seed = args_value(&t->args, "seed");
    int64_t steps;
    if (seed && !parse_uint64(seed, &o->seed))
        return tool_usage(t, NULL, "--seed is '%s', not a whole number", seed);
    if (!tool_int(t, "steps", 1, 1000000, 200, &steps) ||
        !tool_number(t, "max-drop", 0.001, 100, 2, &o->max_drop) ||
        !tool_number(t, "percentile", 0.001, 100, 99, &o->start_percentile))
        return EXIT_USAGE;
    o->struct_size = sizeof(*o);
    o->methods = strcmp(kind, "both") == 0 ? "greedy,anneal" : kind;
    o->steps = (int32_t)steps;
    return EXIT_OK;
}

static int search(const tool *t, quantizing *q, samples *s, qsim_search_options *o) {
    progress p;
    qsim_error e;
    qsim_recipe *found = NULL;
    double best = 0;
    if (qsim_recipe_create(t->ctx, &found, &e))
        return tool_error(t, q->file, &e);
    progress_begin(&p, t);
    o->inputs = s->inputs;
    o->input_count = s->batches;
    o->score = score_model;
    o->score_user = s;
    o->progress = progress_step;
    o->progress_user = &p;
    int code = qsim_search(q->model, q->calibration, &q->options, o, found, &best, &e);
    progress_end(&p);
    qsim_recipe_free(q->recipe);
    q->options.recipe = q->recipe = found;
    q->searched = true;
    q->annealed = strstr(o->methods, "anneal") != NULL;
    q->search_score = best;
    q->float_score = o->float_score;
    q->interrupted = code == QSIM_E_CANCELLED && tool_interrupted();
    return code && !q->interrupted ? tool_error(t, q->file, &e) : EXIT_OK;
}

int quantize_search(const tool *t, quantizing *q) {
    samples s = {.tool = t, .file = q->file};
    qsim_search_options o = {.struct_size = sizeof(o)};
    int code = read_options(t, &o);
    if (code == EXIT_OK && !q->data)
        code = tool_usage(t, NULL, "--search needs --data");
    if (code == EXIT_OK && qsim_model_input_count(q->model) != 1)
        code =
            tool_fail(t, QSIM_E_UNSUPPORTED, "%s: --search takes models with one input", q->file);
    if (code == EXIT_OK)
        code = read_samples(q, &s);
    if (code == EXIT_OK)
        code = score_float(q, &s, &o.float_score);
    if (code == EXIT_OK)
        code = search(t, q, &s, &o);
    samples_free(&s);
    return code;
}
