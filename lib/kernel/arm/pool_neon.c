/* SPDX-License-Identifier: MIT */
/* Pooling of u8, 16 channels at once. */
#include "kernel/arm/pool_neon.h"

#if QK_ARM
#include "kernel/arm/requantize_neon.h"

/* The most bytes that always add up within 16 bits: 257 * 255 = 65535. */
#define WORD_TAPS 257

#define TARGET
#define VEC   uint8x16_t
#define LANES 16

#define LOAD(p)              vld1q_u8(p)
#define STORE_FIRST(p, v, n) store_first(p, v, n)
/* Picks every other dword, for pixels of 4 bytes. */
#define PICK_INDEX   int
#define PICK_MOST    1
#define PICK_LOAD(i) ((void)(i), 0)
#define PICK(v, i)   every_other(v, i)

static inline void store_first(uint8_t *p, uint8x16_t v, size_t n) {
    uint8_t bytes[16];
    if (n == 16) {
        vst1q_u8(p, v);
        return;
    }
    vst1q_u8(bytes, v);
    memcpy(p, bytes, n);
}

static inline uint8x16_t every_other(uint8x16_t v, int unused) {
    const uint32x4_t d = vreinterpretq_u32_u8(v);
    (void)unused;
    return vreinterpretq_u8_u32(vuzp1q_u32(d, d));
}

#include "kernel/pool_tile.h"

#define AS_IT_IS(v, count) (v)
POOL(max_u8, uint8_t, vdupq_n_u8(0), vmaxq_u8, AS_IT_IS, "GCC unroll 2")

void qk_max_u8_neon(const qk_pool *p) {
    max_u8(p);
}

/* Sums of 16 channels. */
typedef struct sums {
    uint32x4_t v[4];
} sums;

INLINE sums add_words(sums s, uint16x8_t low, uint16x8_t high) {
    return (sums){{vaddw_u16(s.v[0], vget_low_u16(low)), vaddw_high_u16(s.v[1], low),
                   vaddw_u16(s.v[2], vget_low_u16(high)), vaddw_high_u16(s.v[3], high)}};
}

static sums sum_u8(const qk_pool *p, const uint8_t *line, size_t count, ptrdiff_t step) {
    const bool fits = p->kh * count <= WORD_TAPS;
    const uint16x8_t zero = vdupq_n_u16(0);
    uint16x8_t low = zero, high = zero;
    sums s = {{vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0)}};
    for (size_t ky = 0; ky < p->kh; ky++, line += p->row_step) {
        const uint8_t *v = line;
        for (size_t kx = 0; kx < count; kx++, v += step) {
            const uint8x16_t x = vld1q_u8(v);
            low = vaddw_u8(low, vget_low_u8(x));
            high = vaddw_high_u8(high, x);
            if (!fits) {
                s = add_words(s, low, high);
                low = high = zero;
            }
        }
    }
    return add_words(s, low, high);
}

void qk_average_u8_neon(const qk_pool *p) {
    const ptrdiff_t channels = (ptrdiff_t)p->channels, step = (ptrdiff_t)p->dw * channels;
    const limits l = limits_of(p->y_zero, p->lo, p->hi);
    const uint8_t *const x = p->x;
    uint8_t *y = p->y;
    for (size_t ox = 0; ox < p->ow; ox++, y += p->y_step) {
        const qk_window w = qk_window_at(p, ox);
        const float32x4_t m = vdupq_n_f32(qk_average_multiplier(p, &w));
        const int32x4_t bias = vdupq_n_s32(-p->x_zero * (int32_t)(p->kh * w.count));
        for (ptrdiff_t j = 0; j < channels; j += 16) {
            const sums s = sum_u8(p, x + w.first * channels + j, w.count, step);
            int32x4_t v[4];
            for (int i = 0; i < 4; i++)
                v[i] = scale(vaddq_s32(vreinterpretq_s32_u32(s.v[i]), bias), m);
            const size_t last = (size_t)(channels - j);
            store_first(y + j, pack_bytes(&l, v[0], v[1], v[2], v[3]), last < 16 ? last : 16);
        }
    }
}
#endif
