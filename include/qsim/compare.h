/* SPDX-License-Identifier: MIT */
/*
 * qsim/compare.h - differences of tensors and of networks' outputs, and which tensors of a float
 * and a quantized model belong together.
 */
#ifndef QSIM_COMPARE_H
#define QSIM_COMPARE_H

#include <qsim/base.h>
#include <qsim/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Differences of tensors `b` from reference tensors `a`, summed over any number of pairs. Set all
 * fields to 0, set struct_size, then call qsim_metrics_add for each pair.
 */
typedef struct qsim_metrics {
    size_t struct_size; /* sizeof(qsim_metrics), set by the caller */
    uint64_t count;     /* elements seen */
    uint64_t outside;   /* elements with |a - b| > atol + rtol |a| */
    uint64_t rows;      /* rows along the last axis */
    uint64_t agree;     /* rows with the same arg-max; a row of NaN only agrees with no other */
    double max_abs, max_rel; /* the greatest |a - b| and |a - b| / |a| */
    double signal, noise;    /* sums of a^2 and (a - b)^2 */
    double dot, norm_b;      /* sums of a b and b^2 */
    /*
     * An element that is NaN in both counts as equal and is left out of the sums. An element that
     * is NaN in one is outside, and makes the sums NaN: check nan_one first.
     */
    uint64_t nan_both, nan_one;
    uint64_t worst;          /* index, over all tensors, of the element with max_abs */
    double worst_a, worst_b; /* its values */
} qsim_metrics;

/*
 * Adds a pair of float or integer tensors of equal shape. Sums are added in a fixed order, so they
 * are the same on every machine. After an error nothing is added. Errors: ARGUMENT, DTYPE, SHAPE,
 * LIMIT.
 */
QSIM_API int qsim_metrics_add(qsim_metrics *m, const qsim_tensor *a, const qsim_tensor *b,
                              double rtol, double atol);
/*
 * The signal-to-quantization-noise ratio in dB, 10 log10(signal / noise); +infinity if noise is 0.
 * Both this and the cosine are NaN if all elements are NaN.
 */
QSIM_API double qsim_metrics_sqnr(const qsim_metrics *m);
/* The cosine of the angle between all `a` and all `b`, as two vectors. */
QSIM_API double qsim_metrics_cosine(const qsim_metrics *m);

/*
 * Receives the name of a tensor in the float model and that of its counterpart in the quantized
 * one. The names live as long as the models. A result other than 0: CANCELLED.
 */
typedef int32_t (*qsim_pair_fn)(void *user, const char *tensor, const char *counterpart);

/*
 * Calls `pair`, which may be NULL, with each tensor that a node of the float model computes and
 * that the quantized model has as floats of any width, too, in the order of execution. The
 * counterpart is the dequantized tensor (NAME_DequantizeLinear_Output), or that of the same name if
 * the quantized model computes it as such. A tensor that exists only inside of an integer operator
 * has none, nor has one that only curves in integers read (qsim_quantize): its range may be cut.
 * Returns the number of pairs or a negative code. Errors: ARGUMENT, CANCELLED, NOMEM.
 */
QSIM_API int32_t qsim_model_pairs(const qsim_model *model, const qsim_model *quantized,
                                  qsim_pair_fn pair, void *user, qsim_error *error);

/* The kind of a network's output, which decides how its loss is computed. */
#define QSIM_ANSWER_UNKNOWN       0 /* the first tensor that is added decides */
#define QSIM_ANSWER_PROBABILITIES 1 /* rows of numbers >= 0 that add up to 1 */
#define QSIM_ANSWER_LOGITS        2 /* scores of classes: see qsim_divergence, qsim_answer_of */
#define QSIM_ANSWER_VALUES        3 /* anything else: boxes, points, embeddings, pictures */

/*
 * Differences of a network's outputs `b` from those of the reference, `a`, summed over any number
 * of batches. Set all fields to 0, set struct_size, then call qsim_divergence_add for each batch.
 *
 * An output of unknown kind is LOGITS if each sample has one row of n numbers ([samples, n], or of
 * rank 4 and more with all other sizes 1), and n <= 16 or the greatest number stands out: in the
 * mean over the rows of the first batch it lies at least sqrt(2 ln n) standard deviations above the
 * row's mean. The greatest of n random numbers with a normal distribution lies below that.
 */
typedef struct qsim_divergence {
    size_t struct_size;   /* sizeof(qsim_divergence), set by the caller */
    uint64_t rows;        /* rows seen, along the last axis that is longer than 1 */
    uint64_t agree;       /* rows with the same arg-max */
    uint64_t skipped;     /* rows with a NaN or infinity in the reference; not counted in `rows` */
    double kl;            /* sum of KL(a || b) = sum p ln(p / q) over the rows, in nats */
    double signal, noise; /* sums of a^2 and (a - b)^2 */
    int32_t answer;       /* QSIM_ANSWER_*; the caller may set it before the first add */
    int32_t reserved;
} qsim_divergence;

/*
 * The value for qsim_divergence.answer of the output with this name and rank: LOGITS if the name
 * ends in "logits" and the rank is 3 ([samples, positions, classes], as in language models); else
 * UNKNOWN. Numbers alone do not tell scores of words from hidden states.
 */
QSIM_API int32_t qsim_answer_of(const char *output, int32_t rank);

/*
 * Adds a pair of float tensors of equal shape. Rows of logits become distributions by Softmax;
 * probabilities below 1e-12 count as 1e-12. The sums are the same on every machine. After an error
 * nothing is added. Errors: ARGUMENT, DTYPE, SHAPE, LIMIT.
 */
QSIM_API int qsim_divergence_add(qsim_divergence *d, const qsim_tensor *a, const qsim_tensor *b);
/*
 * The loss, 0 for equal outputs: the mean of kl over the rows; for VALUES noise / signal. Infinity
 * if `b` has a NaN that the reference does not have; NaN if nothing was added.
 */
QSIM_API double qsim_divergence_loss(const qsim_divergence *d);
/* The percent of rows with the same arg-max; NaN for VALUES, and if nothing was added. */
QSIM_API double qsim_divergence_agreement(const qsim_divergence *d);

/*
 * McNemar's exact two-sided test for two classifiers A and B on the same samples. `only_a` is the
 * number of samples that only A gets right, `only_b` that only B gets right. Returns the p-value of
 * the hypothesis that both are equally good.
 */
QSIM_API double qsim_mcnemar(uint64_t only_a, uint64_t only_b);

#ifdef __cplusplus
}
#endif
#endif
