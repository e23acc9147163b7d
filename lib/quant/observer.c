/* SPDX-License-Identifier: MIT */
#include "quant/observer.h"

#include <assert.h>
#include <math.h>

#include "base/ctx.h"
#include "quant/observer_loops.h"

int32_t qs_histogram_exponent(float min, float max, int32_t bits) {
    float magnitude = max > -min ? max : -min;
    int exponent;
    uint32_t word;
    memcpy(&word, &magnitude, sizeof(word));
    if (!(magnitude > 0))
        return QS_MIN_EXPONENT;
    if (word >> 23 > 0) /* a normal number, the common case */
        return (int32_t)(word >> 23) - 126 - bits;
    (void)frexpf(magnitude, &exponent); /* magnitude < 2^exponent = 2^bits w */
    return exponent - bits;
}

int32_t qs_histogram_index(float x, int32_t exponent) {
    return (int32_t)floor((double)x * ldexp(1.0, -exponent));
}

int qs_observer_create(qsim_ctx *ctx, int32_t bits, qsim_observer **out, qsim_error *error) {
    *out = NULL;
    int code = qs_ctx_hold_bare(ctx, &ctx, error);
    if (code)
        return code;
    qsim_observer *o = qs_calloc(ctx, 1, sizeof(*o));
    if (!o) {
        qs_ctx_drop(ctx);
        return qs_fail(error, QSIM_E_NOMEM, "observer: out of memory");
    }
    o->ctx = ctx;
    o->exponent = QS_MIN_EXPONENT;
    o->bits = bits;
    *out = o;
    return QSIM_OK;
}

int qs_observer_bits(int32_t bins, int32_t *bits, qsim_error *error) {
    const int32_t n = bins ? bins : QS_SIDE;
    if (n < 1 << QS_LEAST_BITS || n > QS_SIDE || (n & (n - 1)) != 0)
        return qs_fail(error, QSIM_E_ARGUMENT,
                       "histogram: %d bins: a power of two from %d to %d is wanted", bins,
                       1 << QS_LEAST_BITS, QS_SIDE);
    for (*bits = 0; n >> *bits > 1; ++*bits)
        continue;
    return QSIM_OK;
}

int qsim_observer_create(qsim_ctx *ctx, const qsim_observer_options *options, qsim_observer **out,
                         qsim_error *error) {
    qsim_observer_options own;
    int32_t bits = 0;
    qs_error_clear(error);
    if (!out)
        return qs_fail(error, QSIM_E_ARGUMENT, "observer: no place for the result");
    *out = NULL;
    int code = QS_OPTIONS(own, options, error);
    if (!code && own.reserved)
        code = qs_fail(error, QSIM_E_VERSION, "observer: a reserved option is set");
    if (!code)
        code = qs_observer_bits(own.bins, &bits, error);
    return code ? code : qs_observer_create(ctx, bits, out, error);
}

void qs_observer_reset(qsim_observer *o) {
    const int32_t below = qs_observer_below(o), above = qs_observer_above(o);
    if (o->bins && o->lists)
        memset(o->bins, 0, (o->listed + 16) * sizeof(uint16_t));
    else if (o->bins)
        memset(o->bins + QS_SIDE - below, 0, (size_t)(below + above) * sizeof(*o->bins));
    o->lists = false;
    o->listed = 0;
    o->count = 0;
    o->min = o->max = 0;
    o->exponent = QS_MIN_EXPONENT;
}

void qsim_observer_free(qsim_observer *o) {
    if (!o)
        return;
    qsim_ctx *ctx = o->ctx;
    qs_free(ctx, o->bins);
    qs_free(ctx, o);
    qs_ctx_drop(ctx);
}

/* The index of bin `at` of a table after bins are widened by 2^shift; zeros have that of bin 0. */
static size_t widened(size_t at, int32_t shift) {
    return at < 2 * QS_SIDE ? (size_t)(QS_SIDE + (((int32_t)at - QS_SIDE) >> shift)) : QS_SIDE;
}

