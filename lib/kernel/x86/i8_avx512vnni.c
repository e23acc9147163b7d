/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels for AVX-512 with VNNI.
 *
 * A tile's accumulators are named scalars made by macros, each kept in its register by an empty
 * asm: arrays of more than some 16 vectors run at half speed under gcc. Column order in a panel is
 * that of kernel/i8.h with four lanes, so that in-lane packs undo it.
 */
#include "kernel/i8.h"
#include "kernel/i8_post.h"

#if QK_X86
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* ---- requantization ---- */

typedef struct epilogue {
    __m512i zp, lo, hi;
    __m512 low, high;
    bool clamp;
} epilogue;

INLINE epilogue epilogue_of(const qk_out_i8 *o) {
    return (epilogue){
        _mm512_set1_epi16((short)o->zp),        _mm512_set1_epi8((char)o->lo),
        _mm512_set1_epi8((char)o->hi),          _mm512_set1_ps((float)(o->lo - o->zp)),
        _mm512_set1_ps((float)(o->hi - o->zp)), o->clamp};
}

INLINE __m512i scale(__m512i acc, __m512 m, const epilogue *e) {
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), m);
    if (e->clamp)
        v = _mm512_min_ps(_mm512_max_ps(v, e->low), e->high);
    return _mm512_cvtps_epi32(v);
}

/* Two vectors of integers to 16 bits, zero point added; saturation stands in for the clamp. */
INLINE __m512i narrow(__m512i a, __m512i b, const epilogue *e) {
    return _mm512_adds_epi16(_mm512_packs_epi32(a, b), e->zp);
}

INLINE __m512i narrow_u8(__m512i a, __m512i b, const epilogue *e) {
    return _mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(a, b), e->lo), e->hi);
}

INLINE __mmask64 mask64(int32_t n) {
    return n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
}

INLINE __mmask16 mask16(int32_t n) {
    uint32_t bits = n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1;
    return (__mmask16)bits;
}

/* ---- what becomes of a tile's rows ---- */

typedef struct sink {
    uint8_t *out;
    ptrdiff_t stride;
    const float *mult;
    const int32_t *init; /* of the tile's rows, or NULL */
    int32_t cols, rows;  /* of the tile that are stored */
    epilogue e;
} sink;

/* The usual case: u8 without a clamp. A copy of the sink then needs no branches. */
INLINE bool is_plain(const sink *s) {
    return s->mult && !s->e.clamp;
}

INLINE sink plain_sink(const sink *s, int32_t rows) {
    sink f = {s->out, s->stride, s->mult, NULL, s->cols, rows, s->e};
    f.e.clamp = false;
    return f;
}

INLINE void store_i32(const sink *s, int32_t r, int32_t j, __m512i v) {
    _mm512_mask_storeu_epi32(s->out + r * s->stride + 64 * j, mask16(s->cols - 16 * j), v);
}

INLINE void finish_4(const sink *s, int32_t r, __m512i a, __m512i b, __m512i c, __m512i d) {
    if (r >= s->rows)
        return;
    if (!s->mult) {
        __m512i ab = _mm512_shuffle_i32x4(a, b, 0x44), cd = _mm512_shuffle_i32x4(c, d, 0x44);
        store_i32(s, r, 0, _mm512_shuffle_i32x4(ab, cd, 0x88));
        store_i32(s, r, 1, _mm512_shuffle_i32x4(ab, cd, 0xdd));
        ab = _mm512_shuffle_i32x4(a, b, 0xee);
        cd = _mm512_shuffle_i32x4(c, d, 0xee);
        store_i32(s, r, 2, _mm512_shuffle_i32x4(ab, cd, 0x88));
        store_i32(s, r, 3, _mm512_shuffle_i32x4(ab, cd, 0xdd));
        return;
    }
    const float *m = s->mult;
    __m512i ab = narrow(scale(a, _mm512_loadu_ps(m), &s->e),
                        scale(b, _mm512_loadu_ps(m + 16), &s->e), &s->e);
    __m512i cd = narrow(scale(c, _mm512_loadu_ps(m + 32), &s->e),
                        scale(d, _mm512_loadu_ps(m + 48), &s->e), &s->e);
    __m512i y = narrow_u8(ab, cd, &s->e);
    if (s->cols == 64)
        _mm512_storeu_si512(s->out + r * s->stride, y);
    else
        _mm512_mask_storeu_epi8(s->out + r * s->stride, mask64(s->cols), y);
}

