/* SPDX-License-Identifier: MIT */
/* Divergence of answers, against the formula in libm. */
#include <math.h>

#include "test.h"

#include <qsim/ptq.h>

static qsim_tensor view(int32_t rank, const int64_t *dims, float *x, size_t n) {
    return (qsim_tensor){QSIM_FLOAT, rank, dims, x, n * sizeof(*x)};
}

static double kl(const double *p, const double *q, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += p[i] > 0 ? p[i] * log(p[i] / q[i]) : 0;
    return sum;
}

static void test_probabilities(void) {
    const int64_t dims[3] = {1, 2, 2};
    float x[4] = {0.5f, 0.5f, 1, 0}, y[4] = {0.25f, 0.75f, 0.5f, 0.5f};
    qsim_tensor a = view(3, dims, x, 4), b = view(3, dims, y, 4);
    qsim_divergence d = {.struct_size = sizeof(d)};
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_OK);
    CHECK_INT(d.answer, QSIM_ANSWER_PROBABILITIES);
    CHECK_INT(d.rows, 2);
    CHECK_INT(d.agree, 1); /* equal numbers: the first; then 0 against 1, and 0 against 0 */
    const double want = kl((double[]){.5, .5}, (double[]){.25, .75}, 2) +
                        kl((double[]){1, 0}, (double[]){.5, .5}, 2);
    CHECK_NEAR(d.kl, want, 1e-9);
    CHECK_NEAR(qsim_divergence_loss(&d), want / 2, 1e-9);
    CHECK_NEAR(qsim_divergence_agreement(&d), 50, 0);
    /* The first choice, logits or probabilities, stays, also for rows that are no distribution. */
    CHECK_INT(qsim_divergence_add(&d, &a, &a), QSIM_OK);
    CHECK(d.rows == 4 && fabs(d.kl - want) < 1e-9);
}

/* Logits are the same distribution with any constant added to a row, and with axes of 1 behind. */
static void test_logits(void) {
    const int64_t dims[4] = {2, 3, 1, 1};
    float x[6] = {1, 2, 4, -1, 0, 1}, y[6] = {0, 2, 3, 99, 100, 101};
    double p[3], q[3], sum_p = 0, sum_q = 0;
    qsim_tensor a = view(4, dims, x, 6), b = view(4, dims, y, 6);
    qsim_divergence d = {.struct_size = sizeof(d)};
    for (int i = 0; i < 3; i++) {
        sum_p += p[i] = exp((double)x[i]);
        sum_q += q[i] = exp((double)y[i]);
    }
    for (int i = 0; i < 3; i++) {
        p[i] /= sum_p;
        q[i] /= sum_q;
    }
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_OK);
    CHECK_INT(d.answer, QSIM_ANSWER_LOGITS);
    CHECK(d.rows == 2 && d.agree == 2);
    CHECK_NEAR(d.kl, kl(p, q, 3), 1e-9);
    /* In three axes a last one of 1 has one number for each of many boxes. */
    qsim_divergence boxes = {.struct_size = sizeof(boxes)};
    a.rank = b.rank = 3;
    CHECK_INT(qsim_divergence_add(&boxes, &a, &b), QSIM_OK);
    CHECK_INT(boxes.answer, QSIM_ANSWER_VALUES);
}

static void test_values(void) {
    const int64_t dims[3] = {1, 2, 2};
    float x[4] = {3, 4, 0, 1}, y[4] = {3, 5, 1, 1};
    qsim_tensor a = view(3, dims, x, 4), b = view(3, dims, y, 4);
    qsim_divergence d = {.struct_size = sizeof(d)};
    CHECK(isnan(qsim_divergence_loss(&d)) && isnan(qsim_divergence_agreement(&d)));
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_OK);
    CHECK_INT(d.answer, QSIM_ANSWER_VALUES);
    CHECK_NEAR(qsim_divergence_loss(&d), 2.0 / 26, 1e-12);
    CHECK(isnan(qsim_divergence_agreement(&d)));
    qsim_divergence asked = {.struct_size = sizeof(asked), .answer = QSIM_ANSWER_LOGITS};
    CHECK_INT(qsim_divergence_add(&asked, &a, &a), QSIM_OK);
    CHECK(asked.rows == 2 && qsim_divergence_loss(&asked) == 0);
}

static int32_t answer_of(int32_t rank, const int64_t *dims, float *x, size_t n) {
    const qsim_tensor a = view(rank, dims, x, n);
    qsim_divergence d = {.struct_size = sizeof(d)};
    CHECK_INT(qsim_divergence_add(&d, &a, &a), QSIM_OK);
    return d.answer;
}

