/* SPDX-License-Identifier: MIT */
/*
 * Float convolution, executed channels last: an output pixel is a row of a matrix product whose
 * terms run over (kernel row, kernel column, channel).
 *
 * Padding. Products with padding are zeros where the weights are finite, so they are left out: the
 * kernels get the pixels that have the same taps inside the image together. Otherwise a band of
 * the image is copied with zeros around it, and padding is a tap like any other.
 */
#include "op/nn/conv_taps.h"

#include <math.h>

#include "base/slices.h"
#include "base/waves.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/finish.h"
#include "op/nn/window.h"

/* Floats of a band of the image: they stay in a second-level cache beside the weights. */
#define BAND_FLOATS ((size_t)96 * 1024)
/* So many times the values of both images, the weights are what threads share out. */
#define MANY_WEIGHTS ((size_t)4)
/* Weights up to this size may be read anew for bands that keep the results in the cache. */
#define SMALL_WEIGHTS ((size_t)64 * 1024)
/* Output pixels of a band: what one table of row offsets covers. */
#define BAND_PIXELS ((size_t)1024)
/* Lines that depthwise_3x3 takes at a time: bands of more leave the output less room to slide. */
#define CUT_LINES ((size_t)28)
/* Floats of an image that a second cache does not hold. */
#define FAR_FLOATS ((size_t)256 * 1024)
/* Kernels up to this width leave padding out: wide ones meet it in too many ways. */
#define SKIP_WIDTH ((size_t)16)

/* Columns of the output that have the same columns of the kernel inside the image. */
typedef struct strip {
    size_t ox, count;
    qs_tap_span inside;
    size_t x; /* floats from a line's begin to their first tap */
    /* Tables of products; a depthwise convolution needs none. */
    size_t per_row, k;    /* segments of a kernel row, and their length */
    ptrdiff_t *row, *out; /* of a band's pixels; out is NULL where they follow each other */
    ptrdiff_t *seg;       /* per_row for every kernel row */
    size_t *at;           /* the segments' rows of the weights */
} strip;

typedef struct conv_plan {
    const qk_f32 *kernels;
    qs_conv_form form;
    const qs_conv_weights *weights; /* NULL: packed into scratch by every run */
    qs_geometry g;
    bool border, skip; /* padding is copied; is left out */
    bool cut;          /* by depthwise_3x3 */
    size_t stretch;    /* for it */
    bool has_bias;
    size_t line;            /* floats from one row of the (bordered) image to the next */
    size_t band, bands;     /* output rows of a band, bands of an image */
    size_t splits, columns; /* a group's columns are cut into blocks of `columns` */
    strip *strips;
    size_t strip_count;
    qs_taps *taps;               /* NULL, or how padding is left out */
    qs_tap_span *inside;         /* with skip: of every output row */
    size_t height;               /* rows from the first to the last tap of a window */
    size_t slices, slice_floats; /* scratch of a slice */
    bool by_columns;             /* a slice is a block of columns, of all bands */
    size_t wave; /* items that are done before any of the next, if the output is over the input */
    size_t stride, column; /* from pixel to pixel of the result, and where in one it begins */
    float lo, hi;
    qs_finish end; /* of each band's results */
} conv_plan;

typedef struct conv_job {
    const qsim_ctx *ctx; /* asked now and then whether to go on */
    const conv_plan *p;
    const float *x, *other; /* other: what is added to y */
    float *y, *scratch;
    qs_conv_weights weights;
    size_t first, count; /* items at hand */
} conv_job;

/* ---- running ---- */

