/* SPDX-License-Identifier: MIT */
#include "quant/observer.h"

#include <math.h>

#include "base/ctx.h"

int32_t qs_histogram_exponent(float min, float max, int32_t bits) {
    float magnitude = max > -min ? max : -min;
    int exponent;
    uint32_t word;
    memcpy(&word, &magnitude, sizeof(word));
    if (!(magnitude > 0))
        return QS_MIN_EXPONENT;
    if (word >> 23 > 0) /* a normal number, the common case */
        return (int32_t)(word >> 23) - 126 - bits;
    (void)frexp((double)magnitude, &exponent); /* magnitude < 2^exponent = 2^bits w */
    return exponent - bits;
}

int32_t qs_observer_below(const qsim_observer *o) {
    const int32_t first = qs_histogram_index(o->min, o->exponent);
    return o->count > 0 && first < 0 ? -first : 0;
}

int32_t qs_observer_above(const qsim_observer *o) {
    const int32_t last = qs_histogram_index(o->max, o->exponent);
    return o->count > 0 && last >= 0 ? last + 1 : 0;
}

QS_COLD int qs_observer_create(qsim_ctx *ctx, int32_t bits, qsim_observer **out,
                               qsim_error *error) {
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

QS_COLD int qs_observer_bits(int32_t bins, int32_t *bits, qsim_error *error) {
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
    const bool listed = o->form == QS_LIST;
    const int32_t below = listed ? QS_SIDE : qs_observer_below(o);
    const size_t n = listed ? o->listed + QS_ROOM : (size_t)(below + qs_observer_above(o));
    const size_t size = o->form == QS_WIDE ? sizeof(uint64_t) : sizeof(uint16_t);
    char *table = (char *)o->bins;
    if (table)
        memset(table + (size_t)(QS_SIDE - below) * size, 0, n * size);
    if (table && o->form == QS_TALLY)
        memset(table + 2 * QS_SIDE * size, 0, QS_ZEROS * size);
    o->form = QS_WIDE;
    o->listed = 0;
    o->zeros = 0;
    o->most = 0;
    o->count = 0;
    o->min = o->max = 0;
    o->exponent = QS_MIN_EXPONENT;
}

void qsim_observer_free(qsim_observer *o) {
    if (!o)
        return;
    qsim_ctx *ctx = o->ctx;
    qsim_observer_free(o->recent);
    qs_free(ctx, o->bins);
    qs_free(ctx, o);
    qs_ctx_drop(ctx);
}

/* Moves the counts of a bin to another one. */
static void move(const qsim_observer *o, int32_t from, int32_t to) {
    uint64_t n = o->bins[QS_SIDE + from];
    o->bins[QS_SIDE + from] = 0;
    o->bins[QS_SIDE + to] += n;
}

/* Widens the bins until the exponent is `exponent`. */
static void widen(qsim_observer *o, int32_t exponent) {
    int32_t shift = exponent - o->exponent;
    qs_observer_settle(o);
    o->exponent = exponent;
    if (shift <= 0 || o->count == 0 || !o->bins)
        return;
    if (shift > 30)
        shift = 30; /* all values fall into bins 0 and -1 */
    uint16_t *list = (uint16_t *)o->bins;
    for (size_t i = 0; i < o->listed; i++)
        list[i] = (uint16_t)qs_histogram_widened(list[i], shift);
    if (o->form != QS_WIDE)
        return; /* a table has nothing but zeros yet (qs_observer_add) */
    /* Bins move towards zero, so each is read before it is written. */
    for (int32_t i = 0; i < QS_SIDE; i++) {
        move(o, i, i >> shift);
        move(o, -1 - i, -1 - (i >> shift));
    }
}

/* Allocates the bins, for the first value other than zero; false: out of memory. */
static bool make_bins(qsim_observer *o) {
    o->bins = qs_calloc(o->ctx, 2 * QS_SIDE, sizeof(*o->bins));
    if (o->bins && o->form == QS_TALLY)
        o->zeros = o->count;
    else if (o->bins && o->form == QS_WIDE)
        o->bins[QS_SIDE] = o->count;
    return o->bins != NULL;
}

uint64_t qs_table_zeros(const uint16_t *count) {
    uint64_t zeros = 0;
    _Static_assert(QS_TABLE * sizeof(uint16_t) <= 2 * QS_SIDE * sizeof(uint64_t),
                   "the memory of counters holds the table of a tally");
    for (size_t i = 2 * QS_SIDE; i < QS_TABLE; i++)
        zeros += count[i];
    return zeros;
}

void qs_observer_add_widened(const qsim_observer *into, const qsim_observer *from, int32_t shift) {
    const uint16_t *narrow = (const uint16_t *)from->bins;
    const bool listed = from->form == QS_LIST, wide = from->form == QS_WIDE;
    const size_t first = listed ? 0 : (size_t)(QS_SIDE - qs_observer_below(from));
    const size_t end = listed ? from->listed : (size_t)(QS_SIDE + qs_observer_above(from));
    if (!wide)
        into->bins[QS_SIDE] +=
            listed ? from->count - from->listed : from->zeros + qs_table_zeros(narrow);
    for (size_t i = first; i < end; i++) {
        const uint64_t n = listed ? 1 : wide ? from->bins[i] : narrow[i];
        into->bins[qs_histogram_widened(listed ? narrow[i] : i, shift)] += n;
    }
}

static bool make_recent(qsim_observer *o) {
    if (!o->recent && qs_observer_create(o->ctx, o->bits, &o->recent, NULL))
        return false;
    if (!o->recent->bins)
        o->recent->bins = qs_calloc(o->ctx, QS_TABLE, sizeof(uint16_t));
    return o->recent->bins != NULL;
}

int qs_observer_include(qsim_observer *o, float min, float max) {
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
    const int32_t exponent = o->exponent;
    for (size_t i = 0; i < count; i++)
        o->bins[QS_SIDE + qs_histogram_index(values[i], exponent)]++;
}

int qsim_observer_feed(qsim_observer *o, const float *values, size_t count) {
    float min, max;
    if (!o || (count > 0 && !values))
        return QSIM_E_ARGUMENT;
    if (count == 0)
        return QSIM_OK;
    if (!qs_find_extremes(values, count, &min, &max))
        return QSIM_E_VALUE;
    if (o->count > UINT64_MAX - count)
        return QSIM_E_LIMIT;
    int code = qs_observer_include(o, min, max);
    if (code)
        return code;
    if (o->bins)
        count_values(o, values, count);
    o->count += count;
    return QSIM_OK;
}

int qs_observer_reserve(qsim_observer *into, const qsim_observer *from) {
    if (into->bins && from->bins && into->bits != from->bits)
        return QSIM_E_MISMATCH;
    if (into->count > UINT64_MAX - from->count)
        return QSIM_E_LIMIT;
    if (from->bins && from->form != QS_WIDE && into->form == QS_WIDE && !make_recent(into))
        return QSIM_E_NOMEM;
    if (into->bins || (from->min >= 0 && from->max <= 0))
        return QSIM_OK;
    into->bits = from->bits;
    return make_bins(into) ? QSIM_OK : QSIM_E_NOMEM;
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
QS_COLD static void percentile_range(const qsim_observer *o, double percentile, float *low,
                                     float *high) {
    double cut = (double)o->count * (100.0 - percentile) / 200.0;
    double w = ldexp(1.0, o->exponent), seen = 0;
    qs_observer_settle(o);
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

QS_COLD int qsim_observer_range(const qsim_observer *o, int32_t method, double percentile,
                                int32_t dtype, int32_t flags, float *low, float *high) {
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
