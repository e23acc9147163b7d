/* SPDX-License-Identifier: MIT */
/*
 * Float convolution, executed channels last: an output pixel is a row of a matrix product whose
 * terms run over (kernel row, kernel column, channel).
 *
 * Padding: products with it are zero if the weights are finite, so they are left out; kernels get
 * those pixels together whose windows have the same taps inside the image. Otherwise a band of the
 * image is copied with zeros around it, which are read like pixels.
 */
#include "op/nn/conv_float_plan.h"

#include <assert.h>
#include <math.h>

#include "base/slices.h"
#include "base/waves.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/finish.h"
#include "op/nn/float_jobs.h"
#include "op/nn/window.h"

typedef struct conv_job {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const qs_conv_plan *p;
    const float *x, *other; /* other: tensor added to y */
    float *y, *scratch;
    qs_conv_weights weights;
    size_t first, count; /* items of this wave */
} conv_job;

/* ---- execution ---- */

/* Copies rows [first, first + rows) of the padded image. */
static void copy_band(const qs_conv_plan *p, const float *image, size_t first, size_t rows,
                      float *to) {
    assert(to);
    const size_t row = p->g.w * p->g.c, left = p->g.left * p->g.c;
    const size_t before = left < p->line ? left : p->line;
    const size_t inside = p->line - before < row ? p->line - before : row;
    for (size_t i = first; i < first + rows; i++, to += p->line) {
        if (i < p->g.top || i - p->g.top >= p->g.h) {
            memset(to, 0, p->line * sizeof(float));
            continue;
        }
        memset(to, 0, before * sizeof(float));
        memcpy(to + before, image + (i - p->g.top) * row, inside * sizeof(float));
        memset(to + before + inside, 0, (p->line - before - inside) * sizeof(float));
    }
}

/* A multiple of the pixels of every tile. */
#define TILES ((size_t)96)

/* Computes one block of columns for pixels of a strip that all use the kernel rows `rows`. */
static void conv_columns(const conv_job *j, const qs_conv_strip *s, qs_tap_span rows,
                         const float *a, size_t pixels, float *y, size_t split) {
    const qs_conv_plan *p = j->p;
    const size_t first = split * p->columns, rest = p->form.mg - first;
    const size_t depth = p->form.taps * p->form.cg;
    qk_gemm_f32 g = {.seg = s->seg,
                     .at = p->choice == QS_CONV_STRIPS ? s->at + rows.from * s->per_row : NULL,
                     .depth = depth,
                     .segs = (rows.to - rows.from) * s->per_row,
                     .k = s->k,
                     .cols = rest < p->columns ? rest : p->columns,
                     .lo = p->lo,
                     .hi = p->hi,
                     .ldc = p->stride};
    const size_t piece = QS_CHECK_MACS / ((depth + 16) * (g.cols + 16)) / TILES * TILES + TILES;
    for (size_t i = 0; i < p->form.groups; i++) {
        g.a = a + i * p->form.cg;
        g.b = j->weights.packed + i * j->weights.group_floats + first * depth;
        g.bias = j->weights.bias + i * j->weights.bias_stride + first;
        g.c = y + i * p->form.mg + first;
        for (size_t at = 0; at < pixels && !qs_stopped(j->ctx); at += piece) {
            g.rows = pixels - at < piece ? pixels - at : piece;
            g.row = s->row + at;
            g.out = s->out ? s->out + at : NULL;
            qs_gemm_f32(j->ctx, p->kernels, &g);
            g.c += s->out ? 0 : piece * p->stride;
        }
    }
}

static qk_depthwise_f32 depthwise_of(const conv_job *j, const qs_conv_strip *s, qs_tap_span rows,
                                     const float *a, size_t lines, float *y) {
    const qs_conv_plan *p = j->p;
    const size_t tap = rows.from * p->form.kw + s->inside.from, channels = p->form.m;
    return (qk_depthwise_f32){.a = a,
                              .lines = lines,
                              .pixels = s->count,
                              .line_step = (ptrdiff_t)(p->g.sh * p->line),
                              .pixel_step = (ptrdiff_t)(p->g.sw * channels),
                              .down = rows.to - rows.from,
                              .across = s->inside.to - s->inside.from,
                              .tap_down = (ptrdiff_t)(p->g.dh * p->line),
                              .tap_across = (ptrdiff_t)(p->g.dw * channels),
                              .channels = channels,
                              .stride = p->form.bias_stride,
                              .w_down = p->form.kw * p->form.bias_stride,
                              .w = j->weights.packed + tap * p->form.bias_stride,
                              .bias = j->weights.bias,
                              .lo = p->lo,
                              .hi = p->hi,
                              .c = y,
                              .out_line = (ptrdiff_t)(p->g.ow * p->stride),
                              .out_pixel = (ptrdiff_t)p->stride,
                              .stretch = p->stretch};
}

