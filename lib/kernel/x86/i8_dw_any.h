/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8, x86, kernels of 2 to 7 rows and up to 7 columns with any
 * stride and dilation: each output pixel of two rows interleaves its columns again. Runs where no
 * kernel of a fixed size fits. A template like i8_dw_rows.h; before including it, define also
 *
 *   window_dot(a, x, w)  function: a plus the sum of the products in each dword
 */
#ifndef QK_I8_DW_ANY_H
#define QK_I8_DW_ANY_H

#include "kernel/x86/i8_dw_rows.h"

/* Rows of a column, interleaved as window_dot takes them; d0 to d3 match vectors of weights. */
typedef struct dwords {
    w_vec d0, d1, d2, d3;
} dwords;

/* Interleaves rows t0 to t3, or t0 and t1 where a dword holds two rows. */
INLINE dwords dwords_of(w_vec t0, w_vec t1, w_vec t2, w_vec t3) {
    const w_vec lo = W(unpacklo_epi8)(t0, t1), hi = W(unpackhi_epi8)(t0, t1);
#if W_GROUP == 4
    const w_vec lo23 = W(unpacklo_epi8)(t2, t3), hi23 = W(unpackhi_epi8)(t2, t3);
    return (dwords){W(unpacklo_epi16)(lo, lo23), W(unpackhi_epi16)(lo, lo23),
                    W(unpacklo_epi16)(hi, hi23), W(unpackhi_epi16)(hi, hi23)};
#else
    (void)t2, (void)t3;
    return (dwords){W(unpacklo_epi8)(lo, W_ZERO), W(unpackhi_epi8)(lo, W_ZERO),
                    W(unpacklo_epi8)(hi, W_ZERO), W(unpackhi_epi8)(hi, W_ZERO)};
#endif
}

