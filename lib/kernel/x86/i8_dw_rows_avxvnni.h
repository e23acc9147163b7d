/* SPDX-License-Identifier: MIT */
/*
 * Depthwise 3 x 3 without scratch in 256-bit vectors with vpdpbusd, part of i8_vnni_ymm.h: one row
 * of output at a time, so that two columns, four sums and a third column stay in 16 registers.
 */
#ifndef QK_I8_SLIDE_VNNI_YMM_H
#define QK_I8_SLIDE_VNNI_YMM_H

#include "kernel/x86/i8_dw_any.h"

/* The fourth row's weights are zero. */
INLINE dwords column_at(const slides *s, ptrdiff_t at, int32_t ranges) {
    const strips t = load_rows(s, at, 3, ranges);
    return dwords_of(t.t0, t.t1, t.t2, t.t2);
}

INLINE void three_row(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e,
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

/* Both strides share their code: what the branches cost is within 2 %. */
TARGET static void slide_1(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e) {
    rows_of_three(three_row, s, o, at, e, o->stride == 2, 1, false);
}

TARGET static void slide_f(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e) {
    rows_of_three(three_row, s, o, at, e, o->stride == 2, 1, true);
}

TARGET static void slide_2(const slides *s, const slide_out *o, ptrdiff_t at, const epilogue *e) {
    rows_of_three(three_row, s, o, at, e, o->stride == 2, 2, false);
}

static slide_fn slide_for(const plan *p, int32_t ranges, bool more, bool single) {
    const qk_window_u8s8 *d = p->d;
    (void)single;
    if (d->o.scale)
        return slide_f;
    if (more || d->kh != 3 || d->kw != 3 || d->dilation_h != 1 || d->dilation_w != 1 ||
        d->stride_h != d->stride_w || d->stride_h > 2)
        return any_for(ranges);
    return ranges == 2 ? slide_2 : slide_1;
}

#endif
