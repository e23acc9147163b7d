/* SPDX-License-Identifier: MIT */
/*
 * Element-wise kernels on 8 bits for aarch64. The loops are those of C, which compilers vectorize;
 * tables are looked up 16 bytes at a time.
 */
#include "kernel/table.h"

#if QK_ARM
#include <arm_neon.h>

#include "kernel/u8_loops.h"

QK_U8_PAIRS(neon, )
QK_U8_INTERLEAVE(neon, )
QK_U8_QUANTIZE(neon, )
QK_U8_DEQUANTIZE(neon, )
QK_U8_PIECEWISE(neon, )

/* Indices outside a quarter of the table leave the result unchanged. */
static inline uint8x16_t look_up(const uint8x16x4_t *quarter, uint8x16_t x) {
    const uint8x16_t step = vdupq_n_u8(64);
    uint8x16_t y = vqtbl4q_u8(quarter[0], x);
    x = vsubq_u8(x, step);
    y = vqtbx4q_u8(y, quarter[1], x);
    x = vsubq_u8(x, step);
    y = vqtbx4q_u8(y, quarter[2], x);
    return vqtbx4q_u8(y, quarter[3], vsubq_u8(x, step));
}

static void table_neon(const uint8_t *restrict table, const uint8_t *x, size_t x_stride, uint8_t *y,
                       size_t y_stride, size_t n, size_t rows) {
    uint8x16x4_t quarter[4];
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++)
            quarter[i].val[k] = vld1q_u8(table + 64 * i + 16 * k);
    for (size_t r = 0; r < rows; r++, x += x_stride, y += y_stride) {
        size_t i = 0;
        for (; i + 16 <= n; i += 16)
            vst1q_u8(y + i, look_up(quarter, vld1q_u8(x + i)));
        for (; i < n; i++)
            y[i] = table[x[i]];
    }
}

QK_U8_SHUFFLE(neon)

const qk_u8 qk_u8_neon = {.add = add_neon,
                          .mul = mul_neon,
                          .piecewise = piecewise_neon,
                          .table = table_neon,
                          .shuffle = shuffle_neon,
                          .shuffle32 = qk_shuffle32_c,
                          .interleave = interleave_neon,
                          .lookup = qk_lookup_c,
                          .quantize = quantize_neon,
                          .quantize_within = quantize_neon,
                          .dequantize = dequantize_neon,
                          .transpose8 = qk_transpose8_c,
                          .transpose32 = qk_transpose32_c};
#endif
