/* SPDX-License-Identifier: MIT */
/*
 * im2row for first layers, AVX-512: the kernel rows of a pixel with few channels are copied end to
 * end, so that no dword is partly empty. Tiles gather the rows of the next tile while they compute:
 * loads and stores, which alone would take a tenth of the time, then cost almost nothing.
 */
#ifndef QK_I8_IM2ROW_AVX512_H
#define QK_I8_IM2ROW_AVX512_H

#include "kernel/x86/i8_zmm.h"

typedef struct gatherer {
    qk_gather_u8 g;
    int32_t left; /* rows not yet gathered */
    int32_t turn; /* value of `left` at which the line ends */
    bool small;   /* 16 bytes hold a segment of two pixels; all segments of a pixel fit 32 bytes */
    int32_t offset[4];
    __m512i order;
} gatherer;

/*
 * Byte order of the permutation that makes two rows of a vector with one segment per lane. Bytes
 * after a row's last segment are arbitrary.
 */
INLINE __m512i pair_order(const qk_gather_u8 *g) {
    const __m512i count =
        _mm512_set_epi32(0x1f1e1d1c, 0x1b1a1918, 0x17161514, 0x13121110, 0x0f0e0d0c, 0x0b0a0908,
                         0x07060504, 0x03020100, 0x1f1e1d1c, 0x1b1a1918, 0x17161514, 0x13121110,
                         0x0f0e0d0c, 0x0b0a0908, 0x07060504, 0x03020100);
    const __m512i skip = _mm512_set1_epi8((char)(16 - g->k));
    __m512i order = count;
    for (int32_t s = 1; s < 4; s++) {
        const __mmask64 behind = _mm512_cmpge_epu8_mask(count, _mm512_set1_epi8((char)(s * g->k)));
        order = _mm512_mask_add_epi8(order, behind, order, skip);
    }
    return _mm512_mask_add_epi8(order, ~(__mmask64)0 << 32, order,
                                _mm512_set1_epi8((char)g->a_stride));
}

INLINE void gather_start(gatherer *t, const qk_gather_u8 *g) {
    t->left = 0;
    if (!g)
        return;
    t->g = *g;
    t->left = g->m;
    t->turn = g->line > 0 && g->line < g->m ? g->m - g->line : 0;
    t->small = g->segs <= 4 && g->a_stride >= 0 && g->a_stride + g->k <= 16 &&
               g->segs * g->k <= 32 && g->out_stride == 32;
    if (!t->small)
        return;
    for (int32_t s = 0; s < 4; s++)
        t->offset[s] = g->seg_offset[s < g->segs ? s : 0];
    t->order = pair_order(g);
}

INLINE void gather_pair(const gatherer *t, const uint8_t *a, uint8_t *out) {
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(a + t->offset[0])));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(a + t->offset[1])), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(a + t->offset[2])), 2);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(a + t->offset[3])), 3);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi8(t->order, v));
}

/* Copies the fields first: gcc would load them again for each segment, since stores may alias. */
INLINE void gather_rows_of(const qk_gather_u8 *g, int32_t rows) {
    const int32_t *first = g->seg_offset, *end = first + g->segs;
    const ptrdiff_t k = g->k, step = g->a_stride, stride = g->out_stride;
    const uint8_t *a = g->a;
    uint8_t *out = g->out;
    for (int32_t r = 0; r < rows; r++, a += step, out += stride) {
        uint8_t *to = out;
        if (k <= 32)
            for (const int32_t *s = first; s < end; s++, to += k)
                _mm256_storeu_si256((void *)to, _mm256_loadu_si256((const void *)(a + *s)));
        else
            for (const int32_t *s = first; s < end; s++, to += k)
                _mm512_storeu_si512(to, _mm512_loadu_si512(a + *s));
    }
}

INLINE void gathered(gatherer *t, int32_t rows, ptrdiff_t out) {
    t->g.a += rows * t->g.a_stride;
    t->g.out += out;
    t->left -= rows;
    if (t->left == t->turn) {
        t->g.a += t->g.line_stride - t->g.line * t->g.a_stride;
        t->turn -= t->g.line;
    }
}

/* Gathers the next two rows, where `small`. */
INLINE void gather_next_pair(gatherer *t) {
    gather_pair(t, t->g.a, t->g.out);
    gathered(t, 2, 64);
}

/* Gathers the next rows, which are pixels of one line. */
INLINE void gather_rows(gatherer *t, int32_t rows) {
    const uint8_t *a = t->g.a;
    uint8_t *out = t->g.out;
    if (t->small)
        for (int32_t r = 0; r < rows; r += 2, a += 2 * t->g.a_stride, out += 64)
            gather_pair(t, a, out);
    else
        gather_rows_of(&t->g, rows);
    gathered(t, rows, rows * t->g.out_stride);
}

/* Gathers the next rows, of any lines; not called in inner loops. */
TARGET __attribute__((noinline)) static void gather_more(gatherer *t, int32_t rows) {
    for (int32_t count; rows > 0 && t->left > 0; rows -= count) {
        count = rows < t->left - t->turn ? rows : t->left - t->turn;
        gather_rows(t, count);
    }
}

/* Gathers the next rows: an even number, unless they are the last. */
INLINE void gather_next(gatherer *t, int32_t rows) {
    if (t->left <= 0)
        return;
    if (rows == 2 && t->small) /* each instruction counts here */
        gather_next_pair(t);
    else if (rows <= t->left - t->turn)
        gather_rows(t, rows);
    else
        gather_more(t, rows);
}

#endif
