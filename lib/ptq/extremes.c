/* SPDX-License-Identifier: MIT */
/* Extremes of channels: loops over the elements of activations. */
#include "ptq/record.h"

static inline float lesser(float a, float b) {
    return a < b ? a : b;
}

static inline float greater(float a, float b) {
    return a > b ? a : b;
}

void qs_extremes_rows(const float *x, size_t rows, size_t channels, float *restrict extreme) {
    float *restrict low = extreme, *restrict high = extreme + channels;
    size_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * channels) {
        const float *a = x, *b = a + channels, *c = b + channels, *d = c + channels;
        for (size_t k = 0; k < channels; k++) {
            low[k] = lesser(lesser(lesser(a[k], b[k]), lesser(c[k], d[k])), low[k]);
            high[k] = greater(greater(greater(a[k], b[k]), greater(c[k], d[k])), high[k]);
        }
    }
    for (; i < rows; i++, x += channels)
        for (size_t k = 0; k < channels; k++) {
            low[k] = lesser(x[k], low[k]);
            high[k] = greater(x[k], high[k]);
        }
}

void qs_extremes_plane(const float *x, size_t count, float *low, float *high) {
    float least[8], most[8];
    for (size_t k = 0; k < 8; k++) {
        least[k] = *low;
        most[k] = *high;
    }
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t k = 0; k < 8; k++) {
            least[k] = lesser(x[i + k], least[k]);
            most[k] = greater(x[i + k], most[k]);
        }
    for (; i < count; i++) {
        least[0] = lesser(x[i], least[0]);
        most[0] = greater(x[i], most[0]);
    }
    for (size_t k = 0; k < 8; k++) {
        *low = lesser(least[k], *low);
        *high = greater(most[k], *high);
    }
}
