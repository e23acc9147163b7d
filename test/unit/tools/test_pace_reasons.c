/* SPDX-License-Identifier: MIT */
/* What is said of given times of steps where the quantized model is not faster. */
#include "test.h"

#include "qsim/pace_reasons.h"

#include <string.h>

enum { MOST = 5 };

static int says(const pace_step *a, size_t m, const pace_step *b, size_t n, const char *wanted) {
    text why = {0};
    pace_reasons(a, m, b, n, &why);
    const int same = why.data && strcmp(why.data, wanted) == 0;
    if (!same)
        printf("says: %s\n", why.data ? why.data : "nothing");
    text_free(&why);
    return same;
}

static const pace_step floats[] = {{"c1", "Conv", IN_FLOATS, 40}, {"fc", "Gemm", IN_FLOATS, 20}};

static void test_conversions(void) {
    const pace_step b[] = {{"x_QuantizeLinear", "QuantizeLinear", CONVERTING, 30},
                           {"c1", "Conv", IN_INTEGERS, 10},
                           {"fc", "Gemm", IN_INTEGERS, 20}};
    CHECK(says(floats, 2, b, 3,
               "50 % goes into conversions between floats and integers, 'x_QuantizeLinear' most "
               "of all; of its integer layers 'fc' takes longest, 20 µs"));
    /* 9 of 59 µs are more than 15 %, 5 of 35 are not. */
    const pace_step most[] = {{"q", "QuantizeLinear", CONVERTING, 9},
                              {"c1", "Conv", IN_INTEGERS, 30},
                              {"fc", "Gemm", IN_INTEGERS, 20}};
    CHECK(says(floats, 2, most, 3,
               "15 % goes into conversions between floats and integers, 'q' most of all; of its "
               "integer layers 'c1' takes longest, 30 µs"));
    const pace_step few[] = {{"q", "QuantizeLinear", CONVERTING, 5},
                             {"c1", "Conv", IN_INTEGERS, 30}};
    CHECK(says(floats, 2, few, 2, "of its integer layers 'c1' takes longest, 30 µs"));
}

static void test_floats(void) {
    const pace_step b[] = {{"c1", "Conv", IN_INTEGERS, 30},
                           {"s", "Softmax", IN_FLOATS, 4},
                           {"t", "Erf", IN_FLOATS, 6}};
    CHECK(says(floats, 2, b, 3,
               "25 % of its time stays in floats, 't' (Erf) most of all; of its integer layers "
               "'c1' takes longest, 30 µs"));
    const pace_step none[] = {{"s", "Softmax", IN_FLOATS, 4}};
    CHECK(says(floats, 2, none, 1, "100 % of its time stays in floats, 's' (Softmax) most of all"));
}

static void test_small(void) {
    const pace_step b[] = {{"c1", "Conv", IN_INTEGERS, 0.25}, {"fc", "Gemm", IN_INTEGERS, 0.5}};
    CHECK(says(floats, 2, b, 2,
               "too small: its 2 steps take 0.375 µs each, mostly their own beginning and end"));
}

static void test_slower(void) {
    const pace_step before[MOST] = {{"a", "Conv", IN_FLOATS, 10},
                                    {"b", "Conv", IN_FLOATS, 10},
                                    {"c", "Conv", IN_FLOATS, 10},
                                    {"d", "Conv", IN_FLOATS, 10},
                                    {"e", "Conv", IN_FLOATS, 10}};
    /* 'e' is slower by 4 %, which is noise; 'd' is the fourth of the slower ones. */
    const pace_step b[MOST] = {{"a", "Conv", IN_INTEGERS, 13},
                               {"b", "Conv", IN_INTEGERS, 25},
                               {"c", "Conv", IN_INTEGERS, 14},
                               {"d", "Conv", IN_INTEGERS, 12},
                               {"e", "Conv", IN_INTEGERS, 10.4}};
    CHECK(says(before, MOST, b, MOST,
               "slower layers: 'b' 10 -> 25 µs, 'c' 10 -> 14 µs, 'a' 10 -> 13 µs"));
    /* A node that the float model runs in two steps is compared with their sum. */
    const pace_step parts[] = {{"a", "Conv", IN_FLOATS, 10}, {"a", "Relu", IN_FLOATS, 10}};
    const pace_step whole[] = {{"a", "Conv", IN_INTEGERS, 19}};
    CHECK(says(parts, 2, whole, 1, "of its integer layers 'a' takes longest, 19 µs"));
}

static void test_nothing(void) {
    CHECK(says(floats, 2, NULL, 0, "no single layer; qsim profile tells where the time goes"));
}

int main(void) {
    test_conversions();
    test_floats();
    test_small();
    test_slower();
    test_nothing();
    return test_done();
}
