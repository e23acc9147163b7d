/* SPDX-License-Identifier: MIT */
#include "kernel/x86/pool_x86.h"

#if QK_X86
#include <immintrin.h>
#include <math.h>

#define TARGET __attribute__((target("avx2,fma")))
#define VEC    __m256
#define LANES  8

#define LOAD(p)      _mm256_loadu_ps(p)
#define STORE(p, v)  _mm256_storeu_ps(p, v)
#define SET1(x)      _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define ADD(a, b)    _mm256_add_ps(a, b)
/* maxps gives its second operand when one is NaN. */
#define MAX(a, b)            _mm256_max_ps(a, b)
#define MIN(a, b)            _mm256_min_ps(a, b)
#define STORE_FIRST(p, v, n) store_first(p, v, n)

/* A whole store where it can be: masked ones are slow on some CPUs. */
__attribute__((target("avx2,fma"), always_inline)) static inline void store_first(float *p,
                                                                                  __m256 v,
                                                                                  size_t n) {
    if (n == LANES) {
        _mm256_storeu_ps(p, v);
    } else {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        _mm256_maskstore_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane), v);
    }
}

#define PICK_INDEX   __m256i
#define PICK_MOST    2
#define PICK_LOAD(i) _mm256_loadu_si256((const __m256i *)(const void *)(i))
#define PICK(v, i)   _mm256_permutevar8x32_ps(v, i)

#define DW_WIDEST 6

#include "kernel/f32_tile.h"
#include "kernel/f32_depthwise.h"
#include "kernel/pool_tile.h"

TILE(tile_1x1, 1, 1)
TILE(tile_4x1, 4, 1)
TILE(tile_8x1, 8, 1)
TILE(tile_1x2, 1, 2)
TILE(tile_2x2, 2, 2)
TILE(tile_4x2, 4, 2)
TILE(tile_6x2, 6, 2)

#define PANEL 16

static void qk_gemm_f32_avx2(const qk_gemm_f32 *g) {
    static const tile_fn narrow[3] = {tile_1x1, NULL, tile_4x1};
    static const tile_fn wide[3] = {tile_1x2, tile_2x2, tile_4x2};
    const size_t k = qk_gemm_depth(g);
    for (size_t col = 0; col < g->cols; col += PANEL) {
        const size_t width = qk_panel_width(PANEL, g->cols, col);
        const size_t used = g->cols - col < width ? g->cols - col : width;
        tile t = {g,
                  0,
                  g->b + col * k,
                  g->bias + col,
                  g->c + col,
                  width,
                  used > LANES ? used - LANES : used};
        if (used > LANES) {
            run_rows(g, &t, wide, 6, tile_6x2);
        } else {
            run_rows(g, &t, narrow, 8, tile_8x1);
        }
    }
}

DW_ONE(3, 1, 3)
DW_ONE(3, 1, 4)
DW_ONE(3, 1, 6)
DW_TWO(3, 3)
DW_TWO(3, 4)
DW_ONE(3, 2, 3)
DW_ONE(3, 2, 4)
DW_ONE(3, 2, 6)
DW_ONE(5, 1, 3)
DW_ONE(5, 1, 4)
DW_ONE(5, 1, 6)
DW_ONE(5, 2, 3)
DW_ONE(5, 2, 4)

static void qk_depthwise_f32_avx2(const qk_depthwise_f32 *d) {
    static const dw_kind kinds[] = {
        {3, 1, {[3] = dw_3_1_3, dw_3_1_4, [6] = dw_3_1_6}, {[3] = dw_3_twice_3, dw_3_twice_4}},
        {3, 2, {[3] = dw_3_2_3, dw_3_2_4, [6] = dw_3_2_6}, {NULL}},
        {5, 1, {[3] = dw_5_1_3, dw_5_1_4, [6] = dw_5_1_6}, {NULL}},
        {5, 2, {[3] = dw_5_2_3, dw_5_2_4}, {NULL}},
    };
    dw_image(d, kinds, QS_COUNT(kinds));
}

#define AS_IT_IS(v, count) (v)
#define DIVIDE(v, count)   _mm256_div_ps(v, SET1((float)(count)))
POOL(qk_max_f32_avx2, float, SET1(-INFINITY), MAX, AS_IT_IS)
POOL(qk_average_f32_avx2, float, SET1(0.0f), ADD, DIVIDE)

const qk_f32 qk_f32_avx2 = {
    .panel = PANEL,
    .gemm = qk_gemm_f32_avx2,
    .depthwise = qk_depthwise_f32_avx2,
    .max_f32 = qk_max_f32_avx2,
    .average_f32 = qk_average_f32_avx2,
    .max_u8 = qk_max_u8_avx2,
    .average_u8 = qk_average_u8_avx2,
};
#endif
