/* SPDX-License-Identifier: MIT */
/* Observers: exact merging in any order, ranges by every method. */
#include <math.h>

#include "observers.h"

enum { N = 6000 };

/* Values over 90 binary orders of magnitude, zeros of both signs and exact powers of two. */
static void wild(float *x, uint64_t *seed) {
    for (int i = 0; i < N; i++) {
        float m = (float)test_random(seed) / 2147483648.0f - 1;
        uint32_t kind = test_random(seed) % 16;
        x[i] = ldexpf(m, (int)(test_random(seed) % 90) - 60 - i / 100);
        x[i] = kind == 0   ? 0.0f
               : kind == 1 ? -0.0f
               : kind == 2 ? ldexpf(m < 0 ? -1 : 1, i % 7)
                           : x[i];
    }
    x[17] = 1e-45f;
}

static void test_merge(void) {
    static float x[N];
    uint64_t seed = 3;
    for (int round = 0; round < 20; round++) {
        qsim_observer *all = new_observer(), *parts[7], *left = new_observer(),
                      *right = new_observer(), *back = new_observer();
        wild(x, &seed);
        CHECK_INT(qsim_observer_feed(all, x, N), QSIM_OK);
        for (int i = 0; i < 7; i++)
            parts[i] = new_observer();
        for (int i = 0; i < N; i++) /* one at a time, dealt at random, last value first */
            qsim_observer_feed(parts[test_random(&seed) % 7], x + N - 1 - i, 1);
        for (int i = 0; i < 7; i++) {
            CHECK_INT(qsim_observer_merge(left, parts[i]), QSIM_OK);
            CHECK_INT(qsim_observer_merge(back, parts[6 - i]), QSIM_OK);
        }
        CHECK_INT(qsim_observer_merge(parts[5], parts[6]), QSIM_OK); /* another association */
        CHECK_INT(qsim_observer_merge(parts[4], parts[5]), QSIM_OK);
        for (int i = 0; i < 5; i++)
            CHECK_INT(qsim_observer_merge(right, parts[i]), QSIM_OK);
        CHECK(same_counts(all, left) && same_counts(all, right) && same_counts(all, back));
        qsim_observer *empty = new_observer();
        CHECK_INT(qsim_observer_merge(all, empty), QSIM_OK);
        CHECK(same_counts(all, left));
        qsim_observer_free(empty);
        for (int i = 0; i < 7; i++)
            qsim_observer_free(parts[i]);
        qsim_observer_free(all);
        qsim_observer_free(left);
        qsim_observer_free(right);
        qsim_observer_free(back);
    }
}

/* Every value is in the bin that its definition names, and none is lost. */
static void test_bins(void) {
    static float x[N];
    uint64_t seed = 5, total = 0, wrong = 0;
    static uint64_t expected[2 * QS_SIDE];
    qsim_observer *o = new_observer();
    wild(x, &seed);
    for (int i = 0; i < N; i += 100)
        qsim_observer_feed(o, x + i, 100);
    double w = ldexp(1, o->exponent);
    double magnitude = fmax((double)o->max, -(double)o->min);
    CHECK(magnitude < 2048 * w && magnitude >= 1024 * w);
    for (int i = 0; i < N; i++)
        expected[QS_SIDE + (int)floor((double)x[i] / w)]++;
    for (int i = 0; i < 2 * QS_SIDE; i++) {
        wrong += expected[i] != o->bins[i];
        total += o->bins[i];
    }
    CHECK_INT(wrong, 0);
    CHECK_INT(total, N);
    CHECK_INT(o->count, N);
    CHECK(o->bins[QS_SIDE - qs_observer_below(o)] > 0);
    CHECK(o->bins[QS_SIDE + qs_observer_above(o) - 1] > 0);
    qsim_observer_free(o);
}

