/* SPDX-License-Identifier: MIT */
/*
 * The specification of transposes of 8 and 32-bit elements, by blocks of BLOCK x BLOCK that stay in
 * the cache, and of the lookup of floats by bytes. TRANSPOSE stays a macro: it defines both types.
 */
#include "kernel/transpose4.h"
#include "kernel/u8.h"

#define BLOCK 32

/* Few columns: long loops over rows, which the compiler vectorizes for two and three. */
#define FEW 8

#define TRANSPOSE(name, T)                                                                         \
    static void few_##name(const T *restrict x, size_t line, T *restrict y, size_t rows,           \
                           size_t columns) {                                                       \
        if (columns == 2) {                                                                        \
            for (size_t r = 0; r < rows; r++) {                                                    \
                y[2 * r] = x[r];                                                                   \
                y[2 * r + 1] = x[line + r];                                                        \
            }                                                                                      \
        } else if (columns == 3) {                                                                 \
            for (size_t r = 0; r < rows; r++) {                                                    \
                y[3 * r] = x[r];                                                                   \
                y[3 * r + 1] = x[line + r];                                                        \
                y[3 * r + 2] = x[2 * line + r];                                                    \
            }                                                                                      \
        } else {                                                                                   \
            for (size_t c = 0; c < columns; c++)                                                   \
                for (size_t r = 0; r < rows; r++)                                                  \
                    y[r * columns + c] = x[c * line + r];                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    void qk_##name##_c(const void *from, size_t line, void *to, size_t rows, size_t columns) {     \
        const T *restrict x = from;                                                                \
        T *restrict y = to;                                                                        \
        if (columns < FEW) {                                                                       \
            few_##name(x, line, y, rows, columns);                                                 \
            return;                                                                                \
        }                                                                                          \
        for (size_t r0 = 0; r0 < rows; r0 += BLOCK) {                                              \
            const size_t r1 = r0 + BLOCK < rows ? r0 + BLOCK : rows;                               \
            for (size_t c0 = 0; c0 < columns; c0 += BLOCK) {                                       \
                const size_t c1 = c0 + BLOCK < columns ? c0 + BLOCK : columns;                     \
                for (size_t r = r0; r < r1; r++)                                                   \
                    for (size_t c = c0; c < c1; c++)                                               \
                        y[r * columns + c] = x[c * line + r];                                      \
            }                                                                                      \
        }                                                                                          \
    }

TRANSPOSE(transpose8, uint8_t)
TRANSPOSE(transpose32, uint32_t)

void qk_lookup_c(const float *restrict table, const uint8_t *restrict x, float *restrict y,
                 size_t n) {
    size_t i = 0;
#ifdef QK_SHUFFLES
    for (; i + 4 <= n; i += 4) { /* one store instead of four */
        const qk_floats v = {table[x[i]], table[x[i + 1]], table[x[i + 2]], table[x[i + 3]]};
        memcpy(y + i, &v, sizeof(v));
    }
#endif
    for (; i < n; i++)
        y[i] = table[x[i]];
}
