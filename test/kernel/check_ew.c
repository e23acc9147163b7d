/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on floats. */
#include "checkkernel.h"

#include "kernel/ew.h"

#include <math.h>
#include <stdio.h>

typedef struct ew_case {
    const qk_ew *k;
    const void *a, *b;
    void *c;
    size_t n, rows; /* elements of all rows; rows of softmax and normalize */
    int which;      /* number of the kernel, see `call` */
    qk_scale how;
} ew_case;

static bool is_softmax(int which) {
    return which == 25 || which == 26;
}

static bool is_norm(int which) {
    return which == 10 || which == 11;
}

/* Kernels with one result. */
static bool only_reads(int which) {
    return (which >= 12 && which <= 16) || which == 27;
}

static qk_norm norm_of(const ew_case *e) {
    return (qk_norm){.epsilon = 0.01f,
                     .centred = e->which == 11,
                     .scale = e->b,
                     .bias = e->which == 11 ? e->a : NULL};
}

/* After the rows the output holds their means and inverse deviations. */
static void normalize(const ew_case *e) {
    qk_norm how = norm_of(e);
    how.mean = (float *)e->c + e->n;
    how.inverse = how.mean + e->rows;
    e->k->normalize(&how, e->a, e->c, e->n / e->rows, e->rows);
}

static bool is_normal(const ew_case *e, const float *y) {
    const size_t rows = e->rows, n = e->n / rows;
    const qk_norm how = norm_of(e);
    bool right = true;
    for (size_t r = 0; r < rows; r++) {
        const float *x = (const float *)e->a + r * n;
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n && how.centred; i++)
            mean += (double)x[i] / (double)n;
        for (size_t i = 0; i < n; i++)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        const double inverse = 1 / sqrt(variance + (double)how.epsilon);
        right = right && fabs((double)y[e->n + r] - mean) <= 1e-4 &&
                fabs((double)y[e->n + rows + r] - inverse) <= 1e-4 * inverse;
        for (size_t i = 0; i < n; i++) {
            const double v = ((double)x[i] - mean) * inverse * (double)how.scale[i] +
                             (how.bias ? (double)how.bias[i] : 0);
            right = right && fabs((double)y[r * n + i] - v) <= 2e-3;
        }
    }
    return right;
}

static void call(void *arg) {
    const ew_case *e = arg;
    switch (e->which) {
    case 2: e->k->exp(e->a, e->c, e->n); break;
    case 3: e->k->sigmoid(e->a, e->c, e->n); break;
    case 0: e->k->silu(e->a, e->c, e->n); break;
    case 1: e->k->hardswish(e->a, e->c, e->n); break;
    case 4: e->k->tanh(e->a, e->c, e->n); break;
    case 5: e->k->exp_shifted(e->a, 0.75f, e->c, e->n); break;
    case 6: e->k->erf(e->a, e->c, e->n); break;
    case 7: e->k->gelu(e->a, e->c, e->n); break;
    case 8: e->k->gelu_tanh(e->a, e->c, e->n); break;
    case 9: e->k->divide(e->a, 3.1f, e->c, e->n); break;
    case 10:
    case 11: normalize(e); break;
    case 12: *(float *)e->c = e->k->greatest(e->a, e->n, 0); break;
    case 27: *(float *)e->c = e->k->greatest(e->a, e->n, QK_LEAST); break;
    case 28: e->k->subtract(e->a, 1.25f, 30.1f, e->c, e->n); break;
    case 13: *(float *)e->c = e->k->sum(e->a, 0, e->n); break;
    case 14: *(float *)e->c = e->k->sum_squares(e->a, 0.3f, e->n); break;
    case 15: *(float *)e->c = e->k->magnitude(e->a, e->n); break;
    case 16: e->k->range(e->a, e->n, e->c, (float *)e->c + 1); break;
    case 25:
    case 26: e->k->softmax(e->a, e->c, e->n / e->rows, e->rows, e->which == 26); break;
    case 21: e->k->bound(e->a, NULL, e->how.lo, e->how.hi, e->c, e->n); break;
    case 22: e->k->bound(e->a, e->b, e->how.lo, e->how.hi, e->c, e->n); break;
    case 23:
    case 24:
        e->k->muladd(e->a, e->b, e->which == 23 ? NULL : e->a, e->how.lo, e->how.hi, e->c, e->n);
        break;
    default: e->k->scale(e->a, &e->how, e->c, e->n);
    }
}

