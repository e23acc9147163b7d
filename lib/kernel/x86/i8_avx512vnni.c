/* SPDX-License-Identifier: MIT */
/*
 * INT8 products for AVX-512 with VNNI: chooses tiles by the panel's width and the number of rows,
 * computes row sums, and defines the tables of this instruction set.
 */
#include <assert.h>

#include "kernel/i8.h"
#include "kernel/i8_post.h"

#ifdef QK_AVX512VNNI
#include "kernel/x86/i8_requant_avx512.h"
#include "kernel/x86/i8_im2row_avx512.h"
#include "kernel/x86/i8_gemv_avx512.h"
#include "kernel/x86/i8_gemm_tile_avx512.h"

/* ---- tiles: rows x columns ---- */

/*
 * KIND_ANY takes a loop, for less code: each turn stores the first row, or rows, and moves the sums
 * of the others up, which costs less than a way through memory.
 */
#define SUM_UP(r, q, v) a##r##_##v = a##q##_##v;
#define UP_64(r, q)     SUM_UP(r, q, 0) SUM_UP(r, q, 1) SUM_UP(r, q, 2) SUM_UP(r, q, 3)
#define UP_32(r, q)     SUM_UP(r, q, 0) SUM_UP(r, q, 1)
#define FINISH_ANY_64(NR)                                                                          \
    for (int32_t r = 0; r < s->rows; r++) {                                                        \
        finish_64(s, KIND_ANY, r, a0_0, a0_1, a0_2, a0_3);                                         \
        UP_64(0, 1) UP_64(1, 2) UP_64(2, 3)                                                        \
    }
#define FINISH_ANY_32(NR)                                                                          \
    for (int32_t r = 0; r < s->rows; r += 2) {                                                     \
        finish_32(s, KIND_ANY, r, a0_0, a0_1, a1_0, a1_1);                                         \
        UP_32(0, 2) UP_32(1, 3) UP_32(2, 4) UP_32(3, 5) UP_32(4, 6) UP_32(5, 7)                    \
    }
#define FINISH_ANY_16(NR)                                                                          \
    for (int32_t r = 0; r < s->rows; r += 4) {                                                     \
        finish_16(s, KIND_ANY, r, a0_0, a1_0, a2_0, a3_0);                                         \
        SUM_UP(0, 4, 0) SUM_UP(1, 5, 0) SUM_UP(2, 6, 0) SUM_UP(3, 7, 0)                            \
    }
#define HALF_SUM(r) halves[r] = h##r;
#define SUM(r)      sums[r] = a##r##_0;
#define FINISH_ANY_24(NR)                                                                          \
    __m512i sums[NR];                                                                              \
    __m256i halves[NR];                                                                            \
    R##NR(SUM) R##NR(HALF_SUM) finish_sums_24(s, sums, halves);
#define FINISH_ANY_8(NR)                                                                           \
    __m256i halves[NR];                                                                            \
    R##NR(HALF_SUM) finish_sums_8(s, halves);

TARGET QS_NOINLINE static void finish_sums_24(const sink *s, const __m512i *a, const __m256i *h) {
    for (int32_t r = 0; !s->mult && r < s->rows; r++)
        store_row_24(s, r, a[r], h[r]);
    if (s->mult)
        finish_24(s, KIND_ANY, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], join(h[0], h[1]),
                  join(h[2], h[3]), join(h[4], h[5]), join(h[6], h[7]));
}

TARGET QS_NOINLINE static void finish_sums_8(const sink *s, const __m256i *h) {
    for (int32_t r = 0; !s->mult && r < s->rows; r++)
        store_row_8(s, r, 0, h[r]);
    if (s->mult)
        finish_8(s, KIND_ANY, join(h[0], h[1]), join(h[2], h[3]), join(h[4], h[5]),
                 join(h[6], h[7]));
}

TILE(4, 64)
TILE(8, 32)
TILE(8, 24)
TILE(8, 16)
TILE(8, 8)