/* Widens the bins until the exponent is `exponent`. */
static void widen(qsim_observer *o, int32_t exponent) {
    int32_t shift = exponent - o->exponent;
    o->exponent = exponent;
    if (shift <= 0 || o->count == 0 || !o->bins)
        return;
    if (shift > 30)
        shift = 30; /* all values fall into bins 0 and -1 */
    uint16_t *list = (uint16_t *)o->bins;
    for (size_t i = 0; i < o->listed; i++)
        list[i] = (uint16_t)widened(list[i], shift);
    if (o->lists)
        return;
    /* Bins move towards zero, so each is read before it is written. */
    for (int32_t i = 0; i < QS_SIDE; i++) {
        uint64_t n = o->bins[QS_SIDE + i];
        o->bins[QS_SIDE + i] = 0;
        o->bins[QS_SIDE + (i >> shift)] += n;
    }
    for (int32_t i = 1; i <= QS_SIDE; i++) {
        uint64_t n = o->bins[QS_SIDE - i];
        o->bins[QS_SIDE - i] = 0;
        o->bins[QS_SIDE - 1 - ((i - 1) >> shift)] += n;
    }
}

bool qs_all_finite(const float *x, size_t n) {
    float min, max;
    return n == 0 || qs_extremes(x, n, &min, &max);
}

/* Allocates the bins, for the first value other than zero. */
static bool make_bins(qsim_observer *o) {
    o->bins = qs_calloc(o->ctx, 2 * QS_SIDE, sizeof(*o->bins));
    if (o->bins && !o->lists)
        o->bins[QS_SIDE] = o->count;
    return o->bins != NULL;
}

/* Adds new extremes and widens the bins for them. */
static int include(qsim_observer *o, float min, float max) {
    if (!o->bins && (min < 0 || max > 0) && !make_bins(o))
        return QSIM_E_NOMEM;
    if (o->count > 0) {
        min = o->min < min ? o->min : min;
        max = o->max > max ? o->max : max;
    }
    const int32_t exponent = qs_histogram_exponent(min, max, o->bits);
    if (exponent > o->exponent)
        widen(o, exponent);
    o->min = min;
    o->max = max;
    return QSIM_OK;
}

static void count_values(qsim_observer *o, const float *values, size_t count) {
    double inverse = ldexp(1.0, -o->exponent); /* exact, and so is every product */
    for (size_t i = 0; i < count; i++) {
        double v = (double)values[i] * inverse;
        int32_t index = (int32_t)v;
        index -= v < (double)index;
        o->bins[QS_SIDE + index]++;
    }
}

int qsim_observer_feed(qsim_observer *o, const float *values, size_t count) {
    float min, max;
    if (!o || (count > 0 && !values))
        return QSIM_E_ARGUMENT;
    if (count == 0)
        return QSIM_OK;
    if (!qs_extremes(values, count, &min, &max))
        return QSIM_E_VALUE;
    if (o->count > UINT64_MAX - count)
        return QSIM_E_LIMIT;
    int code = include(o, min, max);
    if (code)
        return code;
    if (o->bins)
        count_values(o, values, count);
    o->count += count;
    return QSIM_OK;
}

/* ---- one read ---- */

/*
 * x / w is exact in float too, unless the bins are wider than 1, when the least values would
 * underflow, or narrower than a float can invert.
 */
static size_t find_bins(const qs_reads *reads, const float *x, size_t n, int32_t exponent,
                        uint16_t *at, qs_waiting *w) {
    const uint32_t word = (uint32_t)(127 - exponent) << 23; /* of 2^-exponent */
    float inverse;
    if (exponent <= 0 && exponent >= -126) {
        memcpy(&inverse, &word, sizeof(inverse));
        return reads->bins(x, n, inverse, at, w);
    }
    for (size_t i = 0; i < n; i++)
        at[i] = (uint16_t)(QS_SIDE + qs_histogram_index(x[i], exponent));
    return n;
}

/* Counts all waiting bins. */
static void count_waiting(qs_tally *t) {
    qs_waiting w = t->waiting;
    qs_count_some(&w, SIZE_MAX);
    for (; w.left > 0; w.left--)
        t->count[w.left & 1][*w.at++]++;
    t->waiting = w;
}

void qs_observer_flush(qsim_observer *o, qs_tally *t) {
    const int32_t first = QS_SIDE - qs_observer_below(o), end = QS_SIDE + qs_observer_above(o);
    if (t->most == 0)
        return;
    count_waiting(t);
    _Static_assert(QS_TALLIES == 2, "both are summed");
    for (int32_t i = first; i < end; i++)
        o->bins[i] += (uint32_t)t->count[0][i] + t->count[1][i];
    for (size_t k = 0; k < QS_TALLIES; k++) {
        uint16_t *zeros = t->count[k] + 2 * QS_SIDE;
        for (int32_t i = 0; i < QS_ZEROS; i++)
            o->bins[QS_SIDE] += zeros[i];
        memset(zeros, 0, QS_ZEROS * sizeof(*zeros));
        memset(t->count[k] + first, 0, (size_t)(end - first) * sizeof(**t->count));
    }
    t->most = 0;
}

