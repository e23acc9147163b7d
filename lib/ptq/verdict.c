/* SPDX-License-Identifier: MIT */
/* Compares two models: each output is graded, and the worst grade is the verdict. */
#include "ptq/verdict.h"

#include <math.h>

#include "exec/exec.h"
#include "graph/model.h"
#include "kernel/context.h"
#include "op/op.h"
#include "tensor/minifloat.h"
#include "ptq/divergence.h"
#include "ptq/quantizer.h"
#include "ptq/no_memory.h"

#define FEW_ROWS 32

/* ---- pairs ---- */

/* Whether an output has scores of classes for each sample, or each position if its name says so. */
static bool is_scores(const char *name, const qsim_tensor *y, int64_t samples, size_t *classes) {
    if (!qs_is_real(y->dtype) || y->rank < 2 || y->dims[0] != samples)
        return false;
    *classes = qs_row_length(y);
    if (qsim_answer_of(name, y->rank) == QSIM_ANSWER_LOGITS) {
        *classes = (size_t)y->dims[2];
        return *classes > 1 && y->dims[1] > 0;
    }
    return qs_is_row(y) && (y->dtype != QSIM_FLOAT ||
                            qs_answer_kind(y, y->bytes / sizeof(float)) != QSIM_ANSWER_VALUES);
}

int qs_pair_add(qs_pair *p, const qsim_tensor *a, const qsim_tensor *b, qsim_error *error) {
    p->metrics.struct_size = sizeof(p->metrics);
    const int code = qsim_metrics_add(&p->metrics, a, b, 0, 0);
    const bool alike = a->dtype == b->dtype && a->rank == b->rank; /* sizes may depend on data */
    p->unknown = p->unknown || (alike && (code == QSIM_E_DTYPE || code == QSIM_E_SHAPE));
    if (p->unknown)
        return QSIM_OK;
    return code ? qs_fail(error, QSIM_E_MISMATCH,
                          "verdict: '%s' differs in type or shape between both models", p->a)
                : QSIM_OK;
}

double qs_pair_noise(const qs_pair *p) {
    const qsim_metrics *m = &p->metrics;
    if (m->noise == 0)
        return 0;
    return m->signal > 0 ? m->noise / m->signal : INFINITY;
}

static double agreement(const qs_pair *p) {
    const qsim_metrics *m = &p->metrics;
    if (p->classes)
        return m->rows ? 100.0 * (double)m->agree / (double)m->rows : (double)NAN;
    return m->count ? 100.0 * qs_real(m->count - m->outside) / qs_real(m->count) : (double)NAN;
}

static int32_t by_bounds(double x, double good, double doubtful) {
    return x >= good ? QSIM_GRADE_GOOD : x >= doubtful ? QSIM_GRADE_DOUBTFUL : QSIM_GRADE_BAD;
}

static int32_t grade_of(const qs_pair *p, int32_t measure) {
    const qsim_metrics *m = &p->metrics;
    const int32_t noise = by_bounds(qsim_metrics_sqnr(m), 20, 10);
    if (p->unknown || m->count == 0 || m->nan_both == m->count)
        return QSIM_GRADE_NONE;
    if (m->nan_one > 0)
        return QSIM_GRADE_BAD;
    if (measure == QSIM_MEASURE_SQNR)
        return noise;
    if (!p->classes || m->rows >= FEW_ROWS)
        return by_bounds(agreement(p), 97, 90);
    return noise == QSIM_GRADE_GOOD && m->agree < m->rows ? QSIM_GRADE_DOUBTFUL : noise;
}

static void describe(const qs_pair *p, bool whole, qsim_verdict_info *info) {
    const qsim_metrics *m = &p->metrics;
    const bool counted = !p->unknown && (p->classes || whole);
    *info = (qsim_verdict_info){.name = p->name,
                                .tensor = p->a,
                                .measure = p->unknown ? QSIM_MEASURE_NONE
                                           : counted  ? QSIM_MEASURE_AGREEMENT
                                                      : QSIM_MEASURE_SQNR,
                                .agreement = counted ? agreement(p) : (double)NAN,
                                .sqnr = p->unknown ? (double)NAN : qsim_metrics_sqnr(m),
                                .cosine = p->unknown ? (double)NAN : qsim_metrics_cosine(m),
                                .before = p->before > 0 ? -10 * log10(p->before) : (double)INFINITY,
                                .rows = p->classes ? m->rows : m->count};
    info->grade = grade_of(p, info->measure);
}