/*
 * Tiles of short sums: each is packed and stored after the products of the next one, for the reason
 * given in i8_gemm_smallk_avx512vnni.c. Tiles of 8 accumulators keep one port busy. Two ports with
 * a latency of 6 need 12 independent accumulators: 12 vectors, and 12 that wait to be stored.
 */

#define ZERO(r, v)  __m512i t##r##_##v = _mm512_setzero_si512();
#define ZERO_64(r)  ZERO(r, 0) ZERO(r, 1) ZERO(r, 2) ZERO(r, 3)
#define ZERO_32(r)  ZERO(r, 0) ZERO(r, 1)
#define ZERO_16(r)  ZERO(r, 0)
#define ZERO_2x64   R2(ZERO_64)
#define ZERO_3x64   R3(ZERO_64)
#define ZERO_6x32   R6(ZERO_32)
#define ZERO_12x16  R12(ZERO_16)
#define ZERO_4x32   R4(ZERO_32)
#define ZERO_8x16   R8(ZERO_16)
#define ZERO_8x24   R8(ZERO_16) ZERO(0, 1) ZERO(4, 1)
#define SCALE(r, v) t##r##_##v = scaled(a##r##_##v, _mm512_loadu_ps(s->mult + 16 * v), s, how);
#define SCALE_64(r) SCALE(r, 0) SCALE(r, 1) SCALE(r, 2) SCALE(r, 3)
#define SCALE_32(r) SCALE(r, 0) SCALE(r, 1)
#define SCALE_16(r) SCALE(r, 0)
#define SCALE_2x64  R2(SCALE_64)
#define SCALE_3x64  R3(SCALE_64)
#define SCALE_6x32  R6(SCALE_32)
#define SCALE_12x16 R12(SCALE_16)
#define SCALE_4x32  R4(SCALE_32)
#define SCALE_8x16  R8(SCALE_16)
#define PAIRS(r, h, i, j, k)                                                                       \
    t##r##_1 = _mm512_packs_epi32(scaled(join(h, i), m8, s, how), scaled(join(j, k), m8, s, how));
#define SCALE_8x24                                                                                 \
    const __m512 m8 = twice(s->mult + 16);                                                         \
    R8(SCALE_16) PAIRS(0, h0, h1, h2, h3) PAIRS(4, h4, h5, h6, h7)
#define BYTES(a, b, c, d) bytes_of(a, b, c, d, s, how)
#define STORE_64(r)       store_u8_64(s, r, BYTES(t##r##_0, t##r##_1, t##r##_2, t##r##_3));
#define STORE_32(r, q)    store_u8_32_2(s, how, r, BYTES(t##r##_0, t##r##_1, t##q##_0, t##q##_1));
#define STORE_2x64        R2(STORE_64)
#define STORE_3x64        R3(STORE_64)
#define STORE_4x32        STORE_32(0, 1) STORE_32(2, 3)
#define STORE_6x32        STORE_4x32 STORE_32(4, 5)
#define STORE_8x16                                                                                 \
    store_u8_16_4(s, how, 0, BYTES(t0_0, t1_0, t2_0, t3_0));                                       \
    store_u8_16_4(s, how, 4, BYTES(t4_0, t5_0, t6_0, t7_0));
#define STORE_12x16 STORE_8x16 store_u8_16_4(s, how, 8, BYTES(t8_0, t9_0, t10_0, t11_0));
#define STORE_8x24                                                                                 \
    store_u8_24(s, BYTES(t0_0, t1_0, t2_0, t3_0), BYTES(t4_0, t5_0, t6_0, t7_0),                   \
                joined(t0_1, t4_1, s, how));
#define BEHIND(a, b, c, d, e, f, g, h, x, y)                                                       \
    __asm__(""                                                                                     \
            : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h)               \
            : "v"(x), "v"(y));
