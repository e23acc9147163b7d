/* SPDX-License-Identifier: MIT */
/*
 * Finds ranges by search over the histogram, in double with a fixed order of operations and the
 * library's logarithm, so that every machine finds the same range.
 */
#include "quant/observer.h"

#include <math.h>

/* Rounds half to even for |t| < 2^51; rint is a call where SSE4.1 is not the baseline. */
static inline double round_even(double t) {
    return (t + 6755399441055744.0) - 6755399441055744.0;
}

/* ---- mean squared error ---- */

typedef struct bins {
    const uint64_t *count; /* count[0] is the bin at `first` */
    int32_t first, size;
    double width;
} bins;

static bins view(const qsim_observer *o) {
    qs_observer_settle(o);
    int32_t below = qs_observer_below(o);
    return (bins){.count = o->bins + QS_SIDE - below,
                  .first = -below,
                  .size = below + qs_observer_above(o),
                  .width = ldexp(1.0, o->exponent)};
}

/*
 * Integral of (t - nearest level)^2 from 0 to t, for levels at the integers from kmin to kmax:
 * 1/12 for each cell passed, then a cubic, which also describes what lies beyond the last level.
 */
static inline double noise_integral(double t, double kmin, double kmax) {
    double k = round_even(t);
    k = k < kmin ? kmin : k;
    k = k > kmax ? kmax : k;
    double r = t - k;
    return k * (1.0 / 12) + r * r * r * (1.0 / 3);
}

/* Sum of squared errors if values are spread evenly within each bin. */
static double squared_error(const bins *b, float low, float high, int32_t dtype, int32_t flags) {
    float scale;
    int32_t zp, qmin, qmax;
    if (qsim_qparams_choose(low, high, dtype, flags, &scale, &zp) ||
        qsim_dtype_limits(dtype, flags, &qmin, &qmax))
        return INFINITY;
    double step = b->width / (double)scale, kmin = (double)qmin - zp, kmax = (double)qmax - zp;
    double before = noise_integral(b->first * step, kmin, kmax), sum = 0;
    for (int32_t i = 0; i < b->size; i++) {
        double after = noise_integral((b->first + i + 1) * step, kmin, kmax);
        sum += (double)b->count[i] * (after - before);
        before = after;
    }
    return sum * (double)scale * (double)scale / step;
}

typedef struct best {
    double error;
    float low, high;
} best;

static void try_mse(const bins *b, double low, double high, int32_t dtype, int32_t flags,
                    best *found) {
    double error = squared_error(b, (float)low, (float)high, dtype, flags);
    if (error < found->error)
        *found = (best){error, (float)low, (float)high};
}

void qs_search_mse(const qsim_observer *o, int32_t dtype, int32_t flags, float *low, float *high) {
    /* 2^(-i/8) and 2^(i/32) - 1: written out, since libm's powers differ between machines. */
    static const double eighth[8] = {
        1.0,
        0.91700404320467123,
        0.84089641525371454,
        0.77110541270397041,
        0.70710678118654752,
        0.64841977732550483,
        0.59460355750136054,
        0.54525386633262883,
    };
    static const double fine[8] = {0.917, 0.938, 0.958, 0.979, 1.022, 1.044, 1.067, 1.09};
    bins b = view(o);
    double min = o->min < 0 ? (double)o->min : 0, max = o->max > 0 ? (double)o->max : 0;
    double magnitude = max > -min ? max : -min;
    best found = {INFINITY, (float)min, (float)max};
    bool symmetric = (flags & QSIM_RANGE_SYMMETRIC) != 0;
    for (int32_t i = 0; i < 64; i++) {
        double f = ldexp(eighth[i % 8], -(i / 8)), a = f * magnitude;
        if (symmetric)
            try_mse(&b, -a > min ? -a : min, a < max ? a : max, dtype, flags, &found);
        else
            try_mse(&b, f * min, f * max, dtype, flags, &found);
    }
    double lo = (double)found.low, hi = (double)found.high;
    for (size_t i = 0; i < QS_COUNT(fine) && max > 0; i++)
        try_mse(&b, lo, hi * fine[i] < max ? hi * fine[i] : max, dtype, flags, &found);
    hi = (double)found.high;
    for (size_t i = 0; i < QS_COUNT(fine) && min < 0; i++)
        try_mse(&b, lo * fine[i] > min ? lo * fine[i] : min, hi, dtype, flags, &found);
    *low = found.low;
    *high = found.high;
}

/* ---- entropy ---- */

/*
 * Narrower ranges are not tried: with fewer bins per level the divergence measures the coarseness
 * of the histogram, and is small for that reason alone.
 */
#define BINS_PER_LEVEL 4

/* 2 artanh((m - 1) / (m + 1)) of the mantissa m, by its series. */
double qs_logarithm(double x) {
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double t = (m - 1) / (m + 1), t2 = t * t, sum = 0;
    for (int32_t k = 21; k >= 1; k -= 2)
        sum = sum * t2 + 1.0 / k;
    return 2 * t * sum + exponent * 0.69314718055994531;
}

