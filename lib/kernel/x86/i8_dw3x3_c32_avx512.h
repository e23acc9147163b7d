/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of u8 by s8, AVX-512 VNNI: 3 x 3 at stride 1 of an image with 32 or 16
 * channels in all, part of i8_dw3x3_avx512.h. A vector holds two or four neighbouring pixels. The
 * columns to their left and right are shifted out of the interleaved vectors of three such groups.
 */
#ifndef QK_I8_DW3X3_C32_AVX512_H
#define QK_I8_DW3X3_C32_AVX512_H

/* 64 bytes of each of four rows; a copy where some lie outside the image. */
typedef struct dense_group {
    const uint8_t *row[4];
    uint8_t bytes[4][64];
} dense_group;

QS_COLD TARGET static void dense_copy(const dw_rows *s, ptrdiff_t at, dense_group *g) {
    const ptrdiff_t left = (ptrdiff_t)s->end - at;
    const __mmask64 mask =
        mask64(left < 64 ? (int32_t)left : 64) & ~mask64(at < 0 ? (int32_t)-at : 0);
    for (int32_t i = 0; i < 4; i++) {
        const __m512i zeros = _mm512_loadu_si512(s->zeros);
        _mm512_storeu_si512(g->bytes[i], _mm512_mask_loadu_epi8(zeros, mask, s->row[i] + at));
        g->row[i] = g->bytes[i];
    }
}

INLINE void dense_part_at(const dw_rows *s, ptrdiff_t at, dense_group *g) {
    const ptrdiff_t end = (ptrdiff_t)s->end;
    if (at > -64 && at < end && (at < 0 || at + 64 > end)) {
        dense_copy(s, at, g);
        return;
    }
    for (int32_t i = 0; i < 4; i++)
        g->row[i] = at < 0 || at >= end ? s->zeros : s->row[i] + at;
}

INLINE column dense_at(const uint8_t *const *row, ptrdiff_t at) {
#define DENSE_ROW(i)                                                                               \
    __m512i t##i = _mm512_loadu_si512(row[i] + at);                                                \
    W_KEEP(t##i)
    DENSE_ROW(0)
    DENSE_ROW(1)
    DENSE_ROW(2)
    DENSE_ROW(3)
#undef DENSE_ROW
    return interleave(t0, t1, t2, t3);
}

/* The pixels of a from the second one, or from the last one, on, followed by those of b. */
#define DENSE_SECOND(a, b) (two ? _mm512_alignr_epi64(b, a, 4) : _mm512_alignr_epi64(b, a, 2))
#define DENSE_LAST(a, b)   (two ? _mm512_alignr_epi64(b, a, 4) : _mm512_alignr_epi64(b, a, 6))

#define DENSE_HALF(i, j)                                                                           \
    right.d##i = DENSE_SECOND(c1.d##i, next.d##i);                                                 \
    right.d##j = DENSE_SECOND(c1.d##j, next.d##j);                                                 \
    DW_WORDS(i, j, c0, c1, right)                                                                  \
    c0.d##i = two ? right.d##i : DENSE_LAST(c1.d##i, next.d##i);                                   \
    c0.d##j = two ? right.d##j : DENSE_LAST(c1.d##j, next.d##j);

INLINE void dense_store(const dw_job *o, uint8_t *to, __m512i y, ptrdiff_t bytes,
                        const epilogue *e) {
    if (o->limits)
        y = _mm512_min_epu8(_mm512_max_epu8(y, e->lo), e->hi);
    if (__builtin_expect(bytes >= 64, true))
        w_store(to, y);
    else
        w_store_n(to, y, (int32_t)bytes);
}

INLINE void dense_rows(const dw_rows *s, const dw_job *given, ptrdiff_t at, const epilogue *usual,
                       bool two) {
    epilogue e = *usual;
    e.clamp = false;
    const dw_job copy = *given, *o = &copy;
    const bool single = false;
    uint8_t *first = o->first, *second = o->second;
    const int8_t *w = o->w, *v = o->v;
    const ptrdiff_t more = 0;
    dense_group before, begin, end, beyond;
    at += o->pixel;
    dense_part_at(s, at - 64, &before);
    dense_part_at(s, at, &begin);
    /* The first vector that is not wholly inside the image, and the one after it. */
    const ptrdiff_t last = at + ((ptrdiff_t)s->end - at) / 64 * 64;
    dense_part_at(s, last, &end);
    dense_part_at(s, (ptrdiff_t)s->end, &beyond);
    DW_KEPT
    column c0 = dense_at(before.row, 0), c1 = dense_at(begin.row, 0);
    c0.d0 = DENSE_LAST(c0.d0, c1.d0);
    c0.d1 = DENSE_LAST(c0.d1, c1.d1);
    c0.d2 = DENSE_LAST(c0.d2, c1.d2);
    c0.d3 = DENSE_LAST(c0.d3, c1.d3);
    for (ptrdiff_t left = o->wo * o->pixel; left > 0; left -= 64) {
        at += 64;
        const bool inside = at < last;
        const column next = dense_at(inside       ? s->row
                                     : at == last ? end.row
                                                  : beyond.row,
                                     inside ? at : 0);
        column right;
        DENSE_HALF(0, 1)
        DENSE_HALF(2, 3)
        dense_store(o, second, _mm512_packus_epi16(b0, b2), left, &e);
        dense_store(o, first, _mm512_packus_epi16(a0, a2), left, &e);
        first += 64;
        second += 64;
        c1 = next;
    }
}

TARGET static void dense_2(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    dense_rows(s, o, at, e, true);
}

TARGET static void dense_4(const dw_rows *s, const dw_job *o, ptrdiff_t at, const epilogue *e) {
    dense_rows(s, o, at, e, false);
}

#endif
