/* SPDX-License-Identifier: MIT */
/*
 * The loops that read the values of an observer, inlined into a kernel of each instruction set. The
 * compiler vectorizes them; the results do not depend on the width of vectors. They test at their
 * end, as in kernel/ew_maps.h.
 */
#ifndef QS_OBSERVER_LOOPS_H
#define QS_OBSERVER_LOOPS_H

#include <float.h>
#include <string.h>

#include "quant/observer.h"

/* Adds x to *a, and returns the error of that sum, which is a double (Knuth's TwoSum). */
QS_INLINE double qs_add_exactly(double *a, double x) {
    const double sum = *a + x, grown = sum - *a;
    const double error = (*a - (sum - grown)) + (x - grown);
    *a = sum;
    return error;
}

/* As qs_exact_add_fn. Errors of `high` go to `low`. */
QS_INLINE size_t qs_sums_aside(double *restrict high, double *restrict low,
                               const double *restrict x, size_t count) {
    size_t i = 0;
    for (; FLT_EVAL_METHOD == 0 && count - i >= QS_EXACT_TOGETHER; i += QS_EXACT_TOGETHER) {
        double h[QS_EXACT_TOGETHER], l[QS_EXACT_TOGETHER];
        uint64_t lost = 0;
        size_t k = 0;
        do {
            uint64_t bits;
            h[k] = high[i + k];
            l[k] = low[i + k];
            const double error = qs_add_exactly(&l[k], qs_add_exactly(&h[k], x[i + k]));
            memcpy(&bits, &error, sizeof(bits));
            lost |= bits << 1; /* -0 is 0 */
        } while (++k < QS_EXACT_TOGETHER);
        if (lost != 0)
            break;
        memcpy(high + i, h, sizeof(h));
        memcpy(low + i, l, sizeof(l));
    }
    return i;
}

QS_INLINE uint16_t qs_table_sum(uint16_t *restrict into, const uint16_t *restrict from, size_t n) {
    uint16_t most = 0;
    size_t i = 0;
    if (n == 0)
        return 0;
    do {
        into[i] = (uint16_t)(into[i] + from[i]);
        const uint16_t sum = into[i] < from[i] ? UINT16_MAX : into[i];
        most = sum > most ? sum : most;
    } while (++i < n);
    return most;
}

/* An integer that is ordered like the float. */
static inline int32_t qs_order_of(const float *x) {
    int32_t bits;
    memcpy(&bits, x, sizeof(bits));
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

/* Adding 0 turns -0 into 0, so that the order of the two does not show. */
static inline float qs_from_order(int32_t order) {
    const int32_t bits = order ^ ((order >> 31) & 0x7fffffff);
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x + 0.0f;
}

/*
 * Finds the extremes as integers, since compilers do not vectorize those of floats. A NaN lies
 * beyond the infinities.
 */
static inline __attribute__((always_inline)) bool qs_extremes(const float *x, size_t n, float *min,
                                                              float *max) {
    const int32_t infinity = 0x7f800000;
    int32_t low = INT32_MAX, high = INT32_MIN;
    size_t i = 0;
    if (n > 0)
        do {
            const int32_t v = qs_order_of(x + i);
            low = v < low ? v : low;
            high = v > high ? v : high;
        } while (++i < n);
    *min = qs_from_order(low);
    *max = qs_from_order(high);
    return high < infinity && low > -1 - infinity;
}

static inline __attribute__((always_inline)) size_t qs_bins(const float *restrict x, size_t n,
                                                            float inverse, uint16_t *restrict at) {
    for (size_t i = 0; i < n; i++) {
        const float v = x[i] * inverse;
        const int32_t index = (int32_t)v, bin = QS_SIDE + index - (v < (float)index);
        const int32_t zero = 2 * QS_SIDE + (int32_t)(i & (QS_ZEROS - 1)), is = -(x[i] == 0.0f);
        at[i] = (uint16_t)((zero & is) | (bin & ~is));
    }
    return n;
}

/*
 * Reads `width` channels from c on, with their sums and extremes in registers. If a sum is not
 * finite, one of the values is not: sums of floats do not overflow in double.
 */
QS_INLINE bool qs_read_columns(const float *restrict x, size_t rows, size_t channels, size_t c,
                               size_t width, double *restrict sum, float *restrict extreme,
                               float *min, float *max) {
    double part[16];
    float low[16], high[16];
    bool finite = true;
    for (size_t k = 0; k < width; k++) {
        part[k] = sum[c + k];
        low[k] = high[k] = x[c + k];
    }
    for (size_t i = 0; i < rows; i++) {
        size_t k = 0;
        do {
            const float v = x[i * channels + c + k];
            part[k] += (double)v;
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
        } while (++k < width);
    }
    for (size_t k = 0; k < width; k++) {
        float *least = &extreme[c + k], *most = &extreme[channels + c + k];
        finite &= part[k] - part[k] == 0;
        sum[c + k] = part[k];
        *least = low[k] < *least ? low[k] : *least;
        *most = high[k] > *most ? high[k] : *most;
        *min = low[k] < *min ? low[k] : *min;
        *max = high[k] > *max ? high[k] : *max;
    }
    return finite;
}

QS_INLINE bool qs_rows(qs_row_read *r) {
    float low = r->x[0], high = r->x[0];
    bool finite = true;
    size_t c = 0;
#define COLUMNS(n)                                                                                 \
    finite &= qs_read_columns(r->x, r->rows, r->channels, c, n, r->sum, r->extreme, &low, &high)
    for (; c + 16 <= r->channels; c += 16)
        COLUMNS(16);
    for (; c + 4 <= r->channels; c += 4)
        COLUMNS(4);
    for (; c < r->channels; c++)
        COLUMNS(1);
#undef COLUMNS
    r->min = low + 0.0f;
    r->max = high + 0.0f;
    return finite;
}

#endif
