/* SPDX-License-Identifier: MIT */
#include "ptq/gptq.h"

#include <math.h>
#include <stdlib.h>

#include "base/ctx.h"
#include "ptq/weight_pairs.h"

#define DAMPING 0.01
/* Number of channels that are rounded together, with the sums of their errors side by side. */
#define TOGETHER 16

/* ---- H = R R^T ---- */

typedef struct ranked {
    double size;
    size_t index;
} ranked;

static int by_size(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

QS_COLD static int sort_columns(qs_gptq *g, const double *h) {
    ranked *r = qs_alloc(g->ctx, g->n, sizeof(*r));
    if (!r)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < g->n; i++)
        r[i] = (ranked){h[i * g->n + i], i};
    qsort(r, g->n, sizeof(*r), by_size);
    for (size_t i = 0; i < g->n; i++)
        g->order[i] = r[i].index;
    qs_free(g->ctx, r);
    return QSIM_OK;
}

/*
 * Adds a part of its mean to the diagonal; 1 if all inputs are always 0, so that weights are
 * rounded independently.
 */
static int damp_diagonal(double *h, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += h[i * n + i];
    const double mean = sum / qs_real(n);
    if (!isfinite(mean) || mean < 0)
        return QSIM_E_VALUE;
    for (size_t i = 0; i < n; i++)
        h[i * n + i] += mean > 0 ? DAMPING * mean : 1;
    return QSIM_OK;
}

/* Column j of R from the columns after it; g->root holds R's transpose. */
static int find_column(qs_gptq *g, const double *h, size_t j) {
    const size_t n = g->n;
    double *row = g->root + j * n; /* R[i][j] at i */
    for (size_t i = 0; i <= j; i++)
        row[i] = h[g->order[i] * n + g->order[j]];
    for (size_t m = j + 1; m < n; m++) {
        const double *later = g->root + m * n, factor = later[j];
        for (size_t i = 0; i <= j; i++)
            row[i] -= later[i] * factor;
    }
    if (!(row[j] > 0) || !isfinite(row[j]))
        return QSIM_E_VALUE;
    const double root = sqrt(row[j]);
    for (size_t i = 0; i < j; i++)
        row[i] /= root;
    row[j] = root;
    return QSIM_OK;
}

QS_COLD int qs_gptq_create(qsim_ctx *ctx, double *h, size_t n, qs_gptq *g) {
    *g = (qs_gptq){.ctx = ctx, .n = n};
    size_t count;
    if (n == 0 || !qs_mul(n, n, &count))
        return QSIM_E_VALUE;
    g->root = qs_alloc(ctx, count, sizeof(*g->root));
    g->order = qs_alloc(ctx, n, sizeof(*g->order));
    int code = g->root && g->order ? damp_diagonal(h, n) : QSIM_E_NOMEM;
    if (!code)
        code = sort_columns(g, h);
    for (size_t j = n; j-- > 0 && !code;)
        code = qs_stop_code(ctx) ? QSIM_E_CANCELLED : find_column(g, h, j);
    for (size_t j = 0; j < n && !code; j++)
        for (size_t i = 0; i < j; i++)
            g->root[j * n + i] /= g->root[j * n + j];
    if (code)
        qs_gptq_free(g);
    return code;
}

void qs_gptq_free(qs_gptq *g) {
    if (!g->ctx)
        return;
    qs_free(g->ctx, g->root);
    qs_free(g->ctx, g->order);
    *g = (qs_gptq){0};
}

/* ---- rounding ---- */

size_t qs_gptq_scratch(const qs_gptq *g) {
    return g->n * TOGETHER;
}

typedef struct bounds {
    int32_t low, high;
} bounds;

/* The code nearest to v; *stands: the real value that it represents. */
static int32_t nearest(const qs_grid *grid, bounds b, size_t at, double v, double *stands) {
    const int32_t zero = grid->zero ? grid->zero[at] : 0;
    const float scale = grid->scale[at];
    double q = rint(v / (double)scale) + zero;
    q = q < b.low ? b.low : q > b.high ? b.high : q == q ? q : zero;
    *stands = (double)((float)(q - zero) * scale);
    return (int32_t)q;
}

/*
 * The codes that weight k may have beside the one it is paired with, whose code is 0 until it is
 * rounded.
 */
static bounds bounds_beside(const qs_grid *grid, const qs_rows *r, const uint8_t *channel,
                            size_t k) {
    const size_t other = grid->taps ? qs_pair_of(k, r->depth, grid->taps) : k;
    const int32_t code = other != k ? (int8_t)channel[other * r->step] : 0;
    const int32_t low = -QS_PAIR_MOST - code, high = QS_PAIR_MOST - code;
    return (bounds){low > grid->low ? low : grid->low, high < grid->high ? high : grid->high};
}

/* Rounds channels [first, first + count), with their errors at scratch[j * TOGETHER + channel]. */
static void round_channels(const qs_gptq *g, const qs_rows *r, const qs_grid *grid, size_t first,
                           size_t count, uint8_t *codes, double *scratch) {
    for (size_t j = 0; j < g->n; j++) {
        const double *root = g->root + j * g->n;
        const size_t k = g->order[j];
        double carried[TOGETHER] = {0}, *error = scratch + j * TOGETHER;
        for (size_t i = 0; i < j; i++)
            for (size_t c = 0; c < TOGETHER; c++)
                carried[c] += scratch[i * TOGETHER + c] * root[i];
        for (size_t c = 0; c < TOGETHER; c++)
            error[c] = 0;
        for (size_t c = 0; c < count; c++) {
            const size_t at = (first + c) * r->stride + k * r->step;
            double stands;
            const bounds b = bounds_beside(grid, r, codes + (first + c) * r->stride, k);
            codes[at] = (uint8_t)nearest(grid, b, qs_grid_at(grid, first + c, k),
                                         (double)r->w[at] + carried[c], &stands);
            error[c] = (double)r->w[at] - stands;
        }
    }
}

void qs_gptq_round(const qs_gptq *g, const qs_rows *rows, const qs_grid *grid, void *codes,
                   double *scratch) {
    for (size_t c = 0; c < rows->channels && g; c += TOGETHER) {
        const size_t left = rows->channels - c;
        round_channels(g, rows, grid, c, left < TOGETHER ? left : TOGETHER, codes, scratch);
    }
    for (size_t c = 0; c < rows->channels && !g; c++)
        for (size_t k = 0; k < rows->depth; k++) {
            const size_t at = c * rows->stride + k * rows->step;
            double stands;
            ((uint8_t *)codes)[at] =
                (uint8_t)nearest(grid, (bounds){grid->low, grid->high}, qs_grid_at(grid, c, k),
                                 (double)rows->w[at], &stands);
        }
}

#define LANES 8 /* sums that the compiler adds up side by side */
_Static_assert(QS_TRIED % LANES == 0, "a piece has whole rows of sums");

double qs_tried_error(const qs_tried *p, size_t n, float scale) {
    float sum[LANES] = {0};
    const float inverse = 1.0f / scale;
    for (size_t i = 0; i < n; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            float v = p->w[i + j] * inverse;
            v = v < p->low ? p->low : v;
            v = v > p->high ? p->high : v;
            v = (v + 12582912.0f) - 12582912.0f; /* to the nearest integer */
            const float error = p->w[i + j] - v * scale;
            sum[j] += error * error * p->weight[i + j];
        }
    double all = 0;
    for (size_t j = 0; j < LANES; j++)
        all += (double)sum[j];
    return all;
}
