/* SPDX-License-Identifier: MIT */
#include "demo_eval.h"

#include "common/tool.h"

#include <stdlib.h>

int demo_open(const qsim_model *model, demo_net *net, qsim_error *error) {
    *net = (demo_net){0};
    int status = qsim_session_create(model, NULL, &net->session, error);
    if (status == QSIM_OK)
        status = qsim_run_create(net->session, &net->run, error);
    if (status != QSIM_OK)
        demo_close(net);
    return status;
}

void demo_close(demo_net *net) {
    qsim_run_free(net->run);
    qsim_session_free(net->session);
    *net = (demo_net){0};
}

void demo_scale(const uint8_t *pixels, size_t count, float *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = (float)pixels[i] / 255.0f;
}

static int wrong_output(qsim_error *error) {
    *error = (qsim_error){.code = QSIM_E_SHAPE,
                          .message = "the model does not give 10 floats for each image"};
    return QSIM_E_SHAPE;
}

int demo_run(demo_net *net, const float *x, size_t batch, const float **logits, qsim_error *error) {
    const int64_t dims[] = {(int64_t)batch, 1, 28, 28};
    const size_t bytes = batch * DEMO_PIXELS * sizeof(float);
    const qsim_tensor in = {QSIM_FLOAT, 4, dims, (void *)(uintptr_t)x, bytes};
    qsim_tensor out = {0};
    const int status = qsim_run_execute(net->run, &in, 1, &out, 1, error);
    if (status == QSIM_OK && out.bytes != batch * DEMO_CLASSES * sizeof(float))
        return wrong_output(error);
    *logits = out.data;
    return status;
}

static uint8_t top1(const float *logits) {
    uint8_t best = 0;
    for (uint8_t c = 1; c < DEMO_CLASSES; c++)
        if (logits[c] > logits[best])
            best = c;
    return best;
}

int demo_predict(demo_net *net, const uint8_t *images, size_t count, uint8_t *predicted,
                 qsim_error *error) {
    static float x[DEMO_BATCH * DEMO_PIXELS];
    for (size_t first = 0; first < count; first += DEMO_BATCH) {
        const size_t batch = count - first < DEMO_BATCH ? count - first : DEMO_BATCH;
        const float *logits = NULL;
        demo_scale(images + first * DEMO_PIXELS, batch * DEMO_PIXELS, x);
        const int status = demo_run(net, x, batch, &logits, error);
        if (status != QSIM_OK)
            return status;
        for (size_t i = 0; i < batch; i++)
            predicted[first + i] = top1(logits + i * DEMO_CLASSES);
    }
    return QSIM_OK;
}

static int compare_double(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static demo_times summarize(double *ms, size_t count) {
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += ms[i];
    qsort(ms, count, sizeof(*ms), compare_double);
    return (demo_times){sum / (double)count, ms[count / 2], ms[count * 9 / 10]};
}

static int time_run(demo_net *net, const float *x, size_t batch, double *ms, qsim_error *error) {
    const float *logits = NULL;
    const double start = tool_now();
    const int status = demo_run(net, x, batch, &logits, error);
    *ms = tool_now() - start;
    return status;
}

int demo_time(demo_net nets[2], const uint8_t *images, size_t count, size_t batch, size_t rounds,
              demo_times times[2], qsim_error *error) {
    float *x = tool_alloc(batch * DEMO_PIXELS, sizeof(*x));
    double *ms = tool_alloc(2 * rounds, sizeof(*ms)), took;
    const size_t warm_up = rounds / 10, batches = count / batch;
    int status = QSIM_OK;
    for (size_t i = 0; i < warm_up + rounds && status == QSIM_OK; i++) {
        demo_scale(images + i % batches * batch * DEMO_PIXELS, batch * DEMO_PIXELS, x);
        for (size_t k = 0; k < 2 && status == QSIM_OK; k++) {
            status = time_run(&nets[k], x, batch, &took, error);
            if (i >= warm_up)
                ms[k * rounds + i - warm_up] = took;
        }
    }
    if (status == QSIM_OK)
        for (size_t k = 0; k < 2; k++)
            times[k] = summarize(ms + k * rounds, rounds);
    free(ms);
    free(x);
    return status;
}