static void make(ew_case *e, ck_state *s, int which, size_t n, float reach) {
    *e = (ew_case){.which = which, .n = n, .rows = 1};
    e->a = ck_floats(s, n, -reach, reach);
    e->b = is_norm(which) || which >= 17 ? ck_floats(s, n, -2, 2) : NULL;
    e->how = (qk_scale){.factor = 0.37f,
                        .lo = ck_between(s, 0, 2) ? -INFINITY : -1.5f,
                        .hi = ck_between(s, 0, 2) ? INFINITY : 6.0f,
                        .scale = e->b,
                        .bias = which > 18 ? e->b : NULL,
                        .rows = which % 2 == 0};
}

/* Adds zeros of both signs, NaNs, and values that overflow or underflow. Not for sums. */
static void add_special(ck_state *s, float *x, size_t n) {
    static const float special[] = {NAN,   INFINITY, -INFINITY, -0.0f,  0.0f,    1e-44f, -1e-39f,
                                    1e30f, 88.7f,    -88.7f,    -87.4f, -103.9f, 88.8f,  -3e38f};
    const size_t kinds = (size_t)ck_between(s, 1, QS_COUNT(special)); /* sometimes all negative */
    for (size_t i = 0; i < n; i++)
        x[i] = ck_between(s, 0, 3) ? -fabsf(x[i]) : special[ck_random(s) % kinds];
}

static double wanted(const ew_case *e, double x) {
    switch (e->which) {
    case 0: return x / (1 + exp(-x));
    case 1: return x * fmin(1, fmax(0, x / 6 + 0.5));
    case 2: return exp(x);
    case 3: return 1 / (1 + exp(-x));
    case 4: return tanh(x);
    case 5: return exp((double)((float)x - 0.75f));
    case 6: return erf(x);
    case 7: return x * erfc(-x * 0.70710678118654752) / 2;
    default: return x / 2 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    }
}

/*
 * The accuracy that elementary.h promises: in units in the last place, for normal numbers at least;
 * for products with x, within 1.5e-7 of x.
 */
static bool is_near(const ew_case *e, size_t i, float y) {
    static const double units[] = {0, 0, 1, 2.5, 1.5, 1, 1.5, 0, 0};
    const double x = (double)((const float *)e->a)[i], v = wanted(e, x);
    int exponent;
    if (units[e->which] == 0)
        return fabs((double)y - v) <= 1.5e-7 * fabs(x);
    if (e->which == 3 && v < 0x1p-126)
        return y >= 0 && (double)y < 0x1p-126;
    frexp(v, &exponent);
    exponent = exponent < -125 ? -125 : exponent;
    return v > 3.4028235e38 ? isinf(y)
                            : fabs((double)y - v) <= ldexp(units[e->which], exponent - 24);
}

static float scaled(const ew_case *e, size_t i) {
    const float *b = e->b, *floats = e->a;
    const float acc = (float)((const int32_t *)e->a)[i];
    const float by_row = acc * b[i], factor = 0.37f * b[i];
    float v = e->which % 2 ? acc * factor : by_row * 0.37f;
    v = e->which > 18 ? v + b[i] : v;
    const float product = floats[i] * b[i];
    if (e->which > 22)
        v = e->which == 23 ? product : product + floats[i];
    else if (e->which > 20)
        v = e->which == 21 ? floats[i] : floats[i] + b[i];
    v = v < e->how.lo ? e->how.lo : v;
    return v > e->how.hi ? e->how.hi : v;
}

