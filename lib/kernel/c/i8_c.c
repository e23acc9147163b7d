/* SPDX-License-Identifier: MIT */
/* The specification of the INT8 kernels. */
#include <assert.h>

#include "kernel/i8.h"
#include "kernel/i8_post.h"

#include "quant/requantize.h"

/* Sums wrap: unsigned arithmetic, as every vector unit does it. */
static uint32_t dot_segment(const uint8_t *a, const int8_t *b, int32_t k4, int32_t width) {
    uint32_t sum = 0;
    for (int32_t d = 0; d < k4; d++, a += 4, b += 4 * width)
        for (int32_t i = 0; i < 4; i++)
            sum += (uint32_t)(a[i] * b[i]);
    return sum;
}

static void store(const qk_out_i8 *o, void *out, int32_t column, int32_t position, uint32_t sum) {
    int32_t acc = (int32_t)sum;
    if (o->mult) {
        ((uint8_t *)out)[column] =
            (uint8_t)qs_requantize(acc, o->mult[position], o->lo, o->hi, o->zp);
        return;
    }
    if (o->scale) {
        const float v = (float)acc * o->scale[position] + o->add[position];
        const float low = v < o->low ? o->low : v, y = low > o->high ? o->high : low;
        memcpy(&acc, &y, 4);
    }
    memcpy((uint8_t *)out + 4 * (size_t)column, &acc, 4);
}

static void gemm_u8s8(const qk_gemm_u8s8 *g) {
    assert(qk_gemm_u8s8_valid(&qk_i8_c, g, 1));
    uint8_t *out = g->out;
    for (int32_t r = 0; r < g->m; r++, out += g->out_stride) {
        const uint8_t *a = g->rows ? g->rows[r] : g->a + r * g->a_stride;
        for (int32_t n = 0; n < g->cols; n++) {
            uint32_t sum = (uint32_t)g->o.bias[n];
            sum += g->row_init ? (uint32_t)g->row_init[r] : 0;
            const int8_t *b = g->b + 4 * n;
            for (int32_t s = 0; s < g->segs; s++, b += 4 * (size_t)g->k4 * (size_t)g->width)
                sum += dot_segment(a + (g->seg_offset ? g->seg_offset[s] : 0), b, g->k4, g->width);
            store(&g->o, out, n, n, sum);
        }
    }
}

static void row_sums_u8(const qk_gemm_u8s8 *g, int32_t k, int32_t factor, int32_t *out) {
    for (int32_t r = 0; r < g->m; r++) {
        const uint8_t *a = g->rows ? g->rows[r] : g->a + r * g->a_stride;
        uint32_t sum = 0;
        for (int32_t s = 0; s < g->segs; s++)
            for (int32_t j = 0; j < k; j++)
                sum += a[(g->seg_offset ? g->seg_offset[s] : 0) + j];
        out[r] = (int32_t)(sum * (uint32_t)factor);
    }
}

static void depthwise_u8s8(const qk_depthwise_u8s8 *d) {
    size_t block_bytes = 64 * (size_t)((d->taps + 3) / 4);
    uint8_t *out = d->out;
    assert(qk_depthwise_u8s8_valid(d));
    for (int32_t r = 0; r < d->m; r++, out += d->out_stride) {
        const uint8_t *a = d->a + r * d->a_stride;
        for (int32_t c = 0; c < d->channels; c++) {
            uint32_t sum = (uint32_t)d->o.bias[c];
            const int8_t *w = d->w + (size_t)(c / 16) * block_bytes + 4 * (c % 16);
            for (int32_t t = 0; t < d->taps; t++)
                sum += (uint32_t)(a[d->tap_offset[t] + c] * w[64 * (t / 4) + t % 4]);
            store(&d->o, out, c, c, sum);
        }
    }
}

static void requantize_u8(const int32_t *acc, size_t n, float m, int32_t zp, int32_t lo, int32_t hi,
                          uint8_t *y) {
    for (size_t i = 0; i < n; i++)
        y[i] = (uint8_t)qs_requantize(acc[i], m, lo, hi, zp);
}

static void post_row(const qk_post_row_i8 *p) {
    qk_post_row(p);
}

const qk_i8 qk_i8_c = {
    .lanes = 1,
    .widest = 64,
    .gemm = gemm_u8s8,
    .row_sums = row_sums_u8,
    .depthwise = depthwise_u8s8,
    .requantize = requantize_u8,
    .post = post_row,
};
