/* SPDX-License-Identifier: MIT */
/*
 * Second moments of the inputs of layers with weights: E[x x^T] over rows, each of which has the
 * inputs of one output: a row of a matrix, or the elements in a convolution's window. Each sample
 * gives the same number of rows, at positions that depend only on the sample's number. Rows are
 * added in the order of samples, whatever the batches; the sums are not in calibration files.
 */
#ifndef QS_GRAM_H
#define QS_GRAM_H

#include "ptq/quantizer.h"

/* The key of a matrix; layers that read the same input in the same way share one. */
typedef struct qs_gram_key {
    const char *tensor;
    int64_t kernel[2], stride[2], dilation[2];
    int64_t pads[4]; /* as in ONNX: before the image, then after it */
    int32_t padding; /* 0: by pads; 1: SAME_UPPER, 2: SAME_LOWER */
    bool conv;
} qs_gram_key;

typedef struct qs_gram {
    qs_gram_key key;
    size_t tensor; /* of the calibration */
    size_t n;
    uint64_t rows;
    double *sum;  /* n x n, then the sums of the n elements themselves */
    double *kept; /* before the batch that is being fed */
    uint64_t kept_rows;
    bool changed; /* added by that batch */
} qs_gram;

/* Makes the matrices that layers need under these options, if any do. */
int qs_gram_create(qsim_calibration *c, const qsim_quantize_options *options, qsim_error *error);
void qs_gram_free(qsim_calibration *c);
/*
 * Adds the samples of tensor `index` in a batch, whose numbers begin with `first`. Errors: NOMEM.
 */
int qs_gram_add(qsim_calibration *c, size_t index, const qsim_tensor *t, bool channels_last,
                int64_t first, int64_t samples);
/* Keeps or undoes the sums of the batch. */
void qs_gram_end_batch(qsim_calibration *c, bool counts);
/* Adds the matrices of another calibration; those that it does not have are dropped. */
void qs_gram_merge(qsim_calibration *into, const qsim_calibration *from);

/* The matrix of a layer's input, or NULL. */
const qs_gram *qs_gram_find(const qs_quantizer *q, const qs_layer *l);

static inline double qs_gram_moment(const qs_gram *g, size_t i, size_t j) {
    return g->sum[i * g->n + j] / qs_real(g->rows);
}
static inline double qs_gram_covariance(const qs_gram *g, size_t i, size_t j) {
    const double *mean = g->sum + g->n * g->n;
    return qs_gram_moment(g, i, j) - mean[i] / qs_real(g->rows) * (mean[j] / qs_real(g->rows));
}

#endif