static double x_log_x(double x) {
    return x > 0 ? x * qs_logarithm(x) : 0;
}

/*
 * Count of bin i. Zero is represented exactly with any range, and after a ReLU its count exceeds
 * all others: its bin has the count of its neighbours.
 */
static double mass(const bins *b, int32_t i) {
    if (b->first + i != 0)
        return (double)b->count[i];
    double left = i > 0 ? (double)b->count[i - 1] : -1;
    double right = i + 1 < b->size ? (double)b->count[i + 1] : -1;
    double around = left < 0 ? right : right < 0 ? left : (left + right) / 2;
    return around < 0 || (double)b->count[i] < around ? (double)b->count[i] : around;
}

typedef struct histogram {
    bins b;
    double total;
    double entropy[2 * QS_SIDE + 1]; /* sums of mass * log(mass) over the bins before */
    double before[2 * QS_SIDE + 1];  /* sums of mass */
} histogram;

/*
 * Kullback-Leibler divergence of the histogram, clipped to bins [from, to), from what `levels`
 * levels can express of it. Clipped values are counted in the bins at the edges; an edge bin that
 * was empty before counts as used.
 */
static double divergence(const histogram *h, int32_t from, int32_t to, int32_t levels) {
    double left = h->before[from], right = h->total - h->before[to];
    double inside = h->before[to] - h->before[from];
    double first = mass(&h->b, from), last = mass(&h->b, to - 1);
    if (!(inside > 0))
        return INFINITY;
    double p_log_p = h->entropy[to] - h->entropy[from] - x_log_x(first) + x_log_x(first + left) -
                     x_log_x(last) + x_log_x(last + right);
    double p_log_q = 0;
    int32_t size = to - from, i = from;
    for (int32_t level = 0; level < levels; level++) {
        int32_t end = from + (int32_t)((int64_t)(level + 1) * size / levels), used = 0;
        double sum = 0, extra = (level == 0 ? left : 0) + (level == levels - 1 ? right : 0);
        for (; i < end; i++) {
            double n = mass(&h->b, i);
            double p = n + (i == from ? left : 0) + (i == to - 1 ? right : 0);
            used += p > 0;
            sum += n;
        }
        if (sum + extra > 0)
            p_log_q += (sum + extra) * qs_logarithm(sum > 0 ? sum / used : 1.0);
    }
    return (p_log_p - p_log_q) / h->total - qs_logarithm(h->total) + qs_logarithm(inside);
}

void qs_search_entropy(const qsim_observer *o, int32_t dtype, int32_t flags, float *low,
                       float *high) {
    int32_t qmin, qmax;
    histogram h;
    h.b = view(o);
    h.before[0] = h.entropy[0] = 0;
    for (int32_t i = 0; i < h.b.size; i++) {
        double n = mass(&h.b, i);
        h.before[i + 1] = h.before[i] + n;
        h.entropy[i + 1] = h.entropy[i] + x_log_x(n);
    }
    h.total = h.before[h.b.size];
    if (qsim_dtype_limits(dtype, flags, &qmin, &qmax) || !(h.total > 0))
        return;
    int32_t below = -h.b.first, above = h.b.size - below;
    /*
     * A range on one side of zero is judged with half of the levels, as if it had a mirror image.
     */
    int32_t levels = (qmax - qmin + 1) / (below > 0 && above > 0 ? 1 : 2);
    int32_t larger = above > below ? above : below;
    bool symmetric = (flags & QSIM_RANGE_SYMMETRIC) != 0;
    double least = INFINITY, w = h.b.width;
    for (int32_t i = 0; i < 64; i++) {
        int32_t l = below - (int32_t)((int64_t)below * i / 64),
                r = above - (int32_t)((int64_t)above * i / 64);
        if (symmetric) {
            int32_t a = larger - (int32_t)((int64_t)larger * i / 64);
            l = a < below ? a : below;
            r = a < above ? a : above;
        }
        if (l + r < BINS_PER_LEVEL * levels)
            break;
        double d = divergence(&h, below - l, below + r, levels);
        if (d < least) {
            least = d;
            *low = -l * w > (double)o->min ? (float)(-l * w) : o->min;
            *high = r * w < (double)o->max ? (float)(r * w) : o->max;
        }
    }
}

/* ---- the histogram itself ---- */

int qsim_observer_histogram(const qsim_observer *o, double *low, double *width, uint64_t *counts,
                            size_t capacity, size_t *count) {
    if (!o || !low || !width || !count || (capacity > 0 && !counts))
        return QSIM_E_ARGUMENT;
    qs_observer_settle(o);
    const int32_t below = qs_observer_below(o), above = qs_observer_above(o);
    *count = (size_t)below + (size_t)above;
    *width = ldexp(1, o->exponent);
    *low = -(double)below * *width;
    for (size_t i = 0; i < *count && i < capacity; i++)
        counts[i] = o->bins ? o->bins[(size_t)QS_SIDE - (size_t)below + i] : o->count;
    return QSIM_OK;
}
