/* SPDX-License-Identifier: MIT */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

#include "common/progress.h"
#include "common/system.h"
#include "calibrating.h"
#include "not_finite.h"

int samples_check_labels(const tool *t, const char *file, const qsim_model *m, const samples *s,
                         size_t first) {
    qsim_value_info y = {.struct_size = sizeof(y)};
    if (!s->labelled || qsim_model_output(m, 0, &y) || y.rank != 2 || y.dims[1] < 2)
        return EXIT_OK;
    for (size_t i = 0; i < s->rows; i++)
        if (s->labels[i] >= y.dims[1])
            return tool_fail(t, QSIM_E_VALUE,
                             "%s: sample %zu has label %lld, the model %lld classes", file,
                             first + i, (long long)s->labels[i], (long long)y.dims[1]);
    return EXIT_OK;
}

void samples_free(samples *s) {
    for (size_t i = 0; i < s->count; i++) {
        free(s->inputs[i].data);
        free((void *)(uintptr_t)s->inputs[i].dims);
    }
    free(s->inputs);
    free(s->labels);
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
    if (rest)
        rest->labelled = s->labelled;
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
}

/* Values that are not finite, in the batch of tensors from `at` on. */
static int blame(const tool *t, const char *file, const qsim_model *m, const samples *s, size_t at,
                 const qsim_error *e) {
    const batch b = {.inputs = s->inputs + at, .input_count = s->per_batch};
    return not_finite_fail(t, file, m, NULL, 0, &b, e);
}

int samples_calibrate(const tool *t, const char *file, const qsim_model *m,
                      const qsim_quantize_options *options, const samples *s,
                      qsim_calibration **out) {
    progress p;
    qsim_error e;
    int code = EXIT_OK;
    const qsim_calibration_options o = {.struct_size = sizeof(o), .quantize = options};
    if (qsim_calibration_create(m, &o, out, &e))
        return tool_error(t, file, &e);
    progress_begin(&p, t);
    for (size_t i = 0; i < s->count && code == EXIT_OK; i += s->per_batch) {
        const int failed = qsim_calibration_feed(*out, s->inputs + i, s->per_batch, &e);
        if (failed && !(failed == QSIM_E_CANCELLED && tool_interrupted()))
            code = e.code == QSIM_E_VALUE ? blame(t, file, m, s, i, &e) : tool_error(t, file, &e);
        else if (failed || progress_step(&p, "calibrating", i + s->per_batch, s->count))
            code = tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted while calibrating", file);
    }
    progress_end(&p);
    return code == EXIT_OK ? calibration_has_data(t, file, *out) : code;
}
