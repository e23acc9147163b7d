/* SPDX-License-Identifier: MIT */
/* What calibrations make of observers: each form of counts equals a feed of the same values. */
#include <math.h>

#include "observers.h"

/*
 * Adds values, half of the times with bins that are found before it is known that they fit; those
 * that do not have any index.
 */
static void add(qsim_observer *o, qs_tally *t, const float *x, size_t n) {
    qs_values v = {x, n, x[0] + 0.0f, x[0] + 0.0f, QS_NOT_FOUND};
    float inverse = 0;
    for (size_t i = 0; i < n; i++) {
        v.min = x[i] < v.min ? x[i] + 0.0f : v.min;
        v.max = x[i] > v.max ? x[i] + 0.0f : v.max;
    }
    uint16_t *at = n % 2 ? NULL : qs_observer_place(o, t, n, &inverse);
    for (size_t i = 0; i < n && at; i++) {
        const double bin = floor((double)x[i] * (double)inverse);
        at[i] = (uint16_t)(bin >= -QS_SIDE && bin < QS_SIDE ? QS_SIDE + (int32_t)bin : 7);
    }
    v.found = at ? n : QS_NOT_FOUND;
    CHECK_INT(qs_observer_add(o, t, &qk_ew_c.reads, &v), QSIM_OK);
}

/* Values taken in pieces of any size give the result of feeding: zeros, signs, all bin widths. */
static void test_take(void) {
    static qs_tally tally;
    static float x[20000];
    static const float size[] = {1, 1e-42f, 1e-30f, 3e5f, 3e38f};
    uint64_t seed = 8;
    for (size_t k = 0; k < sizeof(size) / sizeof(*size); k++) {
        qsim_observer *a = NULL, *b = NULL;
        CHECK_INT(qsim_observer_create(NULL, NULL, &a, NULL), QSIM_OK);
        CHECK_INT(qsim_observer_create(NULL, NULL, &b, NULL), QSIM_OK);
        for (int i = 0; i < 20000; i++) {
            const float v = (float)test_random(&seed) / 2147483648.0f - 1;
            x[i] = i < 700 || i % 3 == 0 ? (i % 2 ? 0.0f : -0.0f) : v * v * v * size[k];
            x[i] *= i < 5000 ? 0.01f : 1;
        }
        CHECK_INT(qsim_observer_feed(a, x, 20000), QSIM_OK);
        for (size_t i = 0, n; i < 20000; i += n) {
            n = 1 + test_random(&seed) % 3000;
            n = n > 20000 - i ? 20000 - i : n;
            add(b, &tally, x + i, n);
        }
        qs_observer_flush(b, &tally);
        CHECK(same_counts(a, b));
        qs_observer_reset(b);
        add(b, &tally, x, 1);
        qs_observer_flush(b, &tally);
        CHECK_INT(qsim_observer_count(b), 1);
        qsim_observer_free(a);
        qsim_observer_free(b);
    }
}

/* Adds values in pieces to an observer in the form that suits their number. */
static void add_in_form(qsim_observer *o, const float *v, size_t n) {
    static qs_tally tally;
    qs_observer_reset(o);
    qs_observer_form(o, n);
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < 1000 ? n - i : 1000;
        add(o, &tally, v + i, some);
    }
    qs_observer_flush(o, &tally);
    CHECK_INT(o->form == QS_LIST, n <= QS_LISTED);
}

/* Values that grow, merged into an observer with narrower, equal and wider bins. */
static void check_form(size_t n) {
    static float x[4000];
    static const float size[] = {1e-3f, 1, 1e4f, 0};
    uint64_t seed = 9;
    qsim_observer *a = new_observer(), *b = new_observer(), *few = new_observer();
    for (int k = 0; k < 8; k++) {
        for (size_t i = 0; i < n; i++) {
            const float v = (float)test_random(&seed) / 2147483648.0f - 1;
            x[i] = i % 5 == 0 || i < 100 ? 0 : v * size[k / 2] * (i < 1500 ? 0.1f : 1);
        }
        CHECK_INT(qsim_observer_feed(a, x, n), QSIM_OK);
        add_in_form(few, x, n);
        CHECK_INT(qs_observer_reserve(b, few), QSIM_OK);
        CHECK_INT(qs_observer_merge(b, few, &qk_ew_c.reads), QSIM_OK);
        CHECK(same_counts(a, b));
    }
    /* The same memory serves as wide counters again. */
    qs_observer_reset(few);
    qs_observer_reset(a);
    CHECK_INT(qsim_observer_feed(few, x + n - 100, 100), QSIM_OK);
    CHECK_INT(qsim_observer_feed(a, x + n - 100, 100), QSIM_OK);
    CHECK(same_counts(a, few));
    add_in_form(few, size, 4);
    qs_observer_reset(few);
    CHECK_INT(qsim_observer_feed(a, size, 4), QSIM_OK);
    CHECK_INT(qsim_observer_feed(few, x + n - 100, 100), QSIM_OK);
    CHECK_INT(qsim_observer_feed(few, size, 4), QSIM_OK);
    CHECK(same_counts(a, few));
    qsim_observer_free(a);
    qsim_observer_free(b);
    qsim_observer_free(few);
}

