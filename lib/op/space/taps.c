/* SPDX-License-Identifier: MIT */
#include "op/space/taps.h"

void qs_taps_sum(const qs_taps *t, const float *x, float *y) {
    for (size_t i = 0; i < t->points; i++) {
        const size_t *at = t->at + i * t->most;
        const double *weight = t->weight + i * t->most;
        double sum = 0;
        for (size_t k = 0; k < t->count[i]; k++)
            sum += weight[k] * (double)x[at[k]];
        y[i] = (float)sum;
    }
}
