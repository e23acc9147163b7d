/* SPDX-License-Identifier: MIT */
/*
 * The specification of the float kernels. On x86 the same source is also compiled with FMA3: the
 * same bits without a library call for every product.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernel/f32.h"

#define INLINE static inline __attribute__((always_inline))
#define BLOCK  16

INLINE float finish(float acc, float bias, float lo, float hi) {
    float v = acc + bias;
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

/* One row of the output, BLOCK columns of a panel. */
INLINE void gemm_block(const qk_gemm_f32 *g, const float *a, const float *b, size_t width,
                       size_t used, const float *bias, float *c) {
    float acc[BLOCK] = {0};
    const size_t n = used < BLOCK ? used : BLOCK;
    if (g->begun)
        memcpy(acc, c, n * sizeof(*c));
    for (size_t s = 0; s < g->segs; s++) {
        const float *x = a + g->seg[s], *v = b + (g->at ? g->at[s] : s * g->k) * width;
        for (size_t i = 0; i < g->k; i++, v += width) {
            for (size_t j = 0; j < n; j++) {
                acc[j] = fmaf(x[i], v[j], acc[j]);
            }
        }
    }
    for (size_t j = 0; j < n; j++) {
        c[j] = g->open ? acc[j] : finish(acc[j], bias[j], g->lo, g->hi);
    }
}

INLINE void gemm_body(const qk_gemm_f32 *g) {
    assert(qk_gemm_f32_valid(&qk_f32_c, g));
    for (size_t col = 0; col < g->cols; col += BLOCK) {
        /*
         * This table's panels are BLOCK wide, except for the last one. A job of `part` has a single
         * panel, as wide as its table's.
         */
        const float *b = g->panel ? g->b + col : qk_gemm_column(g, col);
        const size_t packed =
            g->panel ? qk_panel_width(g->panel, g->cols, 0) : qk_panel_width(BLOCK, g->cols, col);
        const size_t width = g->b_row ? g->b_row : packed;
        for (size_t r = 0; r < g->rows; r++) {
            gemm_block(g, g->a + g->row[r], b, width, g->cols - col, g->bias + col,
                       g->c + qk_gemm_out(g, r) + col);
        }
    }
}

INLINE void depthwise_pixel(const qk_depthwise_f32 *d, const float *a, float *c) {
    for (size_t j = 0; j < d->channels; j++) {
        float acc = 0.0f;
        for (size_t t = 0; t < d->down * d->across; t++) {
            const size_t ky = t / d->across, kx = t % d->across;
            const ptrdiff_t at = (ptrdiff_t)ky * d->tap_down + (ptrdiff_t)kx * d->tap_across;
            acc = fmaf(a[at + (ptrdiff_t)j], d->w[ky * d->w_down + kx * d->stride + j], acc);
        }
        c[j] = finish(acc, d->bias[j], d->lo, d->hi);
    }
}

INLINE void depthwise_body(const qk_depthwise_f32 *d) {
    assert(qk_depthwise_f32_valid(d));
    for (size_t i = 0; i < d->lines * d->pixels; i++) {
        const ptrdiff_t y = (ptrdiff_t)(i / d->pixels), x = (ptrdiff_t)(i % d->pixels);
        depthwise_pixel(d, d->a + y * d->line_step + x * d->pixel_step,
                        d->c + y * d->out_line + x * d->out_pixel);
    }
}

void qk_gemm_f32_c(const qk_gemm_f32 *g) {
    gemm_body(g);
}

static void qk_depthwise_f32_c(const qk_depthwise_f32 *d) {
    depthwise_body(d);
}

#if QK_X86
#define FMA __attribute__((target("fma")))

FMA void qk_part_f32_fma(const qk_gemm_f32 *g) {
    gemm_body(g);
}

FMA static void qk_depthwise_f32_cfma(const qk_depthwise_f32 *d) {
    depthwise_body(d);
}

const qk_f32 qk_f32_cfma = {
    .panel = BLOCK,
    .gemm = qk_part_f32_fma,
    .part = qk_part_f32_fma,
    .depthwise = qk_depthwise_f32_cfma,
    .max_f32 = qk_max_f32_c,
    .average_f32 = qk_average_f32_c,
    .max_u8 = qk_max_u8_c,
    .average_u8 = qk_average_u8_c,
};
#endif

const qk_f32 qk_f32_c = {
    .panel = BLOCK,
    .gemm = qk_gemm_f32_c,
    .part = qk_gemm_f32_c,
    .depthwise = qk_depthwise_f32_c,
    .max_f32 = qk_max_f32_c,
    .average_f32 = qk_average_f32_c,
    .max_u8 = qk_max_u8_c,
    .average_u8 = qk_average_u8_c,
};
