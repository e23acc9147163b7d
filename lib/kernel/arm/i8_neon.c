/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for any aarch64. Products of bytes are words, pairs of which are added to dwords:
 * a vector of sums is two columns, two partial sums of each.
 */
#include "kernel/table.h"

#ifdef QK_NEON
#define TARGET
#define TABLE     qk_i8_neon
#define TILE_ROWS 2
#define PAIRS     false
#define SIGNED    true
/* Depthwise products are in 16 bits. */
#define DEPTHWISE_SIGNED false

#include "kernel/arm/i8_neon.h"

INLINE int8x16_t broadcast(const uint8_t *p) {
    uint32_t dword;
    memcpy(&dword, p, 4);
    return vreinterpretq_s8_u32(vdupq_n_u32(dword ^ 0x80808080u));
}

/* The barrier keeps compilers from moving sums through memory. */
#define ADD(r, j, product)                                                                         \
    a##r##_##j = vpadalq_s16(a##r##_##j, product);                                                 \
    __asm__("" : "+w"(a##r##_##j));
#define LOW(v, r)  vmull_s8(vget_low_s8(b##v), vget_low_s8(x##r))
#define HIGH(v, r) vmull_high_s8(b##v, x##r)
#define DOTS(r)                                                                                    \
    const int8x16_t x##r = broadcast(p##r + i);                                                    \
    ADD(r, 0, LOW(0, r))                                                                           \
    ADD(r, 1, HIGH(0, r))                                                                          \
    ADD(r, 2, LOW(1, r))                                                                           \
    ADD(r, 3, HIGH(1, r))                                                                          \
    ADD(r, 4, LOW(2, r)) ADD(r, 5, HIGH(2, r)) ADD(r, 6, LOW(3, r)) ADD(r, 7, HIGH(3, r))
#define DECLARE(r)                                                                                 \
    int32x4_t a##r##_0 = vdupq_n_s32(0), a##r##_1 = a##r##_0, a##r##_2 = a##r##_0;                 \
    int32x4_t a##r##_3 = a##r##_0, a##r##_4 = a##r##_0, a##r##_5 = a##r##_0;                       \
    int32x4_t a##r##_6 = a##r##_0, a##r##_7 = a##r##_0;                                            \
    const uint8_t *p##r = row[r];
#define FINISH(r)                                                                                  \
    finish(s, r, vpaddq_s32(a##r##_0, a##r##_1), vpaddq_s32(a##r##_2, a##r##_3),                   \
           vpaddq_s32(a##r##_4, a##r##_5), vpaddq_s32(a##r##_6, a##r##_7));

#define R1(F) F(0)
#define R2(F) F(0) F(1)
#define TILE(name, NR)                                                                             \
    static void name(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s) {            \
        const int8_t *b = g->b;                                                                    \
        R##NR(DECLARE) for (int32_t seg = 0; seg < g->segs; seg++) {                               \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            for (ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4; i < end; i += 4, b += 64) {             \
                const int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);                           \
                const int8x16_t b2 = vld1q_s8(b + 32), b3 = vld1q_s8(b + 48);                      \
                R##NR(DOTS)                                                                        \
            }                                                                                      \
        }                                                                                          \
        R##NR(FINISH)                                                                              \
    }
TILE(tile_1, 1)
TILE(tile_many, 2)

typedef struct sums {
    int32x4_t v[4];
} sums;

INLINE sums add_tap(sums a, const uint8_t *p, int8x16_t w) {
    const uint8x16_t x = vld1q_u8(p);
    const int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x)));
    const int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(x));
    const int16x8_t w_low = vmovl_s8(vget_low_s8(w)), w_high = vmovl_high_s8(w);
    return (sums){{vmlal_s16(a.v[0], vget_low_s16(low), vget_low_s16(w_low)),
                   vmlal_high_s16(a.v[1], low, w_low),
                   vmlal_s16(a.v[2], vget_low_s16(high), vget_low_s16(w_high)),
                   vmlal_high_s16(a.v[3], high, w_high)}};
}

#define ADD_TAP(i)                                                                                 \
    x = add_tap(x, tap_at(d, a, t + i), taps.val[i]);                                              \
    y = add_tap(y, tap_at(d, next, t + i), taps.val[i]);

INLINE void depthwise_pixels(const qk_depthwise_u8s8 *d, const uint8_t *a, const uint8_t *next,
                             const int8_t *w, const sink *s) {
    sums x = {{vld1q_s32(s->base), vld1q_s32(s->base + 4), vld1q_s32(s->base + 8),
               vld1q_s32(s->base + 12)}};
    sums y = x;
    for (int32_t t = 0; t < d->taps; t += 4, w += 64) {
        const int8x16x4_t taps = vld4q_s8(w);
        ADD_TAP(0) ADD_TAP(1) ADD_TAP(2) ADD_TAP(3)
    }
    store(s, s->out, x.v[0], x.v[1], x.v[2], x.v[3]);
    if (s->rows > 1)
        store(s, s->out + s->stride, y.v[0], y.v[1], y.v[2], y.v[3]);
}
#endif
