/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8 for AVX-512 with VNNI: any kernel by its list of taps, 64
 * channels and four taps at a time, and kernels of 2 to 7 rows on the image itself (i8_dw_*.h).
 */
#include <assert.h>

#include "kernel/i8.h"

#ifdef QK_AVX512VNNI
#include "kernel/x86/i8_zmm.h"

/* Four taps of 64 channels become four vectors of dwords: the taps of one channel each. */
#define INTERLEAVE(t0, t1, t2, t3)                                                                 \
    const __m512i lo01 = _mm512_unpacklo_epi8(t0, t1), hi01 = _mm512_unpackhi_epi8(t0, t1);        \
    const __m512i lo23 = _mm512_unpacklo_epi8(t2, t3), hi23 = _mm512_unpackhi_epi8(t2, t3);        \
    const __m512i d0 = _mm512_unpacklo_epi16(lo01, lo23), d1 = _mm512_unpackhi_epi16(lo01, lo23);  \
    const __m512i d2 = _mm512_unpacklo_epi16(hi01, hi23), d3 = _mm512_unpackhi_epi16(hi01, hi23);

INLINE const uint8_t *tap_at(const qk_depthwise_u8s8 *d, const uint8_t *a, int32_t tap) {
    return a + d->tap_offset[tap < d->taps ? tap : 0];
}

#define DOT_CHANNELS(D0, D1, D2, D3, w)                                                            \
    a0 = _mm512_dpbusd_epi32(a0, D0, _mm512_loadu_si512(w));                                       \
    a1 = _mm512_dpbusd_epi32(a1, D1, _mm512_loadu_si512((w) + 64));                                \
    a2 = _mm512_dpbusd_epi32(a2, D2, _mm512_loadu_si512((w) + 128));                               \
    a3 = _mm512_dpbusd_epi32(a3, D3, _mm512_loadu_si512((w) + 192));

#define CHANNEL_SUMS(bias)                                                                         \
    __m512i a0 = _mm512_loadu_si512(bias), a1 = _mm512_loadu_si512((bias) + 16);                   \
    __m512i a2 = _mm512_loadu_si512((bias) + 32), a3 = _mm512_loadu_si512((bias) + 48);

INLINE void depthwise_pixel(const qk_depthwise_u8s8 *d, const uint8_t *a, const int8_t *w,
                            const int32_t *bias, const sink *s) {
    CHANNEL_SUMS(bias)
    for (int32_t t = 0; t < d->taps; t += 4, w += 256) {
        const __m512i t0 = _mm512_loadu_si512(tap_at(d, a, t));
        const __m512i t1 = _mm512_loadu_si512(tap_at(d, a, t + 1));
        const __m512i t2 = _mm512_loadu_si512(tap_at(d, a, t + 2));
        const __m512i t3 = _mm512_loadu_si512(tap_at(d, a, t + 3));
        INTERLEAVE(t0, t1, t2, t3)
        DOT_CHANNELS(d0, d1, d2, d3, w)
    }
    finish_4(s, 0, a0, a1, a2, a3);
}

typedef struct block {
    const int8_t *w;
    const int32_t *bias;
    sink s;
} block;

/* The weights, biases and multipliers of the block of channels from c on. */
INLINE block block_at(const qk_depthwise_u8s8 *d, int32_t c) {
    size_t element = d->o.mult ? 1 : 4, bytes = 256 * (size_t)((d->taps + 3) / 4);
    const int32_t cols = d->channels - c < 64 ? d->channels - c : 64;
    return (block){d->w + (size_t)(c / 64) * bytes,
                   d->o.bias + c,
                   {.out = (uint8_t *)d->out + element * (size_t)c,
                    .stride = d->out_stride,
                    .mult = d->o.mult ? d->o.mult + c : NULL,
                    .cols = cols,
                    .rows = 1,
                    .mask = mask64(cols),
                    .e = epilogue_of(&d->o),
                    .scale = d->o.scale ? d->o.scale + c : NULL,
                    .add = d->o.scale ? d->o.add + c : NULL}};
}

TARGET void qk_depthwise_u8s8_avx512vnni(const qk_depthwise_u8s8 *given) {
    assert(qk_depthwise_u8s8_valid(given));
    const qk_depthwise_u8s8 own = *given, *const d = &own; /* a copy: stores cannot alias it */
    for (int32_t c = 0; c < d->channels; c += 64) {
        block b = block_at(d, c);
        const uint8_t *a = d->a + c;
        for (int32_t r = 0; r < d->m; r++, a += d->a_stride, b.s.out += d->out_stride)
            depthwise_pixel(d, a, b.w, b.bias, &b.s);
    }
}

#define W_LANES 4
#define W_GROUP 4
INLINE __m512i window_dot(__m512i acc, __m512i x, __m512i w) {
    return _mm512_dpbusd_epi32(acc, x, w);
}

#include "kernel/x86/i8_dw3x3_avx512.h"
#include "kernel/x86/i8_dw_window.h"

TARGET void qk_window_u8s8_avx512vnni(const qk_window_u8s8 *d) {
    assert(qk_window_u8s8_valid(&qk_i8_avx512vnni, d));
    window_u8s8(d);
}
#endif