/* Whether y is the share of exp(less) in the sum, or its logarithm. */
static bool is_share(const ew_case *e, double less, double sum, float y) {
    const double share = exp(less) / sum;
    if (e->which == 25)
        return fabs((double)y - share) <= (2e-6 - 6e-8 * less) * share + 1e-40;
    return fabs((double)y - (less - log(sum))) <= 1e-5 - 1.5e-7 * less;
}

static bool is_softmax_right(const ew_case *e, const float *y) {
    const size_t n = e->n / e->rows;
    for (size_t r = 0; r < e->rows; r++) {
        const float *a = (const float *)e->a + r * n;
        double top = (double)a[0], sum = 0;
        for (size_t i = 1; i < n; i++) /* gcc 12 cannot compile fmax here for aarch64 */
            top = (double)a[i] > top ? (double)a[i] : top;
        for (size_t i = 0; i < n; i++)
            sum += exp((double)a[i] - top);
        for (size_t i = 0; i < n; i++, y++)
            if (!is_share(e, (double)a[i] - top, sum, *y))
                return false;
    }
    return true;
}

/* Compares with double arithmetic: sums within 1e-5 of their terms. */
static void check_value(ck_state *s, const ew_case *e, const float *y, const char *shape) {
    const float *a = e->a;
    double sum = 0, size = 0, top = (double)a[0], least = top, low = 0, high = 0;
    bool right = true;
    for (size_t i = 0; i < e->n; i++) {
        double d = (double)a[i] - 0.3, term = e->which == 13 ? (double)a[i] : d * d;
        sum += term;
        size += fabs(term);
        top = fmax(top, (double)a[i]);
        least = fmin(least, (double)a[i]);
        low = fmin(low, (double)a[i]);
        high = fmax(high, (double)a[i]);
        if (e->which >= 17 && e->which < 25)
            right = right && y[i] == scaled(e, i);
        if (e->which <= 8)
            right = right && is_near(e, i, y[i]);
        if (e->which == 28)
            right = right && y[i] == (a[i] - 1.25f) - 30.1f;
    }
    if (is_softmax(e->which))
        right = is_softmax_right(e, y);
    if (e->which == 27)
        right = (double)y[0] == -least;
    if (is_norm(e->which))
        right = is_normal(e, y);
    if (e->which == 15)
        right = (double)y[0] == fmax(-low, high);
    if (e->which == 16)
        right = (double)y[0] == low && (double)y[1] == high;
    if (e->which >= 12 && e->which < 15)
        right = e->which == 12 ? (double)y[0] == top : fabs((double)y[0] - sum) <= 1e-5 * size;
    uint8_t *yes = ck_output(s, 1), *is = ck_output(s, 1);
    *yes = 1;
    *is = right;
    ck_same(s, yes, is, 1, shape);
}

/* Signs of NaNs are not defined. */
static void even_nans(float *y, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof(*y); i++)
        y[i] = y[i] != y[i] ? NAN : y[i];
}

/* Kernels whose output may be their first input. */
static bool works_in_place(int which) {
    return which == 9 || is_norm(which) || (which >= 17 && which <= 25) || which == 28;
}

/* Special values for kernels that promise a result; rows of some in which each has a number. */
static bool draw_special(ck_state *s, ew_case *e) {
    const int which = e->which;
    const bool takes =
        which <= 8 || which == 12 || which == 15 || which == 16 || (which > 20 && which != 28);
    float *a = (float *)(uintptr_t)e->a;
    if (!takes || ck_random(s) % 3)
        return false;
    add_special(s, a, e->n);
    for (size_t i = 0, some = ck_random(s) % 2; is_softmax(which) && some && i < e->n; i++)
        a[i] = i % (e->n / e->rows) == 0 || !(a[i] < INFINITY) ? 0.5f : a[i];
    return true;
}

