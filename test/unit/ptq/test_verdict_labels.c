/* SPDX-License-Identifier: MIT */
/* The verdict beside labels. Expected values are worked out by hand. */
#include <math.h>
#include <stdbool.h>

#include "verdicts.h"

enum { ROWS = 40, CLASSES = 3 };

/* y = x + (0, second, 0) over [N, 3], or, `flat` being false, [N, 3, 3]. */
static qsim_model *make(float second, bool flat) {
    qsim_builder *b = NULL;
    const char *symbol[3] = {"N", NULL, NULL};
    const int64_t dims[3] = {-1, CLASSES, CLASSES}, n = CLASSES;
    float c[CLASSES] = {0, second, 0};
    const qsim_tensor t = {QSIM_FLOAT, 1, &n, c, sizeof(c)};
    CHECK_INT(qsim_builder_create(NULL, 13, "one", &b, NULL), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, flat ? 2 : 3, dims, symbol);
    qsim_builder_output(b, "y", QSIM_FLOAT, flat ? 2 : 3, dims, symbol);
    CHECK_INT(qsim_builder_constant(b, "c", &t), QSIM_OK);
    qsim_builder_node(b, "", "Add", "node", "x,c", "y");
    return net_finish(b);
}

/* The float model answers class 0 with these scores, the other class 1; `right` labels are 0. */
static qsim_verdict *judge_labels(const float scores[CLASSES], int right) {
    float x[ROWS * CLASSES];
    int64_t labels[ROWS];
    const int64_t dims[2] = {ROWS, CLASSES};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    qsim_error e = {0};
    for (int i = 0; i < ROWS; i++) {
        memcpy(x + (ptrdiff_t)i * CLASSES, scores, CLASSES * sizeof(*x));
        labels[i] = i < right ? 0 : 2;
    }
    qsim_model *a = make(0, true), *b = make(10, true);
    qsim_verdict *v = judge(a, b, NULL, &in);
    CHECK_INT(qsim_verdict_label(v, labels, ROWS, &e), QSIM_OK);
    qsim_model_free(a);
    qsim_model_free(b);
    return v;
}

static bool doubts(const float scores[CLASSES], int right, double confidence) {
    qsim_verdict_labels_info l = {.struct_size = sizeof(l)};
    qsim_verdict_input_info in = {.struct_size = sizeof(in)};
    qsim_verdict *v = judge_labels(scores, right);
    CHECK_INT(qsim_verdict_labels(v, &l), QSIM_OK);
    CHECK_INT(l.rows, ROWS);
    CHECK_INT(l.right, right);
    CHECK_INT(l.right_quantized, 0);
    CHECK_NEAR(l.confidence, confidence, 1e-6);
    CHECK_INT(qsim_verdict_input(v, &in), QSIM_OK);
    const bool found = warns(v, "labels");
    CHECK_INT(in.fits, found ? -1 : 0);
    qsim_verdict_free(v);
    return found;
}

/*
 * Wilson's interval at z = 2.326 of k of 40. Sure by 1 / (1 + 2 exp(-4)) = 0.9647, less 0.2 0.7647:
 * 24 are 0.7576 at most, 25 0.7779. Of three classes a quarter of the way from guessing is 0.5: 12
 * are 0.4838 at most, 13 0.5089; and 21 are no guesses, at least 0.347.
 */
static void test_bounds(void) {
    const float sure[CLASSES] = {4, 0, 0}, unsure[CLASSES] = {0.1f, 0, 0};
    const float share[CLASSES] = {0.9f, 0.1f, 0};
    const double p = 1 / (1 + 2 * exp(-4)), q = 1 / (1 + 2 * exp(-0.1f));
    CHECK(doubts(sure, 0, p));
    CHECK(doubts(sure, 24, p));
    CHECK(!doubts(sure, 25, p));
    CHECK(!doubts(sure, ROWS, p));
    CHECK(doubts(unsure, 0, q));
    CHECK(doubts(unsure, 12, q));
    CHECK(!doubts(unsure, 13, q));
    CHECK(!doubts(unsure, ROWS, q));
    CHECK(doubts(share, 20, 0.9));
    CHECK(!doubts(share, 36, 0.9));
}

static void test_grade(void) {
    const float sure[CLASSES] = {4, 0, 0};
    float x[ROWS * CLASSES];
    int64_t labels[ROWS];
    const int64_t dims[2] = {ROWS, CLASSES};
    const qsim_tensor in = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    qsim_error e = {0};
    for (int i = 0; i < ROWS; i++) {
        memcpy(x + (ptrdiff_t)i * CLASSES, sure, sizeof(sure));
        x[(ptrdiff_t)i * CLASSES] += 0.01f * (float)i;
        labels[i] = i < 30 ? -1 : 2;
    }
    qsim_model *m = make(0, true);
    qsim_verdict *v = judge(m, m, NULL, &in);
    qsim_verdict_labels_info l = {.struct_size = sizeof(l)};
    const int32_t before = qsim_verdict_grade(v);
    CHECK_INT(qsim_verdict_labels(v, &l), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_verdict_label(v, labels, 0, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_label(v, labels, 30, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_labels(v, &l), QSIM_E_NOT_FOUND); /* all unknown */
    CHECK_INT(qsim_verdict_grade(v), before);
    CHECK_INT(qsim_verdict_label(v, labels, ROWS, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_labels(v, &l), QSIM_OK);
    CHECK_INT(l.rows, 10);
    CHECK(qsim_verdict_grade(v) >= QSIM_GRADE_DOUBTFUL);
    labels[0] = 1000; /* no class of the model: wrong */
    CHECK_INT(qsim_verdict_label(v, labels, 1, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_labels(v, &l), QSIM_OK);
    CHECK_INT(l.rows, 11);
    CHECK_INT(l.right, 0);
    qsim_verdict_free(v);
    qsim_model_free(m);
}

static void test_refused(void) {
    float x[ROWS * CLASSES * CLASSES] = {0};
    const int64_t labels[ROWS + 1] = {0}, dims[3] = {ROWS, CLASSES, CLASSES};
    const qsim_tensor rows = {QSIM_FLOAT, 2, dims, x, ROWS * CLASSES * sizeof(*x)};
    const qsim_tensor maps = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    qsim_verdict_labels_info l = {.struct_size = sizeof(l)};
    qsim_error e = {0};
    qsim_model *m = make(0, true), *other = make(0, false);
    qsim_verdict *v = NULL;
    CHECK_INT(qsim_verdict_create(m, m, NULL, &v, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_label(v, labels, 1, &e), QSIM_OK); /* nothing was fed */
    CHECK_INT(qsim_verdict_feed(v, &rows, 1, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_label(v, labels, ROWS + 1, &e), QSIM_E_ARGUMENT);
    CHECK(strcmp(e.message, "verdict: 41 labels for 40 samples") == 0);
    CHECK_INT(qsim_verdict_label(v, NULL, 1, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_verdict_label(NULL, labels, 1, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_verdict_labels(NULL, &l), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_verdict_labels(v, NULL), QSIM_E_ARGUMENT);
    qsim_verdict_free(v);
    v = judge(other, other, NULL, &maps); /* nine values a sample, no classes */
    CHECK_INT(qsim_verdict_label(v, labels, ROWS, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_labels(v, &l), QSIM_E_NOT_FOUND);
    qsim_verdict_free(v);
    qsim_model_free(other);
    qsim_model_free(m);
}

int main(void) {
    test_bounds();
    test_grade();
    test_refused();
    return test_done();
}
