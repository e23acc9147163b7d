/* SPDX-License-Identifier: MIT */
/* Depthwise integer convolution for AVX-512 with VNNI: 64 channels, four taps at a time. */
#include "kernel/i8.h"

#if QK_X86
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
        const __m512i t3 =
            d->columns ? _mm512_setzero_si512() : _mm512_loadu_si512(tap_at(d, a, t + 3));
        INTERLEAVE(t0, t1, t2, t3)
        DOT_CHANNELS(d0, d1, d2, d3, w)
    }
    finish_4(s, 0, a0, a1, a2, a3);
}

/* A column of three taps, interleaved. */
typedef struct column {
    __m512i d0, d1, d2, d3;
} column;

INLINE column load_column(const uint8_t *const *rows, ptrdiff_t at) {
    const __m512i t0 = _mm512_loadu_si512(rows[0] + at), t1 = _mm512_loadu_si512(rows[1] + at);
    const __m512i t2 = _mm512_loadu_si512(rows[2] + at), t3 = _mm512_setzero_si512();
    INTERLEAVE(t0, t1, t2, t3)
    return (column){d0, d1, d2, d3};
}

/* Only the bytes of `mask` lie inside the image. */
INLINE column edge_column(const uint8_t *const *rows, ptrdiff_t at, __mmask64 mask, uint8_t zp) {
    const __m512i out = _mm512_set1_epi8((char)zp), t3 = _mm512_setzero_si512();
    if (!mask) {
        const __m512i d = _mm512_set1_epi32(zp * 0x10101);
        return (column){d, d, d, d};
    }
    const __m512i t0 = _mm512_mask_loadu_epi8(out, mask, rows[0] + at);
    const __m512i t1 = _mm512_mask_loadu_epi8(out, mask, rows[1] + at);
    const __m512i t2 = _mm512_mask_loadu_epi8(out, mask, rows[2] + at);
    INTERLEAVE(t0, t1, t2, t3)
    return (column){d0, d1, d2, d3};
}

/* Three rows of the image at a block's channels. */
typedef struct slide {
    const uint8_t *rows[3];
    ptrdiff_t across; /* from column to column */
    bool left, right; /* as in qk_depthwise_u8s8 */
    bool pairs;       /* of pixels: only one of two lies outside */
} slide;

#define DOT_COLUMN(c, w) DOT_CHANNELS((c).d0, (c).d1, (c).d2, (c).d3, w)

/*
 * 3 x 3 at stride 1 or 2: what one pixel interleaves the next one uses again, two columns of three
 * or one. twice: a second set of weights follows.
 */
INLINE void depthwise_slide(const qk_depthwise_u8s8 *d, const slide *p, const int8_t *w,
                            const int32_t *bias, sink s, bool by_two, bool twice) {
    const ptrdiff_t across = p->across;
    ptrdiff_t at = p->left ? 0 : across; /* of the second column */
    const __mmask64 half = p->pairs ? 0xffffffff : 0;
    column c0 =
        p->left ? edge_column(p->rows, -across, half << 32, d->x_zp) : load_column(p->rows, 0);
    column c1 = load_column(p->rows, at);
    at += across;
    for (int32_t r = 0; r < d->m; r++, s.out += d->out_stride, at += across) {
        CHANNEL_SUMS(bias)
        const bool last = r + 1 == d->m;
        const column c2 =
            last && p->right ? edge_column(p->rows, at, half, d->x_zp) : load_column(p->rows, at);
        DOT_COLUMN(c0, w)
        DOT_COLUMN(c1, w + 256)
        DOT_COLUMN(c2, w + 512)
        if (twice) {
            DOT_COLUMN(c0, w + 768)
            DOT_COLUMN(c1, w + 1024)
            DOT_COLUMN(c2, w + 1280)
        }
        finish_4(&s, 0, a0, a1, a2, a3);
        c0 = by_two ? c2 : c1;
        at += by_two ? across : 0;
        /* Behind the last pixel nothing may be read. */
        c1 = by_two && !last ? load_column(p->rows, at) : c2;
    }
}

/* How many pixels a column is used again by: 1, 2, or 0 if the taps are no such kernel. */
static int32_t slide_step(const qk_depthwise_u8s8 *d) {
    const int32_t *o = d->tap_offset;
    if (!d->columns || (d->taps != 12 && d->taps != 24) || o[8] - o[4] != o[4] - o[0])
        return 0;
    if (d->taps == 24 && memcmp(o, o + 12, 12 * sizeof(*o)) != 0)
        return 0;
    return d->a_stride == o[4] - o[0] ? 1 : d->a_stride == o[8] - o[0] ? 2 : 0;
}

/* Most blocks have no weight that exceeds s8. */
TARGET static bool any_second(const int8_t *w) {
    __m512i any = _mm512_setzero_si512();
    for (int32_t i = 768; i < 1536; i += 64)
        any = _mm512_or_si512(any, _mm512_loadu_si512(w + i));
    return _mm512_test_epi32_mask(any, any) != 0;
}

TARGET static void slide_block(const qk_depthwise_u8s8 *d, const slide *p, const int8_t *w,
                               const int32_t *bias, const sink *s, bool by_two) {
    bool twice = d->taps == 24 && any_second(w);
    if (!is_plain(s) && by_two)
        depthwise_slide(d, p, w, bias, *s, true, d->taps == 24);
    else if (!is_plain(s))
        depthwise_slide(d, p, w, bias, *s, false, d->taps == 24);
    else if (by_two && twice)
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), true, true);
    else if (by_two)
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), true, false);
    else if (twice)
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), false, true);
    else
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), false, false);
}

typedef struct block {
    const int8_t *w;
    const int32_t *bias;
    sink s;
} block;

/* What belongs to the block of channels from c on. */
INLINE block block_at(const qk_depthwise_u8s8 *d, int32_t c) {
    size_t element = d->o.mult ? 1 : 4, bytes = 256 * (size_t)((d->taps + 3) / 4);
    return (block){d->w + (size_t)(c / 64) * bytes,
                   d->o.bias + c,
                   {(uint8_t *)d->out + element * (size_t)c, d->out_stride,
                    d->o.mult ? d->o.mult + c : NULL, NULL,
                    d->channels - c < 64 ? d->channels - c : 64, 1, epilogue_of(&d->o)}};
}

TARGET void qk_depthwise_u8s8_avx512vnni(const qk_depthwise_u8s8 *d) {
    const int32_t *o = d->tap_offset;
    int32_t step = slide_step(d);
    for (int32_t c = 0; c < d->channels; c += 64) {
        block b = block_at(d, c);
        const uint8_t *a = d->a + c;
        if (step) {
            slide p = {{a + o[0], a + o[1], a + o[2]}, o[4] - o[0], false, false, false};
            slide_block(d, &p, b.w, b.bias, &b.s, step == 2);
        } else {
            for (int32_t r = 0; r < d->m; r++, a += d->a_stride, b.s.out += d->out_stride)
                depthwise_pixel(d, a, b.w, b.bias, &b.s);
        }
    }
}

TARGET void qk_depthwise_rows_u8s8_avx512vnni(const qk_depthwise_u8s8 *d) {
    for (int32_t c = 0; c < d->channels; c += 64) {
        block b = block_at(d, c);
        slide p = {{d->rows[0] + c, d->rows[1] + c, d->rows[2] + c},
                   d->across,
                   d->left,
                   d->right,
                   d->across != d->channels};
        slide_block(d, &p, b.w, b.bias, &b.s, d->a_stride != d->across);
    }
}
#endif
