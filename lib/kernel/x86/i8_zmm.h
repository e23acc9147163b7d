/* SPDX-License-Identifier: MIT */
/*
 * INT8 kernels, AVX-512 VNNI: requantization of int32 sums to bytes or floats, and the store of one
 * row of up to 64 columns. Shared by products and depthwise convolution. Column order in a panel is
 * that of kernel/i8.h with four lanes, so that in-lane packs undo it.
 */
#ifndef QK_I8_ZMM_H
#define QK_I8_ZMM_H

#include "kernel/i8.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* Hides from the compiler where a vector comes from: it is loaded, or computed, once and here. */
#define OPAQUE(v) __asm__("" : "+v"(v));

/* i8_depthwise_avx512vnni.c */
void qk_depthwise_u8s8_avx512vnni(const qk_depthwise_u8s8 *d);
void qk_window_u8s8_avx512vnni(const qk_window_u8s8 *d);
/* i8_avx512vnni.c */
void qk_pack_side_avx512vnni(const int8_t *w, int64_t row, int32_t fours, uint8_t flip, int8_t *to,
                             int32_t sums[64]);

/* ---- requantization ---- */

typedef struct epilogue {
    __m512i zp, lo, hi;
    __m512 low, high;
    bool clamp;
    bool limits; /* lo and hi are not 0 and 255 */
} epilogue;

INLINE epilogue epilogue_of(const qk_out_i8 *o) {
    return (epilogue){_mm512_set1_epi16((short)o->zp),
                      _mm512_set1_epi8((char)o->lo),
                      _mm512_set1_epi8((char)o->hi),
                      _mm512_set1_ps(o->scale ? o->low : (float)(o->lo - o->zp)),
                      _mm512_set1_ps(o->scale ? o->high : (float)(o->hi - o->zp)),
                      o->clamp,
                      o->lo > 0 || o->hi < 255};
}

INLINE __m512i scale(__m512i acc, __m512 m, const epilogue *e) {
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), m);
    if (e->clamp)
        v = _mm512_min_ps(_mm512_max_ps(v, e->low), e->high);
    return _mm512_cvtps_epi32(v);
}

/* Two vectors of integers to 16 bits, zero point added; saturation stands in for the clamp. */
INLINE __m512i pack_words(__m512i a, __m512i b, const epilogue *e) {
    return _mm512_adds_epi16(_mm512_packs_epi32(a, b), e->zp);
}

INLINE __m512i pack_bytes(__m512i a, __m512i b, const epilogue *e) {
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), e->lo), e->hi);
}

INLINE __mmask64 mask64(int32_t n) {
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

INLINE __mmask16 mask16(int32_t n) {
    uint32_t bits = n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1;
    return (__mmask16)bits;
}

/* ---- the destination of a tile's rows ---- */

typedef struct sink {
    uint8_t *out;
    ptrdiff_t stride;
    const float *mult;
    const int32_t *init; /* row_init of the tile's rows, or NULL */
    int32_t cols, rows;  /* columns and rows that are stored */
    __mmask64 mask;      /* a bit for each of the columns */
    epilogue e;
    const float *scale, *add; /* those of qk_out_i8 */
    const char *next;         /* cache lines of weights that a tile prefetches */
    int32_t lines;
} sink;

INLINE sink sink_of(const qk_gemm_u8s8 *g) {
    return (sink){.out = g->out,
                  .stride = g->out_stride,
                  .mult = g->o.mult,
                  .cols = g->cols,
                  .mask = mask64(g->cols),
                  .e = epilogue_of(&g->o),
                  .scale = g->o.scale,
                  .add = g->o.add,
                  .next = (const char *)g->b}; /* no lines of it */
}

/* Whether this is the usual case, u8 without a clamp, for which plain_sink sets constants. */
INLINE bool is_plain(const sink *s) {
    return s->mult && !s->e.clamp;
}

INLINE sink plain_sink(const sink *s, int32_t rows) {
    sink f = {.out = s->out,
              .stride = s->stride,
              .mult = s->mult,
              .cols = s->cols,
              .rows = rows,
              .mask = s->mask,
              .e = s->e};
    f.e.clamp = false;
    return f;
}

INLINE void store_i32(const sink *s, int32_t r, int32_t j, __m512i v) {
    _mm512_mask_storeu_epi32(s->out + r * s->stride + 64 * j, (__mmask16)(s->mask >> 16 * j), v);
}

/* Sums as floats: acc * scale + add, clamped. */
INLINE __m512i as_floats(const sink *s, __m512i acc, __m512 scale, __m512 add) {
    const __m512 v = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(acc), scale), add);
    return _mm512_castps_si512(_mm512_min_ps(s->e.high, _mm512_max_ps(s->e.low, v)));
}
#define FLOATS(acc, v)                                                                             \
    acc = as_floats(s, acc, _mm512_loadu_ps(s->scale + 16 * v), _mm512_loadu_ps(s->add + 16 * v))