/* A tensor of zeros takes no histogram; zeros before and after other values are counted. */
static void test_zeros(void) {
    const float zeros[3] = {0, -0.0f, 0}, mixed[4] = {0, 1, -0.0f, 0};
    qsim_observer *a = new_observer(), *b = new_observer(), *c = new_observer(),
                  *whole = new_observer();
    CHECK_INT(qsim_observer_feed(a, zeros, 3), QSIM_OK);
    CHECK(a->bins == NULL && a->count == 3 && !signbit(a->min) && !signbit(a->max));
    CHECK_INT(qsim_observer_feed(b, mixed, 4), QSIM_OK);
    CHECK_INT(qsim_observer_merge(c, a), QSIM_OK);
    CHECK_INT(qsim_observer_merge(c, b), QSIM_OK);
    CHECK_INT(qsim_observer_merge(b, a), QSIM_OK);
    CHECK_INT(qsim_observer_feed(whole, zeros, 3), QSIM_OK);
    CHECK_INT(qsim_observer_feed(whole, mixed, 4), QSIM_OK);
    CHECK(same_counts(b, c) && same_counts(b, whole));
    CHECK_INT(b->bins[QS_SIDE], 6);
    qsim_observer_free(a);
    qsim_observer_free(b);
    qsim_observer_free(c);
    qsim_observer_free(whole);
}

/* 128 = 2048 / 16 bins are 16 times as wide. Creation fixes both numbers. */
static void test_options(void) {
    static const int32_t wrong[] = {-1, 64, 100, 4096};
    const float x[3] = {0.5f, 3, -1.25f};
    qsim_observer_options options = {.struct_size = sizeof(options), .bins = 128};
    qsim_observer *coarse = NULL, *fine = new_observer(), *none = NULL;
    CHECK_INT(qsim_observer_create(NULL, &options, &coarse, NULL), QSIM_OK);
    CHECK_INT(qsim_observer_feed(coarse, x, 3), QSIM_OK);
    CHECK_INT(qsim_observer_feed(fine, x, 3), QSIM_OK);
    CHECK_INT(coarse->exponent, fine->exponent + 4);
    CHECK_INT(qsim_observer_merge(fine, coarse), QSIM_E_MISMATCH);
    CHECK_INT(qsim_observer_count(fine), 3);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        options.bins = wrong[i];
        CHECK_INT(qsim_observer_create(NULL, &options, &none, NULL), QSIM_E_ARGUMENT);
        CHECK(none == NULL);
    }
    options.bins = 0;
    options.reserved = 1;
    CHECK_INT(qsim_observer_create(NULL, &options, &none, NULL), QSIM_E_VERSION);
    options = (qsim_observer_options){.bins = 128};
    CHECK_INT(qsim_observer_create(NULL, &options, &none, NULL), QSIM_E_ARGUMENT);
    qsim_observer_free(coarse);
    qsim_observer_free(fine);
}

static void test_refused(void) {
    const float good[3] = {1, 2, -3}, bad[3] = {9, NAN, 1}, worse[2] = {INFINITY, 0};
    float low, high;
    qsim_observer *o = new_observer(), *p = new_observer();
    CHECK_INT(qsim_observer_range(o, QSIM_METHOD_MINMAX, 0, QSIM_UINT8, 0, &low, &high),
              QSIM_E_STATE);
    CHECK_INT(qsim_observer_feed(o, good, 3), QSIM_OK);
    CHECK_INT(qsim_observer_feed(p, good, 3), QSIM_OK);
    CHECK_INT(qsim_observer_feed(o, bad, 3), QSIM_E_VALUE);
    CHECK_INT(qsim_observer_feed(o, worse, 2), QSIM_E_VALUE);
    CHECK_INT(qsim_observer_feed(o, NULL, 0), QSIM_OK);
    CHECK(same_counts(o, p));
    CHECK_INT(qsim_observer_range(o, 4, 0, QSIM_UINT8, 0, &low, &high), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_observer_range(o, 1, 101, QSIM_UINT8, 0, &low, &high), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_observer_range(o, 1, NAN, QSIM_UINT8, 0, &low, &high), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_observer_range(o, 2, 0, QSIM_INT16, 0, &low, &high), QSIM_E_DTYPE);
    p->count = UINT64_MAX;
    CHECK_INT(qsim_observer_merge(o, p), QSIM_E_LIMIT);
    CHECK_INT(qsim_observer_feed(p, good, 1), QSIM_E_LIMIT);
    qsim_observer_free(o);
    qsim_observer_free(p);
}

