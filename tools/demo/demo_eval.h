/* SPDX-License-Identifier: MIT */
/* Runs a classifier of 28 x 28 images: predictions and times. */
#ifndef DEMO_EVAL_H
#define DEMO_EVAL_H

#include <qsim/session.h>

#include <stdint.h>

#define DEMO_PIXELS  784
#define DEMO_CLASSES 10
#define DEMO_BATCH   64

/* A session and a run of one model; all zero after demo_close. */
typedef struct demo_net {
    qsim_session *session;
    qsim_run *run;
} demo_net;

int demo_open(const qsim_model *model, demo_net *net, qsim_error *error);
void demo_close(demo_net *net);

/* Pixels / 255 as floats; `out` must not overlap. */
void demo_scale(const uint8_t *pixels, size_t count, float *out);

/* Runs `batch` images, `x` holding batch * DEMO_PIXELS floats; *logits belongs to the run. */
int demo_run(demo_net *net, const float *x, size_t batch, const float **logits, qsim_error *error);

/* The class with the largest logit for each image. */
int demo_predict(demo_net *net, const uint8_t *images, size_t count, uint8_t *predicted,
                 qsim_error *error);

/* Milliseconds of one execution. */
typedef struct demo_times {
    double mean, p50, p90;
} demo_times;

/*
 * Times `rounds` executions of each of two networks on batches of `images`, in turns, so that both
 * meet the same machine state. A tenth as many rounds run before, to warm up.
 */
int demo_time(demo_net nets[2], const uint8_t *images, size_t count, size_t batch, size_t rounds,
              demo_times times[2], qsim_error *error);

#endif