/* Rows that vectors take together, and some beside them. */
static size_t draw_rows(ck_state *s, int which) {
    const bool several = (is_softmax(which) || is_norm(which)) && ck_between(s, 0, 1);
    return several ? (size_t)ck_between(s, 2, 40) : 1;
}

static size_t bytes_of(const ew_case *e) {
    return is_norm(e->which)      ? 4 * (e->n + 2 * e->rows)
           : e->which == 16       ? 8
           : only_reads(e->which) ? 4
                                  : 4 * e->n;
}

static void check(ck_state *s, int which) {
    ew_case e;
    char shape[64];
    const size_t n = (size_t)ck_between(s, 1, 200), rows = draw_rows(s, which);
    make(&e, s, which, n * rows, n % 2 ? 100.0f : 6.0f);
    e.rows = rows;
    const bool mixed = draw_special(s, &e);
    snprintf(shape, sizeof(shape), "%zu rows of %zu%s", rows, n,
             mixed ? " with special values" : "");
    const size_t bytes = bytes_of(&e);
    float *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    float *same = ck_output(s, bytes);
    e.k = s->c->ew;
    e.c = expected;
    call(&e);
    if (!mixed)
        check_value(s, &e, expected, shape);
    e.k = s->t->ew;
    e.c = actual;
    call(&e);
    if (is_softmax(which)) {
        even_nans(expected, bytes);
        even_nans(actual, bytes);
    }
    ck_same(s, expected, actual, bytes, shape);
    if (!works_in_place(which) || which == 11) /* whose bias is the input here */
        return;
    e.a = e.c = memcpy(same, e.a, 4 * e.n);
    call(&e);
    if (is_softmax(which))
        even_nans(same, bytes);
    ck_same(s, expected, same, bytes, shape);
}

static void bench(ck_state *s, int which) {
    ew_case e;
    make(&e, s, which, 50000, 10);
    e.k = s->t->ew;
    e.c = ck_output(s, 4 * (e.n + 2));
    /* Kernels with a scale read an array more. */
    const size_t streams = only_reads(which) ? 1 : e.b && which != 21 ? 3 : 2;
    ck_time(s, "n 50000", 0, 4.0 * (double)(e.n * streams), call, &e);
}

#define CASE(name, which)                                                                          \
    static void check_##name(ck_state *s) {                                                        \
        check(s, which);                                                                           \
    }                                                                                              \
    static void bench_##name(ck_state *s) {                                                        \
        bench(s, which);                                                                           \
    }

CASE(exp, 2)
CASE(sigmoid, 3)
CASE(silu, 0)
CASE(hardswish, 1)
CASE(tanh, 4)
CASE(shifted, 5)
CASE(erf, 6)
CASE(gelu, 7)
CASE(gelu_tanh, 8)
CASE(divide, 9)
CASE(rms, 10)
CASE(normalize, 11)
CASE(greatest, 12)
CASE(sum, 13)
CASE(squares, 14)
CASE(magnitude, 15)
CASE(range, 16)
CASE(sums, 17)
CASE(sums_rows, 18)
CASE(sums_bias, 19)
CASE(sums_both, 20)
CASE(bounded, 21)
CASE(bounded_sum, 22)
CASE(product, 23)
CASE(product_sum, 24)
CASE(softmax, 25)
CASE(log_softmax, 26)
CASE(least, 27)
CASE(subtract, 28)

/* ---- kernels of observers ---- */

/* Values, some of them zeros of either sign, for bins of width 1 / inverse. */
static float *make_read(ck_state *s, size_t n, float *inverse) {
    const float reach = ldexpf(1.0f, ck_between(s, -20, 11));
    float *x = ck_floats(s, n, ck_between(s, 0, 1) ? -reach : 0, reach);
    *inverse = (float)QS_SIDE / (2 * reach);
    for (size_t i = 0; i < n; i++)
        x[i] = ck_between(s, 0, 2) ? x[i] : ck_between(s, 0, 1) ? -0.0f : 0.0f;
    return x;
}

