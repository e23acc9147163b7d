/* SPDX-License-Identifier: MIT */
/*
 * Interleaving of two tensors' channels, through the compiler's shuffles. Bytes are looked up by
 * the instruction set's own table kernel, for as many rows at a time as stay in the cache.
 */
#include <assert.h>

#include "kernel/transpose4.h"
#include "kernel/u8_loops.h"

#define CHUNK QK_SHUFFLE_MOST

/* y = a0 b0 a1 b1 ..., sixteen of each. */
static inline void weave16(const uint8_t *a, const uint8_t *b, uint8_t *y) {
#ifdef QK_SHUFFLES
    qk_sixteen v, w;
    memcpy(&v, a, 16);
    memcpy(&w, b, 16);
    const qk_sixteen low =
        __builtin_shufflevector(v, w, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const qk_sixteen high =
        __builtin_shufflevector(v, w, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    memcpy(y, &low, 16); /* two copies: a pair would pass through the stack */
    memcpy(y + 16, &high, 16);
#else
    for (int i = 0; i < 16; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
#endif
}

QS_COLD static void weave_few(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}

/* y = a0 b0 a1 b1 ..., n of each; the last sixteen overlap those before. */
static inline void weave(const uint8_t *a, const uint8_t *b, uint8_t *y, size_t n) {
    if (n < 16) {
        weave_few(a, b, y, n);
        return;
    }
    for (size_t i = 0; i + 16 <= n; i += 16)
        weave16(a + i, b + i, y + 2 * i);
    weave16(a + n - 16, b + n - 16, y + 2 * (n - 16));
}

/* Interleaves `rows` rows of n bytes into the outputs from row `at` on. */
static void place(const qk_shuffle *s, const uint8_t *a, const uint8_t *b, size_t at, size_t rows) {
    const size_t n = s->n, first = s->first, rest = 2 * n - first, half = first / 2;
    uint8_t row[2 * CHUNK];
    if (rest == 0) {
        weave(a, b, s->y0 + at * 2 * n, n * rows);
        return;
    }
    for (size_t r = at; r < at + rows; r++, a += n, b += n) {
        uint8_t *y0 = s->y0 + r * first, *y1 = s->y1 + r * rest;
        if (first % 2) {
            weave(a, b, row, n);
            memcpy(y0, row, first);
            memcpy(y1, row + first, rest);
        } else {
            weave(a, b, y0, half);
            weave(a + half, b + half, y1, n - half);
        }
    }
}

void qk_shuffle_by(const qk_shuffle *s, qk_table_fn look_up) {
    assert(s->n > 0 && s->n <= QK_SHUFFLE_MOST && s->first <= 2 * s->n);
    const size_t n = s->n, most = CHUNK / n;
    uint8_t made[2][CHUNK + 320];
    for (size_t at = 0, rows; at < s->rows; at += rows) {
        const uint8_t *a = s->a + at * n, *b = s->b + at * n;
        rows = s->rows - at < most ? s->rows - at : most;
        if (s->table_a) {
            look_up(s->table_a, a, 0, made[0], 0, n * rows, 1);
            a = made[0];
        }
        if (s->table_b) {
            look_up(s->table_b, b, 0, made[1], 0, n * rows, 1);
            b = made[1];
        }
        place(s, a, b, at, rows);
    }
}

/* ---- floats ---- */

/* The last four overlap those before. */
static inline void weave32_c(const float *a, const float *b, float *y, size_t n) {
    size_t i = 0;
#ifdef QK_SHUFFLES
    for (; n >= 4 && i < n; i += 4) {
        qk_four x, z;
        i = i < n - 4 ? i : n - 4;
        memcpy(&x, a + i, 16);
        memcpy(&z, b + i, 16);
        const qk_four low = __builtin_shufflevector(x, z, 0, 4, 1, 5);
        const qk_four high = __builtin_shufflevector(x, z, 2, 6, 3, 7);
        memcpy(y + 2 * i, &low, 16);
        memcpy(y + 2 * i + 4, &high, 16);
    }
#endif
    for (; i < n; i++) {
        y[2 * i] = a[i];
        y[2 * i + 1] = b[i];
    }
}

QK_U8_SHUFFLE32(c, )
