/* SPDX-License-Identifier: MIT */
/* Exact sums equal integer sums, in any order; their text reads back unchanged. */
#include "test.h"

#include <float.h>
#include <math.h>

#include "kernel/ew.h"
#include "kernel/table.h"
#include "quant/exact_sum.h"

static const char *text_of(const qs_exact *s) {
    static char text[QS_EXACT_TEXT];
    qs_exact_write(s, text);
    return text;
}

/* By hand: 2^0 + 2^-1 = 3 * 2^-1; the least and the greatest float at once; a sum back to zero. */
static void test_by_hand(void) {
    qs_exact s = {.high = 0};
    CHECK_STR(text_of(&s), "0");
    qs_exact_add(&s, 1);
    qs_exact_add(&s, 0.5);
    CHECK_STR(text_of(&s), "3p-1");
    CHECK(qs_exact_mean(&s, 4) == 0.375);
    qs_exact_add(&s, -2);
    CHECK_STR(text_of(&s), "-1p-1");
    CHECK(qs_exact_mean(&s, 1) == -0.5);
    qs_exact_add(&s, 0.5);
    CHECK_STR(text_of(&s), "0");
    qs_exact_add(&s, (double)FLT_MAX);
    qs_exact_add(&s, 0x1p-149);
    qs_exact_add(&s, -(double)FLT_MAX);
    CHECK_STR(text_of(&s), "1p-149");
    qs_exact_add(&s, -0x1p-149 * 31);
    CHECK_STR(text_of(&s), "-fp-148");
}

static bool same(const qs_exact *a, const qs_exact *b) {
    char text[QS_EXACT_TEXT];
    qs_exact_write(a, text);
    return strcmp(text, text_of(b)) == 0;
}

/* Multiples of 2^-10 add up exactly in int64: the same, in any order and grouping. */
static void test_against_integers(void) {
    uint64_t seed = 5;
    qs_exact all = {.high = 0}, part[3] = {{.high = 0}}, back = {.high = 0};
    int64_t sum = 0, n[3000];
    for (int i = 0; i < 3000; i++) {
        n[i] = ((int64_t)test_random(&seed) - 2147483648) * (1 << test_random(&seed) % 16);
        sum += n[i];
        qs_exact_add(&all, ldexp((double)n[i], -10));
        qs_exact_add(&part[i % 3], ldexp((double)n[i], -10));
    }
    for (int i = 3000; i-- > 0;)
        qs_exact_add(&back, ldexp((double)n[i], -10));
    qs_exact_merge(&part[2], &part[0], 1);
    qs_exact_merge(&part[2], &part[1], 1);
    CHECK(same(&all, &part[2]));
    CHECK(same(&all, &back));
    CHECK(qs_exact_mean(&all, 1) == ldexp((double)sum, -10));
}

/*
 * Sums side by side, whole groups of them and a rest, of numbers that two doubles can hold together
 * and of numbers that are too far apart: the sums one by one are the same.
 */
static void test_each(void) {
    enum { COUNT = 21 };
    uint64_t seed = 3;
    int aside = 0;
    qs_exact each[COUNT] = {{.high = 0}}, one[COUNT] = {{.high = 0}};
    double recent[2 * COUNT] = {0}, x[COUNT];
    for (int k = 0; k < 400; k++) {
        for (int i = 0; i < COUNT; i++) {
            const int far = k > 100 && i % 5 == 3 ? (int)(test_random(&seed) % 240) - 149 : -20;
            x[i] = ldexp((double)(int32_t)test_random(&seed), far);
            qs_exact_add(&one[i], x[i]);
        }
        aside += qs_exact_add_each(each, recent, x, COUNT, qk_ew_c.reads.add_sums);
        for (int i = 0; i < COUNT && k == 100; i++)
            CHECK_STR(text_of(&each[i]), "0"); /* not touched so far */
        CHECK(k > 100 ? aside < 400 : aside == k + 1);
    }
    for (int i = 0; i < COUNT; i++) {
        qs_exact_add(&each[i], recent[i]);
        qs_exact_add(&each[i], recent[COUNT + i]);
        CHECK(same(&each[i], &one[i]));
    }
}

static void test_text(void) {
    static const char *const wrong[] = {
        "",    "-",   "p0",     "1",    "1p",   "2p0",   "01p0",         "-0",   "0p0",
        "1P0", "Ap0", "1p-150", "1p+1", "1p00", "1p400", "1p9999999999", "1 p0", "--1p0"};
    uint64_t seed = 9;
    qs_exact s = {.high = 0}, r;
    for (int i = 0; i < 300; i++) {
        const double x = (double)(int32_t)test_random(&seed);
        qs_exact_add(&s, ldexp(x, (int)(test_random(&seed) % 240) - 149));
        const char *text = text_of(&s);
        CHECK(strlen(text) < QS_EXACT_TEXT - 1);
        CHECK(qs_exact_read(&r, text, strlen(text)));
        CHECK(same(&r, &s));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        CHECK(!qs_exact_read(&r, wrong[i], strlen(wrong[i])));
}

int main(void) {
    test_by_hand();
    test_against_integers();
    test_each();
    test_text();
    return test_done();
}
