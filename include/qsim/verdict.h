/* SPDX-License-Identifier: MIT */
/*
 * qsim/verdict.h - judges a quantized model beside its float model: good, doubtful or bad, the
 * layers that lose most, and faults of the data.
 *
 *     qsim_verdict *v;
 *     qsim_verdict_create(model, int8, NULL, &v, &e);
 *     for (size_t i = 0; i < batch_count; i++)
 *         qsim_verdict_feed(v, &batches[i], 1, &e);
 *     const char *grade = qsim_grade_name(qsim_verdict_grade(v)); // "good"
 *
 * Feed samples that were not calibrated on: those flatter the model.
 */
#ifndef QSIM_VERDICT_H
#define QSIM_VERDICT_H

#include <qsim/ptq.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * By output: class scores (one row of at least two for each sample) and whole numbers by agreement
 * in percent, everything else by SQNR.
 *
 *     GOOD       agreement >= 97, SQNR >= 20 dB: a tenth of the signal's size is noise
 *     DOUBTFUL   agreement >= 90, SQNR >= 10 dB: a third of it
 *     BAD        below, or NaN on one side alone
 *
 * Below 32 rows agreement is too coarse: then class scores go by SQNR, and are doubtful where a row
 * disagrees. The model is as its worst output; a warning may lower that.
 */
#define QSIM_GRADE_NONE     0 /* nothing was fed */
#define QSIM_GRADE_GOOD     1
#define QSIM_GRADE_DOUBTFUL 2
#define QSIM_GRADE_BAD      3

#define QSIM_MEASURE_NONE      0 /* an output that cannot be compared: 4-bit numbers */
#define QSIM_MEASURE_AGREEMENT 1
#define QSIM_MEASURE_SQNR      2

/* A verdict in progress. One thread at a time. */
typedef struct qsim_verdict qsim_verdict;

typedef struct qsim_verdict_options {
    size_t struct_size;                  /* sizeof(qsim_verdict_options) */
    const qsim_calibration *calibration; /* the ranges' source, read by create alone; or NULL */
    int32_t method;                      /* QSIM_METHOD_* that the ranges were chosen with */
    int32_t seen;      /* 1: the samples that will be fed were calibrated on: never GOOD */
    int32_t made_up;   /* 1: the samples are noise and no data: never GOOD */
    int32_t no_layers; /* 1: outputs alone */
} qsim_verdict_options;

/*
 * `quantized` is what qsim_quantize made of `model`, or any model with the same inputs and outputs;
 * both may be freed afterwards. `options` may be NULL. Errors: MISMATCH (the numbers of outputs
 * differ), those of qsim_session_create; ARGUMENT, VERSION.
 */
QSIM_API int qsim_verdict_create(const qsim_model *model, const qsim_model *quantized,
                                 const qsim_verdict_options *options, qsim_verdict **out,
                                 qsim_error *error);
QSIM_API void qsim_verdict_free(qsim_verdict *v);

/*
 * Runs both models on a batch, whose samples the first axis of the first input counts. Layers are
 * looked at in the first batch, in four samples of it at most. Errors: those of qsim_run_execute;
 * MISMATCH (an output's type or shape differs).
 */
QSIM_API int qsim_verdict_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t input_count,
                               qsim_error *error);

/*
 * The right classes of the samples fed last, in their order; negative: unknown. `count` may be less
 * than the samples. Nothing happens where the first output is no float class scores. Errors:
 * ARGUMENT (more labels than samples).
 */
QSIM_API int qsim_verdict_label(qsim_verdict *v, const int64_t *labels, size_t count,
                                qsim_error *error);

/* QSIM_GRADE_* of all that was fed; its name ("good"), NULL: there is no such grade. */
QSIM_API int32_t qsim_verdict_grade(const qsim_verdict *v);
QSIM_API const char *qsim_grade_name(int32_t grade);
/* Samples fed. */
QSIM_API int64_t qsim_verdict_samples(const qsim_verdict *v);