/* ---- feeding ---- */

/* A view of class scores as rows, without other axes of size 1. */
static qsim_tensor as_rows(const qsim_tensor *y, const int64_t dims[2]) {
    return (qsim_tensor){y->dtype, 2, dims, y->data, y->bytes};
}

static int add_output(qsim_verdict *v, size_t i, int64_t samples, qsim_error *error) {
    qs_pair *p = &v->outputs[i];
    const qsim_tensor *a = &v->side[0].outputs[i], *b = &v->side[1].outputs[i];
    size_t classes = 0, size;
    const bool scores = !v->options.no_classes && is_scores(p->name, a, samples, &classes);
    if (p->metrics.count == 0)
        p->classes = scores;
    if (!p->classes || !scores || qs_pair_size(a, b, &size))
        return qs_pair_add(p, a, b, error);
    const int64_t positions = qsim_answer_of(p->name, a->rank) ? a->dims[1] : 1;
    const int64_t dims[2] = {samples * positions, (int64_t)classes};
    const qsim_tensor x = as_rows(a, dims), y = as_rows(b, dims);
    const bool seen = i == 0 && x.dtype == QSIM_FLOAT && positions == 1;
    const int code = seen ? qs_data_scores(v, &x, (size_t)samples, classes) : QSIM_OK;
    return code ? code : qs_pair_add(p, &x, &y, error);
}

int qsim_verdict_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t input_count,
                      qsim_error *error) {
    qs_error_clear(error);
    if (!v || (input_count > 0 && !inputs))
        return qs_fail_missing(error, "verdict");
    const bool counted = input_count > 0 && inputs[0].rank > 0 && inputs[0].dims;
    const int64_t samples = counted ? inputs[0].dims[0] : 1;
    int code = QSIM_OK;
    for (int i = 0; i < 2 && !code; i++)
        code = qs_side_execute(&v->side[i], inputs, input_count, error);
    for (size_t i = 0; i < v->output_count && !code; i++)
        code = add_output(v, i, samples, error);
    if (!code && v->witness.side.session)
        code = qs_witness_feed(v, inputs, input_count, error);
    if (!code && v->model)
        code = qs_verdict_layers(v, inputs, input_count, error);
    if (code)
        return qs_no_memory_in("verdict", code, error);
    if (input_count > 0)
        qs_data_feed(&v->data, &inputs[0]);
    qs_verdict_warn(v);
    return QSIM_OK;
}

/* ---- create, free ---- */

static int name_input(qsim_verdict *v, const qsim_model *m) {
    qsim_value_info info = {.struct_size = sizeof(info)};
    const int code = qsim_model_input(m, 0, &info);
    if (code && code != QSIM_E_NOMEM)
        return QSIM_OK; /* it has none */
    v->input = code ? NULL : qs_arena_string(&v->arena, info.name, strlen(info.name));
    for (int32_t i = 0; v->input && i < qsim_model_metadata_count(m); i++) {
        const char *value = qsim_model_metadata_value(m, i);
        if (strcmp(qsim_model_metadata_key(m, i), "Image.NominalPixelRange") != 0)
            continue;
        v->pixel_range = qs_arena_string(&v->arena, value, strlen(value));
        v->input = v->pixel_range ? v->input : NULL;
    }
    return v->input ? QSIM_OK : QSIM_E_NOMEM;
}

static int list_outputs(qsim_verdict *v, qsim_error *error) {
    if (v->side[0].count != v->side[1].count)
        return qs_fail(error, QSIM_E_MISMATCH, "verdict: the models have %d and %d outputs",
                       (int)v->side[0].count, (int)v->side[1].count);
    v->output_count = v->side[0].count;
    v->outputs = qs_arena_alloc(&v->arena, v->output_count + 1, sizeof(*v->outputs));
    if (!v->outputs)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < v->output_count; i++) {
        const char *name = qsim_session_output_name(v->side[0].session, (int32_t)i);
        name = qs_arena_string(&v->arena, name ? name : "", name ? strlen(name) : 0);
        if (!name)
            return QSIM_E_NOMEM;
        v->outputs[i] = (qs_pair){.name = name, .a = name, .b = name, .node = QS_NONE};
    }
    return QSIM_OK;
}

