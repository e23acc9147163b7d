/* SPDX-License-Identifier: MIT */
/* A data set held in memory, for searches that run it again and again. */
#ifndef QSIM_SAMPLES_H
#define QSIM_SAMPLES_H

#include <qsim/ptq.h>

#include "common/dataset.h"

typedef struct samples {
    qsim_tensor *inputs; /* batch by batch; own memory */
    size_t count;        /* tensors */
    size_t per_batch;
    int64_t *labels; /* of each row of the first input's batch axis; -1: none */
    size_t rows;
    size_t samples;
    bool labelled;
} samples;

/*
 * Reads on from where the data set is until `most` samples are there. What is left of the last
 * batch goes to `rest`, if that is not NULL and the model takes batches of any size; else to `s`.
 * More than the memory can hold are refused before they are read.
 */
int samples_read(const tool *t, dataset *d, const qsim_model *m, size_t most, samples *s, samples *rest);
void samples_free(samples *s);
/* Facts about the samples that a search needs. */
void samples_give(const samples *s, qsim_search_options *o);
/* Watches them; prints what is wrong. */
int samples_calibrate(const tool *t, const char *file, const qsim_model *m,
                      const qsim_quantize_options *options, const samples *s,
                      qsim_calibration **out);

#endif