static void test_percentile(void) {
    static float x[10000];
    float low, high;
    qsim_observer *o = new_observer();
    for (int i = 0; i < 10000; i++)
        x[i] = (float)i - 5000; /* -5000 .. 4999, bin width 4 */
    CHECK_INT(qsim_observer_feed(o, x, 10000), QSIM_OK);
    CHECK_INT(o->exponent, 2);
    CHECK_INT(qsim_observer_range(o, QSIM_METHOD_MINMAX, 0, QSIM_UINT8, 0, &low, &high), QSIM_OK);
    CHECK(low == -5000 && high == 4999);
    CHECK_INT(qsim_observer_range(o, QSIM_METHOD_PERCENTILE, 100, QSIM_UINT8, 0, &low, &high),
              QSIM_OK);
    CHECK(low == -5000 && high == 4999);
    /* 1 % in all: the 50 least and the 50 greatest go; the edges are multiples of 4. */
    CHECK_INT(qsim_observer_range(o, QSIM_METHOD_PERCENTILE, 99, QSIM_UINT8, 0, &low, &high),
              QSIM_OK);
    CHECK(low == -4952 && high == 4952);
    qsim_observer_free(o);
}

/* Mean squared error of quantizing the values themselves, not the histogram. */
static double true_mse(const float *x, int n, float low, float high, int32_t dtype, int32_t flags) {
    float s, back;
    int32_t z;
    double sum = 0;
    uint8_t q;
    CHECK_INT(qsim_qparams_choose(low, high, dtype, flags, &s, &z), QSIM_OK);
    for (int i = 0; i < n; i++) {
        qsim_values_quantize(x + i, 1, s, z, dtype, &q);
        qsim_values_dequantize(&q, 1, s, z, dtype, &back);
        sum += pow((double)(x[i] - back), 2);
    }
    return sum / n;
}

static float gauss(uint64_t *seed) {
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += (double)test_random(seed) / 4294967296.0;
    return (float)(sum - 6);
}

/* The search comes within 2 % of the best of a plain scan that measures real errors. */
static void test_mse(void) {
    static float x[20000];
    uint64_t seed = 9;
    for (int kind = 0; kind < 4; kind++) {
        int32_t dtype = kind == 3 ? QSIM_INT8 : QSIM_UINT8;
        int32_t flags = kind == 3 ? QSIM_RANGE_SYMMETRIC : 0;
        for (int i = 0; i < 20000; i++) {
            float g = gauss(&seed);
            x[i] = kind == 0   ? g
                   : kind == 1 ? (g > 0 ? g * g * g : 0)
                   : kind == 2 ? expf(g) - 0.3f
                               : g;
        }
        x[77] = 60; /* an outlier that min/max would pay for */
        float low, high;
        qsim_observer *o = new_observer();
        CHECK_INT(qsim_observer_feed(o, x, 20000), QSIM_OK);
        CHECK_INT(qsim_observer_range(o, QSIM_METHOD_MSE, 0, dtype, flags, &low, &high), QSIM_OK);
        CHECK(low <= 0 && high >= 0 && low >= o->min - 1e-6f && high <= o->max);
        double found = true_mse(x, 20000, low, high, dtype, flags), best = 1e30;
        double whole = true_mse(x, 20000, o->min, o->max, dtype, flags);
        for (int i = 1; i <= 60; i++) {
            float h = o->max * (float)i / 60;
            double e = true_mse(x, 20000, -h > o->min ? -h : o->min, h, dtype, flags);
            best = e < best ? e : best;
        }
        CHECK(found <= best * 1.02);
        CHECK(found <= whole);
        qsim_observer_free(o);
    }
}

