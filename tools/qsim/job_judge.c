/* SPDX-License-Identifier: MIT */
/* The verdict on a flow's best model, on samples of the pass's data held out from calibration. */
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "io_option.h"
#include "job.h"

/* Index of the last quantization in a flow; the flow's count if there is none. */
static size_t last_quantization(const job_flow *f) {
    size_t found = f->count;
    for (size_t i = 0; i < f->count; i++)
        if (f->passes[i].action == ACTION_QUANTIZE)
            found = i;
    return found;
}

/* The best candidate's value of an option of a pass; NULL: none. */
static const char *value_of(const job_flow *f, const job_best *best, size_t pass,
                            const char *name) {
    const job_pass *p = &f->passes[pass];
    size_t at = 0;
    for (size_t i = 0; i < pass; i++)
        at += f->passes[i].choice_count;
    for (size_t i = 0; i < p->choice_count; i++)
        if (strcmp(p->choices[i].option, name) == 0 && p->choices[i].count > 0)
            return p->choices[i].values[best->picks[at + i]];
    return NULL;
}

static int32_t method_of(const job_flow *f, const job_best *best, size_t pass) {
    const char *method = value_of(f, best, pass, "method");
    for (int32_t i = 0; method && range_methods[i]; i++)
        if (strcmp(method, range_methods[i]) == 0)
            return i;
    return QSIM_METHOD_MINMAX;
}

static int measure_pace(const tool *t, const job *j, const qsim_model *input, job_best *best,
                        dataset *d) {
    const char *const files[2] = {j->model, "the result"};
    const qsim_model *const models[2] = {input, best->model};
    batch b;
    dataset_rewind(d);
    int code = dataset_next(d, &b);
    if (code || b.samples == 0)
        return code;
    return pace_measure(t, files, models, b.inputs, b.input_count, &best->pace);
}

/* Without data there is nothing to judge by, but a model that is not faster is explained. */
static int explain_pace(const tool *t, const job *j, const qsim_model *input, job_best *best) {
    dataset *d = NULL;
    tool own;
    if (!(best->result.mean_ms > 0)) /* latency was not asked for */
        return EXIT_OK;
    job_tool(t, job_data_of(j, METRIC_LATENCY), input, &own);
    int code = dataset_open(&own, input, &d);
    if (code == EXIT_OK)
        code = measure_pace(&own, j, input, best, d);
    dataset_close(d);
    job_tool_close(&own);
    return code;
}

static int judge(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
                 qsim_calibration *const *kept, job_best *best) {
    const size_t i = last_quantization(f);
    const job_data *data = i < f->count && f->passes[i].data.spec ? &f->passes[i].data
                                                                  : job_data_of(j, METRIC_ACCURACY);
    dataset *d = NULL;
    tool own;
    if (i == f->count || !best->model || best->interrupted)
        return EXIT_OK;
    if (!data->spec)
        return explain_pace(t, j, input, best);
    job_tool(t, data, input, &own);
    int code = dataset_open(&own, input, &d);
    const bool fed = kept[i] && data == &f->passes[i].data && !value_of(f, best, i, "calibration");
    const int64_t held = code == EXIT_OK && fed ? dataset_hold_out(d, DATASET_HELD_OUT) : 0;
    best->judged = (judging){.file = j->model,
                             .output = "the result",
                             .model = input,
                             .result = best->model,
                             .calibration = kept[i],
                             .method = method_of(f, best, i),
                             .samples = held  ? SAMPLES_HELD_OUT
                                        : fed ? SAMPLES_SEEN
                                              : SAMPLES_OTHERS,
                             .no_classes = value_of(f, best, i, "no-classes") != NULL};
    const char *percentile = value_of(f, best, i, "percentile");
    const char *mode = value_of(f, best, i, "mode");
    best->has_ranges = !mode || strcmp(mode, "static") == 0;
    best->percentile = percentile ? strtod(percentile, NULL) : 0;
    if (code == EXIT_OK) {
        dataset_use_held(d, held > 0);
        code = judge_all(&own, &best->judged, d);
    }
    if (code == EXIT_OK)
        code = measure_pace(&own, j, input, best, d);
    dataset_close(d);
    job_tool_close(&own);
    return code;
}

int job_judge(const tool *t, const job *j, const job_flow *f, const qsim_model *input,
              qsim_calibration *const *kept, job_best *best) {
    const size_t i = last_quantization(f);
    const int code = judge(t, j, f, input, kept, best);
    return code || i == f->count || !best->model
               ? code
               : io_apply(t, j->model, value_of(f, best, i, "io"), &best->model);
}
