/* SPDX-License-Identifier: MIT */
/* libqsim through its public functions, as an application would call it. */
#include "worker.h"

#include <qsim/qsim.h>
#include <stdio.h>
#include <string.h>

static struct {
    qsim_run *run;
    qsim_tensor inputs[WORKER_INPUTS], outputs[WORKER_INPUTS];
    worker_tensor made[WORKER_INPUTS];
    size_t input_count, output_count;
} state;

static int failed(worker_job *job, const qsim_error *error) {
    snprintf(job->refusal, sizeof(job->refusal), "%s", error->message);
    return -1;
}

static int32_t isa_number(const char *name) {
    for (int32_t isa = QSIM_ISA_C; name && qsim_isa_name(isa); isa++)
        if (strcmp(name, qsim_isa_name(isa)) == 0)
            return isa;
    return QSIM_ISA_AUTO;
}

static int make_inputs(worker_job *job, const qsim_model *model) {
    for (size_t i = 0; i < state.input_count; i++) {
        worker_tensor *t = &state.made[i];
        qsim_value_info info = {.struct_size = sizeof(info)};
        if (qsim_model_input(model, (int32_t)i, &info) || info.rank < 0 || info.rank > WORKER_RANK)
            return -1;
        t->dtype = info.dtype;
        t->rank = info.rank;
        for (int32_t d = 0; d < t->rank; d++)
            t->dims[d] = info.dims[d];
        if (worker_make_up(job, info.name, t))
            return -1;
        state.inputs[i] = (qsim_tensor){t->dtype, t->rank, t->dims, t->data, t->bytes};
    }
    return 0;
}

static int open_model(worker_job *job) {
    const qsim_ctx_options options = {
        .struct_size = sizeof(options), .threads = job->threads, .isa = isa_number(job->isa)};
    qsim_error error = {0};
    qsim_ctx *ctx = NULL;
    qsim_model *model = NULL;
    qsim_session *session = NULL;
    int code = qsim_ctx_create(&options, &ctx, &error);
    if (!code)
        code = qsim_model_load(ctx, job->model, NULL, &model, &error);
    if (!code)
        code = qsim_session_create(model, NULL, &session, &error);
    if (!code)
        code = qsim_run_create(session, &state.run, &error);
    if (code) {
        failed(job, &error);
    } else {
        state.input_count = (size_t)qsim_session_input_count(session);
        state.output_count = (size_t)qsim_session_output_count(session);
        if (state.input_count > WORKER_INPUTS || state.output_count > WORKER_INPUTS ||
            make_inputs(job, model)) {
            snprintf(job->refusal, sizeof(job->refusal), "no input can be made up");
            code = -1;
        }
    }
    qsim_session_free(session);
    qsim_model_free(model);
    qsim_ctx_free(ctx);
    return code ? -1 : 0;
}

static int run_model(worker_job *job) {
    qsim_error error = {0};
    if (job->grow)
        worker_grow(job, state.made, state.input_count);
    for (size_t i = 0; i < state.input_count; i++)
        state.inputs[i].bytes = state.made[i].bytes;
    for (size_t i = 0; i < state.output_count; i++)
        state.outputs[i] = (qsim_tensor){0};
    if (qsim_run_execute(state.run, state.inputs, state.input_count, state.outputs,
                         state.output_count, &error))
        return failed(job, &error);
    return 0;
}

const worker_engine worker_qsim = {"qsim", NULL, open_model, run_model};