/* Finds the bins of a part, and counts those of the previous part meanwhile. */
static void count_part(qsim_observer *o, qs_tally *t, const qs_reads *reads, const float *x,
                       size_t n) {
    if (t->most > UINT16_MAX - QS_PART)
        qs_observer_flush(o, t);
    uint16_t *at = t->at[t->turn ^= 1];
    t->waiting.count = t->count[0];
    const size_t count = find_bins(reads, x, n, o->exponent, at, &t->waiting);
    count_waiting(t);
    o->bins[QS_SIDE] += n - count;
    t->waiting.at = at;
    t->waiting.left = count;
    t->most += (uint32_t)(count / QS_TALLIES + 1);
}

static void list_part(qsim_observer *o, const qs_reads *reads, const float *x, size_t n) {
    qs_waiting none = {NULL, 0, NULL};
    uint16_t *list = (uint16_t *)o->bins + o->listed;
    assert(o->listed + n <= QS_LISTED);
    o->listed += find_bins(reads, x, n, o->exponent, list, &none);
}

int qs_observer_add(qsim_observer *o, qs_tally *t, const qs_reads *reads, const float *values,
                    size_t count, float min, float max) {
    if (o->count > UINT64_MAX - count)
        return QSIM_E_LIMIT;
    const float low = o->count > 0 && o->min < min ? o->min : min;
    const float high = o->count > 0 && o->max > max ? o->max : max;
    if (qs_histogram_exponent(low, high, o->bits) > o->exponent)
        qs_observer_flush(o, t);
    int code = include(o, min, max);
    o->count += code ? 0 : count;
    for (size_t i = 0; !code && o->bins && i < count; i += QS_PART) {
        const size_t n = count - i < QS_PART ? count - i : QS_PART;
        if (o->lists)
            list_part(o, reads, values + i, n);
        else
            count_part(o, t, reads, values + i, n);
    }
    return code;
}

/* ---- sums ---- */

#define ABREAST 4 /* sums at a time, since an addition waits for the one before it */

/* sum[i * step] gets the values of run i, of n values each, one after the other. */
static void add_runs(const float *x, size_t runs, size_t n, qs_exact *sum, size_t step) {
    for (size_t i = 0, some; i < runs; i += some) {
        const float *from = x + i * n;
        double a = 0, b = 0, c = 0, d = 0;
        some = runs - i < ABREAST ? 1 : ABREAST;
        for (size_t j = 0; some == 1 && j < n; j++)
            a += (double)from[j];
        for (size_t j = 0; some > 1 && j < n; j++) {
            a += (double)from[j];
            b += (double)from[n + j];
            c += (double)from[2 * n + j];
            d += (double)from[3 * n + j];
        }
        const double part[ABREAST] = {a, b, c, d};
        for (size_t k = 0; k < some; k++)
            qs_exact_add(&sum[(i + k) * step], part[k]);
    }
}

void qs_read_planes(const float *x, size_t planes, size_t n, qs_exact *sum) {
    const size_t whole = n / QS_READ_BLOCK, rest = n % QS_READ_BLOCK;
    if (whole == 0)
        add_runs(x, planes, n, sum, 1);
    for (size_t c = 0; whole > 0 && c < planes; c++) {
        add_runs(x + c * n, whole, QS_READ_BLOCK, &sum[c], 0);
        add_runs(x + c * n + whole * QS_READ_BLOCK, rest > 0, rest, &sum[c], 0);
    }
}

int qs_observer_reserve(qsim_observer *into, const qsim_observer *from) {
    if (into->bins && from->bins && into->bits != from->bits)
        return QSIM_E_MISMATCH;
    if (into->count > UINT64_MAX - from->count)
        return QSIM_E_LIMIT;
    if (into->bins || (from->min >= 0 && from->max <= 0))
        return QSIM_OK;
    into->bits = from->bits;
    return make_bins(into) ? QSIM_OK : QSIM_E_NOMEM;
}