/* Bins that wait to be counted while a kernel does something else. */
typedef struct to_count {
    uint16_t *at, *count;
    size_t all;
    qs_waiting waiting;
} to_count;

static to_count make_waiting(ck_state *s) {
    to_count w = {.all = (size_t)ck_between(s, 0, 99)};
    w.at = ck_output(s, (w.all + 1) * sizeof(*w.at));
    w.count = ck_output(s, QS_TABLE * sizeof(*w.count));
    memset(w.count, 0, QS_TABLE * sizeof(*w.count));
    for (size_t i = 0; i < w.all; i++)
        w.at[i] = (uint16_t)ck_between(s, 0, QS_TABLE - 1);
    w.waiting = (qs_waiting){w.at, w.all, w.count};
    return w;
}

/* Those that no longer wait have been counted, once each. */
static void check_waiting(ck_state *s, const to_count *w) {
    const size_t done = w->all - w->waiting.left, bytes = QS_TABLE * sizeof(int32_t);
    int32_t *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    uint8_t *yes = ck_output(s, 1), *is = ck_output(s, 1);
    memset(expected, 0, bytes);
    for (size_t i = 0; i < done; i++)
        expected[w->at[i]]++;
    for (size_t i = 0; i < QS_TABLE; i++)
        actual[i] = w->count[i];
    ck_same(s, expected, actual, bytes, "counts of what waited");
    *yes = 1;
    *is = w->waiting.left <= w->all && w->waiting.at == w->at + done;
    ck_same(s, yes, is, 1, "what still waits");
}

static void check_extremes(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 1, 200);
    float unused, *x = make_read(s, n, &unused);
    float *expected = ck_output(s, 8), *actual = ck_output(s, 8);
    uint8_t *yes = ck_output(s, 1), *is = ck_output(s, 1);
    to_count w = make_waiting(s);
    *is = s->t->ew->reads.extremes(x, n, actual, actual + 1, &w.waiting);
    *yes = 1;
    expected[0] = expected[1] = x[0] + 0.0f;
    for (size_t i = 0; i < n; i++) {
        expected[0] = x[i] < expected[0] ? x[i] + 0.0f : expected[0];
        expected[1] = x[i] > expected[1] ? x[i] + 0.0f : expected[1];
    }
    ck_same(s, expected, actual, 8, "extremes");
    ck_same(s, yes, is, 1, "finite");
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    x[ck_random(s) % n] = bad[ck_random(s) % QS_COUNT(bad)];
    *yes = 0;
    *is = s->t->ew->reads.extremes(x, n, actual, actual + 1, &w.waiting);
    ck_same(s, yes, is, 1, "not finite");
    check_waiting(s, &w);
}

/* Compares counts of the bins found of n values; zeros and others of bin 0 may be left out. */
static void compare_bins(ck_state *s, const float *x, size_t n, float inverse, const uint16_t *at,
                         size_t count) {
    const size_t bytes = 2 * QS_SIDE * sizeof(int32_t);
    int32_t *expected = ck_output(s, bytes), *actual = ck_output(s, bytes);
    memset(expected, 0, bytes);
    memset(actual, 0, bytes);
    for (size_t i = 0; i < n; i++)
        expected[QS_SIDE + (int32_t)floor((double)x[i] * (double)inverse)]++;
    actual[QS_SIDE] = (int32_t)(n - count);
    for (size_t i = 0; i < count; i++)
        actual[at[i] < 2 * QS_SIDE ? at[i] : QS_SIDE]++;
    ck_same(s, expected, actual, bytes, "bins");
    ck_same(s, at, at, (n + QS_ROOM) * sizeof(*at), "room");
}

