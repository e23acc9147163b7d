/* SPDX-License-Identifier: MIT */
/* Copies rows of bytes between different strides. */
#include "op/rules.h"

/* Few bytes are copied without a call: in one piece, or in two that may overlap. */
#define ROWS(T)                                                                                    \
    for (size_t r = 0; r < rows; r++, x += x_step, y += y_step)                                    \
        memcpy(y, x, sizeof(T));
#define TWICE(T)                                                                                   \
    for (size_t r = 0; r < rows; r++, x += x_step, y += y_step) {                                  \
        memcpy(y, x, sizeof(T));                                                                   \
        memcpy(y + n - sizeof(T), x + n - sizeof(T), sizeof(T));                                   \
    }

/* Rows of 1 to 16 bytes. */
static void copy_few(const char *x, ptrdiff_t x_step, char *y, ptrdiff_t y_step, size_t n,
                     size_t rows) {
    switch (n) {
    case 1: ROWS(uint8_t) break;
    case 2: ROWS(uint16_t) break;
    case 3: TWICE(uint16_t) break;
    case 4: ROWS(uint32_t) break;
    case 8: ROWS(uint64_t) break;
    default:
        if (n < 8)
            TWICE(uint32_t)
        else
            TWICE(uint64_t)
    }
}

void qs_copy_rows(const void *from, ptrdiff_t x_step, void *to, ptrdiff_t y_step, size_t n,
                  size_t rows) {
    const char *x = from;
    char *y = to;
    if (n > 0 && n <= 16) {
        copy_few(x, x_step, y, y_step, n, rows);
        return;
    }
    for (size_t r = 0; r < rows; r++, x += x_step, y += y_step) {
        if (n >= 256 || n == 0) {
            memcpy(y, x, n);
            continue;
        }
        for (size_t i = 0; i + 16 < n; i += 16)
            memcpy(y + i, x + i, 16);
        memcpy(y + n - 16, x + n - 16, 16);
    }
}