#define BEHIND_4(a, b, c, d, x, y)                                                                 \
    __asm__("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d) : "v"(x), "v"(y));
#define BEHIND_2x64 BEHIND(t0_0, t0_1, t0_2, t0_3, t1_0, t1_1, t1_2, t1_3, a0_3, a1_3)
#define BEHIND_4x32 BEHIND(t0_0, t0_1, t1_0, t1_1, t2_0, t2_1, t3_0, t3_1, a2_1, a3_1)
#define BEHIND_8x16 BEHIND(t0_0, t1_0, t2_0, t3_0, t4_0, t5_0, t6_0, t7_0, a6_0, a7_0)
#define BEHIND_8x24 BEHIND_8x16
#define BEHIND_3x64                                                                                \
    BEHIND(t0_0, t0_1, t0_2, t0_3, t1_0, t1_1, t1_2, t1_3, a1_3, a2_3)                             \
    BEHIND_4(t2_0, t2_1, t2_2, t2_3, a1_3, a2_3)
#define BEHIND_6x32                                                                                \
    BEHIND(t0_0, t0_1, t1_0, t1_1, t2_0, t2_1, t3_0, t3_1, a4_1, a5_1)                             \
    BEHIND_4(t4_0, t4_1, t5_0, t5_1, a4_1, a5_1)
#define BEHIND_12x16                                                                               \
    BEHIND(t0_0, t1_0, t2_0, t3_0, t4_0, t5_0, t6_0, t7_0, a10_0, a11_0)                           \
    BEHIND_4(t8_0, t9_0, t10_0, t11_0, a10_0, a11_0)

/* Adding a zero point of 0 costs nothing here: one kind serves both. */
#define SHORT_TILES(NR, W)                                                                         \
    TARGET static int32_t short_##NR##x##W(const qk_gemm_u8s8 *from, const sink *to,               \
                                           gatherer *ahead) {                                      \
        const kind how = KIND_SHORT;                                                               \
        const qk_gemm_u8s8 all = *from, *g = &all; /* in memory beside the stack's pointer */      \
        sink at = *to, *s = &at;                                                                   \
        int32_t r = 0;                                                                             \
        ptrdiff_t move = 0; /* the first turn stores zeros, the second the first tile */           \
        ZERO_##NR##x##W if (ahead->left > 0) gather_more(ahead, NR);                               \
        s->rows = NR;                                                                              \
        for (; r + NR <= g->m; r += NR, s->out += move, move = NR * s->stride) {                   \
            const uint8_t *row[NR];                                                                \
            rows_at(g, r, NR, row);                                                                \
            s->init = g->row_init ? g->row_init + r : NULL;                                        \
            if (W == 64)                                                                           \
                gather_next(ahead, NR);                                                            \
            else if (ahead->left > 0)                                                              \
                gather_more(ahead, NR);                                                            \
            const int8_t *b = g->b;                                                                \
            const int32_t *bias = g->o.bias;                                                       \
            const int32_t *init = s->init;                                                         \
            R##NR(ROW) R##NR(SET_##W) if (init) {                                                  \
                R##NR(INIT_##W)                                                                    \
            }                                                                                      \
            for (int32_t seg = 0; seg < g->segs; seg++) {                                          \
                ptrdiff_t i = g->seg_offset ? g->seg_offset[seg] : 0;                              \
                const ptrdiff_t end = i + 4 * (ptrdiff_t)g->k4;                                    \
                do {                                                                               \
                    LOAD_##W R##NR(STEP_##W) b += 4 * W;                                           \
                    OPAQUE_POINTER(b) /* else gcc computes it anew after each segment */           \
                } while ((i += 4) < end);                                                          \
            }                                                                                      \
            BEHIND_##NR##x##W STORE_##NR##x##W SCALE_##NR##x##W                                    \
        }                                                                                          \
        STORE_##NR##x##W return r;                                                                 \
    }

SHORT_TILES(2, 64)
SHORT_TILES(4, 32)
SHORT_TILES(8, 24)
SHORT_TILES(8, 16)
SHORT_TILES(3, 64)
SHORT_TILES(6, 32)
SHORT_TILES(12, 16)

/* ---- a single row ---- */

/* One row by one panel. */
TARGET static void single(const qk_gemm_u8s8 *g, const uint8_t *p0, const int32_t *init,
                          uint8_t *out) {
    if (g->width == 64)
        single_64(g, p0, init, out);
    else if (g->width == 32)
        single_32(g, p0, init, out);
    else if (g->width == 24)
        single_24(g, p0, init, out);
    else if (g->width == 16)
        single_16(g, p0, init, out);
    else
        single_8(g, p0, init, out);
}