static void check_bins(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 1, 200);
    float inverse, *x = make_read(s, n, &inverse);
    uint16_t *at = ck_output(s, (n + QS_ROOM) * sizeof(*at));
    to_count w = make_waiting(s);
    const size_t count = s->t->ew->reads.bins(x, n, inverse, at, &w.waiting);
    compare_bins(s, x, n, inverse, at, count);
    check_waiting(s, &w);
}

static void check_rows(ck_state *s) {
    const size_t rows = (size_t)ck_between(s, 1, 9), channels = (size_t)ck_between(s, 1, 200);
    const size_t n = rows * channels, all = 2 * channels + 2;
    char shape[48];
    float inverse, *x = make_read(s, n, &inverse);
    uint16_t *at = ck_output(s, (n + QS_ROOM) * sizeof(*at));
    double *expected = ck_output(s, channels * 8), *actual = ck_output(s, channels * 8);
    float *ends = ck_output(s, all * 4), *found = ck_output(s, all * 4);
    to_count w = make_waiting(s);
    snprintf(shape, sizeof(shape), "%zu rows of %zu", rows, channels);
    for (size_t c = 0; c < channels; c++) {
        expected[c] = actual[c] = (double)ck_real(s, -1, 1);
        ends[c] = found[c] = c % 3 ? INFINITY : -1e30f;
        ends[channels + c] = found[channels + c] = c % 3 ? -INFINITY : 1e30f;
    }
    ends[2 * channels] = ends[2 * channels + 1] = x[0];
    for (size_t i = 0; i < n; i++) {
        const size_t c = i % channels, low_at[2] = {c, 2 * channels};
        expected[c] += (double)x[i];
        for (int k = 0; k < 2; k++) {
            float *least = &ends[low_at[k]], *most = &ends[k ? all - 1 : channels + c];
            *least = x[i] < *least ? x[i] : *least;
            *most = x[i] > *most ? x[i] : *most;
        }
    }
    uint8_t *yes = ck_output(s, 2), *is = ck_output(s, 2);
    qs_row_read r = {x, rows, channels, actual, found, 0, 0, inverse, NULL, 0};
    r.at = ck_between(s, 0, 3) ? at : NULL;
    const bool whole = ck_between(s, 0, 2) == 0; /* values of no channels */
    if (whole)
        r.sum = NULL;
    is[0] = s->t->ew->reads.rows(&r, &w.waiting);
    found[2 * channels] = r.min;
    found[2 * channels + 1] = r.max;
    if (r.found != QS_NOT_FOUND)
        compare_bins(s, x, n, inverse, r.at, r.found);
    for (size_t c = 0; c < 2 * channels && whole; c++)
        ends[c] = found[c];            /* are not wanted */
    for (size_t i = 0; i < all; i++) { /* 0 and -0 are the same here */
        ends[i] += 0.0f;
        found[i] += 0.0f;
    }
    if (!whole)
        ck_same(s, expected, actual, channels * 8, shape);
    ck_same(s, ends, found, all * 4, shape);
    x[ck_random(s) % n] = ck_between(s, 0, 1) ? NAN : -INFINITY;
    is[1] = s->t->ew->reads.rows(&r, &w.waiting);
    yes[0] = 1;
    yes[1] = 0;
    ck_same(s, yes, is, 2, "finite");
    check_waiting(s, &w);
}

static void check_add_table(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 0, 200), bytes = n * sizeof(uint16_t);
    uint16_t *from = ck_input(s, bytes + 2), *expected = ck_output(s, bytes + 2);
    uint16_t *actual = ck_output(s, bytes + 2), most = 0;
    const int32_t full = ck_between(s, 0, 3) ? 0 : 9; /* some sums may not fit, then */
    for (size_t i = 0; i < n; i++) {
        from[i] = (uint16_t)ck_between(s, 0, UINT16_MAX - full);
        actual[i] =
            (uint16_t)ck_between(s, 0, UINT16_MAX - from[i] + (full && from[i] > full ? full : 0));
        const uint32_t sum = (uint32_t)actual[i] + from[i];
        expected[i] = (uint16_t)sum;
        most = sum > UINT16_MAX ? UINT16_MAX : sum > most ? (uint16_t)sum : most;
    }
    expected[n] = most;
    actual[n] = 0;
    const uint16_t found = s->t->ew->reads.add_table(actual, from, n);
    actual[n] = found;
    ck_same(s, expected, actual, bytes + 2, "sums of counters, and the greatest");
}

