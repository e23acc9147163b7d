/* SPDX-License-Identifier: MIT */
/* How the quantized model answers on the data, against the float one. */
#include <math.h>
#include <string.h>

#include "engine.h"
#include "quantizing.h"

#define CHECK_SAMPLES 256

static int measure_batches(const tool *t, quantizing *q, engine e[2], qsim_metrics *m,
                           uint64_t *samples) {
    batch b;
    dataset_rewind(q->data);
    while (*samples < CHECK_SAMPLES) {
        int code = dataset_next(q->data, &b);
        if (code || b.samples == 0)
            return code;
        for (int k = 0; k < 2 && code == EXIT_OK; k++)
            code = engine_execute(t, k ? q->output : q->file, &e[k], b.inputs, b.input_count);
        if (code)
            return code;
        code = qsim_metrics_add(m, &e[0].outputs[0], &e[1].outputs[0], 0, 0);
        if (code)
            return tool_fail(t, code, "%s: the outputs cannot be compared", q->output);
        *samples += (uint64_t)b.samples;
    }
    return EXIT_OK;
}

int quantize_measure(const tool *t, quantizing *q, quantize_check *c) {
    engine e[2] = {{0}, {0}};
    qsim_metrics m = {.struct_size = sizeof(m)};
    memset(c, 0, sizeof(*c));
    if (!q->data || qsim_model_output_count(q->model) == 0)
        return EXIT_OK;
    int code = engine_of_model(t, q->file, q->model, NULL, 0, &e[0]);
    if (code == EXIT_OK)
        code = engine_of_model(t, q->output, q->result, NULL, 0, &e[1]);
    if (code == EXIT_OK)
        code = measure_batches(t, q, e, &m, &c->samples);
    c->agreement = m.rows ? 100.0 * (double)m.agree / (double)m.rows : NAN;
    c->cosine = qsim_metrics_cosine(&m);
    c->sqnr = qsim_metrics_sqnr(&m);
    engine_close(&e[0]);
    engine_close(&e[1]);
    return code;
}
