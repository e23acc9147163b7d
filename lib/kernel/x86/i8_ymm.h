/* SPDX-License-Identifier: MIT */
/*
 * Integer products and depthwise kernels in 256-bit vectors: the template of i8_avx2.c and
 * i8_avxvnni.c. Functions that both share are in i8_ymm.c. Before including it, define
 *
 *   TARGET          the target attribute
 *   TABLE           name of the table that is defined here
 *   OWN_PRODUCT     optional: the file defines gemm_u8s8 and gemm_panels itself. Without it:
 *     LOAD_B(v)       declares w<v>, the weights of 8 columns at b + 32 * v, as DOT takes them,
 *     LOAD_A(r)       and x<r>, the dword at p<r> + i in all lanes,
 *     DOT(r, v)       accumulates into a<r>_<v>
 *   dot(acc, x, w)  function: dwords of 4 u8 x dwords of 4 s8, added up
 *   W_GROUP, window_dot  see i8_dw_rows.h and i8_dw_any.h
 */
#include <assert.h>

#include "kernel/x86/i8_requant_avx2.h"

#define W_LANES 2

/* Defined by the including file, after this point. */
INLINE __m256i dot(__m256i acc, __m256i x, __m256i w);

/* ---- tiles of 16 columns ---- */

#define R1(F) F(0)
#define R3(F) F(0) F(1) F(2)
#define R4(F) R3(F) F(3)
#define R6(F) R4(F) F(4) F(5)

#define DECLARE(r)                                                                                 \
    __m256i a##r##_0 = load(bias), a##r##_1 = load(bias + 8);                                      \
    const uint8_t *p##r = row[r];
#define INIT(r)                                                                                    \
    a##r##_0 = _mm256_add_epi32(a##r##_0, _mm256_set1_epi32(s->init[r]));                          \
    a##r##_1 = _mm256_add_epi32(a##r##_1, _mm256_set1_epi32(s->init[r]));
#define STEP(r)                                                                                    \
    LOAD_A(r)                                                                                      \
    DOT(r, 0)                                                                                      \
    DOT(r, 1)

/*
 * Results of other kinds than the plain one go through memory. Where rows may be missing (ROWS is
 * not a constant), the last row is stored in their place, too.
 */
#define PLAIN(r, q) finish_plain(&to, &e, r, a##r##_0, a##r##_1, a##q##_0, a##q##_1);
#define PLAIN_3     PLAIN(0, 1) PLAIN(2, 2)
#define PLAIN_4     PLAIN(0, 1) PLAIN(2, 3)
#define PLAIN_6     PLAIN_4 PLAIN(4, 5)
#define SUMS_OF(r)  {a##r##_0, a##r##_1},
#define SUMS_3      R3(SUMS_OF) SUMS_OF(2)
#define SUMS_4      R4(SUMS_OF)
#define SUMS_6      R6(SUMS_OF)
#define FINISH(NR, ROWS)                                                                           \
    if (__builtin_expect(is_plain(s) && s->rows == (ROWS), 1)) {                                   \
        sink to = *s;                                                                              \
        to.rows = ROWS;                                                                            \
        epilogue e = s->e;                                                                         \
        e.clamp = false;                                                                           \
        PLAIN_##NR                                                                                 \
    } else {                                                                                       \
        const __m256i all[][2] = {SUMS_##NR};                                                      \
        qk_finish_any_ymm(s, all);                                                                 \
    }

/*
 * w0 and w1 are kept to the end: gcc would otherwise move sums into their registers and back. It
 * would also compute b again from the loop's bounds: a tenth of a short tile's time.
 */
#define TILE(NR, ROWS)                                                                             \
    TARGET __attribute__((noinline)) static void tile_##NR(                                        \
        const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s) {                         \
        const int8_t *b = g->b;                                                                    \
        const int32_t *bias = g->o.bias;                                                           \
        R##NR(DECLARE) if (__builtin_expect(s->init != NULL, 0)) {                                 \
            R##NR(INIT)                                                                            \
        }                                                                                          \
        for (int32_t seg = 0; seg < g->segs; seg++) {                                              \
            ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                                  \
            const ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4;                                        \
            do {                                                                                   \
                LOAD_B(0) LOAD_B(1) R##NR(STEP) b += 64;                                           \
                __asm__("" : "+r"(b) : "v"(w0), "v"(w1));                                          \
            } while ((i += 4) < end);                                                              \
        }                                                                                          \
        FINISH(NR, ROWS)                                                                           \
    }

/* A single row: four dwords at a time have accumulators of their own, so no sum waits. */
#define ZERO_SUM(r) __m256i a##r##_0 = _mm256_setzero_si256(), a##r##_1 = a##r##_0;
#define NEXT_DWORD(r)                                                                              \
    { LOAD_B(0) LOAD_B(1) STEP(r) b += 64; }
