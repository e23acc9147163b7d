/* SPDX-License-Identifier: MIT */
#include "ptq/judge.h"

#include <math.h>

#include "exec/exec.h"
#include "graph/model.h"
#include "ptq/divergence.h"
#include "ptq/side.h"
#include "tensor/minifloat.h"
#include "tensor/shape.h"

/* ---- the float model's answers ---- */

static int copy_answer(qs_judge *j, const qsim_tensor *y, qsim_tensor *to) {
    int64_t *dims = qs_alloc(j->ctx, (size_t)y->rank + 1, sizeof(*dims));
    void *data = qs_alloc(j->ctx, y->bytes + 1, 1);
    *to = *y;
    to->dims = dims;
    to->data = data;
    if (!dims || !data)
        return QSIM_E_NOMEM;
    qs_tensor_dims(y, dims);
    memcpy(data, y->data, y->bytes);
    return QSIM_OK;
}

void qs_judge_close(qs_judge *j) {
    for (size_t i = 0; j->answers && i < j->batches * j->outputs; i++) {
        qs_free(j->ctx, (void *)(uintptr_t)j->answers[i].dims);
        qs_free(j->ctx, j->answers[i].data);
    }
    qs_free(j->ctx, j->answers);
    qs_free(j->ctx, j->kinds);
    qs_free(j->ctx, j->losses);
    *j = (qs_judge){0};
}

/* Outputs in half precision are judged as floats. */
static int run_batch(const qs_judge *j, qs_side *p, size_t batch, qsim_error *error) {
    const qsim_search_options *o = j->options;
    if (o->progress && j->doing && o->progress(o->progress_user, j->doing, j->done, j->total))
        return qs_fail(error, QSIM_E_CANCELLED, "%s: search cancelled", j->name);
    int code = qs_side_execute(p, o->inputs + batch * j->per_batch, j->per_batch, error);
    for (size_t k = 0; k < p->count && !code; k++)
        if (qs_is_half(p->outputs[k].dtype))
            code = qs_side_retype(p, &p->outputs[k], QSIM_FLOAT, error);
    return code;
}

/* ---- judging ---- */

/*
 * Number of rows of the first output that are right by the labels, in a batch that begins at row
 * `at`.
 */
static uint64_t count_right(const qs_judge *j, const qsim_tensor *y, size_t *at) {
    const float *x = y->data;
    const size_t row = qs_row_length(y), count = y->bytes / sizeof(*x);
    uint64_t right = 0;
    for (size_t i = 0; row > 0 && i < count && *at < j->options->label_count; i += row)
        right += (int64_t)qs_first_largest(x + i, row) == j->options->labels[(*at)++];
    return right;
}

/* Number of samples in an answer: the size of the first axis, unless that is the axis of a row. */
static size_t samples_of(const qsim_tensor *y) {
    return y->rank > 0 && y->bytes > 0 && qs_row_length(y) * sizeof(float) < y->bytes
               ? (size_t)y->dims[0]
               : 1;
}

/* Compares the outputs for a batch with the answers. *at: samples of the batches before. */
static int compare(qs_judge *j, qs_side *p, size_t batch, qsim_divergence *d, size_t *at,
                   qsim_error *error) {
    const qsim_tensor *answers = &j->answers[batch * j->outputs];
    const size_t samples = samples_of(&answers[j->first]);
    int code = run_batch(j, p, batch, error);
    for (size_t k = 0; k < j->outputs && !code; k++) {
        const qsim_tensor *a = &answers[k];
        if (a->dtype != QSIM_FLOAT)
            continue;
        code =
            qs_divergence_split(&d[k], a, &p->outputs[k], j->totals[k], j->losses + *at, samples);
        if (code)
            return qs_fail(error, code, "%s: answers cannot be compared: %s", j->name,
                           qsim_error_text(code));
    }
    *at += samples;
    return code;
}

static size_t labelled_rows(const qs_judge *j) {
    size_t count = 0;
    for (size_t i = 0; i < j->options->label_count; i++)
        count += j->options->labels[i] >= 0;
    return count ? count : 1;
}

static void conclude(const qs_judge *j, const qsim_divergence *d, uint64_t right,
                     qsim_judgement *out) {
    const qsim_divergence *first = &d[j->first];
    *out = (qsim_judgement){.struct_size = sizeof(*out), .top1 = NAN};
    for (size_t k = 0; k < j->outputs; k++)
        if (d[k].rows > 0)
            out->loss += qsim_divergence_loss(&d[k]);
    out->agreement = qsim_divergence_agreement(first);
    out->sqnr = first->noise > 0 ? 10 * log10(first->signal / first->noise) : INFINITY;
    out->rows = (int64_t)first->rows;
    if (j->options->labels)
        out->top1 = 100.0 * qs_real(right) / qs_real(labelled_rows(j));
}

int qs_judge_model(qs_judge *j, const qsim_model *candidate, qsim_judgement *out,
                   qsim_error *error) {
    qs_side p = {0};
    size_t at = 0, sample = 0;
    uint64_t right = 0;
    qsim_divergence *d = qs_calloc(j->ctx, j->outputs, sizeof(*d));
    int code = d ? qs_side_open(candidate, NULL, 0, &p, j->ctx, error) : QSIM_E_NOMEM;
    for (size_t k = 0; k < j->outputs && !code; k++)
        d[k] = (qsim_divergence){.struct_size = sizeof(*d), .answer = j->kinds[k]};
    memset(j->losses, 0, j->samples * sizeof(*j->losses));
    for (size_t b = 0; b < j->batches && !code; b++) {
        code = compare(j, &p, b, d, &sample, error);
        if (!code && j->options->labels)
            right += count_right(j, &p.outputs[j->first], &at);
    }
    for (size_t k = 0; k < j->outputs && !code; k++) {
        j->kinds[k] = d[k].answer;
        j->totals[k] = d[k].answer == QSIM_ANSWER_VALUES ? d[k].signal : qs_real(d[k].rows);
    }
    if (!code)
        conclude(j, d, right, out);
    qs_side_close(&p, j->ctx);
    qs_free(j->ctx, d);
    return code;
}