/* An output or a layer; struct_size is set by the caller. Texts live as long as the verdict. */
typedef struct qsim_verdict_info {
    size_t struct_size;
    const char *name;   /* of the output; of the layer's node as rules of qsim_quantize know it */
    const char *tensor; /* that was compared; an output's is its name */
    int32_t measure;    /* QSIM_MEASURE_* */
    int32_t grade;
    double agreement; /* percent; NaN: no class scores */
    double sqnr;      /* dB */
    double cosine;
    double before; /* a layer: SQNR in dB of the worst tensor it reads; infinite for exact ones */
    uint64_t rows; /* that agreement counts */
} qsim_verdict_info;

/* Outputs in the order of the model. Errors: ARGUMENT, NOT_FOUND (index). */
QSIM_API int32_t qsim_verdict_output_count(const qsim_verdict *v);
QSIM_API int qsim_verdict_output(const qsim_verdict *v, int32_t index, qsim_verdict_info *info);
/*
 * Layers by how much noise each adds, relative to its signal, the worst first: noise power over
 * signal power at its output, less the greatest such ratio of its inputs. None before the first
 * batch.
 */
QSIM_API int32_t qsim_verdict_layer_count(const qsim_verdict *v);
QSIM_API int qsim_verdict_layer(const qsim_verdict *v, int32_t index, qsim_verdict_info *info);

/* Statistics of the first input; struct_size is set by the caller. */
typedef struct qsim_verdict_input_info {
    size_t struct_size;
    const char *name; /* lives as long as the verdict */
    double least, greatest, mean;
    int32_t fits; /* 1: as in training, says the first BatchNormalization, or biases that swallowed
                     one; -1: a warning says why it is not, or labels do; 0: not judged,
                     nothing in the model tells */
    int32_t reserved;
} qsim_verdict_input_info;

/* Errors: ARGUMENT; NOT_FOUND (nothing was fed, or no floats). */
QSIM_API int qsim_verdict_input(const qsim_verdict *v, qsim_verdict_input_info *info);

/* Answers beside labels; struct_size is set by the caller. */
typedef struct qsim_verdict_labels_info {
    size_t struct_size;
    uint64_t rows;            /* labelled */
    uint64_t right;           /* of them by the float model */
    uint64_t right_quantized; /* by the other */
    double confidence;        /* mean probability of the float model's first class */
} qsim_verdict_labels_info;

/* Errors: ARGUMENT; NOT_FOUND (no labels). */
QSIM_API int qsim_verdict_labels(const qsim_verdict *v, qsim_verdict_labels_info *info);

/*
 * Faults of the data, one sentence each, by index from 0; NULL at the end. `kind` (may be NULL)
 * gets a word for programs:
 *
 *     made-up           noise was fed
 *     seen              judged on what was calibrated on
 *     one-sample        calibrated on a single sample
 *     few-samples       calibrated on fewer than 32
 *     few-judged        judged on fewer than 8
 *     constant-input    every sample is one number over and over: black pictures
 *     same-samples      all samples are equal
 *     input-range       the float model sees other values than it was trained on, says its first
 *                       BatchNormalization, which knows its input's mean and variance; or,
 *                       without one, its first convolutions, whose biases are those of other
 *                       sums, or beside whose bias the input hardly counts; or class
 *                       probabilities that are unsure and much the same for every sample; or
 *                       the metadata of pictures (Image.NominalPixelRange)
 *     raw-pixels        the same, with whole numbers up to 255; or they drive class scores beyond
 *                       any doubt, or a first convolution far over its bias; or pictures of such
 *                       numbers of which nothing tells whether they are right (`fits` is 0)
 *     labels            the float model is right on no more labels than by guessing, or on fewer
 *                       by 20 points than its own probabilities say; at 1 % of error (Wilson)
 *     one-class         the float model gives all samples the same class
 *     dead-tensors      tensors that never change
 *     outlier           one sample alone widens a range 4 times or more
 *     stretched-range   1 value in 10,000 makes a range 8 times as wide or more
 *     not-a-number      NaN in one of both models
 */
QSIM_API const char *qsim_verdict_warning(const qsim_verdict *v, int32_t index, const char **kind);

#ifdef __cplusplus
}
#endif
#endif
