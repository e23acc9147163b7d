/* SPDX-License-Identifier: MIT */
/* Kullback-Leibler divergence of a network's outputs from those of a reference. */
#include "base/base.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include <qsim/ptq.h>

#include "kernel/elementary.h"
#include "ptq/divergence.h"

#define LEAST 1e-12 /* least probability; smaller ones count as this */

/*
 * Whether a row of more than so many numbers has scores of classes is told by the greatest. Of n
 * random numbers with a normal distribution it lies less than sqrt(2 ln n) standard deviations
 * above the mean. For logits of 1000 classes (bound 3.7) it lies 4.7 and more above, for 468
 * points of a face (3.8) 1.8.
 */
#define FEW_CLASSES 16

/* Two rows, and statistics of the reference's. */
typedef struct pair {
    const float *a, *b;
    size_t n;
} pair;

static bool is_finite(const float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

static bool is_distribution(const float *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= -1e-6f))
            return false;
        sum += (double)x[i];
    }
    return n > 1 && fabs(sum - 1) < 1e-3;
}

static double positive(float x) {
    return (double)x > LEAST ? (double)x : LEAST;
}

static double kl_of_probabilities(const pair *r) {
    double sum_a = 0, sum_b = 0, kl = 0;
    for (size_t i = 0; i < r->n; i++) {
        sum_a += positive(r->a[i]);
        sum_b += positive(r->b[i]);
    }
    for (size_t i = 0; i < r->n; i++) {
        const double p = positive(r->a[i]) / sum_a, q = positive(r->b[i]) / sum_b;
        kl += p * qk_log64(p / q);
    }
    return kl;
}

/* ln of the sum of e^x. */
static double log_sum(const float *x, size_t n, double *most) {
    double sum = 0;
    *most = (double)x[0];
    for (size_t i = 1; i < n; i++)
        *most = (double)x[i] > *most ? (double)x[i] : *most;
    for (size_t i = 0; i < n; i++)
        sum += qk_exp64((double)x[i] - *most);
    return qk_log64(sum);
}

double qs_first_probability(const float *x, size_t n) {
    double most;
    const double sum = log_sum(x, n, &most);
    return is_distribution(x, n) ? most : qk_exp64(-sum);
}

static double kl_of_logits(const pair *r) {
    double most_a, most_b, kl = 0;
    const double sum_a = log_sum(r->a, r->n, &most_a), sum_b = log_sum(r->b, r->n, &most_b);
    for (size_t i = 0; i < r->n; i++) {
        const double p = (double)r->a[i] - most_a - sum_a, q = (double)r->b[i] - most_b - sum_b;
        kl += qk_exp64(p) * (p - q);
    }
    return kl;
}

size_t qs_first_largest(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static void add_row(qsim_divergence *d, const pair *r) {
    if (!is_finite(r->a, r->n)) {
        d->skipped++;
        return;
    }
    d->rows++;
    if (!is_finite(r->b, r->n)) {
        d->kl = d->noise = INFINITY;
        return;
    }
    d->agree += qs_first_largest(r->a, r->n) == qs_first_largest(r->b, r->n);
    for (size_t i = 0; i < r->n; i++) {
        const double x = (double)r->a[i], y = (double)r->b[i];
        d->signal += x * x;
        d->noise += (x - y) * (x - y);
    }
    if (d->answer == QSIM_ANSWER_VALUES)
        return;
    const double kl =
        d->answer == QSIM_ANSWER_PROBABILITIES ? kl_of_probabilities(r) : kl_of_logits(r);
    d->kl += kl > 0 ? kl : 0; /* rounding may bring equal rows below 0 */
}

/* The last axis that is longer than 1; 0 if there is none. */
static int32_t row_axis(const qsim_tensor *t) {
    int32_t axis = t->rank - 1;
    while (axis > 0 && t->dims[axis] == 1)
        axis--;
    return axis;
}

size_t qs_row_length(const qsim_tensor *t) {
    return t->rank > 0 ? (size_t)t->dims[row_axis(t)] : 1;
}

bool qs_is_row(const qsim_tensor *t) {
    const int32_t row = row_axis(t);
    for (int32_t i = 1; i < t->rank; i++)
        if (t->dims[i] > 1 && i != row)
            return false;
    return row > 0 && t->rank != 3;
}

/* How many standard deviations the greatest element lies above the mean. */
static double lead_of_greatest(const float *x, size_t n) {
    const double greatest = (double)x[qs_first_largest(x, n)];
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean);
    return square > 0 ? (greatest - mean) / sqrt(square / (double)n) : 0;
}

