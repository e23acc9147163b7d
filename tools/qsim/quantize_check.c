/* SPDX-License-Identifier: MIT */
/* Checks the quantized model's outputs and speed against the float model's. */
#include "common/array_source.h"
#include "quantizing.h"

/* Measures on one batch of the samples for the verdict. */
static int measure_pace(const tool *t, quantizing *q, pace *p) {
    const char *const files[2] = {q->file, q->output};
    const qsim_model *const models[2] = {q->model, q->result};
    batch b;
    dataset_rewind(q->data);
    int code = dataset_next(q->data, &b);
    if (code || b.samples == 0)
        return code;
    return pace_measure(t, files, models, b.inputs, b.input_count, p);
}

int quantize_measure(const tool *t, quantizing *q, quantize_check *c) {
    const char *spec = args_value(&t->args, "data");
    uint64_t seed;
    if (!q->data || qsim_model_output_count(q->model) == 0)
        return EXIT_OK;
    const bool fed = q->calibration && !args_has(&t->args, "calibration");
    c->judging = (judging){.file = q->file,
                           .output = q->output,
                           .model = q->model,
                           .result = q->result,
                           .calibration = q->calibration,
                           .method = q->options.method,
                           .samples = q->held_out > 0 ? SAMPLES_HELD_OUT
                                      : fed           ? SAMPLES_SEEN
                                                      : SAMPLES_OTHERS,
                           .made_up = source_is_random(spec, &seed),
                           .no_classes = args_has(&t->args, "no-classes")};
    dataset_use_held(q->data, q->held_out > 0);
    int code = tool_go_on(t, q->output, EXIT_OK);
    if (code == EXIT_OK)
        code = judge_all(t, &c->judging, q->data);
    if (code == EXIT_OK)
        code = measure_pace(t, q, &c->pace);
    if (code == EXIT_OK)
        next_steps_find(t, q, &c->judging, &c->next);
    return code;
}

void quantize_check_free(quantize_check *c) {
    judge_close(&c->judging);
    pace_free(&c->pace);
    next_steps_free(&c->next);
}
