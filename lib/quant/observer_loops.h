/* SPDX-License-Identifier: MIT */
/*
 * The loops that read the values of an observer, inlined into a kernel of each instruction set. The
 * compiler vectorizes them; the results do not depend on the width of vectors.
 */
#ifndef QS_OBSERVER_LOOPS_H
#define QS_OBSERVER_LOOPS_H

#include <string.h>

#include "quant/observer.h"

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
    for (size_t i = 0; i < n; i++) {
        const int32_t v = qs_order_of(x + i);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
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
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < width; k++) {
            const float v = x[i * channels + c + k];
            part[k] += (double)v;
            low[k] = v < low[k] ? v : low[k];
            high[k] = v > high[k] ? v : high[k];
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

QS_INLINE bool qs_rows(const float *x, size_t rows, size_t channels, double *sum, float *extreme,
                       float *min, float *max) {
    float low = x[0], high = x[0];
    bool finite = true;
    size_t c = 0;
    for (; c + 16 <= channels; c += 16)
        finite &= qs_read_columns(x, rows, channels, c, 16, sum, extreme, &low, &high);
    for (; c + 4 <= channels; c += 4)
        finite &= qs_read_columns(x, rows, channels, c, 4, sum, extreme, &low, &high);
    for (; c < channels; c++)
        finite &= qs_read_columns(x, rows, channels, c, 1, sum, extreme, &low, &high);
    *min = low + 0.0f;
    *max = high + 0.0f;
    return finite;
}

#endif