static bool have_winners(const float *x, size_t count, size_t row) {
    double sum = 0;
    if (row <= FEW_CLASSES)
        return true;
    for (size_t i = 0; i < count; i += row)
        sum += lead_of_greatest(x + i, row);
    return sum >= qs_real(count / row) * sqrt(2 * qk_log64((double)row));
}

int32_t qs_answer_kind(const qsim_tensor *t, size_t count) {
    const float *x = t->data;
    const size_t row = qs_row_length(t);
    bool sums = true;
    if (count == 0)
        return QSIM_ANSWER_VALUES;
    for (size_t i = 0; i < count && sums; i += row)
        sums = is_distribution(x + i, row);
    if (sums)
        return QSIM_ANSWER_PROBABILITIES;
    return qs_is_row(t) && have_winners(x, count, row) ? QSIM_ANSWER_LOGITS : QSIM_ANSWER_VALUES;
}

int32_t qsim_answer_of(const char *output, int32_t rank) {
    static const char end[] = "logits";
    const size_t n = output ? strlen(output) : 0, m = sizeof(end) - 1;
    const bool logits = rank == 3 && n >= m && memcmp(output + n - m, end, m) == 0;
    return logits ? QSIM_ANSWER_LOGITS : QSIM_ANSWER_UNKNOWN;
}

int qs_pair_size(const qsim_tensor *a, const qsim_tensor *b, size_t *count) {
    size_t bytes_a, bytes_b;
    int code = qsim_tensor_size(a->dtype, a->rank, a->dims, count, &bytes_a);
    if (!code)
        code = qsim_tensor_size(b->dtype, b->rank, b->dims, NULL, &bytes_b);
    if (code)
        return code;
    if (a->rank != b->rank)
        return QSIM_E_SHAPE;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return QSIM_E_SHAPE;
    const bool there = *count == 0 || (a->data && b->data);
    return there && a->bytes >= bytes_a && b->bytes >= bytes_b ? QSIM_OK : QSIM_E_ARGUMENT;
}

static double measure_of(const qsim_divergence *d) {
    return d->answer == QSIM_ANSWER_VALUES ? d->noise : d->kl;
}

int qs_divergence_split(qsim_divergence *d, const qsim_tensor *a, const qsim_tensor *b,
                        double total, double *losses, size_t samples) {
    size_t count;
    if (!d || !a || !b || d->struct_size < sizeof(*d) || d->answer < QSIM_ANSWER_UNKNOWN ||
        d->answer > QSIM_ANSWER_VALUES)
        return QSIM_E_ARGUMENT;
    if (a->dtype != QSIM_FLOAT || b->dtype != QSIM_FLOAT)
        return QSIM_E_DTYPE;
    const int code = qs_pair_size(a, b, &count);
    if (code)
        return code;
    const size_t row = count > 0 ? qs_row_length(a) : 1;
    if (d->answer == QSIM_ANSWER_UNKNOWN && count > 0)
        d->answer = qs_answer_kind(a, count);
    const size_t each = count % samples == 0 ? count / samples : count;
    for (size_t i = 0; i < count; i += row) {
        const double before = measure_of(d);
        add_row(d, &(pair){(const float *)a->data + i, (const float *)b->data + i, row});
        losses[i / each] += (measure_of(d) - before) / total;
    }
    return QSIM_OK;
}

int qsim_divergence_add(qsim_divergence *d, const qsim_tensor *a, const qsim_tensor *b) {
    double loss = 0;
    return qs_divergence_split(d, a, b, 1, &loss, 1);
}

double qsim_divergence_loss(const qsim_divergence *d) {
    if (!d || d->rows == 0)
        return NAN;
    if (d->answer != QSIM_ANSWER_VALUES)
        return d->kl / qs_real(d->rows);
    return d->noise == 0 ? 0 : d->noise / d->signal;
}

double qsim_divergence_agreement(const qsim_divergence *d) {
    if (!d || d->rows == 0 || d->answer == QSIM_ANSWER_VALUES)
        return NAN;
    return 100.0 * qs_real(d->agree) / qs_real(d->rows);
}
