/* SPDX-License-Identifier: MIT */
/*
 * Four dwords of each of four columns become four rows: what packing consists of. In the vectors
 * that every instruction set has, through the compiler's shuffles; from any address.
 */
#ifndef QK_FOURS_H
#define QK_FOURS_H

#include <stdint.h>
#include <string.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define QK_SHUFFLES 1
#endif
#endif

/* from[c] + at: 16 bytes of column c; row i goes to to[i]. */
#ifdef QK_SHUFFLES
typedef uint32_t qk_four __attribute__((vector_size(16)));

static inline void qk_turn_fours(const uint8_t *const from[4], size_t at, uint8_t *const to[4]) {
    qk_four v[4], low[2], high[2];
    for (int i = 0; i < 4; i++)
        memcpy(&v[i], from[i] + at, 16);
    for (int i = 0; i < 2; i++) {
        low[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 4, 1, 5);
        high[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 2, 6, 3, 7);
    }
    v[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    for (int i = 0; i < 4; i++)
        memcpy(to[i], &v[i], 16);
}
#else
static inline void qk_turn_fours(const uint8_t *const from[4], size_t at, uint8_t *const to[4]) {
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < 4; c++)
            memcpy(to[i] + 4 * c, from[c] + at + 4 * i, 4);
}
#endif

#endif
