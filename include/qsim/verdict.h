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
 * Grades of outputs: class scores (one row of at least two for each sample) and integers are graded
 * by agreement in percent, all other outputs by SQNR.
 *
 *     GOOD       agreement >= 97, SQNR >= 20 dB: a tenth of the signal's size is noise
 *     DOUBTFUL   agreement >= 90, SQNR >= 10 dB: a third of it
 *     BAD        below, or NaN on one side alone
 *
 * With fewer than 32 rows agreement is too coarse: class scores are then graded by SQNR, and are
 * doubtful if a row disagrees. The model has the grade of its worst output, which a warning may
 * lower.
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
    int32_t made_up;   /* 1: the samples are noise instead of data: never GOOD */
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
 * compared on at most four samples of the first batch. Errors: those of qsim_run_execute;
 * MISMATCH (an output's type or shape differs).
 */
QSIM_API int qsim_verdict_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t input_count,
                               qsim_error *error);

/*
 * Gives the right classes of the samples fed last, in their order; negative: unknown. `count` may
 * be less than their number. Without effect if the first output is not class scores in float.
 * Errors: ARGUMENT (more labels than samples).
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
    const char *name;   /* of the output, or of the layer as rules of qsim_quantize name it */
    const char *tensor; /* the tensor that was compared; of an output, its name */
    int32_t measure;    /* QSIM_MEASURE_* */
    int32_t grade;
    double agreement; /* percent; NaN: no class scores */
    double sqnr;      /* dB */
    double cosine;
    double before; /* a layer: SQNR in dB of the worst tensor it reads; infinite for exact ones */
    uint64_t rows; /* the rows that agreement is a percentage of */
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
    int32_t fits; /* 1: the values are those of training, by the first BatchNormalization or the
                     biases that it was folded into; -1: they are not, and a warning says why;
                     0: not judged, nothing in the model tells */
    int32_t reserved;
} qsim_verdict_input_info;

/* Errors: ARGUMENT; NOT_FOUND (nothing was fed, or no floats). */
QSIM_API int qsim_verdict_input(const qsim_verdict *v, qsim_verdict_input_info *info);

/* Answers beside labels; struct_size is set by the caller. */
typedef struct qsim_verdict_labels_info {
    size_t struct_size;
    uint64_t rows;            /* labelled */
    uint64_t right;           /* rows that the float model answers right */
    uint64_t right_quantized; /* rows that the quantized model answers right */
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
 *     input-range       the input has other values than the float model was trained on. The signs:
 *                       mean and variance in its first BatchNormalization; without one, biases of
 *                       its first convolutions that do not fit their sums, or that hide the input,
 *                       class probabilities that are unsure and nearly equal for every sample; the
 *                       metadata of pictures (Image.NominalPixelRange)
 *     raw-pixels        the same, with integers up to 255; or such values make class scores
 *                       extreme, or sums of the first convolution far greater than its biases, or
 *                       nothing tells whether pictures of such values are right (`fits` is 0)
 *     labels            the float model is right on no more labels than by guessing, or on fewer
 *                       by 20 points than its own probabilities say; at 1 % of error (Wilson)
 *     one-class         the float model gives all samples the same class
 *     dead-tensors      tensors that never change
 *     unseen-tensors    tensors of a branch of an If that no sample takes
 *     outlier           one sample alone widens a range 4 times or more
 *     stretched-range   1 value in 10,000 makes a range 8 times as wide or more
 *     not-a-number      NaN in one of both models, or in the input
 */
QSIM_API const char *qsim_verdict_warning(const qsim_verdict *v, int32_t index, const char **kind);

#ifdef __cplusplus
}
#endif
#endif