#define ALL(v) _mm256_add_epi32(_mm256_add_epi32(a0_##v, a1_##v), _mm256_add_epi32(a2_##v, a3_##v))
TARGET __attribute__((noinline)) static void one_row(const qk_gemm_u8s8 *g, int32_t r) {
    const sink s = {(uint8_t *)g->out + r * g->out_stride,
                    0,
                    g->o.mult,
                    NULL,
                    g->cols < 16 ? g->cols : 16,
                    1,
                    epilogue_of(&g->o),
                    g->o.scale,
                    g->o.add};
    const uint8_t *p0 = g->rows ? g->rows[r] : g->a + r * g->a_stride;
    const uint8_t *p1 = p0 + 4, *p2 = p0 + 8, *p3 = p0 + 12;
    const int8_t *b = g->b;
    const __m256i init = _mm256_set1_epi32(g->row_init ? g->row_init[r] : 0);
    R4(ZERO_SUM)
    for (int32_t seg = 0; seg < g->segs; seg++) {
        ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;
        const ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4;
        for (; end - i >= 16; i += 16) {
            R4(NEXT_DWORD)
        }
        for (; i < end; i += 4)
            NEXT_DWORD(0)
    }
    a0_0 = _mm256_add_epi32(_mm256_add_epi32(ALL(0), init), load(g->o.bias));
    a0_1 = _mm256_add_epi32(_mm256_add_epi32(ALL(1), init), load(g->o.bias + 8));
    finish(&s, 0, a0_0, a0_1, a0_0, a0_1);
}

/* ---- depthwise: 32 channels, four taps at a time ---- */

INLINE void store_channels(const sink *s, __m256i y) {
    uint8_t row[32];
    if (s->cols == 32) {
        _mm256_storeu_si256((__m256i *)(void *)s->out, y);
        return;
    }
    _mm256_storeu_si256((__m256i *)(void *)row, y);
    memcpy(s->out, row, (size_t)s->cols);
}

/* Stores the first n dwords. */
__attribute__((noinline)) QS_COLD static void store_some(uint8_t *to, const __m256i *v, int32_t n) {
    memcpy(to, v, 4 * (size_t)n);
}

/* Stores dwords; vector v, lane l, element e holds channel 16 * l + 4 * v + e. */
INLINE void store_dwords(const sink *s, __m256i a0, __m256i a1, __m256i a2, __m256i a3) {
    const __m256i v0 = _mm256_permute2x128_si256(a0, a1, 0x20);
    const __m256i v1 = _mm256_permute2x128_si256(a2, a3, 0x20);
    const __m256i v2 = _mm256_permute2x128_si256(a0, a1, 0x31);
    const __m256i v3 = _mm256_permute2x128_si256(a2, a3, 0x31);
    if (__builtin_expect(s->cols == 32, true)) {
        _mm256_storeu_si256((__m256i *)(void *)s->out, v0);
        _mm256_storeu_si256((__m256i *)(void *)(s->out + 32), v1);
        _mm256_storeu_si256((__m256i *)(void *)(s->out + 64), v2);
        _mm256_storeu_si256((__m256i *)(void *)(s->out + 96), v3);
    } else {
        const __m256i v[4] = {v0, v1, v2, v3};
        store_some(s->out, v, s->cols);
    }
}

INLINE void finish_channels(const sink *s, __m256i a0, __m256i a1, __m256i a2, __m256i a3) {
    if (!s->mult) {
        if (s->scale) {
            a0 = as_floats(s, a0, 0);
            a1 = as_floats(s, a1, 8);
            a2 = as_floats(s, a2, 16);
            a3 = as_floats(s, a3, 24);
        }
        store_dwords(s, a0, a1, a2, a3);
        return;
    }
    const __m256 m0 = _mm256_loadu_ps(s->mult), m1 = _mm256_loadu_ps(s->mult + 8);
    const __m256 m2 = _mm256_loadu_ps(s->mult + 16), m3 = _mm256_loadu_ps(s->mult + 24);
    const epilogue *e = &s->e;
    store_channels(s, pack_bytes(pack_words(scale(a0, m0, e), scale(a1, m1, e), e),
                                 pack_words(scale(a2, m2, e), scale(a3, m3, e), e), e));
}

/* last: offsets of the last four taps; the first tap stands in for missing ones. */
INLINE void depthwise_pixel(const qk_depthwise_u8s8 *d, const int32_t *last, const uint8_t *a,
                            const int8_t *w, const int32_t *bias, const sink *s) {
    __m256i a0 = load(bias), a1 = load(bias + 8), a2 = load(bias + 16), a3 = load(bias + 24);
    for (int32_t t = 0; t < d->taps; t += 4, w += 128) {
        const int32_t *at = t + 4 <= d->taps ? d->tap_offset + t : last;
        __m256i t0 = load(a + at[0]), t1 = load(a + at[1]);
        __m256i t2 = load(a + at[2]), t3 = load(a + at[3]);
        __m256i lo01 = _mm256_unpacklo_epi8(t0, t1), hi01 = _mm256_unpackhi_epi8(t0, t1);
        __m256i lo23 = _mm256_unpacklo_epi8(t2, t3), hi23 = _mm256_unpackhi_epi8(t2, t3);
        a0 = dot(a0, _mm256_unpacklo_epi16(lo01, lo23), load(w));
        a1 = dot(a1, _mm256_unpackhi_epi16(lo01, lo23), load(w + 32));
        a2 = dot(a2, _mm256_unpacklo_epi16(hi01, hi23), load(w + 64));
        a3 = dot(a3, _mm256_unpackhi_epi16(hi01, hi23), load(w + 96));
    }
    finish_channels(s, a0, a1, a2, a3);
}

