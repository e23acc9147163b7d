/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8 to floats, AVX-512 VNNI: 3 x 3 at stride 1 or 2, part of
 * i8_dw3x3_avx512.h. The first row is stored last: without a second row both have the same address.
 */
#ifndef QK_I8_DW3X3_F32OUT_AVX512_H
#define QK_I8_DW3X3_F32OUT_AVX512_H

#include "kernel/x86/i8_dw3x3_avx512.h"

INLINE void store_f32(const dw_job *o, uint8_t *to, const epilogue *e, __m512i a, __m512i b,
                      __m512i c, __m512i d) {
    const sink s = {.out = to,
                    .cols = o->cols,
                    .rows = 1,
                    .mask = mask64(o->cols),
                    .e = *e,
                    .scale = o->scale,
                    .add = o->add};
    store_floats_4(&s, 0, a, b, c, d);
}

#define STORE_F32                                                                                  \
    store_f32(o, second, &e, b0, b1, b2, b3);                                                      \
    store_f32(o, first, &e, a0, a1, a2, a3);                                                       \
    first += o->pixel;                                                                             \
    second += o->pixel;
#define LOAD_BIAS(i)                                                                               \
    __m512i bias##i = _mm512_loadu_si512(o->bias + 16 * i);                                        \
    OPAQUE(bias##i) /* else gcc loads it for each row */
#define BEGIN_SUMS LOAD_BIAS(0) LOAD_BIAS(1) LOAD_BIAS(2) LOAD_BIAS(3) DW_SUMS

TARGET static void f32out_s1(const dw_rows *s, const dw_job *given, ptrdiff_t at,
                             const epilogue *usual) {
    const epilogue e = *usual;
    const dw_job copy = *given, *o = &copy; /* a copy: stores cannot alias it */
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = o->more, step = s->across;
    column c0 = column_at(s, at, 1), c1 = column_at(s, at + step, 1), c2;
    at += 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step) {
        c2 = column_at(s, at, 1);
        BEGIN_SUMS;
        DW_THREE(0, 1, c0, c1, c2, 0);
        DW_THREE(2, 3, c0, c1, c2, 0);
        if (more) {
            DW_THREE(0, 1, c0, c1, c2, more);
            DW_THREE(2, 3, c0, c1, c2, more);
        }
        STORE_F32;
        c0 = c1;
        c1 = c2;
    }
}

TARGET static void f32out_s2(const dw_rows *s, const dw_job *given, ptrdiff_t at,
                             const epilogue *usual) {
    const epilogue e = *usual;
    const dw_job copy = *given, *o = &copy;
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
        STORE_F32;
    }
}

#endif
