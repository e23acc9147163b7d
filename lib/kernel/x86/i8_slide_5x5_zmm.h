/* SPDX-License-Identifier: MIT */
/*
 * Depthwise 5 x 5 at stride 1, part of i8_slide_zmm.h: two rows of output look at six of the image.
 * Four of them make a dword, the last two one together with those of the next column: eight dot
 * products for 25 taps. Columns stay in registers from one pixel to the next, half of their
 * channels at a time; words of the first half wait in memory for the second.
 */
#ifndef QK_I8_SLIDE_5X5_ZMM_H
#define QK_I8_SLIDE_5X5_ZMM_H

#define FIVE_PIXELS 32

/* Half of a column's channels. */
typedef struct half {
    __m512i d0, d1;
} half;

typedef struct five_column {
    half top;    /* rows 0 … 3 */
    half bottom; /* rows 4 and 5, of the column before and this one */
    __m512i two; /* rows 4 and 5 */
} five_column;

/* Weights of the bottom rows, for columns 0 and 1, 2 and 3, 4 alone. */
typedef struct five_weights {
    _Alignas(64) int8_t w[3][256], v[3][256];
} five_weights;

INLINE half unpack_words(__m512i a, __m512i b) {
    return (half){_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)};
}

INLINE __m512i unpack_bytes(__m512i a, __m512i b, bool high) {
    return high ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
}

INLINE five_column five_at(const slides *s, ptrdiff_t at, __m512i before, bool high,
                           int32_t ranges) {
    const strips t = load_rows(s, at, 6, ranges);
    const __m512i two = unpack_bytes(t.t4, t.t5, high);
    return (five_column){
        unpack_words(unpack_bytes(t.t0, t.t1, high), unpack_bytes(t.t2, t.t3, high)),
        unpack_words(before, two), two};
}

TARGET static void five_pair(const int8_t *w, int32_t first, int8_t *to) {
    const __m512i low = _mm512_set1_epi32(0xffff);
    for (int32_t z = 0; z < 256; z += 64) {
        const __m512i even = _mm512_loadu_si512(w + 512 * first + 256 + z);
        const __m512i odd = _mm512_loadu_si512(w + 512 * first + 768 + z);
        _mm512_store_si512(
            to + z, _mm512_or_si512(_mm512_and_si512(even, low), _mm512_slli_epi32(odd, 16)));
    }
}

/* Column 4 lies where the second of a pair does. */
TARGET static void five_last(const int8_t *w, int8_t *to) {
    for (int32_t z = 0; z < 256; z += 64)
        _mm512_store_si512(to + z,
                           _mm512_slli_epi32(_mm512_loadu_si512(w + 4 * 512 + 256 + z), 16));
}

TARGET static void five_prepare(const slide_out *o, five_weights *f) {
    for (int32_t i = 0; i < 2; i++) {
        five_pair(o->w, 2 * i, f->w[i]);
        five_pair(o->v, 2 * i, f->v[i]);
    }
    five_last(o->w, f->w[2]);
    five_last(o->v, f->v[2]);
}

#define FIVE_DOT(acc, x, w)                                                                        \
    acc = _mm512_dpbusd_epi32(acc, x, _mm512_loadu_si512(w));                                      \
    W_KEEP(acc)
#define FIVE_DOTS(x, w, v)                                                                         \
    FIVE_DOT(a0, (x).d0, (w) + z)                                                                  \
    FIVE_DOT(b0, (x).d0, (v) + z)                                                                  \
    FIVE_DOT(a1, (x).d1, (w) + z + 64)                                                             \
    FIVE_DOT(b1, (x).d1, (v) + z + 64)

/* n pixels, half of their channels; words: of each pixel, both rows. */
INLINE void five_half(const slides *s, const slide_out *o, const five_weights *f, ptrdiff_t at,
                      const epilogue *usual, int32_t begin, int32_t n, bool high, int32_t ranges,
                      __m512i (*words)[2]) {
    const epilogue e = *usual;
    const ptrdiff_t step = s->across, pixel = o->pixel;
    const int32_t z = high ? 128 : 0;
    uint8_t *first = o->first + begin * pixel, *second = o->second + begin * pixel;
    const __m512i none = _mm512_setzero_si512();
    five_column c0 = {{none, none}, {none, none}, none}, c1 = c0, c2 = c0, c3 = c0, c4 = c0;
    for (int32_t x = -4; x < n; x++, at += step) {
        c0 = c1;
        c1 = c2;
        c2 = c3;
        c3 = c4;
        c4 = five_at(s, at, c3.two, high, ranges);
        if (x < 0)
            continue;
        __m512i a0 = _mm512_loadu_si512(o->bias + z / 4), b0 = a0;
        __m512i a1 = _mm512_loadu_si512(o->bias + z / 4 + 16), b1 = a1;
        FIVE_DOTS(c0.top, o->w, o->v)
        FIVE_DOTS(c1.top, o->w + 512, o->v + 512)
        FIVE_DOTS(c1.bottom, f->w[0], f->v[0])
        FIVE_DOTS(c2.top, o->w + 1024, o->v + 1024)
        FIVE_DOTS(c3.top, o->w + 1536, o->v + 1536)
        FIVE_DOTS(c3.bottom, f->w[1], f->v[1])
        FIVE_DOTS(c4.top, o->w + 2048, o->v + 2048)
        FIVE_DOTS(c4.bottom, f->w[2], f->v[2])
        const __m512 m0 = _mm512_loadu_ps(o->mult + z / 4),
                     m1 = _mm512_loadu_ps(o->mult + z / 4 + 16);
        const __m512i a = narrow(scale(a0, m0, &e), scale(a1, m1, &e), &e);
        const __m512i b = narrow(scale(b0, m0, &e), scale(b1, m1, &e), &e);
        if (high) {
            slide_store(o, second, _mm512_packus_epi16(words[x][1], b), begin + x, &e, ranges);
            slide_store(o, first, _mm512_packus_epi16(words[x][0], a), begin + x, &e, ranges);
            first += pixel;
            second += pixel;
        } else {
            words[x][0] = a;
            words[x][1] = b;
        }
    }
}

INLINE void five_rows(const slides *s, const slide_out *given, ptrdiff_t at, const epilogue *usual,
                      int32_t ranges) {
    epilogue e = *usual;
    e.clamp = false;
    const slide_out copy = *given;
    five_weights f;
    __m512i words[FIVE_PIXELS][2];
    five_prepare(given, &f);
    for (int32_t x = 0; x < copy.n; x += FIVE_PIXELS) {
        const int32_t n = copy.n - x < FIVE_PIXELS ? copy.n - x : FIVE_PIXELS;
        five_half(s, &copy, &f, at + x * s->across, &e, x, n, false, ranges, words);
        five_half(s, &copy, &f, at + x * s->across, &e, x, n, true, ranges, words);
    }
}

TARGET static void slide_5x5(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e) {
    five_rows(s, o, at, e, 1);
}

TARGET static void slide_2_5x5(const slides *s, const slide_out *o, ptrdiff_t at,
                               const epilogue *e) {
    five_rows(s, o, at, e, 2);
}

#endif
