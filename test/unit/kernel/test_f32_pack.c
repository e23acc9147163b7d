/* SPDX-License-Identifier: MIT */
/* Panels of float weights in any order of their axes and at any address, against the definition. */
#include "test.h"

#include "kernel/f32.h"

#include <stdlib.h>

static uint64_t seed = 20261122;

static size_t between(size_t a, size_t b) {
    return a + (size_t)(test_random(&seed) % (b - a + 1));
}

/* Outputs, taps and channels in one of the orders that models have. */
static size_t random_source(qk_pack_source *s, size_t cols, size_t taps, size_t channels) {
    const size_t k = taps * channels;
    switch (between(0, 4)) {
    case 0: /* a matrix, columns side by side */
        *s = (qk_pack_source){NULL, 1, (ptrdiff_t)cols, 0, 1};
        break;
    case 1: /* a matrix, the terms of a column side by side */
        *s = (qk_pack_source){NULL, 1, 1, 0, (ptrdiff_t)k};
        break;
    case 2: /* the taps of a channel together, the channels of an output together */
        *s = (qk_pack_source){NULL, channels, 1, (ptrdiff_t)taps, (ptrdiff_t)k};
        break;
    case 3: /* channels innermost */
        *s = (qk_pack_source){NULL, channels, (ptrdiff_t)channels, 1, (ptrdiff_t)k};
        break;
    default: /* outputs innermost, or further out than channels */
        *s = (qk_pack_source){NULL, channels, (ptrdiff_t)(channels * cols), (ptrdiff_t)cols, 1};
        break;
    }
    return k * cols;
}

static float source_at(const qk_pack_source *s, size_t k, size_t j) {
    const ptrdiff_t at = (ptrdiff_t)(k / s->inner) * s->outer_step +
                         (ptrdiff_t)(k % s->inner) * s->inner_step + (ptrdiff_t)j * s->col_step;
    float v;
    memcpy(&v, (const uint8_t *)s->src + at * (ptrdiff_t)sizeof(v), sizeof(v));
    return v;
}

static void check_pack(size_t panel) {
    static const size_t some[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 33, 64, 67};
    const size_t taps = between(0, 2) ? 1 : between(2, 9), cols = between(1, 3 * panel);
    const size_t k = taps * some[between(0, 11)];
    qk_pack_source s;
    const size_t floats = random_source(&s, cols, taps, k / taps), shift = between(0, 3);
    size_t capacity = 0, wrong = 0;
    uint8_t *memory = malloc(floats * sizeof(float) + shift);
    CHECK(qk_pack_f32_size(panel, k, cols, &capacity));
    float *packed = malloc(capacity * sizeof(float)), *at = packed;
    for (size_t i = 0; i < floats; i++) {
        const float v = (float)i + 1;
        memcpy(memory + shift + i * sizeof(v), &v, sizeof(v));
    }
    s.src = memory + shift;
    memset(packed, 0x55, capacity * sizeof(float));
    qk_pack_f32(packed, panel, k, cols, &s);
    for (size_t col = 0; col < cols; col += panel) {
        const size_t width = qk_panel_width(panel, cols, col);
        for (size_t i = 0; i < k; i++)
            for (size_t j = 0; j < width; j++, at++)
                wrong += *at != (col + j < cols ? source_at(&s, i, col + j) : 0.0f);
    }
    for (; at < packed + capacity; at++)
        wrong += *at != 0.0f;
    CHECK_INT(wrong, 0);
    free(memory);
    free(packed);
}

int main(void) {
    for (int32_t round = 0; round < 600; round++)
        check_pack(16 * between(1, 4));
    return test_done();
}