#define DWORD_DOT(a, i, x, w)                                                                      \
    a##i = window_dot(a##i, (x).d##i, w_load((w) + (i)*W_BYTES));                                  \
    W_KEEP(a##i)
#define DWORD_DOTS(a, x, w)                                                                        \
    DWORD_DOT(a, 0, x, w) DWORD_DOT(a, 1, x, w) DWORD_DOT(a, 2, x, w) DWORD_DOT(a, 3, x, w)
/* Adds the products of both sets of weights, where there are two. */
#define DWORD_SETS(a, x, w)                                                                        \
    DWORD_DOTS(a, x, w)                                                                            \
    if (W_GROUP == 4 && __builtin_expect(more > 0, false)) {                                       \
        DWORD_DOTS(a, x, (w) + more)                                                               \
    }
#define DWORD_M(i) W(loadu_ps)(o->mult + (i)*W_DWORDS)
#define DWORD_BYTES(a)                                                                             \
    W(packus_epi16)                                                                                \
    (pack_words(scale(a##0, DWORD_M(0), e), scale(a##1, DWORD_M(1), e), e),                        \
     pack_words(scale(a##2, DWORD_M(2), e), scale(a##3, DWORD_M(3), e), e))

/* Stores the sums of a pixel: as bytes or as floats. */
#define DWORD_END(a)                                                                               \
    if (floats)                                                                                    \
        dw_store_floats(o, to, e, a##0, a##1, a##2, a##3);                                         \
    else                                                                                           \
        dw_store(o, to, DWORD_BYTES(a), x, e, ranges);

INLINE dwords load_group(const dw_column *c, int32_t ranges) {
    const w_vec t0 = load_row(c, 0, ranges), t1 = load_row(c, 1, ranges);
    if (W_GROUP == 2)
        return dwords_of(t0, t1, t0, t1);
    return dwords_of(t0, t1, load_row(c, 2, ranges), load_row(c, 3, ranges));
}

INLINE void any_size(const dw_rows *given_rows, const dw_job *given, ptrdiff_t at,
                     const epilogue *usual, int32_t ranges) {
    epilogue copied = *usual, *e = &copied;
    copied.clamp = false;
    const dw_job copy = *given, *o = &copy; /* a copy: stores cannot alias it */
    const dw_rows copied_rows = *given_rows, *s = &copied_rows;
    uint8_t *first = o->first, *second = o->second;
    const ptrdiff_t more = o->more;
    for (int32_t x = 0; x < o->n; x++, at += o->stride * s->across) {
        w_vec a0 = w_load(o->bias), a1 = w_load(o->bias + W_DWORDS);
        w_vec a2 = w_load(o->bias + 2 * W_DWORDS), a3 = w_load(o->bias + 3 * W_DWORDS);
        w_vec b0 = a0, b1 = a1, b2 = a2, b3 = a3;
        const int8_t *w = o->w, *v = o->v;
        ptrdiff_t column = at;
        for (int32_t i = 0; i < o->kw; i++, column += o->dilation * s->across) {
            dw_column rows = column_of(s, column, ranges);
            for (int32_t g = 0; g < o->stored; g++, rows.row += W_GROUP) {
                const dwords c = load_group(&rows, ranges);
                if (g < o->groups) {
                    DWORD_SETS(a, c, w)
                    w += W_ALL;
                }
                if (g >= o->second_group) {
                    DWORD_SETS(b, c, v)
                    v += W_ALL;
                }
            }
        }
        dw_store(o, second, DWORD_BYTES(b), x, e, ranges);
        dw_store(o, first, DWORD_BYTES(a), x, e, ranges);
        first += o->pixel;
        second += o->pixel;
    }
}

#if W_GROUP == 2
#define PAIR_DOTS(i, half, x)                                                                      \
    {                                                                                              \
        const w_vec words = W(unpack##half##_epi8)(x, W_ZERO);                                     \
        a##i = window_dot(a##i, words, w_load(w + (i)*W_BYTES));                                   \
        W_KEEP(a##i)                                                                               \
        b##i = window_dot(b##i, words, w_load(v + (i)*W_BYTES));                                   \
        W_KEEP(b##i)                                                                               \
    }

/* Interleaves rows of a column in pairs, as bytes. */
INLINE void put_pairs(const dw_rows *s, ptrdiff_t at, int32_t groups, w_vec (*pairs)[2]) {
    const bool inside = (size_t)at < s->end;
    for (int32_t g = 0; g < groups; g++) {
        const w_vec t = w_load(inside ? s->row[2 * g] + at : s->zeros);
        const w_vec u = w_load(inside ? s->row[2 * g + 1] + at : s->zeros);
        pairs[g][0] = _mm256_unpacklo_epi8(t, u);
        pairs[g][1] = _mm256_unpackhi_epi8(t, u);
    }
}

/*
 * For kernels where both rows of output read all pairs of rows, and neighbouring pixels share
 * columns: each column is interleaved once.
 */
INLINE void shared_columns(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *usual) {
    epilogue copied = *usual, *e = &copied;
    copied.clamp = false;
    w_vec pairs[7][4][2];
    uint8_t *first = o->first, *second = o->second;
    const int32_t kw = o->kw, groups = o->groups;
    int32_t oldest = 0;
    const ptrdiff_t step = o->stride * s->across;
    for (int32_t i = 0; i < kw - 1; i++, at += step)
        put_pairs(s, at, groups, pairs[i]);
    for (int32_t x = 0; x < o->n; x++, at += step) {
        w_vec a0 = w_load(o->bias), a1 = w_load(o->bias + W_DWORDS);
        w_vec a2 = w_load(o->bias + 2 * W_DWORDS), a3 = w_load(o->bias + 3 * W_DWORDS);
        w_vec b0 = a0, b1 = a1, b2 = a2, b3 = a3;
        const int8_t *w = o->w, *v = o->v;
        put_pairs(s, at, groups, pairs[oldest == 0 ? kw - 1 : oldest - 1]);
        for (int32_t i = 0, column = oldest; i < kw; i++) {
            const w_vec *pair = pairs[column][0];
            for (int32_t g = 0; g < groups; g++, pair += 2, w += W_ALL, v += W_ALL) {
                w_vec low = pair[0], high = pair[1];
                __asm__(""
                        : "+v"(low), "+v"(high),
                          "+r"(pair)); /* else gcc loads both vectors twice */
                PAIR_DOTS(0, lo, low);
                PAIR_DOTS(1, hi, low);
                PAIR_DOTS(2, lo, high);
                PAIR_DOTS(3, hi, high);
                __asm__(""
                        :
                        : "v"(low),
                          "v"(high)); /* else gcc moves sums to other registers and back */
            }
            column = column == kw - 1 ? 0 : column + 1;
        }
        oldest = oldest == kw - 1 ? 0 : oldest + 1;
        dw_store(o, second, DWORD_BYTES(b), x, e, 1);
        dw_store(o, first, DWORD_BYTES(a), x, e, 1);
        first += o->pixel;
        second += o->pixel;
    }
}
#endif

TARGET static void any_size_1(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
#if W_GROUP == 2
    if (o->groups == o->stored && o->second_group == 0 && o->stride == o->dilation) {
        shared_columns(s, o, at, e);
        return;
    }
#endif
    any_size(s, o, at, e, 1);
}

TARGET static void any_size_2(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    any_size(s, o, at, e, 2);
}

#if W_LANES == 4
TARGET static void any_size_4(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    any_size(s, o, at, e, 4);
}
#endif

/* The last rows of a table of kernels, which fit any size. */
#if W_LANES == 4
#define DW_ANY_SIZE                                                                                \
    {0, 0, 4, 0, 0, any_size_4}, {0, 0, 2, 0, 0, any_size_2}, {                                    \
        0, 0, 0, 0, 0, any_size_1                                                                  \
    }
#else
#define DW_ANY_SIZE                                                                                \
    {0, 0, 2, 0, 0, any_size_2}, {                                                                 \
        0, 0, 0, 0, 0, any_size_1                                                                  \
    }
#endif

#endif