TARGET static void depthwise_u8s8(const qk_depthwise_u8s8 *d) {
    assert(qk_depthwise_u8s8_valid(d));
    size_t element = d->o.mult ? 1 : 4, block_bytes = 128 * (size_t)((d->taps + 3) / 4);
    const int8_t *w = d->w;
    sink s = {NULL, 0, NULL, NULL, 0, 1, epilogue_of(&d->o), NULL, NULL};
    int32_t last[4];
    for (int32_t i = 0, t = d->taps & ~3; i < 4; i++)
        last[i] = d->tap_offset[t + i < d->taps ? t + i : 0];
    for (int32_t c = 0; c < d->channels; c += 32, w += block_bytes) {
        s.out = (uint8_t *)d->out + element * (size_t)c;
        s.mult = d->o.mult ? d->o.mult + c : NULL;
        s.scale = d->o.scale ? d->o.scale + c : NULL;
        s.add = d->o.scale ? d->o.add + c : NULL;
        s.cols = d->channels - c < 32 ? d->channels - c : 32;
        const uint8_t *a = d->a + c;
        for (int32_t r = 0; r < d->m; r++, a += d->a_stride, s.out += d->out_stride)
            depthwise_pixel(d, last, a, w, d->o.bias + c, &s);
    }
}

/* Defined in i8_dw_window.h, which the including file includes last. */
static void window_u8s8(const qk_window_u8s8 *d);

/* ---- the product ---- */

#ifdef OWN_PRODUCT
TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g);
TARGET static void gemm_panels(const qk_gemm_u8s8 *g, int32_t panels);
#else
#define TILE_ROWS 6
TILE(6, 6)
TILE(4, s->rows)

INLINE const uint8_t *source_row(const qk_gemm_u8s8 *g, ptrdiff_t r) {
    return g->rows ? g->rows[r] : g->a + r * g->a_stride;
}

INLINE void take_rows(const qk_gemm_u8s8 *g, int32_t r, int32_t count, const uint8_t **row,
                      int32_t *init) {
    for (int32_t i = 0; i < count; i++) {
        const int32_t at = r + i < g->m ? r + i : g->m - 1;
        row[i] = source_row(g, at);
        init[i] = g->row_init ? g->row_init[at] : 0;
    }
}

/* Computes the last rows, fewer than a tile: the last one stands in for missing rows. */
TARGET static void gemm_rest(const qk_gemm_u8s8 *g, int32_t r, sink *s) {
    const uint8_t *row[TILE_ROWS];
    int32_t init[TILE_ROWS];
    s->rows = g->m - r;
    s->init = g->row_init ? init : NULL;
    if (s->rows == 1) {
        one_row(g, r);
    } else if (s->rows <= 4) {
        take_rows(g, r, 4, row, init);
        tile_4(g, row, s);
    } else {
        take_rows(g, r, TILE_ROWS, row, init);
        tile_6(g, row, s);
    }
}

TARGET static void gemm_rows(const qk_gemm_u8s8 *g) {
    sink s = {g->out,    g->out_stride,      g->o.mult,  NULL,    g->cols,
              TILE_ROWS, epilogue_of(&g->o), g->o.scale, g->o.add};
    ptrdiff_t r = 0;
    for (; r + TILE_ROWS <= g->m; r += TILE_ROWS, s.out += TILE_ROWS * s.stride) {
        const uint8_t *row[TILE_ROWS];
        for (int32_t i = 0; i < TILE_ROWS; i++)
            row[i] = source_row(g, r + i);
        s.init = g->row_init ? g->row_init + r : NULL;
        tile_6(g, row, &s);
    }
    if (r < g->m)
        gemm_rest(g, (int32_t)r, &s);
}

TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    assert(qk_gemm_u8s8_valid(&TABLE, g, 1));
    if (g->gather)
        qk_gather_u8_ymm(g->gather);
    if (g->m == 1)
        one_row(g, 0);
    else
        gemm_rows(g);
}
#endif

const qk_i8 TABLE = {
    .lanes = 2,
    .widest = 16,
    .gemm = gemm_u8s8,
#ifdef OWN_PRODUCT
    .panels = gemm_panels,
    .panel_rows = INT32_MAX,
    .planes = true,
#endif
    .row_sums = qk_row_sums_u8_ymm,
    .gather = qk_gather_u8_ymm,
    .depthwise = depthwise_u8s8,
    .window = window_u8s8,
    .window_group = W_GROUP,
    .window_floats = 1,
    .requantize = qk_requantize_u8_ymm,
    .post = qk_post_row_ymm,
};