/* ---- the product ---- */

INLINE kind kind_of(const qk_gemm_u8s8 *g) {
    if (!g->o.mult || g->o.clamp)
        return KIND_ANY;
    return g->o.zp == 0 || g->o.fits16 ? KIND_SHORT : KIND_PLAIN;
}

#define SHORT 96 /* dwords of a row; 24 KB of weights */
#define THIN  16 /* the same where rows are gathered */

typedef int32_t (*short_fn)(const qk_gemm_u8s8 *g, const sink *to, gatherer *ahead);

/* Tiles of one width. */
typedef struct tiles {
    int32_t width, nr; /* nr: rows of whole tiles */
    tile_fn whole;
    int32_t low;  /* rows of short tiles, or 0 */
    int32_t high; /* the same for two ports */
    short_fn shorter;
    short_fn higher;
} tiles;

static const tiles all_tiles[] = {
    {64, 4, tile_4x64, 2, 3, short_2x64, short_3x64},
    {32, 8, tile_8x32, 4, 6, short_4x32, short_6x32},
    {24, 8, tile_8x24, 8, 0, short_8x24, NULL},
    {16, 8, tile_8x16, 8, 12, short_8x16, short_12x16},
    {8, 8, tile_8x8, 0, 0, NULL, NULL},
};

/* An incomplete tile: the last row stands in for missing ones. */
typedef struct rest {
    const uint8_t *row[8];
    int32_t init[8];
} rest;

TARGET QS_NOINLINE static void rest_of(const tiles *k, const qk_gemm_u8s8 *g, sink *s, int32_t r) {
    rest t;
    s->rows = g->m - r;
    for (int32_t i = 0, at = r; i < k->nr; i++, at += at + 1 < g->m) {
        t.row[i] = g->rows ? g->rows[at] : g->a + at * g->a_stride;
        t.init[i] = g->row_init ? g->row_init[at] : 0;
    }
    if (s->init)
        s->init = t.init;
    if (s->rows == 1)
        single(g, t.row[0], s->init, s->out);
    else
        k->whole(g, t.row, s, false);
}

/* Computes the rows from r on by whole tiles. */
TARGET QS_NOINLINE static void whole_tiles(const tiles *k, const qk_gemm_u8s8 *g, sink *s,
                                           int32_t r, gatherer *ahead) {
    const int32_t nr = k->nr;
    const bool plain = kind_of(g) <= KIND_PLAIN;
    const uint8_t *row[8], *p = g->a + r * g->a_stride;
    s->rows = nr;
    s->out = (uint8_t *)g->out + r * g->out_stride;
    gather_more(ahead, nr);
    for (;; r += nr, s->out += nr * s->stride, s->next += 64 * s->lines) {
        if (ahead->left > 0)
            gather_more(ahead, nr);
        s->init = g->row_init ? g->row_init + r : NULL;
        if (r + nr > g->m)
            break;
        const ptrdiff_t step = g->a_stride;
#pragma GCC unroll 8
        for (int32_t i = 0; i < 8; i++) /* a loop of nr turns is often mispredicted */
            row[i] = p + i * step;
        p += nr * step;
        k->whole(g, g->rows ? g->rows + r : row, s, plain);
    }
    if (r < g->m)
        rest_of(k, g, s, r);
}

/*
 * Computes the panel: by short tiles, whose epilogue stands among the next tile's products, where
 * its weights stay in the first-level cache, else by whole ones, then the remaining rows.
 */
