/* SPDX-License-Identifier: MIT */
/*
 * Totals of weights: what a column can sum up to. Every weight of a network is looked at when it
 * is loaded, so the loops go through memory in its own order; in which order numbers are added
 * makes no difference to sums of integers.
 */
#include "kernel/i8.h"

/* Rows of which an int16 holds the sums of one column: w - zp is less than 2^9. */
#define ROWS 64
/* Numbers of one column that are added side by side. */
#define LANES 64

typedef struct axis {
    int64_t count, stride;
} axis;

static void swap_if(axis *a, axis *b) {
    axis first = *a;
    if (first.stride > b->stride) {
        *a = *b;
        *b = first;
    }
}

/* Axes by stride, the least first; those that continue each other become one. */
static void axes_of(const qk_source_i8 *s, axis a[3]) {
    a[0] = (axis){s->c, s->c > 1 ? s->sc : 0};
    a[1] = (axis){s->kw, s->kw > 1 ? s->sx : 0};
    a[2] = (axis){s->kh, s->kh > 1 ? s->sy : 0};
    swap_if(&a[0], &a[1]);
    swap_if(&a[1], &a[2]);
    swap_if(&a[0], &a[1]);
    for (int32_t i = 1; i < 3; i++)
        if (a[i].stride == a[i - 1].stride * a[i - 1].count || a[i - 1].count == 1) {
            a[i] = (axis){a[i].count * a[i - 1].count,
                          a[i - 1].count == 1 ? a[i].stride : a[i - 1].stride};
            a[i - 1] = (axis){1, 0};
        }
}

/* Columns side by side. */
static void add_rows(const int8_t *w, int64_t rows, int64_t stride, int32_t columns, uint8_t flip,
                     const int16_t *zp, int64_t *sum, int64_t *above) {
    for (int64_t r = 0; r < rows;) {
        int64_t end = rows - r < ROWS ? rows : r + ROWS;
        int16_t all[QK_I8_TOTALS] = {0}, up[QK_I8_TOTALS] = {0};
        for (; r < end; r++, w += stride)
            for (int32_t n = 0; n < columns; n++) {
                int16_t v = (int16_t)((int8_t)((uint8_t)w[n] ^ flip) - zp[n]);
                all[n] = (int16_t)(all[n] + v);
                up[n] = (int16_t)(up[n] + (v > 0 ? v : 0));
            }
        for (int32_t n = 0; n < columns; n++) {
            sum[n] += all[n];
            above[n] += up[n];
        }
    }
}

/* Numbers of one column. */
static void add_run(const int8_t *w, int64_t count, int64_t stride, uint8_t flip, int32_t zp,
                    int64_t *sum, int64_t *above) {
    int64_t all = 0, up = 0, i = 0;
    if (stride == 1 && count >= 2 * LANES) {
        int64_t lane_sum[LANES] = {0}, lane_above[LANES] = {0};
        int16_t zps[LANES];
        for (int32_t n = 0; n < LANES; n++)
            zps[n] = (int16_t)zp;
        add_rows(w, count / LANES, LANES, LANES, flip, zps, lane_sum, lane_above);
        for (int32_t n = 0; n < LANES; n++) {
            all += lane_sum[n];
            up += lane_above[n];
        }
        i = count / LANES * LANES;
    }
    for (; i < count; i++) {
        int32_t v = (int8_t)((uint8_t)w[i * stride] ^ flip) - zp;
        all += v;
        up += v > 0 ? v : 0;
    }
    *sum += all;
    *above += up;
}

static void add_column(const qk_source_i8 *s, const axis a[3], int32_t n, int32_t zp, int64_t *sum,
                       int64_t *above) {
    for (int64_t i = 0; i < a[0].count; i++)
        for (int64_t k = 0; k < a[1].count; k++)
            add_run(s->w + n * s->sn + i * a[0].stride + k * a[1].stride, a[2].count, a[2].stride,
                    s->flip, zp, sum, above);
}

void qk_i8_totals(const qk_source_i8 *s, int32_t first, int32_t count, const int32_t *zp,
                  int64_t *sum, int64_t *above) {
    int16_t zps[QK_I8_TOTALS];
    axis a[3];
    axes_of(s, a);
    for (int32_t n = 0; n < count; n++) {
        sum[n] = above[n] = 0;
        zps[n] = (int16_t)(zp ? zp[n] : 0);
    }
    if (s->sn != 1 || count == 1) {
        for (int32_t n = 0; n < count; n++)
            add_column(s, a, first + n, zps[n], &sum[n], &above[n]);
        return;
    }
    for (int64_t i = 0; i < a[0].count; i++)
        for (int64_t k = 0; k < a[1].count; k++)
            add_rows(s->w + first + i * a[0].stride + k * a[1].stride, a[2].count, a[2].stride,
                     count, s->flip, zps, sum, above);
}