INLINE void store_i32_2(const sink *s, int32_t r, __m512i a, __m512i b) {
    if (r >= s->rows)
        return;
    __m512i t = _mm512_shuffle_i32x4(a, b, 0x44);
    store_i32(s, r, 0, _mm512_shuffle_i32x4(t, t, 0xd8));
    t = _mm512_shuffle_i32x4(a, b, 0xee);
    store_i32(s, r, 1, _mm512_shuffle_i32x4(t, t, 0xd8));
}

INLINE void store_u8_32(const sink *s, int32_t r, __m256i y) {
    if (r < s->rows)
        _mm256_mask_storeu_epi8(s->out + r * s->stride, (__mmask32)mask64(s->cols), y);
}

/* Two rows of 32 columns. */
INLINE void finish_2(const sink *s, int32_t r, __m512i a0, __m512i b0, __m512i a1, __m512i b1) {
    if (!s->mult) {
        store_i32_2(s, r, a0, b0);
        store_i32_2(s, r + 1, a1, b1);
        return;
    }
    __m512 m0 = _mm512_loadu_ps(s->mult), m1 = _mm512_loadu_ps(s->mult + 16);
    __m512i y = narrow_u8(narrow(scale(a0, m0, &s->e), scale(b0, m1, &s->e), &s->e),
                          narrow(scale(a1, m0, &s->e), scale(b1, m1, &s->e), &s->e), &s->e);
    y = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), y);
    store_u8_32(s, r, _mm512_castsi512_si256(y));
    store_u8_32(s, r + 1, _mm512_extracti64x4_epi64(y, 1));
}

INLINE void store_u8_16(const sink *s, int32_t r, __m128i y) {
    if (r < s->rows)
        _mm_mask_storeu_epi8(s->out + r * s->stride, mask16(s->cols), y);
}

/* Four rows of 16 columns. */
INLINE void finish_1(const sink *s, int32_t r, __m512i a, __m512i b, __m512i c, __m512i d) {
    if (!s->mult) {
        for (int32_t i = 0; i < 4; i++)
            if (r + i < s->rows)
                store_i32(s, r + i, 0, i == 0 ? a : i == 1 ? b : i == 2 ? c : d);
        return;
    }
    __m512 m = _mm512_loadu_ps(s->mult);
    __m512i y = narrow_u8(narrow(scale(a, m, &s->e), scale(b, m, &s->e), &s->e),
                          narrow(scale(c, m, &s->e), scale(d, m, &s->e), &s->e), &s->e);
    y = _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), y);
    if (s->stride == 16 && s->cols == 16 && r + 4 <= s->rows) {
        _mm512_storeu_si512(s->out + 16 * r, y);
        return;
    }
    store_u8_16(s, r, _mm512_castsi512_si128(y));
    store_u8_16(s, r + 1, _mm512_extracti32x4_epi32(y, 1));
    store_u8_16(s, r + 2, _mm512_extracti32x4_epi32(y, 2));
    store_u8_16(s, r + 3, _mm512_extracti32x4_epi32(y, 3));
}

/* ---- tiles: R rows x V vectors of 16 columns ---- */

INLINE __m512i broadcast(const uint8_t *p) {
    int32_t dword;
    memcpy(&dword, p, 4);
    return _mm512_set1_epi32(dword);
}

#define V1(F, r)     F(r, 0)
#define V2(F, r)     F(r, 0) F(r, 1)
#define V4(F, r)     F(r, 0) F(r, 1) F(r, 2) F(r, 3)
#define R1(V, F)     V(F, 0)
#define R4(V, F)     V(F, 0) V(F, 1) V(F, 2) V(F, 3)
#define R8(V, F)     R4(V, F) V(F, 4) V(F, 5) V(F, 6) V(F, 7)
#define ROW_OF(F, r) F(r)

