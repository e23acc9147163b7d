/* SPDX-License-Identifier: MIT */
/*
 * Compares outputs with labels: if the float model is seldom right, its data or labels are wrong.
 */
#include <math.h>

#include "ptq/divergence.h"
#include "ptq/verdict.h"

/*
 * The bounds are from measurements on 2,000 test images: the mean probability of the top class is
 * -1 to 1 points above the accuracy for three networks on the values that they were trained on, 14
 * to 90 points on ten other ranges of values, and 32 to 37 if two of ten classes are exchanged.
 */
#define OVERSURE  0.2   /* mean probability minus accuracy */
#define CHANCE_OF 0.25  /* accuracy, from guessing (0) to always right (1) */
#define QUANTILE  2.326 /* of the normal distribution, for 1 in 100 */

int qsim_verdict_label(qsim_verdict *v, const int64_t *labels, size_t count, qsim_error *error) {
    qs_error_clear(error);
    if (!v || (count > 0 && !labels))
        return qs_fail_missing(error, "verdict");
    const qsim_tensor *const y[2] = {v->side[0].outputs, v->side[1].outputs};
    const bool fed = v->output_count > 0 && y[0]->data && y[1]->data;
    if (!fed || !v->outputs[0].classes || y[0]->dtype != QSIM_FLOAT || y[0]->dims[0] == 0)
        return QSIM_OK; /* no class scores */
    const size_t rows = (size_t)y[0]->dims[0], n = v->data.classes;
    if (y[0]->bytes != rows * n * sizeof(float) || y[1]->bytes != y[0]->bytes)
        return QSIM_OK; /* another number of classes than before */
    if (count > rows)
        return qs_fail(error, QSIM_E_ARGUMENT, "verdict: %zu labels for %zu samples", count, rows);
    qsim_verdict_labels_info *l = &v->labels;
    const float *a = y[0]->data, *b = y[1]->data;
    for (size_t i = 0; i < count; i++, a += n, b += n) {
        const uint64_t label = (uint64_t)labels[i];
        if (labels[i] < 0)
            continue;
        l->rows++;
        l->right += qs_first_largest(a, n) == label;
        l->right_quantized += qs_first_largest(b, n) == label;
        l->confidence += (qs_first_probability(a, n) - l->confidence) / qs_real(l->rows);
    }
    qs_verdict_warn(v);
    return QSIM_OK;
}

/* One bound of the confidence interval of a share (Wilson, Probable inference, 1927). */
static double bound(uint64_t right, uint64_t rows, double z) {
    const double n = qs_real(rows), p = qs_real(right) / n, zz = z * z;
    return (p + zz / (2 * n) + z * sqrt(p * (1 - p) / n + zz / (4 * n * n))) / (1 + zz / n);
}

void qs_labels_warn(qsim_verdict *v) {
    const qsim_verdict_labels_info *l = &v->labels;
    if (l->rows == 0)
        return;
    const double chance = 1 / qs_real(v->data.classes), sure = l->confidence;
    const double most = bound(l->right, l->rows, QUANTILE);
    const bool guessed =
        bound(l->right, l->rows, -QUANTILE) <= chance && most < chance + CHANCE_OF * (1 - chance);
    if (!guessed && !(most < sure - OVERSURE))
        return;
    const bool known = v->fits > 0;
    v->fits = known ? 1 : -1;
    qs_verdict_say(
        v, "labels", QSIM_GRADE_DOUBTFUL,
        "the float model is right on %llu of %llu labels%s, though %.0f %% sure: %s right?",
        (unsigned long long)l->right, (unsigned long long)l->rows,
        guessed ? ", as by guessing" : "", 100 * sure,
        known ? "are the labels (their numbers)"
              : "are its input (range, mean, colours) and the labels");
}

int qsim_verdict_labels(const qsim_verdict *v, qsim_verdict_labels_info *info) {
    if (!v || !info)
        return QSIM_E_ARGUMENT;
    if (v->labels.rows == 0)
        return QSIM_E_NOT_FOUND;
    return qs_give(info, &v->labels, sizeof(v->labels));
}