/* Stores a row of 64 columns of 32 bits. */
INLINE void store_i32_4(const sink *s, int32_t r, __m512i a, __m512i b, __m512i c, __m512i d) {
    __m512i ab = _mm512_inserti64x4(a, _mm512_castsi512_si256(b), 1);
    __m512i cd = _mm512_inserti64x4(c, _mm512_castsi512_si256(d), 1);
    const __m512i v0 = _mm512_shuffle_i32x4(ab, cd, 0x88), v1 = _mm512_shuffle_i32x4(ab, cd, 0xdd);
    ab = _mm512_shuffle_i32x4(a, b, 0xee);
    cd = _mm512_shuffle_i32x4(c, d, 0xee);
    const __m512i v2 = _mm512_shuffle_i32x4(ab, cd, 0x88), v3 = _mm512_shuffle_i32x4(ab, cd, 0xdd);
    uint8_t *out = s->out + r * s->stride;
    if (__builtin_expect(s->cols == 64, true)) { /* plain stores are faster */
        _mm512_storeu_si512(out, v0);
        _mm512_storeu_si512(out + 64, v1);
        _mm512_storeu_si512(out + 128, v2);
        _mm512_storeu_si512(out + 192, v3);
        return;
    }
    store_i32(s, r, 0, v0);
    store_i32(s, r, 1, v1);
    store_i32(s, r, 2, v2);
    store_i32(s, r, 3, v3);
}

INLINE void store_floats_4(const sink *s, int32_t r, __m512i a, __m512i b, __m512i c, __m512i d) {
    FLOATS(a, 0);
    FLOATS(b, 1);
    FLOATS(c, 2);
    FLOATS(d, 3);
    store_i32_4(s, r, a, b, c, d);
}

INLINE void finish_4(const sink *s, int32_t r, __m512i a, __m512i b, __m512i c, __m512i d) {
    if (r >= s->rows)
        return;
    if (!s->mult) {
        if (s->scale) {
            FLOATS(a, 0);
            FLOATS(b, 1);
            FLOATS(c, 2);
            FLOATS(d, 3);
        }
        store_i32_4(s, r, a, b, c, d);
        return;
    }
    const float *m = s->mult;
    __m512i ab = pack_words(scale(a, _mm512_loadu_ps(m), &s->e),
                            scale(b, _mm512_loadu_ps(m + 16), &s->e), &s->e);
    __m512i cd = pack_words(scale(c, _mm512_loadu_ps(m + 32), &s->e),
                            scale(d, _mm512_loadu_ps(m + 48), &s->e), &s->e);
    __m512i y = pack_bytes(ab, cd, &s->e);
    if (s->cols == 64)
        _mm512_storeu_si512(s->out + r * s->stride, y);
    else
        _mm512_mask_storeu_epi8(s->out + r * s->stride, s->mask, y);
}
#endif
