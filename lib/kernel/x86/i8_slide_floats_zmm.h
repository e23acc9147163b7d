/* SPDX-License-Identifier: MIT */
/*
 * 3 x 3 depthwise to floats, part of i8_slide_zmm.h: of 64 channels, or of 32 in two ranges of
 * columns. Where there is no second row, the first one comes last.
 */
#ifndef QK_I8_SLIDE_FLOATS_ZMM_H
#define QK_I8_SLIDE_FLOATS_ZMM_H

#include "kernel/x86/i8_slide_zmm.h"

/* 32 channels of the ranges' columns. */
INLINE void store_halves(const slide_out *o, sink *s, int32_t x, __m512i a, __m512i b, __m512i c,
                         __m512i d) {
    const sink half = *s;
    FLOATS(a, 0);
    FLOATS(b, 1);
    FLOATS(c, 2);
    FLOATS(d, 3);
    __m512i ab = _mm512_shuffle_i32x4(a, b, 0x44), cd = _mm512_shuffle_i32x4(c, d, 0x44);
    store_i32(&half, 0, 0, _mm512_shuffle_i32x4(ab, cd, 0x88));
    store_i32(&half, 0, 1, _mm512_shuffle_i32x4(ab, cd, 0xdd));
    if (x >= o->whole)
        return;
    ab = _mm512_shuffle_i32x4(a, b, 0xee);
    cd = _mm512_shuffle_i32x4(c, d, 0xee);
    s->out += o->n * o->pixel;
    store_i32(s, 0, 0, _mm512_shuffle_i32x4(ab, cd, 0x88));
    store_i32(s, 0, 1, _mm512_shuffle_i32x4(ab, cd, 0xdd));
}

INLINE void slide_floats(const slide_out *o, uint8_t *to, int32_t x, const epilogue *e,
                         int32_t ranges, __m512i a, __m512i b, __m512i c, __m512i d) {
    sink s = {to, 0, NULL, NULL, o->cols, 1, *e, o->scale, o->add};
    if (ranges == 2)
        store_halves(o, &s, x, a, b, c, d);
    else
        store_floats_4(&s, 0, a, b, c, d);
}

#define SLIDE_FLOATS                                                                               \
    slide_floats(o, second, x, &e, ranges, b0, b1, b2, b3);                                        \
    slide_floats(o, first, x, &e, ranges, a0, a1, a2, a3);                                         \
    first += o->pixel;                                                                             \
    second += o->pixel;
#define LOAD_BIAS(i) const __m512i bias##i = _mm512_loadu_si512(o->bias + 16 * i);

INLINE void floats_by_one(const slides *s, const slide_out *given, ptrdiff_t at,
                          const epilogue *usual, int32_t ranges) {
    const epilogue e = *usual;
    const slide_out copy = *given, *o = &copy; /* no store changes it */
    const bool single = false;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    column c0 = column_at(s, at, ranges), c1 = column_at(s, at + step, ranges), c2;
    at += 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step) {
        c2 = column_at(s, at, ranges);
        LOAD_BIAS(0)
        LOAD_BIAS(1) LOAD_BIAS(2) LOAD_BIAS(3) SLIDE_SUMS SLIDE_THREE(0, 1, c0, c1, c2, 0)
            SLIDE_THREE(2, 3, c0, c1, c2, 0) if (more){SLIDE_THREE(
                0, 1, c0, c1, c2, more) SLIDE_THREE(2, 3, c0, c1, c2, more)} SLIDE_FLOATS c0 = c1;
        c1 = c2;
    }
}

INLINE void floats_by_two(const slides *s, const slide_out *given, ptrdiff_t at,
                          const epilogue *usual, int32_t ranges) {
    const epilogue e = *usual;
    const slide_out copy = *given, *o = &copy;
    const bool single = false;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w;
    const ptrdiff_t more = o->more, step = s->across;
    both_columns c = both_columns_at(s, at, ranges);
    for (int32_t x = 0; x < o->n; x++) {
        LOAD_BIAS(0)
        LOAD_BIAS(1) LOAD_BIAS(2) LOAD_BIAS(3) SLIDE_SUMS EACH_SETS(c, w) c =
            both_columns_at(s, at += step, ranges);
        EACH_SETS(c, w + 256)
        c = both_columns_at(s, at += step, ranges);
        EACH_SETS(c, w + 512)
        SLIDE_FLOATS
    }
}

#define FLOAT_SLIDE(NAME, ROWS, RANGES)                                                            \
    TARGET static void NAME(const slides *s, const slide_out *o, ptrdiff_t at,                     \
                            const epilogue *e) {                                                   \
        ROWS(s, o, at, e, RANGES);                                                                 \
    }
FLOAT_SLIDE(floats_1_by_one, floats_by_one, 1)
FLOAT_SLIDE(floats_1_by_two, floats_by_two, 1)
FLOAT_SLIDE(floats_2_by_one, floats_by_one, 2)
FLOAT_SLIDE(floats_2_by_two, floats_by_two, 2)

static slide_fn floats_for(bool by_two, int32_t ranges) {
    if (ranges == 2)
        return by_two ? floats_2_by_two : floats_2_by_one;
    return by_two ? floats_1_by_two : floats_1_by_one;
}

#endif
