/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for aarch64 with dot products (ARMv8.2 DotProd). They are written as assembly:
 * clang before 16 has the intrinsics only where the whole file may use them.
 */
#include "kernel/table.h"

#ifdef QK_NEONDOT
#define TARGET    QK_ARM_TARGET("dotprod")
#define TABLE     qk_i8_neondot
#define TILE_ROWS 4
#define PAIRS     false
#define SIGNED    true

#define DEPTHWISE_SIGNED true

#include "kernel/arm/i8_neon.h"

INLINE int32x4_t dot(int32x4_t acc, uint8x16_t x, int8x16_t w) {
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(x), "w"(w));
    return acc;
}

#include "kernel/arm/i8_dot.h"

INLINE uint8x16_t dword_of(const uint8_t *p) {
    uint32_t dword;
    memcpy(&dword, p, 4);
    return vreinterpretq_u8_u32(vdupq_n_u32(dword ^ 0x80808080u));
}

/* Adds the products of one dword of a row by four columns. */
#define DOT(r, v, lane)                                                                            \
    __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(a##r##_##v) : "w"(b##v), "w"(x##r));
#define DOTS(r, lane) DOT(r, 0, lane) DOT(r, 1, lane) DOT(r, 2, lane) DOT(r, 3, lane)
#define DECLARE(r)                                                                                 \
    int32x4_t a##r##_0 = vdupq_n_s32(0), a##r##_1 = a##r##_0, a##r##_2 = a##r##_0;                 \
    int32x4_t a##r##_3 = a##r##_0;                                                                 \
    const uint8_t *p##r = row[r];
#define TAKE_4(r) const uint8x16_t x##r = load_x(p##r + i);
#define TAKE_1(r) const uint8x16_t x##r = dword_of(p##r + i);
#define FINISH(r) finish(s, r, a##r##_0, a##r##_1, a##r##_2, a##r##_3);
#define DOTS_0(r) DOTS(r, 0)
#define DOTS_1(r) DOTS(r, 1)
#define DOTS_2(r) DOTS(r, 2)
#define DOTS_3(r) DOTS(r, 3)
#define R1(F)     F(0)
#define R4(F)     F(0) F(1) F(2) F(3)
/* The barrier keeps gcc from loading the next columns early and spilling sums for them. */
#define DWORD(NR, lane)                                                                            \
    {                                                                                              \
        const int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);                                   \
        const int8x16_t b2 = vld1q_s8(b + 32), b3 = vld1q_s8(b + 48);                              \
        b += 64;                                                                                   \
        R##NR(DOTS_##lane) __asm__("" : "+r"(b) : "w"(a0_3));                                      \
    }

#define TILE(name, NR)                                                                             \
    TARGET static void name(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s) {     \
        const int8_t *b = g->b;                                                                    \
        R##NR(DECLARE) for (int32_t seg = 0; seg < g->segs; seg++) {                               \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            int32_t left = g->k4;                                                                  \
            for (; left >= 4; left -= 4, i += 16) {                                                \
                R##NR(TAKE_4) DWORD(NR, 0) DWORD(NR, 1) DWORD(NR, 2) DWORD(NR, 3)                  \
            }                                                                                      \
            for (; left > 0; left--, i += 4) {                                                     \
                R##NR(TAKE_1) DWORD(NR, 0)                                                         \
            }                                                                                      \
        }                                                                                          \
        R##NR(FINISH)                                                                              \
    }
TILE(tile_1, 1)
TILE(tile_many, 4)
#endif
