/* SPDX-License-Identifier: MIT */
/* Float products in 256-bit vectors with FMA3: tiles of up to 6 rows by 16 columns, or 8 by 8. */
#include <assert.h>

#include "kernel/x86/pool_x86.h"

#ifdef QK_YMM
#include "kernel/x86/f32_ymm.h"

#include "kernel/f32_tile.h"

TILE(tile_1x1, 1, 1)
TILE(tile_4x1, 4, 1)
TILE(tile_8x1, 8, 1)
TILE(tile_1x2, 1, 2)
TILE(tile_2x2, 2, 2)
TILE(tile_4x2, 4, 2)
TILE(tile_6x2, 6, 2)

#define PANEL 16

static void qk_gemm_f32_avx2(const qk_gemm_f32 *g) {
    assert(qk_gemm_f32_valid(&qk_f32_avx2, g));
    static const tile_fn narrow[3] = {tile_1x1, NULL, tile_4x1};
    static const tile_fn wide[3] = {tile_1x2, tile_2x2, tile_4x2};
    for (size_t col = 0; col < g->cols; col += PANEL) {
        const size_t width = qk_panel_width(PANEL, g->cols, col);
        const size_t used = g->cols - col < width ? g->cols - col : width;
        tile t = {.g = g,
                  .b = qk_gemm_column(g, col),
                  .bias = g->bias + col,
                  .c = g->c + col,
                  .width = g->b_row ? g->b_row : width,
                  .last = used > LANES ? used - LANES : used};
        if (used > LANES) {
            run_rows(&t, wide, 6, tile_6x2);
        } else {
            run_rows(&t, narrow, 8, tile_8x1);
        }
    }
}

/* As in f32_avx512.c: compiled for size, gcc would leave the upper halves of registers in use. */
TARGET static void leave_gemm(const qk_gemm_f32 *g) {
    qk_gemm_f32_avx2(g);
    _mm256_zeroupper();
}

const qk_f32 qk_f32_avx2 = {
    .panel = PANEL,
    .gemm = leave_gemm,
    .part = qk_part_f32_fma,
    .depthwise = qk_depthwise_f32_avx2,
    .max_f32 = qk_max_f32_avx2,
    .average_f32 = qk_average_f32_avx2,
    .max_u8 = qk_max_u8_avx2,
    .average_u8 = qk_average_u8_avx2,
};
#endif
