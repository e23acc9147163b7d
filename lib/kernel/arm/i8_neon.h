/* SPDX-License-Identifier: MIT */
/*
 * Integer kernels in 128-bit vectors of aarch64: the template of i8_neon.c, i8_neondot.c and
 * i8_neoni8mm.c. Before including it, define
 *
 *   TARGET      the target attribute, or nothing
 *   TABLE       name of the table that is defined here
 *   TILE_ROWS   rows of the larger tile
 *   PAIRS       packed dwords come in pairs
 *   SIGNED      true if the product multiplies s8 x s8: activations are flipped (- 128)
 *   DEPTHWISE_SIGNED   the same for depthwise convolution
 *
 * and after it tile_1, tile_many and depthwise_pixels. With SIGNED, sums begin with 128 times the
 * column's weights, modulo 2^32.
 */
#include <assert.h>

#include "kernel/arm/requantize_neon.h"
#include "kernel/i8.h"
#include "kernel/i8_post.h"

#define INLINE TARGET static inline __attribute__((always_inline))

/* ---- results ---- */

typedef struct sink {
    uint8_t *out;
    ptrdiff_t stride;
    const float *mult;
    const int32_t *base; /* initial values of the sums of 16 columns */
    const int32_t *init; /* row_init of the tile's rows, or NULL */
    int32_t cols, rows;
    limits l;
    const qk_out_i8 *floats; /* conversion to floats, or NULL */
    int32_t column;          /* first column in floats->scale and add */
} sink;

INLINE void store_i32(const sink *s, uint8_t *out, int32x4_t v0, int32x4_t v1, int32x4_t v2,
                      int32x4_t v3) {
    int32_t row[16];
    vst1q_s32(row, v0);
    vst1q_s32(row + 4, v1);
    vst1q_s32(row + 8, v2);
    vst1q_s32(row + 12, v3);
    memcpy(out, row, 4 * (size_t)s->cols);
}

INLINE int32x4_t as_floats(const sink *s, int32x4_t acc, int32_t column) {
    const qk_out_i8 *o = s->floats;
    const int32_t at = s->column + column;
    const float32x4_t low = vdupq_n_f32(o->low), high = vdupq_n_f32(o->high);
    float32x4_t v = vmulq_f32(vcvtq_f32_s32(acc), vld1q_f32(o->scale + at));
    v = vaddq_f32(v, vld1q_f32(o->add + at));
    v = vbslq_f32(vcltq_f32(v, low), low, v);
    return vreinterpretq_s32_f32(vbslq_f32(vcgtq_f32(v, high), high, v));
}

/* Converts and stores sums of 16 columns, initial values included. */
INLINE void store(const sink *s, uint8_t *out, int32x4_t v0, int32x4_t v1, int32x4_t v2,
                  int32x4_t v3) {
    uint8_t row[16];
    if (s->floats) {
        store_i32(s, out, as_floats(s, v0, 0), as_floats(s, v1, 4), as_floats(s, v2, 8),
                  as_floats(s, v3, 12));
        return;
    }
    if (!s->mult) {
        store_i32(s, out, v0, v1, v2, v3);
        return;
    }
    const float *m = s->mult;
    const uint8x16_t y = pack_bytes(&s->l, scale(v0, vld1q_f32(m)), scale(v1, vld1q_f32(m + 4)),
                                    scale(v2, vld1q_f32(m + 8)), scale(v3, vld1q_f32(m + 12)));
    if (s->cols == 16) {
        vst1q_u8(out, y);
        return;
    }
    vst1q_u8(row, y);
    memcpy(out, row, (size_t)s->cols);
}

/* Adds the initial values to row r of a tile and stores it. */
INLINE void finish(const sink *s, int32_t r, int32x4_t v0, int32x4_t v1, int32x4_t v2,
                   int32x4_t v3) {
    if (r >= s->rows)
        return;
    const int32x4_t init = vdupq_n_s32(s->init ? s->init[r] : 0);
    const int32_t *base = s->base;
    store(s, s->out + r * s->stride, vaddq_s32(v0, vaddq_s32(vld1q_s32(base), init)),
          vaddq_s32(v1, vaddq_s32(vld1q_s32(base + 4), init)),
          vaddq_s32(v2, vaddq_s32(vld1q_s32(base + 8), init)),
          vaddq_s32(v3, vaddq_s32(vld1q_s32(base + 12), init)));
}

TARGET static void requantize_u8(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo,
                                 int32_t hi, uint8_t *y) {
    const float32x4_t mult = vdupq_n_f32(m);
    const limits l = limits_of(zp, lo, hi);
    for (size_t i = 0; i < n; i += 16) {
        const size_t count = n - i < 16 ? n - i : 16;
        int32_t sums[16] = {0};
        uint8_t bytes[16];
        memcpy(sums, acc + i, 4 * count);
        vst1q_u8(bytes,
                 pack_bytes(&l, scale(vld1q_s32(sums), mult), scale(vld1q_s32(sums + 4), mult),
                            scale(vld1q_s32(sums + 8), mult), scale(vld1q_s32(sums + 12), mult)));
        memcpy(y + i, bytes, count);
    }
}

/* ---- sums ---- */

TARGET static void row_sums_u8(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    static const uint8_t masks[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                      255, 255, 255, 255, 255, 255, 255, 255};
    for (int32_t r = 0; r < g->m; r++) {
        const uint8_t *row = g->rows ? g->rows[r] : g->a + r * g->a_stride;
        uint32x4_t sum = vdupq_n_u32(0);
        for (int32_t seg = 0; seg < g->segs; seg++) {
            const uint8_t *a = row + (g->seg_offset ? g->seg_offset[seg] : 0);
            for (int32_t left = k; left > 0; left -= 16, a += 16) {
                const uint8x16_t mask = vld1q_u8(masks + (left < 16 ? 16 - left : 0));
                sum = vpadalq_u16(sum, vpaddlq_u8(vandq_u8(vld1q_u8(a), mask)));
            }
        }
        out[r] = (int32_t)(vaddvq_u32(sum) * (uint32_t)factor);
    }
}