/*
 * Numbers of 32 bits at exponents that grow or not: two doubles can hold the sum of some. All that
 * are said to be added are, nothing else changes, and what the C kernel adds at a time is the same.
 */
static void check_add_sums(ck_state *s) {
    const size_t n = (size_t)ck_between(s, 0, 40), bytes = n * sizeof(double);
    double *x = ck_input(s, bytes), *sum[2] = {ck_output(s, 2 * bytes), ck_output(s, 2 * bytes)};
    uint64_t *expected = ck_output(s, 8), *actual = ck_output(s, 8);
    const int reach = ck_between(s, 0, 1) ? 200 : 40;
    memset(sum[0], 0, 2 * bytes);
    memset(sum[1], 0, 2 * bytes);
    for (int times = 0; times < 3; times++) {
        for (size_t i = 0; i < n; i++)
            x[i] = ldexp((double)ck_between(s, -1000000000, 1000000000),
                         ck_between(s, 0, 30) ? 0 : ck_between(s, -reach / 2, reach / 2));
        *expected = qk_ew_c.reads.add_sums(sum[0], sum[0] + n, x, n);
        *actual = s->t->ew->reads.add_sums(sum[1], sum[1] + n, x, n);
        ck_same(s, expected, actual, 8, "number of sums");
        ck_same(s, sum[0], sum[1], 2 * bytes, "sums");
    }
}

const ck_case ck_cases_ew[] = {
    {"ew exp", check_exp, bench_exp},
    {"ew sigmoid", check_sigmoid, bench_sigmoid},
    {"ew silu", check_silu, bench_silu},
    {"ew hardswish", check_hardswish, bench_hardswish},
    {"ew tanh", check_tanh, bench_tanh},
    {"ew exp shifted", check_shifted, bench_shifted},
    {"ew erf", check_erf, bench_erf},
    {"ew gelu", check_gelu, bench_gelu},
    {"ew gelu tanh", check_gelu_tanh, bench_gelu_tanh},
    {"ew divide", check_divide, bench_divide},
    {"ew normalize by squares", check_rms, bench_rms},
    {"ew normalize", check_normalize, bench_normalize},
    {"ew greatest", check_greatest, bench_greatest},
    {"ew sum", check_sum, bench_sum},
    {"ew sum of squares", check_squares, bench_squares},
    {"ew magnitude", check_magnitude, bench_magnitude},
    {"ew range", check_range, bench_range},
    {"ew scale sums", check_sums, bench_sums},
    {"ew scale sums rows", check_sums_rows, bench_sums_rows},
    {"ew scale sums bias", check_sums_bias, bench_sums_bias},
    {"ew scale sums rows bias", check_sums_both, bench_sums_both},
    {"ew clamp", check_bounded, bench_bounded},
    {"ew add", check_bounded_sum, bench_bounded_sum},
    {"ew mul", check_product, bench_product},
    {"ew mul add", check_product_sum, bench_product_sum},
    {"ew softmax", check_softmax, bench_softmax},
    {"ew log softmax", check_log_softmax, bench_log_softmax},
    {"ew greatest of negated", check_least, bench_least},
    {"ew subtract", check_subtract, bench_subtract},
    {"ew read extremes", check_extremes, NULL},
    {"ew read bins", check_bins, NULL},
    {"ew read rows", check_rows, NULL},
    {"ew add table", check_add_table, NULL},
    {"ew add sums", check_add_sums, NULL},
};
const size_t ck_cases_ew_count = QS_COUNT(ck_cases_ew);
