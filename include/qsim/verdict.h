/* SPDX-License-Identifier: MIT */
/*
 * qsim/verdict.h - verdicts: how good a quantized model is in comparison with its float model
 * (good, doubtful or bad), which layers lose most, and problems of the data.
 *
 *     qsim_verdict *v;
 *     qsim_verdict_create(model, int8, NULL, &v, &e);
 *     for (size_t i = 0; i < batch_count; i++)
 *         qsim_verdict_feed(v, &batches[i], 1, &e);
 *     const char *grade = qsim_grade_name(qsim_verdict_grade(v)); // "good"
 *
 * Feed samples that were not used for calibration: on those a model looks better than it is.
 */
#ifndef QSIM_VERDICT_H
#define QSIM_VERDICT_H

#include <qsim/ptq.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Grades. An output of class scores (QSIM_ANSWER_LOGITS or QSIM_ANSWER_PROBABILITIES, one row for
 * each sample) or of integers is graded by its agreement with the float model in percent, every
 * other output by its SQNR.
 *
 *     GOOD       agreement >= 97; SQNR >= 20 dB: the noise is at most a tenth of the signal
 *     DOUBTFUL   agreement >= 90; SQNR >= 10 dB: at most a third
 *     BAD        below, or NaN in one of both models
 *
 * With fewer than 32 rows agreement is too coarse: class scores are then graded by SQNR, and are
 * DOUBTFUL if a row disagrees. The grade of the model is that of its worst output; a warning may
 * lower it.
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
    size_t struct_size; /* sizeof(qsim_verdict_options) */
    /* The calibration that the ranges are from, for warnings; used by create only. Or NULL. */
    const qsim_calibration *calibration;
    int32_t method;     /* QSIM_METHOD_* that the ranges were chosen with */
    int32_t seen;       /* 1: samples of the calibration will be fed; the grade is never GOOD */
    int32_t made_up;    /* 1: random numbers will be fed; the grade is never GOOD */
    int32_t no_layers;  /* 1: compares outputs only, not layers */
    int32_t no_classes; /* 1: outputs are not scores of classes: points, embeddings */
    int32_t reserved;
} qsim_verdict_options;

/*
 * Starts a verdict. `quantized` is the result of qsim_quantize for `model`, or any model with the
 * same inputs and outputs. Both models may be freed afterwards. `options` may be NULL. Errors:
 * MISMATCH (the numbers of outputs differ), those of qsim_session_create; ARGUMENT, VERSION.
 */
QSIM_API int qsim_verdict_create(const qsim_model *model, const qsim_model *quantized,
                                 const qsim_verdict_options *options, qsim_verdict **out,
                                 qsim_error *error);
QSIM_API void qsim_verdict_free(qsim_verdict *v);

/*
 * Runs both models on a batch and compares the outputs. `inputs` are those of qsim_run_execute; the
 * first axis of the first input counts the samples. Each model gets floats in its own type of
 * floats, so that a float model and its float16 version can be compared. Layers are compared on at
 * most four samples of the first batch. Errors: those of qsim_run_execute; MISMATCH (an output's
 * type or shape differs).
 */
QSIM_API int qsim_verdict_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t input_count,
                               qsim_error *error);

/*
 * Tells the verdict the right classes of the samples fed last, in their order; a negative label
 * means unknown. `count` labels may be fewer than the samples. The call has no effect if the first
 * output is not class scores in float. Errors: ARGUMENT (more labels than samples).
 */
QSIM_API int qsim_verdict_label(qsim_verdict *v, const int64_t *labels, size_t count,
                                qsim_error *error);

/* The grade of all samples fed so far, QSIM_GRADE_*. */
QSIM_API int32_t qsim_verdict_grade(const qsim_verdict *v);
/* The name of a grade ("good"); NULL: there is no such grade. Static. */
QSIM_API const char *qsim_grade_name(int32_t grade);
/* The number of samples fed so far. */
QSIM_API int64_t qsim_verdict_samples(const qsim_verdict *v);

/* Compares an output or a layer of both models. Texts live as long as the verdict. */
typedef struct qsim_verdict_info {
    size_t struct_size; /* sizeof(qsim_verdict_info), set by the caller */
    const char *name;   /* of the output, or of the layer as rules of qsim_quantize name it */
    const char *tensor; /* the tensor that was compared; of an output, its name */
    int32_t measure;    /* QSIM_MEASURE_* that the grade is from */
    int32_t grade;      /* QSIM_GRADE_* */
    double agreement;   /* percent of rows with the same class; NaN: no class scores */
    double sqnr;        /* dB */
    double cosine;
    double before; /* of a layer: the lowest SQNR of its inputs in dB; infinite: they are exact */
    uint64_t rows; /* the rows that agreement is a percentage of */
} qsim_verdict_info;

