/* SPDX-License-Identifier: MIT */
#include "op/space/taps.h"

#include <assert.h>

void qs_taps_between(qs_taps *t, const float *grid, const size_t size[2], bool aligned) {
    const float height = (float)qs_real(size[0]), width = (float)qs_real(size[1]);
    const double bottom = qs_real(size[0]) - 1, right = qs_real(size[1]) - 1;
    assert(t->most >= 4);
    for (size_t i = 0; i < t->points; i++) {
        const double x = (double)qs_grid_place(grid[2 * i], width, aligned);
        const double y = (double)qs_grid_place(grid[2 * i + 1], height, aligned);
        if (!(x >= 0 && y >= 0 && x < right && y < bottom))
            continue;
        const int64_t row = (int64_t)y, column = (int64_t)x;
        const double v = y - (double)row, u = x - (double)column;
        size_t *at = t->at + i * t->most;
        double *weight = t->weight + i * t->most;
        at[0] = (size_t)row * size[1] + (size_t)column;
        at[1] = at[0] + 1;
        at[2] = at[0] + size[1];
        at[3] = at[2] + 1;
        weight[0] = (1 - v) * (1 - u);
        weight[1] = (1 - v) * u;
        weight[2] = v * (1 - u);
        weight[3] = v * u;
        t->count[i] = 4;
    }
}

void qs_taps_sum(const qs_taps *t, const float *x, float *y) {
    for (size_t i = 0; i < t->points; i++) {
        const size_t *at = t->at + i * t->most;
        const double *weight = t->weight + i * t->most;
        double sum = 0;
        size_t k = 0;
        if (t->count[i] == 4) { /* nearly all points; a third less time than in the loops */
            y[i] = (float)(0 + weight[0] * (double)x[at[0]] + weight[1] * (double)x[at[1]] +
                           weight[2] * (double)x[at[2]] + weight[3] * (double)x[at[3]]);
            continue;
        }
        for (; k + 4 <= t->count[i]; k += 4) {
            sum += weight[k] * (double)x[at[k]];
            sum += weight[k + 1] * (double)x[at[k + 1]];
            sum += weight[k + 2] * (double)x[at[k + 2]];
            sum += weight[k + 3] * (double)x[at[k + 3]];
        }
        for (; k < t->count[i]; k++)
            sum += weight[k] * (double)x[at[k]];
        y[i] = (float)sum;
    }
}