void qs_judge_copy(qs_judge *j, int from, int to) {
    const size_t n = j->samples;
    if (n > 0)
        memcpy(j->losses + (size_t)to * n, j->losses + (size_t)from * n, n * sizeof(*j->losses));
}

bool qs_judge_is_sure(const qs_judge *j, int list, int than, double errors) {
    const double *a = j->losses + (size_t)list * j->samples;
    const double *b = j->losses + (size_t)than * j->samples;
    const double n = qs_real(j->samples);
    double sum = 0, squares = 0, all = 0;
    for (size_t i = 0; i < j->samples; i++) {
        const double fall = b[i] - a[i];
        sum += fall;
        squares += fall * fall;
        all += b[i];
    }
    if (sum > 0 && sum >= QS_PLAIN_FALL * all)
        return true;
    return n > 1 && sum > 0 && sum * sum * (n - 1) >= errors * errors * (n * squares - sum * sum);
}

double qs_judge_drop(const qs_judge *j, const qsim_judgement *of) {
    if (!isnan(of->top1))
        return j->reference.top1 - of->top1;
    return isnan(of->agreement) ? 100 * sqrt(of->loss) : 100 - of->agreement;
}

/* ---- opening ---- */

static int find_first(qs_judge *j, qsim_error *error) {
    while (j->first < j->outputs && j->answers[j->first].dtype != QSIM_FLOAT)
        j->first++;
    if (j->first == j->outputs)
        return qs_fail(error, QSIM_E_UNSUPPORTED, "%s: has no float output to judge by", j->name);
    return QSIM_OK;
}

static int check_labels(const qs_judge *j, qsim_error *error) {
    const qsim_search_options *o = j->options;
    size_t rows = 0, classes = 0;
    for (size_t b = 0; b < j->batches; b++) {
        const qsim_tensor *y = &j->answers[b * j->outputs + j->first];
        classes = qs_row_length(y);
        rows += classes ? y->bytes / sizeof(float) / classes : 0;
    }
    if (!o->labels)
        return QSIM_OK;
    if (rows != o->label_count)
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: %zu labels for %zu rows of answers", j->name,
                       o->label_count, rows);
    for (size_t i = 0; i < rows; i++)
        if (o->labels[i] >= 0 && (uint64_t)o->labels[i] >= classes)
            return qs_fail(error, QSIM_E_VALUE, "%s: label %lld of sample %zu, of %zu classes",
                           j->name, (long long)o->labels[i], i, classes);
    return QSIM_OK;
}

static int keep_answers(qs_judge *j, const qsim_model *reference, qsim_error *error) {
    qs_side p = {0};
    int code = qs_side_open(reference, NULL, 0, &p, j->ctx, error);
    for (size_t b = 0; b < j->batches && !code; b++) {
        code = run_batch(j, &p, b, error);
        for (size_t k = 0; k < j->outputs && !code; k++)
            code = copy_answer(j, &p.outputs[k], &j->answers[b * j->outputs + k]);
    }
    qs_side_close(&p, j->ctx);
    return code;
}

/* Judges the float model against itself: the kind of each output, its weight, and its top-1. */
static int judge_reference(qs_judge *j, const qsim_model *reference, qsim_error *error) {
    for (size_t b = 0; b < j->batches; b++)
        j->samples += samples_of(&j->answers[b * j->outputs + j->first]);
    j->losses = qs_calloc(j->ctx, QS_LOSSES * j->samples + j->outputs, sizeof(*j->losses));
    if (!j->losses)
        return QSIM_E_NOMEM;
    j->totals = j->losses + QS_LOSSES * j->samples;
    return qs_judge_model(j, reference, &j->reference, error);
}

int qs_judge_open(qs_judge *j, const qsim_model *reference, const qsim_search_options *options,
                  qsim_error *error) {
    *j = (qs_judge){.ctx = reference->ctx,
                    .name = reference->name,
                    .options = options,
                    .doing = "float model", /* so that it can be cancelled, too */
                    .total = 1,
                    .outputs = (size_t)qsim_model_output_count(reference)};
    j->per_batch = options->inputs_per_batch > 0 ? (size_t)options->inputs_per_batch : 1;
    j->batches = options->input_count / j->per_batch;
    if (options->input_count % j->per_batch)
        return qs_fail(error, QSIM_E_ARGUMENT, "search: %zu inputs are no batches of %zu",
                       options->input_count, j->per_batch);
    j->answers = qs_calloc(j->ctx, j->batches * j->outputs + 1, sizeof(*j->answers));
    j->kinds = qs_calloc(j->ctx, j->outputs + 1, sizeof(*j->kinds));
    if (!j->answers || !j->kinds)
        return QSIM_E_NOMEM;
    int code = keep_answers(j, reference, error);
    for (size_t k = 0; k < j->outputs && j->batches > 0 && !code; k++) {
        const qs_graph *g = reference->graph;
        const char *name = g->values[g->outputs[k]].name;
        j->kinds[k] =
            options->no_classes ? QSIM_ANSWER_VALUES : qsim_answer_of(name, j->answers[k].rank);
    }
    if (!code)
        code = find_first(j, error);
    if (!code)
        code = check_labels(j, error);
    return code ? code : judge_reference(j, reference, error);
}
