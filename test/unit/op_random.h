/* SPDX-License-Identifier: MIT */
/* Random sizes and inputs for one operator (op_run.h), the same in every run of a test. */
#ifndef OP_RANDOM_H
#define OP_RANDOM_H

#include "op_run.h"

static uint64_t or_seed; /* set by main */

/* A whole number from a to b. */
static inline int64_t between(int64_t a, int64_t b) {
    return a + (int64_t)(test_random(&or_seed) % (uint32_t)(b - a + 1));
}

/* n floats in [-largest, largest], with slack after them; freed by the caller. */
static inline float *random_floats(size_t n, double largest) {
    float *p = or_memory(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(largest * (double)between(-1000, 1000) / 1000);
    return p;
}

/* Sizes of a window: of up to `most` taps along each axis, or long, or wide, as signals have them.
 */
static inline void random_window(int64_t most, int64_t *kh, int64_t *kw) {
    const bool odd = between(0, 4) == 0, down = between(0, 1);
    *kh = odd ? (down ? between(1, 20) : between(1, 2)) : between(1, most);
    *kw = odd ? (down ? between(1, 2) : between(1, 20)) : between(1, most);
}

/* Padding of up to `most`, or sometimes of more than a window's extent. */
static inline int64_t random_pad(int64_t most, int64_t k, int64_t dilation) {
    return between(0, 7) ? between(0, most) : between(0, k * dilation + 2);
}

#endif
