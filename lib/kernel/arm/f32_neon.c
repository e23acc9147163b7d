/* SPDX-License-Identifier: MIT */
/* Float kernels for aarch64, 4 lanes at a time. */
#include <assert.h>

#include "kernel/arm/pool_neon.h"

#if QK_ARM
#include <arm_neon.h>
#include <math.h>

#define TARGET
#define VEC   float32x4_t
#define LANES 4

#define LOAD(p)      vld1q_f32(p)
#define STORE(p, v)  vst1q_f32(p, v)
#define SET1(x)      vdupq_n_f32(x)
#define FMA(a, b, c) vfmaq_f32(c, b, a)
#define ADD(a, b)    vaddq_f32(a, b)
/* The second operand where one is NaN or both are 0; fmax and fmin would order -0 and +0. */
#define MAX(a, b)            max_f32(a, b)
#define MIN(a, b)            min_f32(a, b)
#define STORE_FIRST(p, v, n) store_first(p, v, n)

static inline float32x4_t max_f32(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

static inline float32x4_t min_f32(float32x4_t a, float32x4_t b) {
    return vbslq_f32(vcltq_f32(a, b), a, b);
}

static inline void store_first(float *p, float32x4_t v, size_t n) {
    float32x2_t low = vget_low_f32(v);
    if (n == LANES) {
        vst1q_f32(p, v);
        return;
    }
    if (n & 2) {
        vst1_f32(p, low);
        low = vget_high_f32(v);
        p += 2;
    }
    if (n & 1)
        vst1_lane_f32(p, low, 0);
}

#define EDGE                  uint32x4_t
#define EDGE_IF(on)           vdupq_n_u32((on) ? UINT32_MAX : 0)
#define FMA_IF(edge, a, b, c) vbslq_f32(edge, FMA(a, b, c), c)

/* Picks every other lane, for pixels of one float. */
#define PICK_INDEX   int
#define PICK_MOST    1
#define PICK_LOAD(i) ((void)(i), 0)
#define PICK(v, i)   every_other(v, i)

static inline float32x4_t every_other(float32x4_t v, int unused) {
    (void)unused;
    return vuzp1q_f32(v, v);
}

#include "kernel/f32_tile.h"
#include "kernel/f32_depthwise_blocks.h"
#include "kernel/pool_tile.h"

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

#define PANEL 16

static void qk_gemm_f32_neon(const qk_gemm_f32 *g) {
    assert(qk_gemm_f32_valid(&qk_f32_neon, g));
    /* Tiles by the panel's width in vectors: of 1, 2, 4 and of `most` rows. */
    static const struct {
        tile_fn few[3], many;
        size_t most;
    } tiles[4] = {
        {{tile_1x1, tile_2x1, tile_4x1}, tile_8x1, 8},
        {{tile_1x2, tile_2x2, tile_4x2}, tile_8x2, 8},
        {{tile_1x3, tile_2x3, tile_4x3}, tile_6x3, 6},
        {{tile_1x4, tile_2x4, tile_4x4}, tile_6x4, 6},
    };
    for (size_t col = 0; col < g->cols; col += PANEL) {
        const size_t width = qk_panel_width(PANEL, g->cols, col);
        const size_t used = g->cols - col < width ? g->cols - col : width;
        const size_t last = (used - 1) / LANES;
        tile t = {.g = g, .b = qk_gemm_column(g, col), .bias = g->bias + col, .c = g->c + col};
        t.width = g->b_row ? g->b_row : width;
        t.last = used - last * LANES;
        run_rows(&t, tiles[last].few, tiles[last].most, tiles[last].many);
    }
}

#define AS_IT_IS(v, count) (v)
#define DIVIDE(v, count)   vdivq_f32(v, SET1((float)(count)))
POOL(qk_max_f32_neon, float, SET1(-INFINITY), MAX, AS_IT_IS, "GCC unroll 2")
POOL(qk_average_f32_neon, float, SET1(0.0f), ADD, DIVIDE, "GCC unroll 1")

const qk_f32 qk_f32_neon = {
    .panel = PANEL,
    .gemm = qk_gemm_f32_neon,
    .part = qk_gemm_f32_c,
    .depthwise = depthwise_f32,
    .depthwise_3x3 = depthwise_3x3,
    .max_f32 = qk_max_f32_neon,
    .average_f32 = qk_average_f32_neon,
    .max_u8 = qk_max_u8_neon,
    .average_u8 = qk_average_u8_neon,
};
#endif