#define DECLARE(r, v) __m512i a##r##_##v = _mm512_loadu_si512(bias + 16 * v);
#define INIT(r, v)    a##r##_##v = _mm512_add_epi32(a##r##_##v, _mm512_set1_epi32(s->init[r]));
#define ROW(r)        const uint8_t *p##r = row[r];
#define LOAD_B(r, v)  const __m512i b##v = _mm512_loadu_si512(b + 64 * v);
#define LOAD_A(r)     const __m512i x##r = broadcast(p##r + i);
#define DOT(r, v)                                                                                  \
    a##r##_##v = _mm512_dpbusd_epi32(a##r##_##v, x##r, b##v);                                      \
    __asm__("" : "+v"(a##r##_##v));

#define FINISH_1x4(s) finish_4(s, 0, a0_0, a0_1, a0_2, a0_3);
#define FINISH_4x4(s)                                                                              \
    FINISH_1x4(s) finish_4(s, 1, a1_0, a1_1, a1_2, a1_3);                                          \
    finish_4(s, 2, a2_0, a2_1, a2_2, a2_3);                                                        \
    finish_4(s, 3, a3_0, a3_1, a3_2, a3_3);
#define FINISH_1x2(s) finish_2(s, 0, a0_0, a0_1, a0_0, a0_1);
#define FINISH_8x2(s)                                                                              \
    finish_2(s, 0, a0_0, a0_1, a1_0, a1_1);                                                        \
    finish_2(s, 2, a2_0, a2_1, a3_0, a3_1);                                                        \
    finish_2(s, 4, a4_0, a4_1, a5_0, a5_1);                                                        \
    finish_2(s, 6, a6_0, a6_1, a7_0, a7_1);
#define FINISH_1x1(s) finish_1(s, 0, a0_0, a0_0, a0_0, a0_0);
#define FINISH_8x1(s)                                                                              \
    finish_1(s, 0, a0_0, a1_0, a2_0, a3_0);                                                        \
    finish_1(s, 4, a4_0, a5_0, a6_0, a7_0);

#define TILE(NR, NV)                                                                               \
    TARGET static void tile_##NR##x##NV(const qk_gemm_u8s8 *g, const uint8_t *const *row,          \
                                        const sink *s) {                                           \
        const int8_t *b = g->b;                                                                    \
        const int32_t *bias = g->o.bias;                                                           \
        R##NR(V##NV, DECLARE) R##NR(ROW_OF, ROW) if (s->init) {                                    \
            R##NR(V##NV, INIT)                                                                     \
        }                                                                                          \
        for (int32_t seg = 0; seg < g->segs; seg++) {                                              \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            for (ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4; i < end; i += 4, b += 64 * NV) {        \
                V##NV(LOAD_B, 0) R##NR(ROW_STEP_##NV, DOT)                                         \
            }                                                                                      \
        }                                                                                          \
        if (is_plain(s) && s->rows == NR) {                                                        \
            const sink f = plain_sink(s, NR);                                                      \
            FINISH_##NR##x##NV(&f)                                                                 \
        } else {                                                                                   \
            FINISH_##NR##x##NV(s)                                                                  \
        }                                                                                          \
    }

#define ROW_STEP_1(F, r) LOAD_A(r) V1(F, r)
#define ROW_STEP_2(F, r) LOAD_A(r) V2(F, r)
#define ROW_STEP_4(F, r) LOAD_A(r) V4(F, r)

TILE(4, 4)
TILE(1, 4)
TILE(8, 2)
TILE(1, 2)
TILE(8, 1)
TILE(1, 1)

typedef void (*tile_fn)(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s);

/* A short last block aliases its missing rows to the last one. */
TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    int32_t height = g->width == 64 ? 4 : 8;
    tile_fn many = g->width == 64 ? tile_4x4 : g->width == 32 ? tile_8x2 : tile_8x1;
    tile_fn one = g->width == 64 ? tile_1x4 : g->width == 32 ? tile_1x2 : tile_1x1;
    int32_t init[8];
    sink s = {g->out, g->out_stride,     g->o.mult, g->row_init ? init : NULL, g->cols,
              0,      epilogue_of(&g->o)};
    for (int32_t r = 0; r < g->m; r += height, s.out += height * g->out_stride) {
        const uint8_t *row[8];
        for (int32_t i = 0; i < height; i++) {
            int32_t at = r + i < g->m ? r + i : g->m - 1;
            row[i] = g->rows ? g->rows[at] : g->a + at * g->a_stride;
            init[i] = g->row_init ? g->row_init[at] : 0;
        }
        s.rows = g->m - r < height ? g->m - r : height;
        (s.rows == 1 ? one : many)(g, row, &s);
    }
}

