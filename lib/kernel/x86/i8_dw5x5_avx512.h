/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8, AVX-512 VNNI: 5 x 5 at stride 1, part of i8_dw3x3_avx512.h.
 * Two rows of output read six rows of the image. Rows 0 to 3 of a column make one dword, rows 4 and
 * 5 one together with those of the next column: eight dot products for 25 taps. Columns stay in
 * registers from pixel to pixel, half of their channels at a time, and so do as many weights as
 * fit: loads, one per cycle, are the limit. Words of the first half of the channels wait in memory
 * for the second.
 */
#ifndef QK_I8_DW5X5_AVX512_H
#define QK_I8_DW5X5_AVX512_H

#define FIVE_PIXELS 32

/* Half of a column's channels. */
typedef struct half {
    __m512i d0, d1;
} half;

typedef struct five_column {
    half top;    /* rows 0 … 3 */
    __m512i two; /* rows 4 and 5 */
} five_column;

INLINE half unpack_words(__m512i a, __m512i b) {
    return (half){_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)};
}

INLINE __m512i unpack_bytes(__m512i a, __m512i b, bool high) {
    return high ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
}

INLINE five_column five_at(const dw_rows *s, ptrdiff_t at, bool high) {
    const dw_taps t = load_rows(s, at, 6, 1);
    return (five_column){
        unpack_words(unpack_bytes(t.t0, t.t1, high), unpack_bytes(t.t2, t.t3, high)),
        unpack_bytes(t.t4, t.t5, high)};
}

/* Weights of rows 4 and 5 of two columns; the upper half of each packed dword is zero. */
INLINE __m512i five_pair(const int8_t *w) {
    const __m512i second = _mm512_slli_epi32(_mm512_loadu_si512(w + 512), 16);
    return _mm512_or_si512(_mm512_loadu_si512(w), second);
}

#define FIVE_DOT(acc, x, w)                                                                        \
    acc = _mm512_dpbusd_epi32(acc, x, w);                                                          \
    W_KEEP(acc)
#define FIVE_DOTS(x, at)                                                                           \
    FIVE_DOT(a0, (x).d0, _mm512_loadu_si512(w + (at)))                                             \
    FIVE_DOT(b0, (x).d0, _mm512_loadu_si512(v + (at)))                                             \
    FIVE_DOT(a1, (x).d1, _mm512_loadu_si512(w + (at) + 64))                                        \
    FIVE_DOT(b1, (x).d1, _mm512_loadu_si512(v + (at) + 64))
#define FIVE_PAIRS(i, x, y)                                                                        \
    {                                                                                              \
        const half pair = unpack_words((x).two, (y).two);                                          \
        FIVE_DOT(a0, pair.d0, w##i##0)                                                             \
        FIVE_DOT(b0, pair.d0, v##i##0)                                                             \
        FIVE_DOT(a1, pair.d1, w##i##1)                                                             \
        FIVE_DOT(b1, pair.d1, v##i##1)                                                             \
    }
#define FIVE_WEIGHTS(i)                                                                            \
    __m512i w##i##0 = five_pair(o->w + z + 1024 * i + 256);                                        \
    __m512i w##i##1 = five_pair(o->w + z + 1024 * i + 320);                                        \
    __m512i v##i##0 = five_pair(o->v + z + 1024 * i + 256);                                        \
    __m512i v##i##1 = five_pair(o->v + z + 1024 * i + 320);                                        \
    W_KEEP(w##i##0)                                                                                \
    W_KEEP(w##i##1)                                                                                \
    W_KEEP(v##i##0)                                                                                \
    W_KEEP(v##i##1)

/* Computes n pixels, half of their channels; words[x]: the first half of pixel x, both rows. */
INLINE void five_half(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *usual,
                      int32_t begin, int32_t n, bool high, __m512i (*words)[2]) {
    const epilogue e = *usual;
    const ptrdiff_t step = s->across, pixel = o->pixel;
    const int32_t z = high ? 128 : 0;
    uint8_t *first = o->first + begin * pixel, *second = o->second + begin * pixel;
    FIVE_WEIGHTS(0)
    FIVE_WEIGHTS(1)
    const __m512i none = _mm512_setzero_si512();
    five_column c0 = {{none, none}, none}, c1 = c0, c2 = c0, c3 = c0, c4 = c0;
    /* Hides that `offset` is the same for all pixels: gcc else copies the weights to the stack. */
    ptrdiff_t offset = z;
    for (int32_t x = -4; x < n; x++, at += step) {
        c0 = c1;
        c1 = c2;
        c2 = c3;
        c3 = c4;
        c4 = five_at(s, at, high);
        if (x < 0)
            continue;
        __asm__("" : "+r"(offset));
        const int8_t *w = o->w + offset, *v = o->v + offset;
        const int32_t *bias = o->bias + offset / 4;
        __m512i a0 = _mm512_loadu_si512(bias), b0 = a0;
        __m512i a1 = _mm512_loadu_si512(bias + 16), b1 = a1;
        FIVE_DOTS(c0.top, 0)
        FIVE_DOTS(c1.top, 512)
        FIVE_PAIRS(0, c0, c1)
        FIVE_DOTS(c2.top, 1024)
        FIVE_DOTS(c3.top, 1536)
        FIVE_PAIRS(1, c2, c3)
        FIVE_DOTS(c4.top, 2048)
        const half last = unpack_words(c4.two, c4.two);
        FIVE_DOTS(last, 2048 + 256)
        const __m512 m0 = _mm512_loadu_ps(o->mult + z / 4);
        const __m512 m1 = _mm512_loadu_ps(o->mult + z / 4 + 16);
        const __m512i a = pack_words(scale(a0, m0, &e), scale(a1, m1, &e), &e);
        const __m512i b = pack_words(scale(b0, m0, &e), scale(b1, m1, &e), &e);
        if (high) {
            dw_store(o, second, _mm512_packus_epi16(words[x][1], b), begin + x, &e, 1);
            dw_store(o, first, _mm512_packus_epi16(words[x][0], a), begin + x, &e, 1);
            first += pixel;
            second += pixel;
        } else {
            words[x][0] = a;
            words[x][1] = b;
        }
    }
}

TARGET static void dw5_s1(const dw_rows *s, const dw_job *given, ptrdiff_t at,
                          const epilogue *usual) {
    epilogue e = *usual;
    e.clamp = false;
    const dw_job copy = *given;
    __m512i words[FIVE_PIXELS][2];
    for (int32_t x = 0; x < copy.n; x += FIVE_PIXELS) {
        const int32_t n = copy.n - x < FIVE_PIXELS ? copy.n - x : FIVE_PIXELS;
        five_half(s, &copy, at + x * s->across, &e, x, n, false, words);
        five_half(s, &copy, at + x * s->across, &e, x, n, true, words);
    }
}

#endif
