/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8, AVX2: 3 x 3 at stride 1 or 2, 32 channels or 16 of two ranges
 * of columns, part of i8_avx2.c. Pairs of words are multiplied: the first two rows of a column, and
 * the third row of two neighbouring columns, so five pairs cover nine taps. Pairs stay in registers
 * as bytes from pixel to pixel: widening them again costs less than moving twice as many vectors.
 */
#ifndef QK_I8_DW_ROWS_AVX2_H
#define QK_I8_DW_ROWS_AVX2_H

#include "kernel/x86/i8_dw_any.h"

/* Pairs of bytes: of the first eight channels of each 128-bit lane, and of the last eight. */
typedef struct quad {
    w_vec low, high;
} quad;

INLINE quad quad_of(w_vec a, w_vec b) {
    return (quad){_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
}

#define QUAD_DOT(i, half, x, w)                                                                    \
    a##i = _mm256_add_epi32(a##i, _mm256_madd_epi16(_mm256_unpack##half##_epi8(x, W_ZERO),         \
                                                    w_load((w) + (i)*W_BYTES)));                   \
    W_KEEP(a##i)
#define QUAD_DOTS(x, w)                                                                            \
    {                                                                                              \
        QUAD_DOT(0, lo, (x).low, w)                                                                \
        QUAD_DOT(1, hi, (x).low, w) QUAD_DOT(2, lo, (x).high, w) QUAD_DOT(3, hi, (x).high, w)      \
    }

/* One row of output. */
INLINE void quad_row(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e,
                     uint8_t *to, bool by_two, int32_t ranges, bool floats) {
    const ptrdiff_t step = s->across;
    const int8_t *w = o->w;
    const int32_t *bias = o->bias;
    /* The kernel's third row: column 2 is the first of its pair at stride 2, else the second. */
    _Alignas(32) int8_t thirds[2 * W_ALL];
    for (int32_t z = 0; z < W_ALL; z += W_BYTES) {
        const w_vec odd = w_load(w + 3 * W_ALL + z), last = w_load(w + 5 * W_ALL + z);
        w_store(thirds + z, _mm256_or_si256(w_load(w + W_ALL + z), _mm256_slli_epi32(odd, 16)));
        w_store(thirds + W_ALL + z, by_two ? last : _mm256_slli_epi32(last, 16));
    }
    dw_taps t = load_rows(s, at, 3, ranges), u = load_rows(s, at + step, 3, ranges);
    quad p0 = quad_of(t.t0, t.t1), p1 = quad_of(u.t0, u.t1), p2, third = quad_of(t.t2, u.t2);
    at += by_two ? step : 2 * step;
    for (int32_t x = 0; x < o->n; x++, at += step, to += o->pixel) {
        w_vec a0 = w_load(bias), a1 = w_load(bias + W_DWORDS);
        w_vec a2 = w_load(bias + 2 * W_DWORDS), a3 = w_load(bias + 3 * W_DWORDS);
        QUAD_DOTS(p0, w)
        QUAD_DOTS(third, thirds)
        if (by_two) {
            t = load_rows(s, at, 2, ranges);
            at += step;
            p1 = quad_of(t.t0, t.t1);
        }
        QUAD_DOTS(p1, w + 2 * W_ALL)
        t = load_rows(s, at, 3, ranges);
        p2 = quad_of(t.t0, t.t1);
        QUAD_DOTS(p2, w + 4 * W_ALL)
        third = by_two ? quad_of(t.t2, load_rows(s, at + step, 3, ranges).t2) : quad_of(u.t2, t.t2);
        QUAD_DOTS(third, thirds + W_ALL)
        u = t;
        p0 = by_two ? p2 : p1;
        p1 = p2;
        DWORD_END(a)
    }
}

#define KERNEL(NAME, RANGES, FLOATS)                                                               \
    TARGET static void NAME(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {  \
        each_row(quad_row, s, o, at, e, o->stride == 2, RANGES, FLOATS);                           \
    }
KERNEL(dw3_1, 1, false)
KERNEL(dw3_2, 2, false)
KERNEL(dw3_f32out, 1, true)

static const dw_choice dw_choices[] = {
    {3, 0, 1, DW_FLOATS, 0, dw3_f32out}, {3, 1, 1, 0, DW_DILATED, dw3_1},
    {3, 2, 1, 0, DW_DILATED, dw3_1},     {3, 1, 2, 0, DW_DILATED, dw3_2},
    {3, 2, 2, 0, DW_DILATED, dw3_2},     DW_ANY_SIZE,
};

#endif