/* ---- sums of rows ---- */

/* Sums of the dwords of four vectors. */
INLINE __m128i sum_4(__m512i a, __m512i b, __m512i c, __m512i d) {
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    __m512i v = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

TARGET static void row_sums_u8(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    const __m512i ones = _mm512_set1_epi8(1);
    for (int32_t r = 0; r < g->m; r += 4) {
        const uint8_t *row[4];
        for (int32_t i = 0; i < 4; i++) {
            int32_t at = r + i < g->m ? r + i : g->m - 1;
            row[i] = g->rows ? g->rows[at] : g->a + at * g->a_stride;
        }
        __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
        for (int32_t seg = 0; seg < g->segs; seg++) {
            ptrdiff_t at = g->seg_offset ? g->seg_offset[seg] : 0;
            for (int32_t j = 0; j < k; j += 64, at += 64) {
                const __mmask64 mask = mask64(k - j);
                a = _mm512_dpbusd_epi32(a, _mm512_maskz_loadu_epi8(mask, row[0] + at), ones);
                b = _mm512_dpbusd_epi32(b, _mm512_maskz_loadu_epi8(mask, row[1] + at), ones);
                c = _mm512_dpbusd_epi32(c, _mm512_maskz_loadu_epi8(mask, row[2] + at), ones);
                d = _mm512_dpbusd_epi32(d, _mm512_maskz_loadu_epi8(mask, row[3] + at), ones);
            }
        }
        __m128i sums = _mm_mullo_epi32(sum_4(a, b, c, d), _mm_set1_epi32(factor));
        _mm_mask_storeu_epi32(out + r, (__mmask8)(mask16(g->m - r) & 15), sums);
    }
}

/* ---- depthwise: 64 channels, four taps at a time ---- */

/* Four taps of 64 channels become four vectors of dwords: the taps of one channel each. */
#define INTERLEAVE(t0, t1, t2, t3)                                                                 \
    const __m512i lo01 = _mm512_unpacklo_epi8(t0, t1), hi01 = _mm512_unpackhi_epi8(t0, t1);        \
    const __m512i lo23 = _mm512_unpacklo_epi8(t2, t3), hi23 = _mm512_unpackhi_epi8(t2, t3);        \
    const __m512i d0 = _mm512_unpacklo_epi16(lo01, lo23), d1 = _mm512_unpackhi_epi16(lo01, lo23);  \
    const __m512i d2 = _mm512_unpacklo_epi16(hi01, hi23), d3 = _mm512_unpackhi_epi16(hi01, hi23);

INLINE const uint8_t *tap_at(const qk_depthwise_u8s8 *d, const uint8_t *a, int32_t tap) {
    return a + d->tap_offset[tap < d->taps ? tap : 0];
}

#define DOT_CHANNELS(D0, D1, D2, D3, w)                                                            \
    a0 = _mm512_dpbusd_epi32(a0, D0, _mm512_loadu_si512(w));                                       \
    a1 = _mm512_dpbusd_epi32(a1, D1, _mm512_loadu_si512((w) + 64));                                \
    a2 = _mm512_dpbusd_epi32(a2, D2, _mm512_loadu_si512((w) + 128));                               \
    a3 = _mm512_dpbusd_epi32(a3, D3, _mm512_loadu_si512((w) + 192));

#define CHANNEL_SUMS(bias)                                                                         \
    __m512i a0 = _mm512_loadu_si512(bias), a1 = _mm512_loadu_si512((bias) + 16);                   \
    __m512i a2 = _mm512_loadu_si512((bias) + 32), a3 = _mm512_loadu_si512((bias) + 48);

INLINE void depthwise_pixel(const qk_depthwise_u8s8 *d, const uint8_t *a, const int8_t *w,
                            const int32_t *bias, const sink *s) {
    CHANNEL_SUMS(bias)
    for (int32_t t = 0; t < d->taps; t += 4, w += 256) {
        const __m512i t0 = _mm512_loadu_si512(tap_at(d, a, t));
        const __m512i t1 = _mm512_loadu_si512(tap_at(d, a, t + 1));
        const __m512i t2 = _mm512_loadu_si512(tap_at(d, a, t + 2));
        const __m512i t3 =
            d->columns ? _mm512_setzero_si512() : _mm512_loadu_si512(tap_at(d, a, t + 3));
        INTERLEAVE(t0, t1, t2, t3)
        DOT_CHANNELS(d0, d1, d2, d3, w)
    }
    finish_4(s, 0, a0, a1, a2, a3);
}

/* A column of three taps, interleaved. */
typedef struct column {
    __m512i d0, d1, d2, d3;
} column;

INLINE column load_column(const uint8_t *const *rows, ptrdiff_t at) {
    const __m512i t0 = _mm512_loadu_si512(rows[0] + at), t1 = _mm512_loadu_si512(rows[1] + at);
    const __m512i t2 = _mm512_loadu_si512(rows[2] + at), t3 = _mm512_setzero_si512();
    INTERLEAVE(t0, t1, t2, t3)
    return (column){d0, d1, d2, d3};
}

/* Only the bytes of `mask` lie inside the image. */
INLINE column edge_column(const uint8_t *const *rows, ptrdiff_t at, __mmask64 mask, uint8_t zp) {
    const __m512i out = _mm512_set1_epi8((char)zp), t3 = _mm512_setzero_si512();
    if (!mask) {
        const __m512i d = _mm512_set1_epi32(zp * 0x10101);
        return (column){d, d, d, d};
    }
    const __m512i t0 = _mm512_mask_loadu_epi8(out, mask, rows[0] + at);
    const __m512i t1 = _mm512_mask_loadu_epi8(out, mask, rows[1] + at);
    const __m512i t2 = _mm512_mask_loadu_epi8(out, mask, rows[2] + at);
    INTERLEAVE(t0, t1, t2, t3)
    return (column){d0, d1, d2, d3};
}

/* Three rows of the image at a block's channels. */
typedef struct slide {
    const uint8_t *rows[3];
    ptrdiff_t across; /* from column to column */
    bool left, right; /* as in qk_depthwise_u8s8 */
    bool pairs;       /* of pixels: only one of two lies outside */
} slide;

#define DOT_COLUMN(c, w) DOT_CHANNELS((c).d0, (c).d1, (c).d2, (c).d3, w)

/*
 * 3 x 3 at stride 1 or 2: what one pixel interleaves the next one uses again, two columns of three
 * or one. twice: a second set of weights follows.
 */
INLINE void depthwise_slide(const qk_depthwise_u8s8 *d, const slide *p, const int8_t *w,
                            const int32_t *bias, sink s, bool by_two, bool twice) {
    const ptrdiff_t across = p->across;
    ptrdiff_t at = p->left ? 0 : across; /* of the second column */
    const __mmask64 half = p->pairs ? 0xffffffff : 0;
    column c0 =
        p->left ? edge_column(p->rows, -across, half << 32, d->x_zp) : load_column(p->rows, 0);
    column c1 = load_column(p->rows, at);
    at += across;
    for (int32_t r = 0; r < d->m; r++, s.out += d->out_stride, at += across) {
        CHANNEL_SUMS(bias)
        const bool last = r + 1 == d->m;
        const column c2 =
            last && p->right ? edge_column(p->rows, at, half, d->x_zp) : load_column(p->rows, at);
        DOT_COLUMN(c0, w)
        DOT_COLUMN(c1, w + 256)
        DOT_COLUMN(c2, w + 512)
        if (twice) {
            DOT_COLUMN(c0, w + 768)
            DOT_COLUMN(c1, w + 1024)
            DOT_COLUMN(c2, w + 1280)
        }
        finish_4(&s, 0, a0, a1, a2, a3);
        c0 = by_two ? c2 : c1;
        at += by_two ? across : 0;
        /* Behind the last pixel nothing may be read. */
        c1 = by_two && !last ? load_column(p->rows, at) : c2;
    }
}

/* How many pixels a column is used again by: 1, 2, or 0 if the taps are no such kernel. */
static int32_t slide_step(const qk_depthwise_u8s8 *d) {
    const int32_t *o = d->tap_offset;
    if (!d->columns || (d->taps != 12 && d->taps != 24) || o[8] - o[4] != o[4] - o[0])
        return 0;
    if (d->taps == 24 && memcmp(o, o + 12, 12 * sizeof(*o)) != 0)
        return 0;
    return d->a_stride == o[4] - o[0] ? 1 : d->a_stride == o[8] - o[0] ? 2 : 0;
}

/* Most blocks have no weight that exceeds s8. */
TARGET static bool any_second(const int8_t *w) {
    __m512i any = _mm512_setzero_si512();
    for (int32_t i = 768; i < 1536; i += 64)
        any = _mm512_or_si512(any, _mm512_loadu_si512(w + i));
    return _mm512_test_epi32_mask(any, any) != 0;
}

TARGET static void slide_block(const qk_depthwise_u8s8 *d, const slide *p, const int8_t *w,
                               const int32_t *bias, const sink *s, bool by_two) {
    bool twice = d->taps == 24 && any_second(w);
    if (!is_plain(s) && by_two)
        depthwise_slide(d, p, w, bias, *s, true, d->taps == 24);
    else if (!is_plain(s))
        depthwise_slide(d, p, w, bias, *s, false, d->taps == 24);
    else if (by_two && twice)
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), true, true);
    else if (by_two)
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), true, false);
    else if (twice)
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), false, true);
    else
        depthwise_slide(d, p, w, bias, plain_sink(s, 1), false, false);
}

