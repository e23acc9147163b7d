/* SPDX-License-Identifier: MIT */
/*
 * Float products in 512-bit vectors: tiles of up to 8 rows by 8 to 64 columns; depthwise
 * convolution from its template. Pooling is as fast in 256 bits.
 */
#include <assert.h>

#include "kernel/x86/pool_x86.h"

#ifdef QK_AVX512VNNI
#include <math.h>

#include "kernel/x86/f32_gemm_n8.h"
#include "kernel/x86/f32_zmm.h"

#define EDGE                  __mmask16
#define EDGE_IF(on)           ((__mmask16)((on) ? 0xffff : 0))
#define FMA_IF(edge, a, b, c) _mm512_mask3_fmadd_ps(a, b, c, edge)

#include "kernel/f32_tile.h"
#include "kernel/f32_depthwise_blocks.h"

/* H0 to H3: that many vectors of 16 columns and one of 8, which is half the work of one of 16. */
#define ZERO_HALF(r) __m256 h##r = _mm256_setzero_ps();
#define LOAD_HALF(v) const __m256 bh = _mm256_loadu_ps(b + v * LANES);
/* The barrier keeps clang from broadcasting twice. */
#define MADD_HALF(r)                                                                               \
    __asm__("" : "+v"(x##r));                                                                      \
    h##r = _mm256_fmadd_ps(_mm512_castps512_ps256(x##r), bh, h##r);                                \
    __asm__("" : "+v"(h##r));
#define BIAS_HALF(v)                                                                               \
    const __m256 biash = _mm256_loadu_ps(t->bias + v * LANES);                                     \
    const __m256 loh = _mm512_castps512_ps256(lo), hih = _mm512_castps512_ps256(hi);               \
    const __mmask8 mask = (__mmask8)((1u << last) - 1u);
#define END_HALF(r)    _mm256_min_ps(hih, _mm256_max_ps(loh, _mm256_add_ps(h##r, biash)))
#define OUT_HALF(r, v) _mm256_mask_storeu_ps(o##r + v * LANES, mask, END_HALF(r));

#define ZEROH0(r) ZERO_HALF(r)
#define ZEROH1(r) ZERO1(r) ZERO_HALF(r)
#define ZEROH2(r) ZERO2(r) ZERO_HALF(r)
#define ZEROH3(r) ZERO3(r) ZERO_HALF(r)
#define LOADBH0   LOAD_HALF(0)
#define LOADBH1   LOADB1 LOAD_HALF(1)
#define LOADBH2   LOADB2 LOAD_HALF(2)
#define LOADBH3   LOADB3 LOAD_HALF(3)
/* Tiles of 8 columns: a broadcast to half a vector. */
#define STEPH0(r)                                                                                  \
    h##r = _mm256_fmadd_ps(_mm256_set1_ps(a##r[i]), bh, h##r);                                     \
    __asm__("" : "+v"(h##r));
#define STEPH1(r) STEP1(r) MADD_HALF(r)
#define STEPH2(r) STEP2(r) MADD_HALF(r)
#define STEPH3(r) STEP3(r) MADD_HALF(r)
#define BIASH0    BIAS_HALF(0)
#define BIASH1    BIAS1 BIAS_HALF(1)
#define BIASH2    BIAS2 BIAS_HALF(2)
#define BIASH3    BIAS3 BIAS_HALF(3)
#define OUTH0(r)  ROW(r) OUT_HALF(r, 0)
#define OUTH1(r)  ROW(r) FULL(r, 0) OUT_HALF(r, 1)
#define OUTH2(r)  ROW(r) FULL(r, 0) FULL(r, 1) OUT_HALF(r, 2)
#define OUTH3(r)  ROW(r) FULL(r, 0) FULL(r, 1) FULL(r, 2) OUT_HALF(r, 3)

#define TILES(vectors)                                                                             \
    TILE(tile_1x##vectors, 1, vectors)                                                             \
    TILE(tile_4x##vectors, 4, vectors)
#define ROW_OF_TILES(vectors, two, most)                                                           \
    { {tile_1x##vectors, two, tile_4x##vectors}, tile_##most##x##vectors, most }

TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(H0)
TILES(H1)
TILES(H2)
TILES(H3)
TILE(tile_2x4, 2, 4)
TILE(tile_8x1, 8, 1)
TILE(tile_8x2, 8, 2)
TILE(tile_8xH0, 8, H0)
TILE(tile_5x4, 5, 4)

#define PANEL 64

/*
 * Tiles by the panel's width in half vectors: of 1, 2 and 4 rows, the big one and its rows. 8
 * accumulators keep two ports busy; with 24 the end of a tile fills the schedulers and keeps
 * products waiting, 5 % of a product with k = 16.
 */
static const struct {
    tile_fn small[3], big;
    size_t rows;
} tiles[8] = {
    ROW_OF_TILES(H0, NULL, 8), ROW_OF_TILES(1, NULL, 8),     ROW_OF_TILES(H1, NULL, 4),
    ROW_OF_TILES(2, NULL, 8),  ROW_OF_TILES(H2, NULL, 4),    ROW_OF_TILES(3, NULL, 4),
    ROW_OF_TILES(H3, NULL, 4), ROW_OF_TILES(4, tile_2x4, 4),
};

_Static_assert(QS_COUNT(tiles) == PANEL / 8, "one row of tiles per half vector of a panel");

/* The number of leading offsets that are `step` apart; at least 1. */
TARGET static size_t evenly(const ptrdiff_t *at, size_t n, ptrdiff_t step) {
    const __m512i steps = _mm512_set1_epi64(step);
    for (size_t i = 1; i < n; i += 8) {
        const __mmask8 mask = (__mmask8)(n - i < 8 ? (1u << (n - i)) - 1u : 0xffu);
        const __m512i here = _mm512_maskz_loadu_epi64(mask, at + i);
        const __m512i before = _mm512_maskz_loadu_epi64(mask, at + i - 1);
        const unsigned other =
            _mm512_mask_cmpneq_epi64_mask(mask, _mm512_sub_epi64(here, before), steps);
        if (other)
            return i + (size_t)__builtin_ctz(other);
    }
    return n;
}

/* The number of rows from r on, QK_NARROW_MOST at most, that are one element apart. */
static size_t rows_in_line(const qk_gemm_f32 *g, size_t r) {
    const size_t rest = g->rows - r, most = rest < QK_NARROW_MOST ? rest : QK_NARROW_MOST;
    const size_t n = evenly(g->row + r, most, 1);
    return g->out ? evenly(g->out + r, n, (ptrdiff_t)g->ldc) : n;
}

/* Computes a panel of 8 columns: lines of pixels by vectors of pixels, the rest by tiles. */
static void gemm_narrow(const qk_gemm_f32 *g, const tile *panel, size_t cols) {
    qk_gemm_f32 part = *g;
    for (size_t r = 0; r < g->rows;) {
        const size_t n = rows_in_line(g, r);
        if (n >= QK_NARROW_LEAST) {
            qk_gemm_narrow_avx512(g, r, n, panel->b, panel->bias, panel->c, cols);
        } else {
            tile t = *panel;
            part.row = g->row + r;
            part.rows = n;
            part.out = g->out ? g->out + r : NULL;
            t.g = &part;
            t.c = panel->c + (g->out ? 0 : r * g->ldc);
            run_rows(&t, tiles[0].small, tiles[0].rows, tiles[0].big);
        }
        r += n;
    }
}

/* Whether lines are long enough for gemm_narrow, by the first one. */
static bool has_lines(const qk_gemm_f32 *g) {
    return g->rows >= QK_NARROW_LEAST && rows_in_line(g, 0) >= QK_NARROW_LEAST;
}

/* Computes a whole panel. A last row goes with four others: alone it would wait for the panel. */
static void gemm_whole(const qk_gemm_f32 *g, tile *t) {
    qk_gemm_f32 fours = *g;
    const bool odd = g->rows > 4 && g->rows % 4 == 1;
    fours.rows -= odd ? 5 : 0;
    t->g = &fours;
    run_rows(t, tiles[7].small, tiles[7].rows, tiles[7].big);
    if (odd)
        run_tile(t, fours.rows, tile_5x4);
}

static void qk_gemm_f32_avx512(const qk_gemm_f32 *g) {
    assert(qk_gemm_f32_valid(&qk_f32_avx512, g));
    for (size_t col = 0; col < g->cols; col += PANEL) {
        const size_t width = qk_panel_width(PANEL, g->cols, col);
        const size_t used = g->cols - col < width ? g->cols - col : width;
        const size_t kind = (width - 1) / 8, vectors = (used + LANES - 1) / LANES;
        tile t = {.g = g,
                  .b = qk_gemm_column(g, col),
                  .bias = g->bias + col,
                  .c = g->c + col,
                  .width = g->b_row ? g->b_row : width,
                  .last = used - (vectors - 1) * LANES};
        if (width == 8 && !g->b_row && has_lines(g)) {
            gemm_narrow(g, &t, used);
            continue;
        }
        if (width == PANEL)
            gemm_whole(g, &t);
        else
            run_rows(&t, tiles[kind].small, tiles[kind].rows, tiles[kind].big);
    }
}

/*
 * Compiled for size, gcc leaves the upper halves of registers in use, which slows down the SSE code
 * that runs next.
 */
#define LEAVE(name, job, kernel)                                                                   \
    TARGET static void name(const job *j) {                                                        \
        kernel(j);                                                                                 \
        _mm256_zeroupper();                                                                        \
    }
LEAVE(leave_gemm, qk_gemm_f32, qk_gemm_f32_avx512)
LEAVE(leave_depthwise, qk_depthwise_f32, depthwise_f32)
LEAVE(leave_depthwise_3x3, qk_depthwise_f32, depthwise_3x3)

/* Tables that differ only in their product. */
#define KERNELS(product)                                                                           \
    .panel = PANEL, .gemm = product, .part = qk_part_f32_fma, .depthwise = leave_depthwise,        \
    .depthwise_3x3 = leave_depthwise_3x3, .max_f32 = qk_max_f32_avx2,                              \
    .average_f32 = qk_average_f32_avx2, .max_u8 = qk_max_u8_avx2,                                  \
    .average_u8 = qk_average_u8_avx512

const qk_f32 qk_f32_avx512 = {KERNELS(leave_gemm)};
const qk_f32 qk_f32_two_ports = {KERNELS(qk_gemm_f32_two_ports), .parts = true};
#endif