/* Adds four bytes of each of four columns. */
INLINE int32x4_t add_bytes(int32x4_t sum, const int8_t *b) {
    return vpadalq_s16(sum, vpaddlq_s8(vld1q_s8(b)));
}

/* bias + 128 * sums of 16 columns of `dwords` dwords. */
TARGET static void signed_base(const int32_t *bias, const int8_t *b, int64_t dwords,
                               int32_t *base) {
    int32x4_t v0 = vdupq_n_s32(0), v1 = v0, v2 = v0, v3 = v0;
    for (; dwords > 0; dwords--, b += 64) {
        v0 = add_bytes(v0, b);
        v1 = add_bytes(v1, b + 16);
        v2 = add_bytes(v2, b + 32);
        v3 = add_bytes(v3, b + 48);
    }
    vst1q_s32(base, vaddq_s32(vld1q_s32(bias), vshlq_n_s32(v0, 7)));
    vst1q_s32(base + 4, vaddq_s32(vld1q_s32(bias + 4), vshlq_n_s32(v1, 7)));
    vst1q_s32(base + 8, vaddq_s32(vld1q_s32(bias + 8), vshlq_n_s32(v2, 7)));
    vst1q_s32(base + 12, vaddq_s32(vld1q_s32(bias + 12), vshlq_n_s32(v3, 7)));
}

/* ---- the product ---- */

/* Defined by the including file: sums of 1 and of TILE_ROWS rows, from 0, given to finish(). */
TARGET static void tile_1(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s);
TARGET static void tile_many(const qk_gemm_u8s8 *g, const uint8_t *const *row, const sink *s);

/* In an incomplete last tile, the last row stands in for missing ones. */
TARGET static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    assert(qk_gemm_u8s8_valid(&TABLE, g, 1));
    int32_t init[TILE_ROWS], base[16];
    sink s = {.out = g->out, .stride = g->out_stride, .mult = g->o.mult, .base = g->o.bias};
    s.cols = g->cols;
    s.init = g->row_init ? init : NULL;
    s.floats = g->o.scale ? &g->o : NULL;
    s.l = limits_of(g->o.zp, g->o.lo, g->o.hi);
    if (SIGNED) {
        signed_base(g->o.bias, g->b, (int64_t)g->segs * g->k4, base);
        s.base = base;
    }
    for (int32_t r = 0; r < g->m; r += TILE_ROWS, s.out += TILE_ROWS * g->out_stride) {
        const uint8_t *row[TILE_ROWS];
        for (int32_t i = 0; i < TILE_ROWS; i++) {
            const int32_t at = r + i < g->m ? r + i : g->m - 1;
            row[i] = g->rows ? g->rows[at] : g->a + at * g->a_stride;
            init[i] = g->row_init ? g->row_init[at] : 0;
        }
        s.rows = g->m - r < TILE_ROWS ? g->m - r : TILE_ROWS;
        if (s.rows == 1)
            tile_1(g, row, &s);
        else
            tile_many(g, row, &s);
    }
}

/* ---- depthwise: 16 channels of two pixels ---- */

INLINE const uint8_t *tap_at(const qk_depthwise_u8s8 *d, const uint8_t *a, int32_t tap) {
    return a + d->tap_offset[tap < d->taps ? tap : 0];
}

/* Sums of both pixels from s->base on, given to store(). Defined by the including file. */
INLINE void depthwise_pixels(const qk_depthwise_u8s8 *d, const uint8_t *a, const uint8_t *next,
                             const int8_t *w, const sink *s);

TARGET static void depthwise_u8s8(const qk_depthwise_u8s8 *d) {
    assert(qk_depthwise_u8s8_valid(d));
    const size_t element = d->o.mult ? 1 : 4, fours = (size_t)((d->taps + 3) / 4);
    const int8_t *w = d->w;
    int32_t base[16];
    sink s = {.stride = d->out_stride};
    s.l = limits_of(d->o.zp, d->o.lo, d->o.hi);
    s.floats = d->o.scale ? &d->o : NULL;
    for (int32_t c = 0; c < d->channels; c += 16, w += 64 * fours) {
        const uint8_t *a = d->a + c;
        s.out = (uint8_t *)d->out + element * (size_t)c;
        s.mult = d->o.mult ? d->o.mult + c : NULL;
        s.cols = d->channels - c < 16 ? d->channels - c : 16;
        s.column = c;
        s.base = d->o.bias + c;
        if (DEPTHWISE_SIGNED) {
            signed_base(s.base, w, (int64_t)fours, base);
            s.base = base;
        }
        for (int32_t r = 0; r < d->m; r += 2) {
            s.rows = d->m - r < 2 ? 1 : 2;
            depthwise_pixels(d, a, a + (s.rows - 1) * d->a_stride, w, &s);
            a += 2 * d->a_stride;
            s.out += 2 * d->out_stride;
        }
    }
}

TARGET static void post_row(const qk_post_row_i8 *p) {
    qk_post_row(p);
}

const qk_i8 TABLE = {
    .lanes = 1,
    .widest = 16,
    .pairs = PAIRS,
    .gemm = gemm_u8s8,
    .row_sums = row_sums_u8,
    .depthwise = depthwise_u8s8,
    .requantize = requantize_u8,
    .post = post_row,
};
