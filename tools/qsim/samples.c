/* SPDX-License-Identifier: MIT */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "common/system.h"
#include "calibrating.h"
#include "not_finite.h"
#include "scores.h"

/* Batch k, as the data gave it. */
static batch batch_of(const samples *s, size_t k) {
    const sample_batch *b = &s->batches[k];
    return (batch){.inputs = s->inputs + k * s->per_batch,
                   .input_count = s->per_batch,
                   .samples = b->samples,
                   .labels = s->labels + b->row,
                   .at = b->at};
}

int samples_check_labels(const tool *t, const char *file, const qsim_model *m, const dataset *d,
                         const samples *s) {
    const size_t classes = s->labelled ? scores_classes(m) : 0;
    text odd = {0};
    for (size_t k = 0; classes > 0 && k * s->per_batch < s->count; k++) {
        const batch b = batch_of(s, k);
        if (scores_odd_label(d, &b, classes, false, &odd)) {
            const int code = tool_fail(t, QSIM_E_VALUE, "%s: %s", file, odd.data);
            text_free(&odd);
            return code;
        }
    }
    return EXIT_OK;
}

void samples_free(samples *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->inputs[i].data);
        free((void *)(uintptr_t)s->inputs[i].dims);
    }
    free(s->inputs);
    free(s->labels);
    free(s->batches);
    memset(s, 0, sizeof(*s));
}

/* A copy of rows [from, to) of the first axis, or of all. */
static qsim_tensor keep(const qsim_tensor *x, size_t from, size_t to, bool all) {
    qsim_tensor copy = *x;
    const size_t row = all ? 0 : x->bytes / (size_t)x->dims[0];
    int64_t *dims = tool_alloc((size_t)x->rank + 1, sizeof(*dims));
    memcpy(dims, x->dims, (size_t)x->rank * sizeof(*dims));
    if (!all) {
        dims[0] = (int64_t)(to - from);
        copy.bytes = row * (to - from);
    }
    copy.dims = dims;
    copy.data = tool_alloc(copy.bytes + 1, 1);
    memcpy(copy.data, (const char *)x->data + row * from, copy.bytes);
    return copy;
}

/* Are the samples of a batch the rows of all its tensors, and any number of them valid? */
static bool is_divisible(const batch *b, bool any) {
    for (size_t i = 0; i < b->input_count; i++)
        if (b->inputs[i].rank < 1 || b->inputs[i].dims[0] != b->samples)
            return false;
    return any;
}

/* Adds samples [from, to) of a batch, or all of an indivisible one. */
static void add(samples *s, const batch *b, size_t from, size_t to, bool divisible) {
    /* A fixed batch is filled up with repetitions, which have no labels. */
    size_t rows = to - from;
    if (!divisible && b->inputs[0].rank > 0 && (size_t)b->inputs[0].dims[0] > rows)
        rows = (size_t)b->inputs[0].dims[0];
    s->per_batch = b->input_count;
    const size_t k = s->count / s->per_batch;
    s->batches = tool_grow(s->batches, k + 1, sizeof(*s->batches));
    s->batches[k] = (sample_batch){b->at + (int64_t)from, (int64_t)(to - from), s->rows};
    s->inputs = tool_grow(s->inputs, s->count + b->input_count, sizeof(*s->inputs));
    for (size_t i = 0; i < b->input_count; i++)
        s->inputs[s->count++] = keep(&b->inputs[i], from, to, !divisible);
    s->labels = tool_grow(s->labels, s->rows + rows, sizeof(*s->labels));
    for (size_t i = 0; i < rows; i++)
        s->labels[s->rows + i] = b->labels && i < to - from ? b->labels[from + i] : -1;
    s->rows += rows;
    s->samples += to - from;
}

/* Whether `most` samples like those of `b` can be held; they are run again and again. */
static int check_memory(const tool *t, const dataset *d, const batch *b, size_t most) {
    const int64_t all = dataset_samples(d);
    const double count = (double)((uint64_t)all < most ? (uint64_t)all : most);
    double bytes = 0;
    char needed[32], there[32];
    for (size_t i = 0; i < b->input_count; i++)
        bytes += (double)b->inputs[i].bytes / (double)b->samples;
    if (count * bytes <= system_memory())
        return EXIT_OK;
    return tool_fail(t, QSIM_E_NOMEM,
                     "out of memory: %.0f samples take %s, and there are %s: --limit takes fewer",
                     count, tool_bytes(count * bytes, needed), tool_bytes(system_memory(), there));
}

int samples_read(const tool *t, dataset *d, const qsim_model *m, size_t most, samples *s,
                 samples *rest) {
    qsim_value_info input = {.struct_size = sizeof(input)};
    const bool free_axis =
        qsim_model_input(m, 0, &input) == QSIM_OK && input.rank > 0 && input.dims[0] < 0;
    batch b;
    tool_catch_interrupt(t->ctx);
    s->labelled = dataset_has_labels(d);
    s->no_classes = args_has(&t->args, "no-classes");
    if (rest) {
        rest->labelled = s->labelled;
        rest->no_classes = s->no_classes;
    }
    while (s->samples < most) {
        int code = dataset_next(d, &b);
        if (code == EXIT_OK && b.samples > 0 && s->count == 0)
            code = check_memory(t, d, &b, most);
        if (code || b.samples == 0)
            return code;
        const size_t n = (size_t)b.samples, left = most - s->samples;
        const bool divisible = is_divisible(&b, free_axis);
        const size_t mine = divisible && rest && n > left ? left : n;
        add(s, &b, 0, mine, divisible);
        if (mine < n)
            add(rest, &b, mine, n, divisible);
        if (tool_interrupted())
            return tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted while reading samples",
                             args_value(&t->args, "data"));
    }
    return EXIT_OK;
}

void samples_give(const samples *s, qsim_search_options *o) {
    o->inputs = s->inputs;
    o->input_count = s->count;
    o->inputs_per_batch = (int32_t)s->per_batch;
    o->labels = s->labelled ? s->labels : NULL;
    o->label_count = s->labelled ? s->rows : 0;
    o->no_classes = s->no_classes;
}

int samples_calibrate(const tool *t, quantizing *q, const samples *s) {
    progress p;
    qsim_error e;
    int code = EXIT_OK;
    const qsim_calibration_options o = {.struct_size = sizeof(o), .quantize = &q->options};
    if (qsim_calibration_create(q->model, &o, &q->calibration, &e))
        return tool_error(t, q->file, &e);
    progress_begin(&p, t);
    for (size_t k = 0; k * s->per_batch < s->count && code == EXIT_OK; k++) {
        const batch b = batch_of(s, k);
        const int failed = qsim_calibration_feed(q->calibration, b.inputs, b.input_count, &e);
        if (failed && !(failed == QSIM_E_CANCELLED && tool_interrupted()))
            code = e.code == QSIM_E_VALUE ? not_finite_fail(t, q->file, q->model, q->data, &b, &e)
                                          : tool_error(t, q->file, &e);
        else if (failed || progress_step(&p, "calibrating", (k + 1) * s->per_batch, s->count))
            code = tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted while calibrating", q->file);
    }
    progress_end(&p);
    return code == EXIT_OK ? calibration_has_data(t, q->file, q->calibration) : code;
}
