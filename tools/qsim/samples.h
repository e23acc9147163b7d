/* SPDX-License-Identifier: MIT */
/* Samples held in memory, for searches that run them again and again. */
#ifndef QSIM_SAMPLES_H
#define QSIM_SAMPLES_H

#include <qsim/ptq.h>

#include "common/dataset.h"
#include "quantizing.h"

typedef struct sample_batch {
    int64_t at, samples; /* place in the data, and number of samples */
    size_t row;          /* of its first label */
} sample_batch;

typedef struct samples {
    qsim_tensor *inputs; /* batch by batch; owned */
    size_t count;        /* number of tensors */
    size_t per_batch;
    sample_batch *batches;
    int64_t *labels; /* label of each row of the first input; -1: none */
    size_t rows;
    size_t samples;
    bool labelled;
    bool no_classes; /* --no-classes */
} samples;

/*
 * Reads from the data set's position until there are `most` samples. The rest of the last batch
 * goes to `rest`, if that is not NULL and the model takes batches of any size; else to `s`. Samples
 * that would not fit into memory are refused before they are read.
 */
int samples_read(const tool *t, dataset *d, const qsim_model *m, size_t most, samples *s,
                 samples *rest);
void samples_free(samples *s);
/* Refuses a label that is no class of the model, if that tells their number; d: where s is from. */
int samples_check_labels(const tool *t, const char *file, const qsim_model *m, const dataset *d,
                         const samples *s);
/* Sets the samples of a search's options. */
void samples_give(const samples *s, qsim_search_options *o);
/* Calibrates q->model on samples of q->data; prints errors. */
int samples_calibrate(const tool *t, quantizing *q, const samples *s);

#endif