/*
 * 17 numbers of which none stands out are values, whatever their scale: of 0 to 16 the greatest is
 * 8 / 4.9 standard deviations above the mean, and sqrt(2 ln 17) is 2.4. Fewer do not tell.
 */
static void test_no_winner(void) {
    const int64_t rows[2] = {2, 17}, axis[3] = {2, 1, 17}, last[4] = {2, 1, 1, 17},
                  ones[4] = {2, 17, 1, 1}, few[2] = {2, 16};
    const int64_t map[3] = {1, 2, 17};
    float x[34], same[34] = {0};
    for (int i = 0; i < 34; i++)
        x[i] = 0.01f * (float)(i % 17);
    CHECK_INT(answer_of(2, rows, x, 34), QSIM_ANSWER_VALUES);
    CHECK_INT(answer_of(3, axis, x, 34), QSIM_ANSWER_VALUES);
    CHECK_INT(answer_of(4, ones, x, 34), QSIM_ANSWER_VALUES);
    CHECK_INT(answer_of(2, rows, same, 34), QSIM_ANSWER_VALUES);
    CHECK_INT(answer_of(2, few, x, 32), QSIM_ANSWER_LOGITS);
    x[3] = x[21] = 9;
    CHECK_INT(answer_of(2, rows, x, 34), QSIM_ANSWER_LOGITS);
    CHECK_INT(answer_of(3, axis, x, 34), QSIM_ANSWER_VALUES); /* a step of spectra, perhaps */
    CHECK_INT(answer_of(4, last, x, 34), QSIM_ANSWER_LOGITS);
    CHECK_INT(answer_of(4, ones, x, 34), QSIM_ANSWER_LOGITS);
    CHECK_INT(answer_of(3, map, x, 34), QSIM_ANSWER_VALUES);
}

/* Only a name that ends in "logits" makes [samples, positions, classes] rows of classes. */
static void test_answer_of(void) {
    CHECK_INT(qsim_answer_of("logits", 3), QSIM_ANSWER_LOGITS);
    CHECK_INT(qsim_answer_of("lm_logits", 3), QSIM_ANSWER_LOGITS);
    CHECK_INT(qsim_answer_of("logits", 2), QSIM_ANSWER_UNKNOWN);
    CHECK_INT(qsim_answer_of("logits", 4), QSIM_ANSWER_UNKNOWN);
    CHECK_INT(qsim_answer_of("logits_1", 3), QSIM_ANSWER_UNKNOWN);
    CHECK_INT(qsim_answer_of("last_hidden_state", 3), QSIM_ANSWER_UNKNOWN);
    CHECK_INT(qsim_answer_of("its", 3), QSIM_ANSWER_UNKNOWN);
    CHECK_INT(qsim_answer_of(NULL, 3), QSIM_ANSWER_UNKNOWN);
}

static void test_not_finite(void) {
    const int64_t dims[2] = {2, 2};
    float x[4] = {1, 2, 3, NAN}, y[4] = {1, 2, 3, 4};
    qsim_tensor a = view(2, dims, x, 4), b = view(2, dims, y, 4);
    qsim_divergence d = {.struct_size = sizeof(d)}, e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_OK);
    CHECK(d.rows == 1 && d.skipped == 1 && qsim_divergence_loss(&d) == 0);
    CHECK_INT(qsim_divergence_add(&e, &b, &a), QSIM_OK);
    CHECK(e.rows == 2 && e.agree == 1 && isinf(qsim_divergence_loss(&e)));
}

static void test_refusals(void) {
    const int64_t dims[2] = {2, 2}, other[2] = {1, 4};
    float x[4] = {0};
    qsim_tensor a = view(2, dims, x, 4), b = view(2, other, x, 4);
    qsim_divergence d = {.struct_size = sizeof(d)}, small = {.struct_size = 8};
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_E_SHAPE);
    CHECK_INT(qsim_divergence_add(&d, &a, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_divergence_add(&small, &a, &a), QSIM_E_ARGUMENT);
    b = a;
    b.bytes = 15;
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_E_ARGUMENT);
    b.dtype = QSIM_INT32;
    CHECK_INT(qsim_divergence_add(&d, &a, &b), QSIM_E_DTYPE);
    CHECK(d.rows == 0);
}

int main(void) {
    test_probabilities();
    test_logits();
    test_values();
    test_no_winner();
    test_answer_of();
    test_not_finite();
    test_refusals();
    return test_done();
}