/* Counts the bins in the list of `from`. */
static void add_list(qsim_observer *into, const qsim_observer *from, int32_t shift) {
    const uint16_t *restrict list = (const uint16_t *)from->bins;
    uint64_t *restrict bins = into->bins;
    const size_t n = from->listed;
    bins[QS_SIDE] += from->count - n;
    for (size_t i = 0; shift == 0 && i < n; i++)
        bins[list[i] < 2 * QS_SIDE ? list[i] : QS_SIDE]++;
    for (size_t i = 0; shift > 0 && i < n; i++)
        bins[widened(list[i], shift)]++;
}

static void add_bins(uint64_t *restrict into, const uint64_t *restrict from, size_t n) {
    for (size_t i = 0; i < n; i++)
        into[i] += from[i];
}

int qsim_observer_merge(qsim_observer *into, const qsim_observer *from) {
    if (!into || !from)
        return QSIM_E_ARGUMENT;
    int code = qs_observer_reserve(into, from);
    if (code || from->count == 0)
        return code;
    code = include(into, from->min, from->max);
    if (code)
        return code;
    int32_t shift = into->exponent - from->exponent;
    shift = shift > 30 ? 30 : shift;
    if (into->bins && !from->bins)
        into->bins[QS_SIDE] += from->count;
    const int32_t below = qs_observer_below(from), above = qs_observer_above(from);
    into->count += from->count;
    if (from->lists && from->bins) {
        add_list(into, from, shift);
        return QSIM_OK;
    }
    if (shift == 0 && into->bins && from->bins)
        add_bins(into->bins + QS_SIDE - below, from->bins + QS_SIDE - below,
                 (size_t)(below + above));
    for (int32_t i = -below; shift != 0 && into->bins && from->bins && i < above; i++) {
        int32_t wide = i >= 0 ? i >> shift : -1 - ((-1 - i) >> shift);
        into->bins[QS_SIDE + wide] += from->bins[QS_SIDE + i];
    }
    return QSIM_OK;
}

uint64_t qsim_observer_count(const qsim_observer *o) {
    return o ? o->count : 0;
}

float qsim_observer_min(const qsim_observer *o) {
    return o ? o->min : 0;
}

float qsim_observer_max(const qsim_observer *o) {
    return o ? o->max : 0;
}

/*
 * Cuts off (100 - percentile) / 2 percent of the values at either end, up to the outer edge of the
 * bin in which that many are reached.
 */
static void percentile_range(const qsim_observer *o, double percentile, float *low, float *high) {
    double cut = (double)o->count * (100.0 - percentile) / 200.0;
    double w = ldexp(1.0, o->exponent), seen = 0;
    int32_t first = -qs_observer_below(o), last = qs_observer_above(o) - 1;
    int32_t i = first, j = last;
    for (; i < last; i++) {
        seen += (double)o->bins[QS_SIDE + i];
        if (seen > cut)
            break;
    }
    for (seen = 0; j > first; j--) {
        seen += (double)o->bins[QS_SIDE + j];
        if (seen > cut)
            break;
    }
    double lo = i * w, hi = (j + 1) * w;
    *low = lo > (double)o->min ? (float)lo : o->min;
    *high = hi < (double)o->max ? (float)hi : o->max;
}

int qsim_observer_range(const qsim_observer *o, int32_t method, double percentile, int32_t dtype,
                        int32_t flags, float *low, float *high) {
    int32_t qmin, qmax;
    if (!o || !low || !high)
        return QSIM_E_ARGUMENT;
    if (o->count == 0)
        return QSIM_E_STATE;
    if (percentile == 0)
        percentile = 99.999;
    int code = qsim_dtype_limits(dtype, flags, &qmin, &qmax);
    if (code)
        return code;
    if (method < QSIM_METHOD_MINMAX || method > QSIM_METHOD_ENTROPY || !(percentile > 0) ||
        percentile > 100)
        return QSIM_E_ARGUMENT;
    *low = o->min;
    *high = o->max;
    switch (o->bins ? method : QSIM_METHOD_MINMAX) {
    case QSIM_METHOD_MINMAX: break;
    case QSIM_METHOD_PERCENTILE: percentile_range(o, percentile, low, high); break;
    default:
        if (qsim_dtype_bits(dtype) > 8)
            return QSIM_E_DTYPE;
        (method == QSIM_METHOD_MSE ? qs_search_mse : qs_search_entropy)(o, dtype, flags, low, high);
        break;
    }
    *low = *low < 0 ? *low : 0;
    *high = *high > 0 ? *high : 0;
    return QSIM_OK;
}
