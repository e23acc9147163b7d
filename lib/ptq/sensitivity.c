/* SPDX-License-Identifier: MIT */
/* qsim_sensitivity: each unit alone in integers, and each unit alone in float. */
#include <math.h>

#include "exec/exec.h"
#include "ptq/no_memory.h"
#include "ptq/search.h"

int qs_units_alone(qs_search *s, qs_units *u, size_t count) {
    int code = QSIM_OK;
    for (size_t i = 0; i < u->count && !code; i++)
        code = qs_unit_set(s, &u->items[i], true);
    for (size_t i = 0; i < count && !code && !qs_search_is_over(s); i++) {
        qs_unit *unit = &u->items[i];
        qsim_model *m;
        qsim_judgement alone;
        code = qs_search_progress(s, unit->name, u->count + i, 2 * u->count);
        if (!code)
            code = qs_unit_set(s, unit, false);
        if (!code)
            code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
        if (code)
            return code;
        code = qs_judge_model(&s->judge, m, &alone, s->error);
        qsim_model_free(m);
        if (!code)
            code = qs_unit_set(s, unit, true);
        unit->result.loss_alone = code ? NAN : alone.loss;
        unit->result.agreement = code ? NAN : alone.agreement;
    }
    return code;
}

const char *qs_quantized_name(const qsim_model *m, const char *tensor, char *buffer, size_t size) {
    static const char suffix[] = "_DequantizeLinear_Output";
    const size_t n = strlen(tensor);
    const char *plain = qs_graph_find(m->graph, tensor) == QS_NONE ? NULL : tensor;
    if (n + sizeof(suffix) > size)
        return plain;
    memcpy(buffer, tensor, n);
    memcpy(buffer + n, suffix, sizeof(suffix));
    return qs_graph_find(m->graph, buffer) == QS_NONE ? plain : buffer;
}

/* Computes a tensor of a model on the first batch; *y is in the memory of `run`. */
static int read_tensor(const qs_search *s, const qsim_model *m, const char *tensor, qsim_run **run,
                       qsim_tensor *y) {
    const qsim_session_options o = {
        .struct_size = sizeof(o), .outputs = &tensor, .output_count = 1};
    qsim_session *session = NULL;
    int code = qs_session_compile(m, &o, 0, &session, s->error);
    if (!code)
        code = qsim_run_create(session, run, s->error);
    if (!code)
        code = qsim_run_execute(*run, s->options.inputs, s->judge.per_batch, y, 1, s->error);
    qsim_session_free(session);
    return code;
}

/* Measures the SQNR of the outputs of all units on the first batch. */
static int measure_local(qs_search *s, qs_units *u) {
    qsim_model *m;
    int code = qs_quantize_prepared(s->prepared, s->c, &s->base, &m, s->error);
    if (code)
        return code;
    for (size_t i = 0; i < u->count && !code; i++) {
        char buffer[1024];
        qs_unit *unit = &u->items[i];
        qsim_run *runs[2] = {NULL, NULL};
        qsim_tensor a = {0}, b = {0};
        qsim_metrics sums = {.struct_size = sizeof(sums)};
        const char *name = qs_quantized_name(m, unit->tensor, buffer, sizeof(buffer));
        unit->result.sqnr = NAN;
        code = qs_search_progress(s, unit->name, 0, 2 * u->count);
        if (!name) /* its channels are multiplied by factors */
            continue;
        if (!code)
            code = read_tensor(s, s->prepared, unit->tensor, &runs[0], &a);
        if (!code)
            code = read_tensor(s, m, name, &runs[1], &b);
        if (!code)
            code = qsim_metrics_add(&sums, &a, &b, 0, 0);
        unit->result.sqnr = code ? NAN : qsim_metrics_sqnr(&sums);
        qsim_run_free(runs[0]);
        qsim_run_free(runs[1]);
    }
    qsim_model_free(m);
    return code;
}

static int report_all(const qs_search *s, const qs_units *u, size_t count, qsim_unit_fn unit,
                      void *user) {
    for (size_t i = 0; unit && i < count; i++)
        if (unit(user, &u->items[i].result))
            return qs_fail(s->error, QSIM_E_CANCELLED, "%s: cancelled", s->prepared->name);
    return QSIM_OK;
}

static int measure(qs_search *s, qs_units *u, size_t *done) {
    *done = 0;
    int code = qs_search_try(s, NULL, NULL);
    if (!code)
        code = qs_units_find(s, u);
    if (!code)
        code = qs_units_times(s, u);
    if (!code)
        code = measure_local(s, u);
    if (!code)
        code = qs_units_gains(s, u, false, s->judgement.loss, 2 * u->count, done);
    s->end = 0; /* units that were begun are measured completely */
    if (!code)
        code = qs_units_alone(s, u, *done);
    return code;
}

int32_t qsim_sensitivity(const qsim_model *model, const qsim_calibration *c,
                         const qsim_quantize_options *base, const qsim_search_options *options,
                         qsim_unit_fn unit, void *user, qsim_judgement *plain, qsim_error *error) {
    qs_search s = {0};
    qs_units u = {0};
    size_t done = 0;
    qs_error_clear(error);
    if (!model || !c)
        return qs_fail_missing(error, "sensitivity");
    int code = qs_search_open(&s, model, c, base, options, error);
    s.options.score = NULL;
    s.options.goal = QSIM_GOAL_ACCURACY;
    if (!code && s.base.mode != QSIM_MODE_STATIC)
        code = qs_fail(error, QSIM_E_ARGUMENT, "sensitivity: needs static quantization");
    if (!code && s.judge.batches == 0)
        code = qs_fail(error, QSIM_E_ARGUMENT, "sensitivity: inputs are missing");
    if (!code)
        code = measure(&s, &u, &done);
    if (plain && !isnan(s.best)) {
        int given = qs_give(plain, &s.judgement, sizeof(s.judgement));
        code = code ? code : given;
    }
    if (!code || code == QSIM_E_CANCELLED) {
        (void)qs_units_sort(u.items, done);
        int stop = report_all(&s, &u, done, unit, user);
        code = code ? code : stop;
    }
    qs_units_free(&s, &u);
    qs_search_close(&s);
    return code ? qs_no_memory_in("sensitivity", code, error) : (int32_t)done;
}
