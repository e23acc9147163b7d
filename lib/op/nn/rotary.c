/* SPDX-License-Identifier: MIT */
#include "op/nn/rotary.h"

static void rotate_halves(const float *restrict x, const float *restrict cosine,
                          const float *restrict sine, float *restrict y, size_t half) {
    for (size_t i = 0; i < half; i++) {
        const float a = x[i], b = x[half + i];
        y[i] = cosine[i] * a - sine[i] * b;
        y[half + i] = sine[i] * a + cosine[i] * b;
    }
}

static void rotate_neighbours(const float *restrict x, const float *restrict cosine,
                              const float *restrict sine, float *restrict y, size_t half) {
    for (size_t i = 0; i < half; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        y[2 * i] = cosine[i] * a - sine[i] * b;
        y[2 * i + 1] = sine[i] * a + cosine[i] * b;
    }
}

void qs_rotate(const float *x, const float *cosine, const float *sine, float *y, size_t size,
               size_t half, bool interleaved) {
    (interleaved ? rotate_neighbours : rotate_halves)(x, cosine, sine, y, half);
    if (size > 2 * half)
        memcpy(y + 2 * half, x + 2 * half, (size - 2 * half) * sizeof(*y));
}