/* Computes whole output rows [oy, end); depthwise_3x3 leaves padding out itself. */
static void conv_cut(const conv_job *j, const float *image, size_t oy, size_t end, float *y) {
    const qs_conv_plan *p = j->p;
    const qs_conv_strip whole = {.count = p->g.ow, .inside = {0, 3}};
    const ptrdiff_t above = (ptrdiff_t)(oy * p->g.sh) - (ptrdiff_t)p->g.top;
    const float *a = image + above * (ptrdiff_t)p->line - p->g.left * p->g.c;
    qk_depthwise_f32 d = depthwise_of(j, &whole, (qs_tap_span){0, 3}, a, end - oy, y);
    d.cut = (qk_cut){.top = p->g.top > oy * p->g.sh,
                     .bottom = (end - 1) * p->g.sh + 3 > p->g.h + p->g.top,
                     .left = p->g.left > 0,
                     .right = (p->g.ow - 1) * p->g.sw + 3 > p->g.w + p->g.left};
    qs_depthwise_f32(j->ctx, p->kernels->depthwise_3x3, &d);
}

static void conv_pixels(const conv_job *j, const qs_conv_strip *s, qs_tap_span rows, const float *a,
                        size_t lines, float *y, size_t split) {
    a += s->x;
    y += s->ox * j->p->stride;
    if (j->p->form.depthwise) {
        const qk_depthwise_f32 d = depthwise_of(j, s, rows, a, lines, y);
        qs_depthwise_f32(j->ctx, j->p->kernels->depthwise, &d);
    } else {
        conv_columns(j, s, rows, a, lines * s->count, y, split);
    }
}

/* Computes output rows [oy, end), those with the same kernel rows inside the image together. */
static void conv_inside(const conv_job *j, const float *image, size_t oy, size_t end, float *y,
                        size_t split) {
    const qs_conv_plan *p = j->p;
    while (oy < end) {
        const qs_tap_span rows = p->inside[oy];
        size_t next = oy + 1;
        while (next < end && p->inside[next].from == rows.from && p->inside[next].to == rows.to)
            next++;
        /* Where no tap is inside, none is read. */
        const size_t first =
            rows.from < rows.to ? oy * p->g.sh + rows.from * p->g.dh - p->g.top : 0;
        for (size_t i = 0; i < p->strip_count; i++)
            conv_pixels(j, &p->strips[i], rows, image + first * p->line, next - oy, y, split);
        y += (next - oy) * p->g.ow * p->stride;
        oy = next;
    }
}

/* Up to this many channels of a larger tensor are finished for many pixels at once: copied side by
 * side, and copied back. */
#define THIN 64
static void finish_thin(const qs_conv_plan *p, float *y, const float *other, size_t pixels) {
    float side[16 * THIN];
    const size_t m = p->form.m, most = QS_COUNT(side) / m;
    for (size_t first = 0, n; first < pixels; first += n, y += n * p->stride) {
        n = pixels - first < most ? pixels - first : most;
        for (size_t i = 0; i < n; i++)
            memcpy(side + i * m, y + i * p->stride, m * sizeof(float));
        qs_finish_run(&p->end, side, p->end.sum ? other + first * m : side, side, n * m);
        for (size_t i = 0; i < n; i++)
            memcpy(y + i * p->stride, side + i * m, m * sizeof(float));
    }
}

/*
 * Applies the nodes fused after the convolution to one block of columns of pixels: their results x,
 * which are y unless sums are stored over `other`.
 */