typedef struct block {
    const int8_t *w;
    const int32_t *bias;
    sink s;
} block;

/* What belongs to the block of channels from c on. */
INLINE block block_at(const qk_depthwise_u8s8 *d, int32_t c) {
    size_t element = d->o.mult ? 1 : 4, bytes = 256 * (size_t)((d->taps + 3) / 4);
    return (block){d->w + (size_t)(c / 64) * bytes,
                   d->o.bias + c,
                   {(uint8_t *)d->out + element * (size_t)c, d->out_stride,
                    d->o.mult ? d->o.mult + c : NULL, NULL,
                    d->channels - c < 64 ? d->channels - c : 64, 1, epilogue_of(&d->o)}};
}

TARGET static void depthwise_u8s8(const qk_depthwise_u8s8 *d) {
    const int32_t *o = d->tap_offset;
    int32_t step = slide_step(d);
    for (int32_t c = 0; c < d->channels; c += 64) {
        block b = block_at(d, c);
        const uint8_t *a = d->a + c;
        if (step) {
            slide p = {{a + o[0], a + o[1], a + o[2]}, o[4] - o[0], false, false, false};
            slide_block(d, &p, b.w, b.bias, &b.s, step == 2);
        } else {
            for (int32_t r = 0; r < d->m; r++, a += d->a_stride, b.s.out += d->out_stride)
                depthwise_pixel(d, a, b.w, b.bias, &b.s);
        }
    }
}