TARGET QS_NOINLINE static void gemm_panel(const tiles *k, const qk_gemm_u8s8 *g, sink *s,
                                          gatherer *ahead, bool two_ports) {
    kind how = kind_of(g);
    const int32_t most = ahead->left > 0 ? THIN : SHORT;
    const bool low = k->low > 0 && how <= KIND_SHORT && g->segs <= most && g->segs * g->k4 <= most;
    int32_t r = low && k->width >= 32 ? qk_gemm_resident_avx512vnni(g, s, how, ahead) : 0;
    if (two_ports && g->next && g->m >= k->nr) { /* tiles share the cache lines of a panel */
        s->next = (const char *)g->next;
        s->lines = (4 * g->segs * g->k4 * k->nr + g->m - 1) / g->m;
    }
    if (r == 0 && low && two_ports && k->high > 0 && g->m >= k->high && ahead->left <= 0)
        r = k->higher(g, s, ahead);
    else if (r == 0 && low && g->m >= k->low)
        r = k->shorter(g, s, ahead);
    if (r < g->m)
        whole_tiles(k, g, s, r, ahead);
}

/* Whether the kernel of g gathers while it computes, which takes whole tiles. */
TARGET static bool gathers(const qk_gemm_u8s8 *g) {
    return g->m >= 8 && ((g->width == 64 && g->k4 > 4) || g->width == 32);
}

TARGET QS_NOINLINE static void gather_u8(const qk_gather_u8 *g) {
    gatherer all;
    assert(qk_gather_u8_valid(g));
    gather_start(&all, g);
    gather_more(&all, g->m);
    _mm256_zeroupper();
}

TARGET QS_NOINLINE static void several_panels(const qk_gemm_u8s8 *g, int32_t panels) {
    if (g->gather)
        gather_u8(g->gather);
    several_64(g, panels);
}

/* Code that has to save registers is in functions of its own. */
TARGET static void row_u8s8(const qk_gemm_u8s8 *g, int32_t panels) {
    assert(qk_gemm_u8s8_valid(&qk_i8_avx512vnni, g, panels));
    if (panels == 1 && !g->gather)
        single_64(g, g->rows ? g->rows[0] : g->a, g->row_init, g->out);
    else
        several_panels(g, panels);
}

TARGET __attribute__((noinline)) static void gemm_rows(const qk_gemm_u8s8 *g, bool two_ports) {
    gatherer ahead;
    gather_start(&ahead, g->gather);
    if (g->gather && !gathers(g))
        gather_more(&ahead, g->gather->m);
    sink s = sink_of(g);
    const tiles *k = all_tiles;
    while (k->width != g->width)
        k++;
    gemm_panel(k, g, &s, &ahead, two_ports);
    _mm256_zeroupper();
}

INLINE void gemm_with(const qk_gemm_u8s8 *g, bool two_ports) {
    assert(qk_gemm_u8s8_valid(&qk_i8_avx512vnni, g, 1));
    if (g->m == 1 && !g->gather)
        single(g, g->rows ? g->rows[0] : g->a, g->row_init, g->out);
    else
        gemm_rows(g, two_ports);
}

TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    gemm_with(g, false);
}

TARGET static void gemm_two_ports(const qk_gemm_u8s8 *g) {
    gemm_with(g, true);
}

/* ---- sums of rows ---- */