/* Evenly spread values keep their whole range; far outliers are cut. */
static void test_entropy(void) {
    static float x[20000];
    uint64_t seed = 13;
    float low, high;
    qsim_observer *o = new_observer(), *p = new_observer();
    for (int i = 0; i < 20000; i++)
        x[i] = (float)(test_random(&seed) % 100000) / 100000;
    CHECK_INT(qsim_observer_feed(o, x, 20000), QSIM_OK);
    CHECK_INT(qsim_observer_range(o, QSIM_METHOD_ENTROPY, 0, QSIM_UINT8, 0, &low, &high), QSIM_OK);
    CHECK(low == 0 && high > 0.95f);
    for (int i = 0; i < 20000; i++)
        x[i] = i % 2 ? fabsf(gauss(&seed)) : 0;
    x[100] = 20;
    CHECK_INT(qsim_observer_feed(p, x, 20000), QSIM_OK);
    CHECK_INT(qsim_observer_range(p, QSIM_METHOD_ENTROPY, 0, QSIM_UINT8, 0, &low, &high), QSIM_OK);
    CHECK(low == 0 && high > 2.0f && high < 12.0f);
    CHECK_INT(qsim_observer_range(p, QSIM_METHOD_ENTROPY, 0, QSIM_INT8, QSIM_RANGE_SYMMETRIC, &low,
                                  &high),
              QSIM_OK);
    CHECK(low == 0 && high > 2.0f && high < 12.0f);
    qsim_observer_free(o);
    qsim_observer_free(p);
}

/* Bins of a histogram, lowest first, as the search weighs them: zero's like its neighbours. */
typedef struct weighed {
    double mass[2 * QS_SIDE];
    int below, above;
} weighed;

static void weigh(const qsim_observer *o, weighed *w) {
    w->below = qs_observer_below(o);
    w->above = qs_observer_above(o);
    const int size = w->below + w->above, zero = w->below;
    for (int i = 0; i < size; i++)
        w->mass[i] = (double)o->bins[QS_SIDE - w->below + i];
    if (w->above == 0)
        return;
    double around = zero > 0 && zero + 1 < size ? (w->mass[zero - 1] + w->mass[zero + 1]) / 2
                    : zero > 0                  ? w->mass[zero - 1]
                    : size > 1                  ? w->mass[zero + 1]
                                                : w->mass[zero];
    w->mass[zero] = fmin(w->mass[zero], around);
}

/*
 * Kullback and Leibler's divergence of bins [from, to), the outermost of which also hold what is
 * cut off, from the same bins after each level's own values are spread over those that it uses.
 */
static double true_divergence(const weighed *w, int from, int to, int levels) {
    static double p[2 * QS_SIDE], q[2 * QS_SIDE];
    const int size = to - from;
    double all = 0, inside = 0, sum = 0;
    for (int i = 0; i < w->below + w->above; i++)
        all += w->mass[i];
    for (int i = 0; i < size; i++)
        inside += p[i] = w->mass[from + i];
    for (int i = 0; i < from; i++)
        p[0] += w->mass[i];
    for (int i = to; i < w->below + w->above; i++)
        p[size - 1] += w->mass[i];
    for (int level = 0; level < levels; level++) {
        int first = level * size / levels, end = (level + 1) * size / levels, used = 0;
        double own = 0;
        for (int i = first; i < end; i++) {
            own += w->mass[from + i];
            used += p[i] > 0;
        }
        for (int i = first; i < end; i++)
            q[i] = own > 0 ? own / used : 1;
    }
    for (int i = 0; i < size; i++)
        sum += p[i] > 0 ? p[i] / all * log(p[i] / all / (q[i] / inside)) : 0;
    return sum;
}

/* Of 64 ranges, each narrower than the one before, the one with the least divergence is kept. */
static void check_entropy(const qsim_observer *o, int32_t dtype, int levels, bool symmetric) {
    static weighed w;
    weigh(o, &w);
    const double width = ldexp(1, o->exponent);
    double least = INFINITY;
    int best_l = 0, best_r = 0, larger = w.below > w.above ? w.below : w.above;
    for (int i = 0; i < 64; i++) {
        int l = w.below - w.below * i / 64, r = w.above - w.above * i / 64;
        int a = larger - larger * i / 64;
        if (symmetric) {
            l = a < w.below ? a : w.below;
            r = a < w.above ? a : w.above;
        }
        if (l + r < 4 * levels)
            break;
        double d = true_divergence(&w, w.below - l, w.below + r, levels);
        if (d < least - 1e-12) {
            least = d;
            best_l = l;
            best_r = r;
        }
    }
    float low, high;
    CHECK_INT(qsim_observer_range(o, QSIM_METHOD_ENTROPY, 0, dtype,
                                  symmetric ? QSIM_RANGE_SYMMETRIC : 0, &low, &high),
              QSIM_OK);
    CHECK(best_l + best_r > 0);
    CHECK(low == fmaxf((float)(-best_l * width), fminf(o->min, 0)));
    CHECK(high == fminf((float)(best_r * width), fmaxf(o->max, 0)));
}