/* The outputs, by index from 0, in the order of the model. Errors: ARGUMENT, NOT_FOUND (index). */
QSIM_API int32_t qsim_verdict_output_count(const qsim_verdict *v);
QSIM_API int qsim_verdict_output(const qsim_verdict *v, int32_t index, qsim_verdict_info *info);
/*
 * The layers, by index from 0, sorted by the noise that each adds, the most first. That is the
 * ratio of noise power to signal power at its output, minus the greatest such ratio of its inputs.
 * There are none before the first batch. Errors: ARGUMENT, NOT_FOUND (index).
 */
QSIM_API int32_t qsim_verdict_layer_count(const qsim_verdict *v);
QSIM_API int qsim_verdict_layer(const qsim_verdict *v, int32_t index, qsim_verdict_info *info);

/* Statistics of the first input over all samples fed. */
typedef struct qsim_verdict_input_info {
    size_t struct_size; /* sizeof(qsim_verdict_input_info), set by the caller */
    const char *name;   /* lives as long as the verdict */
    double least, greatest, mean;
    int32_t fits; /* whether the values are like those of training, judged by the model's first
                     BatchNormalization or the biases that it was folded into. 1: yes; -1: no, and a
                     warning says why; 0: nothing in the model tells */
    int32_t reserved;
} qsim_verdict_input_info;

/* Gives the statistics of the first input. Errors: ARGUMENT; NOT_FOUND (nothing fed, or no floats).
 */
QSIM_API int qsim_verdict_input(const qsim_verdict *v, qsim_verdict_input_info *info);

/* Compares the answers of both models with the labels. */
typedef struct qsim_verdict_labels_info {
    size_t struct_size;       /* sizeof(qsim_verdict_labels_info), set by the caller */
    uint64_t rows;            /* rows with a label */
    uint64_t right;           /* rows that the float model answers right */
    uint64_t right_quantized; /* rows that the quantized model answers right */
    double confidence;        /* mean probability of the float model's top class */
} qsim_verdict_labels_info;

/* Gives the comparison with the labels. Errors: ARGUMENT; NOT_FOUND (no labels). */
QSIM_API int qsim_verdict_labels(const qsim_verdict *v, qsim_verdict_labels_info *info);

/*
 * Gives warning `index`, from 0: a problem of the data, as one sentence, which lives as long as the
 * verdict. NULL after the last one. `kind`, which may be NULL, is set to a word for programs:
 *
 *     made-up           random numbers were fed
 *     seen              samples of the calibration were fed
 *     one-sample        the calibration has a single sample
 *     few-samples       the calibration has fewer than 32 samples
 *     few-judged        fewer than 8 samples were fed
 *     constant-input    every sample is one number over and over, like a black picture
 *     same-samples      all samples are equal
 *     input-range       the input has other values than the float model was trained on. Signs are:
 *                       mean and variance of its first BatchNormalization; without one, biases of
 *                       its first convolutions that do not fit their sums or that hide the input,
 *                       class probabilities that are low and nearly equal for every sample, or the
 *                       metadata of pictures (Image.NominalPixelRange)
 *     raw-pixels        the same, with integers up to 255; or such values make class scores
 *                       extreme or sums of the first convolution far greater than its biases; or
 *                       nothing tells whether pictures of such values are right (`fits` is 0)
 *     labels            the float model is right on no more labels than by guessing, or on fewer
 *                       by 20 points than its own probabilities say, at a 1 % error level (Wilson)
 *     one-class         the float model gives all samples the same class
 *     dead-tensors      some tensors never change
 *     unseen-tensors    tensors that are empty, or in a branch of an If that no sample takes
 *     outlier           a single sample makes a range 4 times as wide or more
 *     stretched-range   1 value in 10,000 makes a range 8 times as wide or more
 *     not-a-number      there are NaN in one of both models, or in the input
 */
QSIM_API const char *qsim_verdict_warning(const qsim_verdict *v, int32_t index, const char **kind);

#ifdef __cplusplus
}
#endif
#endif
