/* SPDX-License-Identifier: MIT */
/* Measures how long candidates take on this machine. */
#include <math.h>

#include "exec/exec.h"
#include "graph/names.h"
#include "ptq/judge.h"
#include "ptq/side.h"
#include "tensor/shape.h"

#include <qsim/base.h>

#define MOST_RUNS   31
#define LONG_ENOUGH 60000000u /* ns */

/* A model and the inputs of one sample. */
typedef struct stopwatch {
    qs_side side;
    qsim_tensor *inputs;
    int64_t *dims;
    double samples; /* that a run takes */
} stopwatch;

static void stop(const qs_judge *j, stopwatch *w) {
    qs_side_close(&w->side, j->ctx);
    qs_free(j->ctx, w->inputs);
    qs_free(j->ctx, w->dims);
}

/* Makes views of the first sample if all inputs have the same first size. */
static void view_first_sample(const qs_judge *j, stopwatch *w) {
    const int64_t batch = w->inputs[0].rank > 0 ? w->inputs[0].dims[0] : 1;
    for (size_t i = 0; i < j->per_batch; i++)
        if (w->inputs[i].rank < 1 || w->inputs[i].dims[0] != batch)
            return;
    for (size_t i = 0; i < j->per_batch && batch > 1; i++) {
        qsim_tensor *x = &w->inputs[i];
        int64_t *dims = w->dims + i * QSIM_MAX_RANK;
        qs_tensor_dims(x, dims);
        dims[0] = 1;
        x->bytes /= (size_t)batch;
        x->dims = dims;
    }
}

/*
 * Runs once, so that the plan is made and caches are warm; on the whole batch if the model refuses
 * one sample.
 */
static int warm_up(const qs_judge *j, stopwatch *w, qsim_error *error) {
    memcpy(w->inputs, j->options->inputs, j->per_batch * sizeof(*w->inputs));
    const double batch = w->inputs[0].rank > 0 ? (double)w->inputs[0].dims[0] : 1;
    view_first_sample(j, w);
    w->samples = w->inputs[0].rank > 0 ? (double)w->inputs[0].dims[0] : 1;
    const int code = qs_side_execute(&w->side, w->inputs, j->per_batch, error);
    if (code != QSIM_E_SHAPE)
        return code;
    memcpy(w->inputs, j->options->inputs, j->per_batch * sizeof(*w->inputs));
    w->samples = batch;
    return qs_side_execute(&w->side, w->inputs, j->per_batch, error);
}

static int start(const qs_judge *j, const qsim_model *m, stopwatch *w, qsim_error *error) {
    const int code = qs_side_open(m, NULL, 0, &w->side, j->ctx, error);
    if (code)
        return code;
    w->inputs = qs_calloc(j->ctx, j->per_batch, sizeof(*w->inputs));
    w->dims = qs_calloc(j->ctx, j->per_batch * QSIM_MAX_RANK, sizeof(*w->dims));
    if (!w->inputs || !w->dims)
        return QSIM_E_NOMEM;
    return warm_up(j, w, error);
}

static double median(uint64_t *ns, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && ns[k] < ns[k - 1]; k--) {
            const uint64_t swap = ns[k];
            ns[k] = ns[k - 1];
            ns[k - 1] = swap;
        }
    return qs_real(ns[count / 2]);
}

int qs_time_model(const qs_judge *j, const qsim_model *m, double *microseconds, qsim_error *error) {
    stopwatch w = {0};
    uint64_t ns[MOST_RUNS], first = qs_clock_ns();
    size_t count = 0;
    int code = start(j, m, &w, error);
    while (!code && count < MOST_RUNS && (count < 3 || qs_clock_ns() - first < LONG_ENOUGH)) {
        const uint64_t before = qs_clock_ns();
        code = qs_side_execute(&w.side, w.inputs, j->per_batch, error);
        ns[count++] = qs_clock_ns() - before;
    }
    *microseconds = code ? NAN : median(ns, count) / 1e3 / w.samples;
    stop(j, &w);
    return code;
}

/* ---- by node ---- */

/* The indices of the entries by the names of their nodes; NULL: out of memory. */
static struct qs_names *index_names(qsim_ctx *ctx, const qs_node_time *times, size_t count) {
    struct qs_names *index = qs_names_create(ctx);
    for (size_t i = 0; i < 2 * count && index; i++) {
        const char *name = i & 1 ? times[i / 2].other : times[i / 2].name;
        if (name && qs_names_put(ctx, index, name, (qs_id)(i / 2))) {
            qs_names_free(ctx, index);
            index = NULL;
        }
    }
    return index;
}

/* Adds the last execution's steps to the sums of the nodes that they belong to. */
static void add_steps(const qsim_run *run, const struct qs_names *index, double *sum) {
    for (int32_t i = 0; i < qsim_run_step_count(run); i++) {
        qsim_step_info s = {.struct_size = sizeof(s)};
        (void)qsim_run_step(run, i, &s);
        const qs_id k = qs_names_find(index, s.node);
        if (k != QS_NONE)
            sum[k] = (isnan(sum[k]) ? 0 : sum[k]) + qs_real(s.nanoseconds) / 1e3;
    }
}

int qs_time_nodes(const qs_judge *j, const qsim_model *m, qs_node_time *times, size_t count,
                  qsim_error *error) {
    enum { ROUNDS = 9 };
    stopwatch w = {0};
    double *sum = qs_alloc(j->ctx, count + 1, sizeof(*sum));
    struct qs_names *index = index_names(j->ctx, times, count);
    int code = sum && index ? start(j, m, &w, error) : QSIM_E_NOMEM;
    for (size_t k = 0; k < count; k++)
        times[k].us = NAN;
    if (!code)
        qsim_run_set_timing(w.side.run, 1);
    for (int round = 0; round < ROUNDS && !code; round++) {
        code = qs_side_execute(&w.side, w.inputs, j->per_batch, error);
        for (size_t k = 0; k < count; k++)
            sum[k] = NAN;
        add_steps(w.side.run, index, sum);
        for (size_t k = 0; k < count; k++)
            if (isnan(times[k].us) || sum[k] / w.samples < times[k].us)
                times[k].us = sum[k] / w.samples;
    }
    stop(j, &w);
    qs_names_free(j->ctx, index);
    qs_free(j->ctx, sum);
    return code;
}
