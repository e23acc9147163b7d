/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8, AVX-VNNI: 3 x 3 at stride 1 or 2, 32 channels or 16 of two
 * ranges of columns, part of i8_vnni_ymm.h. vpdpbusd on 256-bit vectors, one row of output at a
 * time, so that two columns, four sums and a third column stay in 16 registers.
 */
#ifndef QK_I8_DW_ROWS_AVXVNNI_H
#define QK_I8_DW_ROWS_AVXVNNI_H

#include "kernel/x86/i8_dw_any.h"

/* Repeats the third row in place of a fourth, whose weights are zero. */
INLINE dwords column_at(const dw_rows *s, ptrdiff_t at, int32_t ranges) {
    const dw_taps t = load_rows(s, at, 3, ranges);
    return dwords_of(t.t0, t.t1, t.t2, t.t2);
}

INLINE void three_row(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e,
                      uint8_t *to, bool by_two, int32_t ranges, bool floats) {
    const ptrdiff_t step = s->across, pixel = floats ? 4 * step : step;
    const int8_t *w = o->w;
    dwords c0 = column_at(s, at, ranges), c1 = c0, c2;
    if (!by_two)
        c1 = column_at(s, at + step, ranges);
    at += by_two ? step : 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step, to += pixel) {
        w_vec a0 = w_load(o->bias), a1 = w_load(o->bias + W_DWORDS);
        w_vec a2 = w_load(o->bias + 2 * W_DWORDS), a3 = w_load(o->bias + 3 * W_DWORDS);
        DWORD_DOTS(a, c0, w)
        if (by_two) {
            c1 = column_at(s, at, ranges);
            at += step;
        }
        DWORD_DOTS(a, c1, w + W_ALL)
        c2 = column_at(s, at, ranges);
        DWORD_DOTS(a, c2, w + 2 * W_ALL)
        c0 = by_two ? c2 : c1;
        c1 = c2;
        DWORD_END(a)
    }
}

/* Both strides share their code: the branches cost less than 2 %. */
TARGET static void dw3_1(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    each_row(three_row, s, o, at, e, o->stride == 2, 1, false);
}

TARGET static void dw3_f32out(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    each_row(three_row, s, o, at, e, o->stride == 2, 1, true);
}

TARGET static void dw3_2(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    each_row(three_row, s, o, at, e, o->stride == 2, 2, false);
}

static const dw_choice dw_choices[] = {
    {3, 0, 1, DW_FLOATS, 0, dw3_f32out},       {3, 1, 1, 0, DW_DILATED | DW_SETS, dw3_1},
    {3, 2, 1, 0, DW_DILATED | DW_SETS, dw3_1}, {3, 1, 2, 0, DW_DILATED | DW_SETS, dw3_2},
    {3, 2, 2, 0, DW_DILATED | DW_SETS, dw3_2}, DW_ANY_SIZE,
};

#endif
