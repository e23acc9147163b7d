/* SPDX-License-Identifier: MIT */
/* Weighted sums of pixels, for points that are the same in each channel. */
#ifndef QS_TAPS_H
#define QS_TAPS_H

#include "base/base.h"

#define QS_TAPS ((size_t)512) /* 4 * 4 * 4 at least: those of a point */

/*
 * The taps of point i are count[i] pixels of a channel, and their weights, from i * most on; none:
 * the point is 0.
 */
typedef struct qs_taps {
    size_t points, most;
    size_t count[QS_TAPS];
    size_t at[QS_TAPS];
    double weight[QS_TAPS];
} qs_taps;

/* Turns a coordinate in [-1, 1] of a GridSample's grid into a place among `size` pixels. */
static inline float qs_grid_place(float g, float size, bool aligned) {
    return aligned ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
}

/*
 * Finds the taps of points between four pixels of an image of two axes, by their places in a
 * GridSample's grid. The count of other points, and of those at the last line or column, stays 0.
 */
void qs_taps_between(qs_taps *t, const float *grid, const size_t size[2], bool aligned);

/* y[i]: the sum of point i in the channel x, in double, in the order of the taps. */
void qs_taps_sum(const qs_taps *t, const float *x, float *y);

#endif
