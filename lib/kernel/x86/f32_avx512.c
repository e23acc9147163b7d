/* SPDX-License-Identifier: MIT */
#include "kernel/x86/pool_x86.h"

#if QK_X86
#include <immintrin.h>
#include <math.h>

#include "kernel/pool_window.h"
#include "kernel/x86/f32_narrow.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define VEC    __m512
#define LANES  16

#define LOAD(p)      _mm512_loadu_ps(p)
#define STORE(p, v)  _mm512_storeu_ps(p, v)
#define SET1(x)      _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ADD(a, b)    _mm512_add_ps(a, b)
#define MUL(a, b)    _mm512_mul_ps(a, b)
/* maxps gives its second operand when one is NaN. */
#define MAX(a, b)            _mm512_max_ps(a, b)
#define MIN(a, b)            _mm512_min_ps(a, b)
#define STORE_FIRST(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1u), v)

#include "kernel/x86/f32_tile.h"

TILE(tile_1x1, 1, 1)
TILE(tile_2x1, 2, 1)
TILE(tile_4x1, 4, 1)
TILE(tile_8x1, 8, 1)
TILE(tile_1x2, 1, 2)
TILE(tile_2x2, 2, 2)
TILE(tile_4x2, 4, 2)
TILE(tile_8x2, 8, 2)
TILE(tile_1x3, 1, 3)
TILE(tile_2x3, 2, 3)
TILE(tile_4x3, 4, 3)
TILE(tile_6x3, 6, 3)
TILE(tile_1x4, 1, 4)
TILE(tile_2x4, 2, 4)
TILE(tile_4x4, 4, 4)
TILE(tile_6x4, 6, 4)

#define PANEL 64

/* By vectors of the panel: tiles of 1, 2 and 4 rows, the big one and its rows. */
static const struct {
    tile_fn small[3], big;
    size_t rows;
} tiles[4] = {
    {{tile_1x1, tile_2x1, tile_4x1}, tile_8x1, 8},
    {{tile_1x2, tile_2x2, tile_4x2}, tile_8x2, 8},
    {{tile_1x3, tile_2x3, tile_4x3}, tile_6x3, 6},
    {{tile_1x4, tile_2x4, tile_4x4}, tile_6x4, 6},
};

/* How many rows from r on, QK_NARROW_MOST at most, follow each other by one element. */
static size_t rows_in_line(const qk_gemm_f32 *g, size_t r) {
    const size_t rest = g->rows - r, most = rest < QK_NARROW_MOST ? rest : QK_NARROW_MOST;
    size_t n = 1;
    while (n < most && g->row[r + n] - g->row[r + n - 1] == 1)
        n++;
    return n;
}

/* A panel of 8 columns: lines of pixels by vectors of pixels, the rest by tiles. */
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
            t.g = &part;
            t.c = panel->c + r * g->ldc;
            run_rows(&part, &t, tiles[0].small, tiles[0].rows, tiles[0].big);
        }
        r += n;
    }
}

/* Worth it where lines are long: the first one tells. */
static bool has_lines(const qk_gemm_f32 *g) {
    return g->rows >= QK_NARROW_LEAST && rows_in_line(g, 0) >= QK_NARROW_LEAST;
}

static void qk_gemm_f32_avx512(const qk_gemm_f32 *g) {
    const size_t k = g->segs * g->k;
    for (size_t col = 0; col < g->cols; col += PANEL) {
        const size_t width = qk_panel_width(PANEL, g->cols, col);
        const size_t used = g->cols - col < width ? g->cols - col : width;
        const size_t vectors = (used + LANES - 1) / LANES;
        tile t = {
            g, 0, g->b + col * k, g->bias + col, g->c + col, width, used - (vectors - 1) * LANES};
        if (width == 8 && has_lines(g)) {
            gemm_narrow(g, &t, used);
            continue;
        }
        run_rows(g, &t, tiles[vectors - 1].small, tiles[vectors - 1].rows, tiles[vectors - 1].big);
    }
}

DEPTHWISE(depthwise_1, 1)
DEPTHWISE(depthwise_4, 4)

static void qk_depthwise_f32_avx512(const qk_depthwise_f32 *d) {
    size_t r = 0;
    for (; r + 4 <= d->rows; r += 4)
        depthwise_4(d, r);
    for (; r < d->rows; r++)
        depthwise_1(d, r);
}

#define NONE(v, count) (v)
POOL(qk_max_f32_avx512, SET1(-INFINITY), MAX, NONE)
POOL(qk_average_f32_avx512, SET1(0.0f), ADD, _mm512_div_ps)

const qk_f32 qk_f32_avx512 = {
    .panel = PANEL,
    .gemm = qk_gemm_f32_avx512,
    .depthwise = qk_depthwise_f32_avx512,
    .max_f32 = qk_max_f32_avx512,
    .average_f32 = qk_average_f32_avx512,
    .max_u8 = qk_max_u8_avx512,
    .average_u8 = qk_average_u8_avx512,
};
#endif