/* Rows [first, first + rows) of the bordered image. */
static void copy_band(const conv_plan *p, const float *image, size_t first, size_t rows,
                      float *to) {
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

/* Pixels of a strip, all with the kernel rows `rows`, and one block of columns. */
static void conv_columns(const conv_job *j, const strip *s, qs_tap_span rows, const float *a,
                         size_t pixels, float *y, size_t split) {
    const conv_plan *p = j->p;
    const size_t first = split * p->columns, rest = p->form.mg - first;
    const size_t depth = p->form.taps * p->form.cg;
    qk_gemm_f32 g = {.row = s->row,
                     .out = s->out,
                     .seg = s->seg,
                     .at = p->skip ? s->at + rows.from * s->per_row : NULL,
                     .depth = depth,
                     .rows = pixels,
                     .segs = (rows.to - rows.from) * s->per_row,
                     .k = s->k,
                     .cols = rest < p->columns ? rest : p->columns,
                     .lo = p->lo,
                     .hi = p->hi,
                     .ldc = p->stride};
    for (size_t i = 0; i < p->form.groups; i++) {
        g.a = a + i * p->form.cg;
        g.b = j->weights.packed + i * j->weights.group_floats + first * depth;
        g.bias = j->weights.bias + i * j->weights.bias_stride + first;
        g.c = y + i * p->form.mg + first;
        p->kernels->gemm(&g);
    }
}

static qk_depthwise_f32 depthwise_of(const conv_job *j, const strip *s, qs_tap_span rows,
                                     const float *a, size_t lines, float *y) {
    const conv_plan *p = j->p;
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

/* Whole lines [oy, end), the image's border among them. */
static void conv_cut(const conv_job *j, const float *image, size_t oy, size_t end, float *y) {
    const conv_plan *p = j->p;
    const strip whole = {.count = p->g.ow, .inside = {0, 3}};
    const ptrdiff_t above = (ptrdiff_t)(oy * p->g.sh) - (ptrdiff_t)p->g.top;
    const float *a = image + above * (ptrdiff_t)p->line - p->g.left * p->g.c;
    qk_depthwise_f32 d = depthwise_of(j, &whole, (qs_tap_span){0, 3}, a, end - oy, y);
    d.cut = (qk_cut){.top = p->g.top > oy * p->g.sh,
                     .bottom = (end - 1) * p->g.sh + 3 > p->g.h + p->g.top,
                     .left = p->g.left > 0,
                     .right = (p->g.ow - 1) * p->g.sw + 3 > p->g.w + p->g.left};
    p->kernels->depthwise_3x3(&d);
}

static void conv_pixels(const conv_job *j, const strip *s, qs_tap_span rows, const float *a,
                        size_t lines, float *y, size_t split) {
    a += s->x;
    y += s->ox * j->p->stride;
    if (j->p->form.depthwise) {
        const qk_depthwise_f32 d = depthwise_of(j, s, rows, a, lines, y);
        j->p->kernels->depthwise(&d);
    } else {
        conv_columns(j, s, rows, a, lines * s->count, y, split);
    }
}

/* Output rows [oy, end), those with the same kernel rows inside the image together. */
static void conv_inside(const conv_job *j, const float *image, size_t oy, size_t end, float *y,
                        size_t split) {
    const conv_plan *p = j->p;
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

/* Few channels among others: those of many pixels, side by side for the while. */
#define THIN 64
static void finish_thin(const conv_plan *p, float *y, const float *other, size_t pixels) {
    float side[16 * THIN];
    const size_t m = p->form.m, most = QS_COUNT(side) / m;
    for (size_t first = 0, n; first < pixels; first += n, y += n * p->stride) {
        n = pixels - first < most ? pixels - first : most;
        for (size_t i = 0; i < n; i++)
            memcpy(side + i * m, y + i * p->stride, m * sizeof(float));
        qs_finish_run(&p->end, side, p->end.sum ? other + first * m : side, n * m);
        for (size_t i = 0; i < n; i++)
            memcpy(y + i * p->stride, side + i * m, m * sizeof(float));
    }
}

/* What follows the convolution, on one block of columns of the pixels from y on. */
static void finish(const conv_job *j, float *y, size_t pixels, size_t split) {
    const conv_plan *p = j->p;
    if (!p->end.first.fn && !p->end.sum && !p->end.curve.fn)
        return;
    const float *other = p->end.sum ? j->other + (size_t)(y - j->y) / p->stride * p->form.m : y;
    if (p->splits == 1 && p->stride == p->form.m) {
        qs_finish_run(&p->end, y, other, pixels * p->form.m);
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
            qs_finish_run(&p->end, y + g, other + (p->end.sum ? g : 0), n);
}

/* Bands of nearly as many rows: halves of them are halves of the rows. */
static size_t band_begin(const conv_plan *p, size_t band) {
    return p->g.oh * band / p->bands;
}

/* Items of a slice: (image, band, block of columns). */
static void conv_slice(void *arg, size_t slice) {
    const conv_job *j = arg;
    const conv_plan *p = j->p;
    const size_t end = j->first + qs_slice_begin(j->count, p->slices, slice + 1);
    const size_t begin = j->first + qs_slice_begin(j->count, p->slices, slice);
    const size_t tiles = p->g.n * p->bands;
    float *bordered = j->scratch + slice * p->slice_floats;
    size_t copied = SIZE_MAX; /* the band that `bordered` holds */
    for (size_t i = begin; i < end && !qs_stopped(j->ctx); i++) {
        const size_t at = p->by_columns ? i % tiles : i / p->splits;
        const size_t split = p->by_columns ? i / tiles : i % p->splits;
        const size_t image = at / p->bands, band = at % p->bands;
        const size_t oy = band_begin(p, band), rows = band_begin(p, band + 1) - oy;
        const float *x = j->x + image * p->g.h * p->g.w * p->g.c;
        float *y = j->y + (image * p->g.oh + oy) * p->g.ow * p->stride;
        if (p->cut) {
            conv_cut(j, x, oy, oy + rows, y);
        } else if (p->taps) {
            const size_t first = split * p->columns, rest = p->form.mg - first;
            qs_taps_run(p->taps, &j->weights, x, oy, oy + rows, first,
                        rest < p->columns ? rest : p->columns, y);
        } else if (p->skip) {
            conv_inside(j, x, oy, oy + rows, y, split);
        } else {
            if (!p->border)
                x += oy * p->g.sh * p->line;
            else if (copied != at)
                copy_band(p, x, oy * p->g.sh, (rows - 1) * p->g.sh + p->height, bordered);
            copied = at;
            conv_pixels(j, p->strips, (qs_tap_span){0, p->form.kh}, p->border ? bordered : x, rows,
                        y, split);
        }
        finish(j, y, rows * p->g.ow, split);
    }
}

static void run_conv(const qs_step *s, const qs_frame *f) {
    const conv_plan *p = s->params;
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
        job.weights = qs_conv_pack(p->kernels, &p->form, qs_step_in(s, f, 1), bias, f->scratch);
        job.scratch += qs_align(p->form.floats, 16);
    }
    const size_t items = p->g.n * p->bands * p->splits, wave = s->overlaps ? p->wave : items;
    const bool backwards = s->overlaps && (uintptr_t)job.y > (uintptr_t)job.x;
    job.first = qs_wave_first(items, wave, backwards);
    for (; job.first < items && !qs_stopped(f->ctx);
         job.first += backwards ? -wave : wave) { /* below 0 is above items */
        job.count = items - job.first < wave ? items - job.first : wave;
        qs_parallel(f->ctx, p->slices, conv_slice, &job);
    }
}

/* ---- lowering ---- */

/* Whether depthwise_3x3 takes the image as it is: windows reach over its border by one tap at most.
 */
static bool can_cut(const conv_plan *p) {
    const qs_geometry *g = &p->g;
    return p->form.depthwise && p->form.kh == 3 && p->form.kw == 3 && g->dh == 1 && g->dw == 1 &&
           g->sh <= 2 && g->sw <= 2 && g->top <= 1 && g->left <= 1 && !p->border &&
           (g->oh - 1) * g->sh + 2 <= g->h + g->top && (g->ow - 1) * g->sw + 2 <= g->w + g->left &&
           g->ow >= QK_DEPTHWISE_3X3_LEAST && p->kernels->depthwise_3x3;
}

/*
 * Cycles per term of a tile's rows: a row of few columns waits for its own sums, as long as four
 * rows take.
 */
static double row_cycles(const conv_plan *p, size_t rows) {
    const size_t panel = p->kernels->panel, columns = p->form.mg < panel ? p->form.mg : panel;
    const double row = (double)columns / 16, least = 4.0;
    const size_t big = columns <= 32 ? 8 : 4, rest = rows % big, fours = rest / 4, ones = rest % 4;
    const double alone = row > least ? row : least;
    return row * (double)(rows - rest) + (4 * row > least ? 4 * row : least) * (double)fours +
           alone * (double)ones;
}

/* Output rows or columns from `at` on that have the same taps inside: how many, and these taps. */
static size_t alike(size_t at, size_t end, size_t step, size_t before, size_t taps, size_t dilation,
                    size_t size, size_t *inside) {
    const qs_tap_span first = qs_taps_inside(at * step, before, taps, dilation, size);
    size_t next = at + 1;
    for (; next < end; next++) {
        const qs_tap_span s = qs_taps_inside(next * step, before, taps, dilation, size);
        if (s.from != first.from || s.to != first.to)
            break;
    }
    *inside = first.to - first.from;
    return next - at;
}

/* Whether small images do better with padding copied: what lies at the border are rows alone. */
static bool border_is_slow(const conv_plan *p) {
    const qs_geometry *g = &p->g;
    const qs_conv_form *f = &p->form;
    double slow = 0;
    if (f->depthwise || g->oh * g->ow > 1024)
        return false;
    for (size_t oy = 0, rows, down; oy < g->oh; oy += rows) {
        rows = alike(oy, g->oh, g->sh, g->top, f->kh, g->dh, g->h, &down);
        for (size_t ox = 0, count, across; ox < g->ow; ox += count) {
            count = alike(ox, g->ow, g->sw, g->left, f->kw, g->dw, g->w, &across);
            slow += row_cycles(p, rows * count) * (double)(down * across);
        }
    }
    return slow > 1.05 * row_cycles(p, g->oh * g->ow) * (double)(f->kh * f->kw);
}

static void conv_geometry(conv_plan *p, const qs_window *w) {
    const qs_conv_form *f = &p->form;
    p->g = qs_window_geometry(w);
    p->height = (f->kh - 1) * p->g.dh + 1;
    const size_t across = (f->kw - 1) * p->g.dw + 1;
    const size_t need_w = p->g.ow ? (p->g.ow - 1) * p->g.sw + across : 0;
    const size_t need_h = p->g.oh ? (p->g.oh - 1) * p->g.sh + p->height : 0;
    const bool padded = p->g.top || p->g.left || need_h > p->g.h || need_w > p->g.w;
    p->skip =
        padded && p->weights && p->weights->finite && f->kw <= SKIP_WIDTH && !border_is_slow(p);
    p->border = padded && !p->skip;
    p->line = (p->border ? need_w : p->g.w) * p->g.c;
    p->cut = can_cut(p);
    if (p->kernels->parts) /* few pages and lines at a time come sooner from far */
        p->stretch = p->g.sw == 2 ? 2 : p->g.h * p->line > FAR_FLOATS ? 4 : 0;
    const bool pointwise = f->taps == 1 && !padded && p->g.sh == 1 && p->g.sw == 1;
    if (pointwise) { /* all pixels of all images are rows of one product */
        p->g.h = p->g.oh = p->g.n * p->g.oh * p->g.ow;
        p->g.n = p->g.w = p->g.ow = 1;
        p->line = p->g.c;
    }
}

static double conv_ns(const conv_plan *p, double macs) {
    return macs / (p->form.depthwise ? QS_DEPTHWISE_F32 : QS_MACS_F32);
}

/*
 * Whether threads share the columns instead of the rows: where reading the weights is what takes
 * the time, each then reads its part of them.
 */
static bool prefer_columns(const conv_plan *p, size_t slices) {
    const size_t panels = (p->form.mg + p->kernels->panel - 1) / p->kernels->panel;
    const size_t pixels = p->g.h * p->g.w * p->g.c + p->g.oh * p->g.ow * p->form.m;
    return slices > 1 && p->g.n == 1 && !p->form.depthwise && panels >= 4 * slices &&
           p->form.floats / MANY_WEIGHTS > pixels;
}

/* How the output is cut into bands, columns and slices. */
static void conv_split(const qsim_ctx *ctx, conv_plan *p, double macs) {
    const size_t most = BAND_FLOATS;
    const size_t floats = p->line * p->g.sh, per_row = floats != 0 ? floats : 1;
    size_t by_size = most / per_row, by_pixels = BAND_PIXELS / p->g.ow;
    if (p->border)
        by_size = most / per_row > p->height / p->g.sh ? most / per_row - p->height / p->g.sh : 1;
    size_t band = by_size < by_pixels ? by_size : by_pixels;
    if ((p->end.sum || p->end.curve.fn) && p->form.floats <= SMALL_WEIGHTS) {
        const size_t by_results = most / (p->g.ow * p->form.m);
        band = band < by_results ? band : by_results;
    }
    if (p->cut && !p->end.sum && !p->end.curve.fn) /* its blocks go down the image */
        band = CUT_LINES;
    if (p->kernels->parts && !p->border && p->form.floats >= p->g.h * p->line)
        band = by_pixels; /* weights pass by once; of the image, kernels need a part at a time */
    band = band < 1 ? 1 : band > p->g.oh ? p->g.oh : band;
    const size_t slices = qs_slice_count(ctx, SIZE_MAX, conv_ns(p, macs));
    p->by_columns = prefer_columns(p, slices);
    p->bands = (p->g.oh + band - 1) / band;
    if (p->g.n % slices != 0 && !p->by_columns)
        p->bands = (p->bands + slices - 1) / slices * slices;
    p->bands = p->bands < p->g.oh ? p->bands : p->g.oh;
    p->band = (p->g.oh + p->bands - 1) / p->bands;
    p->splits = 1;
    p->columns = p->form.mg;
    const size_t panel = p->kernels->panel, panels = (p->form.mg + panel - 1) / panel;
    if ((p->g.n * p->bands < slices || p->by_columns) && !p->form.depthwise && panels > 1) {
        size_t splits =
            p->by_columns ? slices : (slices + p->g.n * p->bands - 1) / (p->g.n * p->bands);
        splits = splits < panels ? splits : panels;
        p->columns = (panels + splits - 1) / splits * panel;
        p->splits = (p->form.mg + p->columns - 1) / p->columns;
    }
    p->slices = qs_slice_count(ctx, p->g.n * p->bands * p->splits, conv_ns(p, macs));
}

/* How far from each other output and input have to begin where one lies over the other. */
static void conv_distances(const conv_plan *p, qs_step *step) {
    const size_t items = p->g.n * p->bands;
    qs_reach r = {.h = p->g.h,
                  .oh = p->g.oh,
                  .step = p->g.sh,
                  .top = p->g.top,
                  .taps = p->height,
                  .row = p->g.w * p->g.c * sizeof(float),
                  .out = p->g.ow * p->stride * sizeof(float)};
    for (size_t i = 0; i < items; i += p->wave) {
        const size_t last = (items - i < p->wave ? items : i + p->wave) - 1;
        qs_reach_wave(&r, i / p->bands, band_begin(p, i % p->bands), last / p->bands,
                      band_begin(p, last % p->bands + 1));
    }
    step->min_lead = r.min_lead;
    step->min_lag = r.min_lag;
}

static bool strip_tables(qs_arena *arena, const conv_plan *p, strip *s) {
    const qs_conv_form *f = &p->form;
    const size_t taps = s->inside.to - s->inside.from;
    if (f->depthwise)
        return true;
    const bool merged = p->g.dw == 1 && f->groups == 1 && taps > 0;
    s->per_row = merged ? 1 : taps;
    s->k = merged ? taps * f->cg : f->cg;
    const size_t pixels = p->band * s->count, segs = f->kh * s->per_row;
    const bool dense = s->count == p->g.ow;
    size_t bytes;
    if (!qs_mul(pixels, sizeof(*s->row), &bytes))
        return false;
    s->row = qs_arena_raw64(arena, bytes);
    s->out = dense ? NULL : qs_arena_raw64(arena, bytes);
    s->seg = qs_arena_alloc(arena, segs + 1, sizeof(*s->seg));
    s->at = qs_arena_alloc(arena, segs + 1, sizeof(*s->at));
    if (!s->row || (!s->out && !dense) || !s->seg || !s->at)
        return false;
    for (size_t y = 0, i = 0; y < p->band; y++)
        for (size_t x = 0; x < s->count; x++, i++) {
            s->row[i] = (ptrdiff_t)(y * p->g.sh * p->line + x * p->g.sw * p->g.c);
            if (!dense)
                s->out[i] = (ptrdiff_t)((y * p->g.ow + x) * p->stride);
        }
    for (size_t i = 0; i < segs; i++) {
        const size_t ky = i / s->per_row, kx = i % s->per_row;
        const size_t tap = ky * f->kw + s->inside.from + kx;
        s->seg[i] = (ptrdiff_t)(ky * p->g.dh * p->line + kx * p->g.dw * p->g.c);
        s->at[i] = tap * f->cg;
    }
    return true;
}

static bool make_strips(qs_arena *arena, conv_plan *p) {
    const size_t all = p->form.kw;
    if (p->cut)
        return true;
    if (p->skip && qs_taps_suit(p->kernels, &p->form, &p->g)) {
        p->taps = qs_arena_alloc(arena, 1, sizeof(*p->taps));
        if (!p->taps)
            return false;
        *p->taps =
            (qs_taps){p->kernels, &p->form, &p->g, p->line, p->stride, p->lo, p->hi, NULL, NULL};
        return qs_taps_make(arena, p->taps, p->band);
    }
    p->strips = qs_arena_alloc(arena, p->skip ? p->g.ow : 1, sizeof(*p->strips));
    if (!p->strips)
        return false;
    if (!p->skip) {
        p->strip_count = 1;
        p->strips[0] = (strip){.count = p->g.ow, .inside = {0, all}};
        return strip_tables(arena, p, p->strips);
    }
    for (size_t ox = 0; ox < p->g.ow; ox++) {
        const qs_tap_span in = qs_taps_inside(ox * p->g.sw, p->g.left, all, p->g.dw, p->g.w);
        strip *s = p->strip_count ? &p->strips[p->strip_count - 1] : NULL;
        if (!s || s->inside.from != in.from || s->inside.to != in.to) {
            const size_t x = in.to ? ox * p->g.sw + in.from * p->g.dw - p->g.left : 0;
            s = &p->strips[p->strip_count++];
            *s = (strip){.ox = ox, .inside = in, .x = x * p->g.c};
        }
        s->count++;
    }
    for (size_t i = 0; i < p->strip_count; i++)
        if (!strip_tables(arena, p, &p->strips[i]))
            return false;
    p->inside = qs_arena_alloc(arena, p->g.oh, sizeof(*p->inside));
    for (size_t oy = 0; p->inside && oy < p->g.oh; oy++)
        p->inside[oy] = qs_taps_inside(oy * p->g.sh, p->g.top, p->form.kh, p->g.dh, p->g.h);
    return p->inside != NULL;
}

QS_COLD static int conv_scratch(qs_lower *l, conv_plan *p) {
    size_t floats = 0;
    if (p->border && (!qs_mul((p->band - 1) * p->g.sh + p->height, p->line, &floats) ||
                      !qs_add(floats, 32, &floats)))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's padded image is too large");
    p->slice_floats = qs_align(floats, 16);
    size_t all = 0;
    if (!qs_mul(p->slice_floats, p->slices, &all) ||
        (!p->weights && !qs_add(all, qs_align(p->form.floats, 16), &all)) ||
        !qs_mul(all, sizeof(float), &l->step->scratch))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's scratch memory is too large");
    return QSIM_OK;
}

static void run_nothing(const qs_step *s, const qs_frame *f) {
    (void)s;
    (void)f;
}

QS_COLD int qs_conv_lower(qs_lower *l) {
    const qs_value *w = qs_lower_in(l, 1);
    qs_infer x;
    qs_window window;
    qs_lower_infer(l, &x);
    int code = qs_window_infer(&x, 0, w->dims + 2, &window);
    if (code)
        return code;
    if (!window.channels_last)
        return qs_infer_fail(&x, QSIM_E_INTERNAL, "convolution is executed channels last only");
    conv_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->kernels = l->ctx->kernels->f32;
    p->weights = l->packed;
    p->has_bias = qs_lower_in(l, 2) != NULL;
    p->lo = qs_node_float(l->node, "lo", -INFINITY);
    p->hi = qs_node_float(l->node, "hi", INFINITY);
    p->end = qs_finish_lower(l, QS_CONV_OTHER);
    if (l->node->input_count > QS_CONV_OVER && qs_lower_in(l, QS_CONV_OVER))
        l->step->reuses = QS_CONV_OVER;
    l->step->run = run_nothing;
    l->step->kernel = "conv";
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    if (!qs_conv_form_make(p->kernels, w, qs_node_int(l->node, "group", 1), &p->form))
        return qs_fail(l->error, QSIM_E_LIMIT, "a convolution's packed weights are too large");
    const int64_t into = qs_node_int(l->node, "into", 0);
    p->stride = into ? (size_t)into : p->form.m;
    p->column = (size_t)qs_node_int(l->node, "column", 0);
    const double pixels = (double)(qs_value_elements(qs_lower_out(l, 0)) / p->stride);
    const double macs = pixels * (double)p->form.m * (double)(p->form.taps * p->form.cg);
    conv_geometry(p, &window);
    conv_split(l->ctx, p, macs);
    p->wave = qs_wave(p->g.n * p->bands, p->slices, conv_ns(p, macs));
    if (p->splits == 1)
        conv_distances(p, l->step);
    if (!make_strips(l->arena, p))
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    l->step->run = run_conv;
    l->step->kernel = p->form.depthwise ? p->end.curve.fn ? "depthwise curve" : "depthwise"
                      : p->end.sum      ? "conv add"
                      : p->end.curve.fn ? "conv curve"
                                        : "conv";
    l->step->macs = macs < 9e18 ? (int64_t)macs : INT64_MAX;
    return conv_scratch(l, p);
}
