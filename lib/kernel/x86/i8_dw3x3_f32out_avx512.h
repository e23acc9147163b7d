/* SPDX-License-Identifier: MIT */
/*
 * 3 x 3 depthwise to floats, part of i8_dw3x3_avx512.h. Where there is no second row, the first one
 * comes last.
 */
#ifndef QK_I8_SLIDE_FLOATS_ZMM_H
#define QK_I8_SLIDE_FLOATS_ZMM_H

#include "kernel/x86/i8_dw3x3_avx512.h"

INLINE void store_slide(const slide_out *o, uint8_t *to, const epilogue *e, __m512i a, __m512i b,
                        __m512i c, __m512i d) {
    const sink s = {to, 0, NULL, NULL, o->cols, 1, *e, o->scale, o->add};
    store_floats_4(&s, 0, a, b, c, d);
}

#define STORE_SLIDE                                                                                \
    store_slide(o, second, &e, b0, b1, b2, b3);                                                    \
    store_slide(o, first, &e, a0, a1, a2, a3);                                                     \
    first += o->pixel;                                                                             \
    second += o->pixel;
#define LOAD_BIAS(i)                                                                               \
    __m512i bias##i = _mm512_loadu_si512(o->bias + 16 * i);                                        \
    KEEP(bias##i) /* else gcc loads it for each row of output */
#define BEGIN_SUMS LOAD_BIAS(0) LOAD_BIAS(1) LOAD_BIAS(2) LOAD_BIAS(3) SLIDE_SUMS

TARGET static void slide_floats_by_one(const slides *s, const slide_out *given, ptrdiff_t at,
                                       const epilogue *usual) {
    const epilogue e = *usual;
    const slide_out copy = *given, *o = &copy; /* no store changes it */
    const bool single = false;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    column c0 = column_at(s, at, 1), c1 = column_at(s, at + step, 1), c2;
    at += 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step) {
        c2 = column_at(s, at, 1);
        BEGIN_SUMS;
        SLIDE_THREE(0, 1, c0, c1, c2, 0);
        SLIDE_THREE(2, 3, c0, c1, c2, 0);
        if (more) {
            SLIDE_THREE(0, 1, c0, c1, c2, more);
            SLIDE_THREE(2, 3, c0, c1, c2, more);
        }
        STORE_SLIDE;
        c0 = c1;
        c1 = c2;
    }
}

TARGET static void slide_floats_by_two(const slides *s, const slide_out *given, ptrdiff_t at,
                                       const epilogue *usual) {
    const epilogue e = *usual;
    const slide_out copy = *given, *o = &copy;
    const bool single = false;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w;
    const ptrdiff_t more = o->more, step = s->across;
    both_columns c = both_columns_at(s, at, 1);
    for (int32_t x = 0; x < o->n; x++) {
        BEGIN_SUMS;
        EACH_SETS(c, w);
        c = both_columns_at(s, at += step, 1);
        EACH_SETS(c, w + 256);
        c = both_columns_at(s, at += step, 1);
        EACH_SETS(c, w + 512);
        STORE_SLIDE;
    }
}

#endif