int qsim_verdict_create(const qsim_model *model, const qsim_model *quantized,
                        const qsim_verdict_options *options, qsim_verdict **out,
                        qsim_error *error) {
    qs_error_clear(error);
    if (!model || !quantized || !out)
        return qs_fail_missing(error, "verdict");
    *out = NULL;
    qsim_verdict *v = qs_calloc(model->ctx, 1, sizeof(*v));
    qsim_ctx *ctx;
    if (!v)
        return qs_no_memory_in("verdict", QSIM_E_NOMEM, error);
    int code = qs_ctx_hold(model->ctx, &ctx, error);
    if (code) {
        qs_free(model->ctx, v);
        return code;
    }
    v->ctx = ctx;
    qs_arena_init(&v->arena, ctx);
    code = QS_OPTIONS(v->options, options, error);
    if (!code)
        code = qs_side_open(model, NULL, 0, &v->side[0], ctx, error);
    if (!code)
        code = qs_side_open(quantized, NULL, 0, &v->side[1], ctx, error);
    if (!code)
        code = list_outputs(v, error);
    if (!code)
        code = name_input(v, model);
    v->model = qs_model_hold(model);
    v->quantized = qs_model_hold(quantized);
    if (!code && !v->options.no_layers)
        code = qs_ptq_prepared(model, v->options.calibration, &v->prepared, error);
    if (!code)
        code = qs_witness_open(v, error);
    if (code) {
        qsim_verdict_free(v);
        return qs_no_memory_in("verdict", code, error);
    }
    qs_verdict_warn_early(v);
    v->options.calibration = NULL;
    *out = v;
    return QSIM_OK;
}

void qsim_verdict_free(qsim_verdict *v) {
    if (!v)
        return;
    qsim_ctx *ctx = v->ctx;
    for (int i = 0; i < 2; i++)
        qs_side_close(&v->side[i], ctx);
    qs_side_close(&v->witness.side, ctx);
    qsim_model_free(v->prepared);
    qsim_model_free(v->model);
    qsim_model_free(v->quantized);
    qs_arena_free(&v->arena);
    qs_free(ctx, v);
    qs_ctx_drop(ctx);
}

/* ---- results ---- */

int32_t qsim_verdict_grade(const qsim_verdict *v) {
    int32_t worst = QSIM_GRADE_NONE;
    for (int32_t i = 0; i < qsim_verdict_output_count(v); i++) {
        qsim_verdict_info info = {.struct_size = sizeof(info)};
        if (!qsim_verdict_output(v, i, &info) && info.grade > worst)
            worst = info.grade;
    }
    for (int32_t i = 0; worst && i < v->warning_count; i++)
        if (v->warnings[i].at_best > worst)
            worst = v->warnings[i].at_best;
    return worst;
}

const char *qsim_grade_name(int32_t grade) {
    static const char *const names[] = {"not judged", "good", "doubtful", "bad"};
    _Static_assert(QSIM_GRADE_NONE == 0 && QSIM_GRADE_BAD + 1 == QS_COUNT(names),
                   "a name for each grade");
    return grade >= 0 && grade < (int32_t)QS_COUNT(names) ? names[grade] : NULL;
}

int64_t qsim_verdict_samples(const qsim_verdict *v) {
    return v ? v->data.samples : 0;
}

int32_t qsim_verdict_output_count(const qsim_verdict *v) {
    return v ? (int32_t)v->output_count : 0;
}

int qsim_verdict_output(const qsim_verdict *v, int32_t index, qsim_verdict_info *info) {
    qsim_verdict_info own;
    if (!v || !info)
        return QSIM_E_ARGUMENT;
    if (index < 0 || (size_t)index >= v->output_count)
        return QSIM_E_NOT_FOUND;
    const int32_t dtype = v->side[0].outputs[index].dtype;
    describe(&v->outputs[index], !qs_is_real(dtype), &own);
    return qs_give(info, &own, sizeof(own));
}

int32_t qsim_verdict_layer_count(const qsim_verdict *v) {
    return v ? (int32_t)v->layer_count : 0;
}

int qsim_verdict_layer(const qsim_verdict *v, int32_t index, qsim_verdict_info *info) {
    qsim_verdict_info own;
    if (!v || !info)
        return QSIM_E_ARGUMENT;
    if (index < 0 || (size_t)index >= v->layer_count)
        return QSIM_E_NOT_FOUND;
    describe(&v->layers[index], false, &own);
    return qs_give(info, &own, sizeof(own));
}

const char *qsim_verdict_warning(const qsim_verdict *v, int32_t index, const char **kind) {
    const bool there = v && index >= 0 && index < v->warning_count;
    if (kind)
        *kind = there ? v->warnings[index].kind : NULL;
    return there ? v->warnings[index].text : NULL;
}