/*
 * As many values of a few bins as each form takes, and more than counters of 16 bits hold, once or
 * in several merges.
 */
static void test_full(void) {
    static float x[200000];
    static const size_t size[] = {QS_LISTED,  QS_LISTED + 1,  40000,
                                  UINT16_MAX, UINT16_MAX + 1, 200000};
    for (size_t k = 0; k < sizeof(size) / sizeof(*size); k++)
        for (int kind = 0; kind < 3; kind++) {
            qsim_observer *a = new_observer(), *b = new_observer(), *few = new_observer();
            for (size_t i = 0; i < size[k]; i++)
                x[i] = i == 0 || kind == 0 ? 0.75f
                       : kind == 1         ? 0
                                           : (float)(i % 100 < 60 ? i % 13 : 0) / 16 - 0.3f;
            for (int times = 0; times < 3; times++) {
                CHECK_INT(qsim_observer_feed(a, x, size[k]), QSIM_OK);
                add_in_form(few, x, size[k]);
                CHECK_INT(qs_observer_merge(b, few, &qk_ew_c.reads), QSIM_OK);
            }
            CHECK(same_counts(a, b));
            qsim_observer_free(a);
            qsim_observer_free(b);
            qsim_observer_free(few);
        }
}

/*
 * Observers of all forms by the same tally, whose last values may be counted during the read of the
 * next one.
 */
static void test_leave(void) {
    enum { TIMES = 40 };
    static qs_tally tally;
    static float x[TIMES][70000];
    static const size_t size[] = {70000, 5000, 3, 30000, QS_LISTED, UINT16_MAX, 2 * QS_PART};
    qsim_observer *a[TIMES], *b[TIMES];
    uint64_t seed = 14;
    for (int k = 0; k < TIMES; k++) {
        const size_t n = size[test_random(&seed) % QS_COUNT(size)];
        a[k] = new_observer();
        b[k] = new_observer();
        for (size_t i = 0; i < n; i++)
            x[k][i] = test_random(&seed) % 3 ? (float)(test_random(&seed) % 999) - 400 : 0;
        CHECK_INT(qsim_observer_feed(a[k], x[k], n), QSIM_OK);
        qs_observer_form(b[k], n);
        for (size_t i = 0; i < n; i += 10000)
            add(b[k], &tally, x[k] + i, n - i < 10000 ? n - i : 10000);
        qs_observer_leave(b[k], &tally);
    }
    qs_count_waiting(&tally);
    for (int k = 0; k < TIMES; k++) {
        qsim_observer *c = new_observer();
        CHECK_INT(qs_observer_merge(c, b[k], &qk_ew_c.reads), QSIM_OK);
        CHECK(same_counts(a[k], c));
        qsim_observer_free(a[k]);
        qsim_observer_free(b[k]);
        qsim_observer_free(c);
    }
}

/*
 * Many merges between two looks: lists and counters of 16 bits in turn, which are settled when they
 * are full, when the form changes and when bins grow wider; all equal a feed of the same values.
 */
static void test_recent(void) {
    static float x[70000];
    static const size_t size[] = {3, 1000, QS_LISTED, 5000, 30000, UINT16_MAX, 70000};
    uint64_t seed = 12;
    qsim_observer *a = new_observer(), *b = new_observer(), *c = new_observer(),
                  *few = new_observer();
    for (int k = 0; k < 300; k++) {
        const size_t n = size[test_random(&seed) % (k < 100 ? 3 : QS_COUNT(size))];
        const int wide = k / 60;
        for (size_t i = 0; i < n; i++)
            x[i] =
                test_random(&seed) % 3 ? ldexpf((float)(test_random(&seed) % 999) - 400, wide) : 0;
        CHECK_INT(qsim_observer_feed(a, x, n), QSIM_OK);
        add_in_form(few, x, n);
        CHECK_INT(qs_observer_merge(b, few, &qk_ew_c.reads), QSIM_OK);
        CHECK_INT(qsim_observer_count(b), (int64_t)qsim_observer_count(a));
    }
    CHECK_INT(qsim_observer_merge(c, b), QSIM_OK); /* what is recent is merged, too */
    CHECK(same_counts(a, c));
    CHECK(same_counts(a, b));
    qsim_observer_free(a);
    qsim_observer_free(b);
    qsim_observer_free(c);
    qsim_observer_free(few);
}

int main(void) {
    test_take();
    check_form(QS_LISTED);
    check_form(4000);
    test_full();
    test_leave();
    test_recent();
    return test_done();
}
