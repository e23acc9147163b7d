/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for aarch64 with matrix products of bytes (I8MM), which also multiply unsigned by
 * signed: eight bytes of two rows times eight of two columns are four sums.
 */
#include "kernel/table.h"

#ifdef QK_NEONI8MM
#define TARGET           QK_ARM_TARGET("i8mm")
#define TABLE            qk_i8_neoni8mm
#define TILE_ROWS        6
#define PAIRS            true
#define SIGNED           false
#define DEPTHWISE_SIGNED false

#include "kernel/arm/i8_neon.h"

INLINE int32x4_t dot(int32x4_t acc, uint8x16_t x, int8x16_t w) {
    __asm__("usdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
    return acc;
}

#include "kernel/arm/i8_dot.h"

/* Loads a pair of rows; q counts pairs. */
INLINE uint8x16_t two(const uint8_t *p, const uint8_t *q) {
    return vcombine_u8(vld1_u8(p), vld1_u8(q));
}

#define PRODUCT(q, v)                                                                              \
    __asm__("usmmla %0.4s, %1.16b, %2.16b" : "+w"(a##q##_##v) : "w"(x##q), "w"(b));
#define DECLARE(q)                                                                                 \
    int32x4_t a##q##_0 = vdupq_n_s32(0), a##q##_1 = a##q##_0, a##q##_2 = a##q##_0;                 \
    int32x4_t a##q##_3 = a##q##_0, a##q##_4 = a##q##_0, a##q##_5 = a##q##_0;                       \
    int32x4_t a##q##_6 = a##q##_0, a##q##_7 = a##q##_0;                                            \
    const uint8_t *p##q = row[2 * q], *n##q = row[2 * q + ONE_MORE];
#define TAKE(q) const uint8x16_t x##q = two(p##q + i, n##q + i);
/* Multiplies all rows by two columns. The barrier keeps gcc from loading the next columns first and
 * spilling sums for them. */
#define COLUMNS(v, NR)                                                                             \
    {                                                                                              \
        const int8x16_t b = vld1q_s8(w);                                                           \
        w += 16;                                                                                   \
        R##NR(COLUMNS_##v) __asm__("" : "+r"(w) : "w"(a0_##v));                                    \
    }
#define COLUMNS_0(q) PRODUCT(q, 0)
#define COLUMNS_1(q) PRODUCT(q, 1)
#define COLUMNS_2(q) PRODUCT(q, 2)
#define COLUMNS_3(q) PRODUCT(q, 3)
#define COLUMNS_4(q) PRODUCT(q, 4)
#define COLUMNS_5(q) PRODUCT(q, 5)
#define COLUMNS_6(q) PRODUCT(q, 6)
#define COLUMNS_7(q) PRODUCT(q, 7)

INLINE int32x4_t first(int32x4_t a, int32x4_t b) {
    return vcombine_s32(vget_low_s32(a), vget_low_s32(b));
}

INLINE int32x4_t second(int32x4_t a, int32x4_t b) {
    return vcombine_s32(vget_high_s32(a), vget_high_s32(b));
}

#define ROW(q, r, part)                                                                            \
    finish(s, r, part(a##q##_0, a##q##_1), part(a##q##_2, a##q##_3), part(a##q##_4, a##q##_5),     \
           part(a##q##_6, a##q##_7));
#define FINISH(q) ROW(q, 2 * q, first) ROW(q, 2 * q + 1, second)

#define R1(F) F(0)
#define R3(F) F(0) F(1) F(2)
#define TILE(name, NR)                                                                             \
    TARGET static void name(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s) {     \
        const int8_t *w = g->b;                                                                    \
        R##NR(DECLARE) for (int32_t seg = 0; seg < g->segs; seg++) {                               \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            for (ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4; i < end; i += 8) {                      \
                R##NR(TAKE) COLUMNS(0, NR) COLUMNS(1, NR) COLUMNS(2, NR) COLUMNS(3, NR)            \
                    COLUMNS(4, NR) COLUMNS(5, NR) COLUMNS(6, NR) COLUMNS(7, NR)                    \
            }                                                                                      \
        }                                                                                          \
        R##NR(FINISH)                                                                              \
    }
#define ONE_MORE 0
TILE(tile_1, 1)
#undef ONE_MORE
#define ONE_MORE 1
TILE(tile_many, 3)
#endif