/* The sum of the dwords of each of four vectors. */
INLINE __m128i sum_4(__m512i a, __m512i b, __m512i c, __m512i d) {
    __m512i ab = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    __m512i cd = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    __m512i v = _mm512_add_epi32(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
    __m256i h = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
}

/* Rows at a constant distance, of a single segment of at most 64 bytes. */
TARGET static void short_row_sums(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    const __m512i ones = _mm512_maskz_set1_epi8(mask64(k), 1), zero = _mm512_setzero_si512();
    const ptrdiff_t step = g->a_stride;
    const uint8_t *p = g->a + (g->seg_offset ? g->seg_offset[0] : 0);
    for (int32_t r = 0; r < g->m; r += 4, p += 4 * step) {
        const ptrdiff_t second = r + 1 < g->m ? step : 0, third = r + 2 < g->m ? 2 * step : 0;
        const ptrdiff_t fourth = r + 3 < g->m ? 3 * step : 0;
        const __m512i a = _mm512_dpbusd_epi32(zero, _mm512_loadu_si512(p), ones);
        const __m512i b = _mm512_dpbusd_epi32(zero, _mm512_loadu_si512(p + second), ones);
        const __m512i c = _mm512_dpbusd_epi32(zero, _mm512_loadu_si512(p + third), ones);
        const __m512i d = _mm512_dpbusd_epi32(zero, _mm512_loadu_si512(p + fourth), ones);
        const __m128i sums = _mm_mullo_epi32(sum_4(a, b, c, d), _mm_set1_epi32(factor));
        _mm_mask_storeu_epi32(out + r, (__mmask8)(mask16(g->m - r) & 15), sums);
    }
    _mm256_zeroupper();
}

TARGET static void row_sums_u8(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    const __m512i ones = _mm512_set1_epi8(1);
    if (g->segs == 1 && k <= 64 && !g->rows) {
        short_row_sums(g, k, factor, out);
        return;
    }
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
    _mm256_zeroupper();
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
    _mm256_zeroupper();
}

TARGET static void post_row(const qk_post_row_i8 *p) {
    qk_post_row(p);
}

/* In lanes, interleaving gives the order of positions (i8.h). */
TARGET void qk_pack_side_avx512vnni(const int8_t *w, int64_t row, int32_t fours, uint8_t flip,
                                    int8_t *to, int32_t sums[64]) {
    const __m512i flips = _mm512_set1_epi8((char)flip), ones = _mm512_set1_epi8(1);
    __m512i s0 = _mm512_loadu_si512(sums), s1 = _mm512_loadu_si512(sums + 16);
    __m512i s2 = _mm512_loadu_si512(sums + 32), s3 = _mm512_loadu_si512(sums + 48);
    for (int32_t i = 0; i < fours; i++, w += 4 * row, to += 256) {
        for (int64_t r = 0; r < 4; r++)
            _mm_prefetch((const char *)w + r * row + 128, _MM_HINT_T0);
        const __m512i a = _mm512_xor_si512(_mm512_loadu_si512(w), flips);
        const __m512i b = _mm512_xor_si512(_mm512_loadu_si512(w + row), flips);
        const __m512i c = _mm512_xor_si512(_mm512_loadu_si512(w + 2 * row), flips);
        const __m512i d = _mm512_xor_si512(_mm512_loadu_si512(w + 3 * row), flips);
        const __m512i low = _mm512_unpacklo_epi8(a, b), high = _mm512_unpackhi_epi8(a, b);
        const __m512i next = _mm512_unpacklo_epi8(c, d), last = _mm512_unpackhi_epi8(c, d);
        const __m512i v0 = _mm512_unpacklo_epi16(low, next);
        const __m512i v1 = _mm512_unpackhi_epi16(low, next);
        const __m512i v2 = _mm512_unpacklo_epi16(high, last);
        const __m512i v3 = _mm512_unpackhi_epi16(high, last);
        _mm512_storeu_si512(to, v0);
        _mm512_storeu_si512(to + 64, v1);
        _mm512_storeu_si512(to + 128, v2);
        _mm512_storeu_si512(to + 192, v3);
        s0 = _mm512_dpbusd_epi32(s0, ones, v0);
        s1 = _mm512_dpbusd_epi32(s1, ones, v1);
        s2 = _mm512_dpbusd_epi32(s2, ones, v2);
        s3 = _mm512_dpbusd_epi32(s3, ones, v3);
    }
    _mm512_storeu_si512(sums, s0);
    _mm512_storeu_si512(sums + 16, s1);
    _mm512_storeu_si512(sums + 32, s2);
    _mm512_storeu_si512(sums + 48, s3);
    _mm256_zeroupper();
}

#define KERNELS(product)                                                                           \
    .gemm = product, .lanes = 4, .widest = 64, .small_panels = true, .panels = row_u8s8,           \
    .panel_rows = 1, .row_sums = row_sums_u8, .gather = gather_u8,                                 \
    .pack_side = qk_pack_side_avx512vnni, .depthwise = qk_depthwise_u8s8_avx512vnni,               \
    .window = qk_window_u8s8_avx512vnni, .window_group = 4, .window_floats = 2,                    \
    .requantize = requantize_u8, .post = post_row

const qk_i8 qk_i8_avx512vnni = {KERNELS(gemm_u8s8)};
const qk_i8 qk_i8_two_ports = {KERNELS(gemm_two_ports), .fetches = true};
#endif