/* Both signs, one alone, one bin of one sign; even, and with tails of several weights. */
static void test_entropy_search(void) {
    static float x[20000];
    uint64_t seed = 17;
    for (int round = 0; round < 40; round++) {
        const int sign = round % 4;
        const float tail = ldexpf(1, round / 8);
        for (int i = 0; i < 20000; i++) {
            float v = round < 8 ? (float)test_random(&seed) / 2147483648.0f - 1 : gauss(&seed);
            v = i % 50 == 0 ? v * tail : v;
            x[i] = sign == 0   ? v
                   : sign == 1 ? fmaxf(v, 0)
                   : sign == 2 ? -fabsf(v) - 1e-6f
                               : fmaxf(v, i % 3 == 0 ? -1e-6f : 0);
        }
        qsim_observer *o = new_observer();
        CHECK_INT(qsim_observer_feed(o, x, 20000), QSIM_OK);
        const int half = sign == 1 || sign == 2 ? 2 : 1;
        check_entropy(o, QSIM_UINT8, 256 / half, false);
        check_entropy(o, QSIM_INT8, 256 / half, true);
        check_entropy(o, QSIM_UINT4, 16 / half, false);
        qsim_observer_free(o);
    }
}

/* One value, all zeros, one sign: a range is found by every method. */
static void test_degenerate(void) {
    static const float sets[5][3] = {
        {0, 0, 0}, {5, 5, 5}, {-2, -2, -3}, {1e-45f, 0, 0}, {3e38f, -3e38f, 0}};
    for (int i = 0; i < 5; i++)
        for (int32_t method = 0; method < 4; method++) {
            float low = NAN, high = NAN;
            qsim_observer *o = new_observer();
            CHECK_INT(qsim_observer_feed(o, sets[i], 3), QSIM_OK);
            CHECK_INT(qsim_observer_range(o, method, 0, QSIM_UINT8, 0, &low, &high), QSIM_OK);
            CHECK(low <= 0 && high >= 0 && low <= high);
            CHECK(low >= fminf(0, o->min) && high <= fmaxf(0, o->max));
            qsim_observer_free(o);
        }
}

/* Width 2^-10: 2048 bins reach to 2; -0.5 is 512 bins under zero. */
static void test_histogram(void) {
    const float x[4] = {-0.5f, 0.25f, 1.5f, 1.5f};
    static uint64_t bins[4096];
    double low, width;
    size_t count = 0;
    qsim_observer *o = NULL;
    CHECK_INT(qsim_observer_create(NULL, NULL, &o, NULL), QSIM_OK);
    CHECK_INT(qsim_observer_histogram(o, &low, &width, bins, 4096, &count), QSIM_OK);
    CHECK_INT(count, 0);
    CHECK_INT(qsim_observer_feed(o, x, 4), QSIM_OK);
    CHECK_INT(qsim_observer_histogram(o, &low, &width, bins, 4096, &count), QSIM_OK);
    CHECK(width == 1.0 / 1024 && low == -0.5);
    CHECK_INT(count, 512 + 1536 + 1);
    CHECK_INT(bins[0], 1);
    CHECK_INT(bins[512 + 256], 1);
    CHECK_INT(bins[512 + 1536], 2);
    bins[1] = 77; /* no room: not written */
    CHECK_INT(qsim_observer_histogram(o, &low, &width, bins, 1, &count), QSIM_OK);
    CHECK_INT(bins[1], 77);
    CHECK_INT(qsim_observer_histogram(o, &low, NULL, bins, 1, &count), QSIM_E_ARGUMENT);
    qsim_observer_free(o);
}

int main(void) {
    test_histogram();
    test_merge();
    test_bins();
    test_zeros();
    test_options();
    test_refused();
    test_percentile();
    test_mse();
    test_entropy();
    test_entropy_search();
    test_degenerate();
    return test_done();
}