static void finish(const conv_job *j, float *x, float *y, size_t pixels, size_t split) {
    const qs_conv_plan *p = j->p;
    if (!p->end.first.fn && !p->end.sum && !p->end.curve.fn)
        return;
    const float *other = p->end.sum ? j->other + (size_t)(y - j->y) / p->stride * p->form.m : y;
    if (p->splits == 1 && p->stride == p->form.m) {
        qs_finish_run(&p->end, x, other, y, pixels * p->form.m);
        return;
    }
    if (p->splits == 1 && p->form.m <= THIN) {
        finish_thin(p, y, other, pixels);
        return;
    }
    const size_t first = split * p->columns, rest = p->form.mg - first;
    const size_t n = rest < p->columns ? rest : p->columns;
    for (size_t i = 0; i < pixels; i++, y += p->stride, other += p->end.sum ? p->form.m : 0)
        for (size_t g = first; g < p->form.m; g += p->form.mg)
            qs_finish_run(&p->end, y + g, other + (p->end.sum ? g : 0), y + g, n);
}

/* Computes the items (image, band, block of columns) of a slice. */
static void conv_slice(void *arg, size_t slice) {
    const conv_job *j = arg;
    const qs_conv_plan *p = j->p;
    const size_t end = j->first + qs_slice_begin(j->count, p->slices, slice + 1);
    const size_t begin = j->first + qs_slice_begin(j->count, p->slices, slice);
    const size_t tiles = p->g.n * p->bands;
    float *bordered = j->scratch + slice * p->slice_floats;
    float *results = j->other == j->y ? bordered + p->bordered_floats : NULL;
    size_t copied = SIZE_MAX; /* the band that `bordered` holds */
    for (size_t i = begin; i < end && !qs_stopped(j->ctx); i++) {
        const size_t at = p->by_columns ? i % tiles : i / p->splits;
        const size_t split = p->by_columns ? i / tiles : i % p->splits;
        const size_t image = at / p->bands, band = at % p->bands;
        const size_t oy = qs_conv_band(p, band), rows = qs_conv_band(p, band + 1) - oy;
        const float *x = j->x + image * p->g.h * p->g.w * p->g.c;
        float *to = j->y + (image * p->g.oh + oy) * p->g.ow * p->stride;
        float *y = results ? results : to;
        if (p->choice == QS_CONV_CUT) {
            conv_cut(j, x, oy, oy + rows, y);
        } else if (p->choice == QS_CONV_TAPS) {
            const size_t first = split * p->columns, rest = p->form.mg - first;
            const size_t columns = rest < p->columns ? rest : p->columns;
            qs_taps_run(j->ctx, p->taps, &j->weights,
                        &(qs_taps_part){x, oy, oy + rows, first, columns, y});
        } else if (p->choice == QS_CONV_STRIPS) {
            conv_inside(j, x, oy, oy + rows, y, split);
        } else {
            if (p->choice == QS_CONV_WHOLE)
                x += oy * p->g.sh * p->line;
            else if (copied != at)
                copy_band(p, x, oy * p->g.sh, (rows - 1) * p->g.sh + p->height, bordered);
            copied = at;
            conv_pixels(j, p->strips, (qs_tap_span){0, p->form.kh},
                        p->choice == QS_CONV_BORDERED ? bordered : x, rows, y, split);
        }
        finish(j, y, to, rows * p->g.ow, split);
    }
}

void qs_conv_run(const qs_step *s, const qs_frame *f) {
    const qs_conv_plan *p = s->params;
    conv_job job = {.ctx = f->ctx,
                    .p = p,
                    .x = qs_step_in(s, f, 0),
                    .y = qs_step_out(s, f, 0),
                    .scratch = f->scratch};
    job.y += p->column;
    job.other = p->end.sum ? qs_step_in(s, f, QS_CONV_OTHER) : NULL;
    if (p->weights) {
        job.weights = *p->weights;
    } else {
        const float *bias = p->has_bias ? qs_step_in(s, f, 2) : NULL;
        job.weights = qs_conv_pack(f->ctx, &p->form, qs_step_in(s, f, 1), bias, false, f->scratch);
        job.scratch += qs_align(p->form.floats, 16);
    }
    const size_t items = p->g.n * p->bands * p->splits, wave = s->overlaps ? p->wave : items;
    const bool backwards = s->overlaps && (uintptr_t)job.y > (uintptr_t)job.x;
    job.first = qs_wave_first(items, wave, backwards);
    for (; job.first < items && !qs_stopped(f->ctx);
         job.first += backwards ? -wave : wave) { /* below 0 wraps to above items */
        job.count = items - job.first < wave ? items - job.first : wave;
        qs_parallel(f->ctx, p->slices, conv_slice, &job);
    }
}
