/* SPDX-License-Identifier: MIT */
/* The ratio of two models' times and its interval, by the formula of Student's t. */
#include "test.h"

#include "qsim/latency.h"

#include <math.h>

enum { ROUNDS = 60 };

/* Twenty blocks of three rounds whose ratios are 2 - d and 2 + d by turns. */
static time_ratio alternating(double d) {
    double a[ROUNDS], b[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        b[i] = 3;
        a[i] = 3 * (i / 3 % 2 ? 2 + d : 2 - d);
    }
    return latency_ratio(a, b, ROUNDS);
}

static void test_interval(void) {
    const time_ratio r = alternating(0.1);
    /* t of 19 degrees of freedom at 97.5 % is 2.093; the deviation of 20 ratios is d √(20 / 19). */
    const double margin = 2.093 * 0.1 * sqrt(20.0 / 19) / sqrt(20);
    CHECK_NEAR(r.value, 2, 1e-12);
    CHECK_NEAR(r.margin, margin, 0.002 * margin);
    const time_ratio inverse = latency_inverse(r);
    CHECK_NEAR(inverse.value, 0.5, 1e-12);
    CHECK_NEAR(inverse.margin, r.margin / 4, 1e-12); /* d(1/r) = dr / r² */
    CHECK(latency_differs(r) && latency_differs(inverse));
}

/* One round in sixty that another program held up moves neither the ratio nor, much, its margin. */
static void test_disturbed(void) {
    double a[ROUNDS], b[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        a[i] = 2;
        b[i] = i == 30 ? 500 : 1;
    }
    const time_ratio r = latency_ratio(a, b, ROUNDS);
    CHECK_NEAR(r.value, 2, 1e-12);
    CHECK_NEAR(r.margin, 0, 1e-12);
}

static void test_few(void) {
    const double a[8] = {2, 2, 2, 2, 2, 2, 2, 2}, b[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const time_ratio r = latency_ratio(a, b, 8);
    CHECK_NEAR(r.value, 2, 1e-12);
    CHECK(isnan(r.margin) && !latency_differs(r)); /* two blocks of three rounds tell no interval */
}

static int says(double value, double margin, const char *wanted) {
    char words[LATENCY_WORDS];
    return strcmp(latency_verdict((time_ratio){value, margin}, "A", words), wanted) == 0;
}

static void test_words(void) {
    CHECK(says(2, 0.05, "2.00 ± 0.05 times faster than A"));
    CHECK(says(0.5, 0.05, "2.00 ± 0.20 times slower than A"));
    CHECK(says(1.02, 0.05, "as fast as A: 1.020 ± 0.050 times"));
    CHECK(says(2.6, 1.9, "not clearly faster or slower than A: 2.600 ± 1.900 times"));
    CHECK(says(2.6, 16.9, "2.60 times as fast as A, from runs too uneven to be sure"));
    CHECK(says(2, (double)NAN, "2.00 times as fast as A, from too few runs to be sure"));
}

static void test_too_short(void) {
    const latency run = {.median = 0.001};
    CHECK(latency_is_too_short(&run, 0.00003)); /* 3 % */
    CHECK(!latency_is_too_short(&run, 0.00001));
}

int main(void) {
    test_too_short();
    test_interval();
    test_disturbed();
    test_few();
    test_words();
    return test_done();
}
