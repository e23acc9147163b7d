/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution with dot products of bytes: the channels of four taps are interleaved to
 * dwords. Include it after i8_neon.h, having defined
 *
 *   dot(acc, x, w)   function: dwords of 4 activations x dwords of 4 s8, added up
 *
 * With DEPTHWISE_SIGNED, dot gets flipped activations.
 */
INLINE uint8x16_t load_x(const uint8_t *p) {
    const uint8x16_t x = vld1q_u8(p);
    return DEPTHWISE_SIGNED ? veorq_u8(x, vdupq_n_u8(0x80)) : x;
}

INLINE uint16x8_t words(uint8x16_t v) {
    return vreinterpretq_u16_u8(v);
}

/* Adds four taps of one pixel. */
#define ADD_TAPS(v, pixel)                                                                         \
    {                                                                                              \
        const uint8x16_t t0 = load_x(tap_at(d, pixel, t)), t1 = load_x(tap_at(d, pixel, t + 1));   \
        const uint8x16_t t2 = load_x(tap_at(d, pixel, t + 2)),                                     \
                         t3 = load_x(tap_at(d, pixel, t + 3));                                     \
        const uint16x8_t lo01 = words(vzip1q_u8(t0, t1)), hi01 = words(vzip2q_u8(t0, t1));         \
        const uint16x8_t lo23 = words(vzip1q_u8(t2, t3)), hi23 = words(vzip2q_u8(t2, t3));         \
        v##0 = dot(v##0, vreinterpretq_u8_u16(vzip1q_u16(lo01, lo23)), w0);                        \
        v##1 = dot(v##1, vreinterpretq_u8_u16(vzip2q_u16(lo01, lo23)), w1);                        \
        v##2 = dot(v##2, vreinterpretq_u8_u16(vzip1q_u16(hi01, hi23)), w2);                        \
        v##3 = dot(v##3, vreinterpretq_u8_u16(vzip2q_u16(hi01, hi23)), w3);                        \
    }

INLINE void depthwise_pixels(const qk_depthwise_u8s8 *d, const uint8_t *a, const uint8_t *next,
                             const int8_t *w, const sink *s) {
    int32x4_t x0 = vld1q_s32(s->base), x1 = vld1q_s32(s->base + 4), y0 = x0, y1 = x1;
    int32x4_t x2 = vld1q_s32(s->base + 8), x3 = vld1q_s32(s->base + 12), y2 = x2, y3 = x3;
    for (int32_t t = 0; t < d->taps; t += 4, w += 64) {
        const int8x16_t w0 = vld1q_s8(w), w1 = vld1q_s8(w + 16);
        const int8x16_t w2 = vld1q_s8(w + 32), w3 = vld1q_s8(w + 48);
        ADD_TAPS(x, a)
        ADD_TAPS(y, next)
    }
    store(s, s->out, x0, x1, x2, x3);
    if (s->rows > 1)
        store(s, s->out + s->stride, y0, y1, y2, y3);
}