TARGET static void depthwise_rows_u8s8(const qk_depthwise_u8s8 *d) {
    for (int32_t c = 0; c < d->channels; c += 64) {
        block b = block_at(d, c);
        slide p = {{d->rows[0] + c, d->rows[1] + c, d->rows[2] + c},
                   d->across,
                   d->left,
                   d->right,
                   d->across != d->channels};
        slide_block(d, &p, b.w, b.bias, &b.s, d->a_stride != d->across);
    }
}

TARGET static void requantize_u8(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo,
                                 int32_t hi, uint8_t *y) {
    qk_out_i8 o = {.zp = zp, .lo = lo, .hi = hi, .clamp = true};
    epilogue e = epilogue_of(&o);
    __m512i zero_point = _mm512_set1_epi32(zp);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 mask = mask16(n - i < 16 ? (int32_t)(n - i) : 16);
        __m512i v = scale(_mm512_maskz_loadu_epi32(mask, acc + i), _mm512_set1_ps(m), &e);
        v = _mm512_add_epi32(v, zero_point);
        _mm512_mask_cvtepi32_storeu_epi8(y + i, mask, v);
    }
}

TARGET static void post_row(const qk_post_row_i8 *p) {
    qk_post_row(p);
}

const qk_i8 qk_i8_avx512vnni = {
    .lanes = 4,
    .widest = 64,
    .gemm = gemm_u8s8,
    .row_sums = row_sums_u8,
    .depthwise = depthwise_u8s8,
    .depthwise_rows = depthwise_rows_u8s8,
    .requantize = requantize_u8,
    .post = post_row,
};
#endif
