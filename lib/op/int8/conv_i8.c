/* SPDX-License-Identifier: MIT */
/*
 * Executes an integer convolution. The output is cut into strips of rows. If the input is padded, a
 * strip's input is first copied into scratch memory with its padding (about 2 % of a 3 x 3
 * convolution's time, in the cache), so that kernels need not handle padding. In a depthwise
 * convolution the copy would take a quarter of the time, so its window kernel handles padding
 * itself and reads a row of zero points. A task is a range of strips, or of column panels where
 * rows are few, and has its own scratch memory.
 */
#include <assert.h>

#include "op/int8/conv_i8.h"

#include "base/slices.h"
#include "base/waves.h"
#include "quant/requantize.h"

#define STRIP_SLACK 64 /* readable bytes after a strip, part of c->p.strip_bytes */

static int32_t least(int64_t a, int64_t b) {
    return (int32_t)(a < b ? a : b);
}

typedef struct work {
    const qsim_ctx *ctx; /* tells whether the run was stopped */
    const qs_conv_i8 *c;
    const uint8_t *x;
    uint8_t *y, *scratch;
    size_t element;
    int64_t first, count; /* strips of this wave */
    bool again;           /* not the first wave: rows of zero points are filled */
} work;

/* One strip of one image. */
typedef struct strip {
    const uint8_t *a;             /* input of the first tap of the first pixel */
    const uint8_t *image, *zeros; /* window kernel: the image, a row of zero points */
    int64_t top;                  /* window kernel: first input row, may be negative */
    uint8_t *out;
    int32_t *block; /* int32 sums for the general epilogue */
    uint8_t *gathered;
    uint8_t *results;      /* of a block, for `after` */
    int64_t first;         /* index of its first output pixel in the batch */
    int32_t rows;          /* output rows */
    int32_t panel, panels; /* panels [panel, panels) of a column task */
    int32_t from, upto;    /* columns [from, upto) of a column task */
} strip;

/*
 * Copies input rows [top, top + rows) with padding; the image's part of each row begins at a cache
 * line. A row's right padding is filled with the next row's left padding; after the last row, with
 * the bytes that dword products read beyond it and multiply by zero weights.
 */
static void copy_strip(const qs_conv_i8 *c, const uint8_t *image, int64_t top, int64_t rows,
                       uint8_t *to) {
    int64_t pixel = qs_conv_i8_in(c), row_bytes = c->p.wd * pixel, stride = c->p.strip_stride;
    int64_t left = c->g.pad_left * pixel, middle = row_bytes;
    if (left > stride)
        left = stride;
    if (middle > stride - left)
        middle = stride - left;
    memset(to, c->x_zp, (size_t)left);
    to += left;
    for (int64_t y = top; y < top + rows; y++, to += stride) {
        const int64_t copied = y < 0 || y >= c->p.h ? 0 : middle;
        const int64_t end = y + 1 < top + rows ? stride : stride - left + STRIP_SLACK;
        memcpy(to, image + (copied ? y : 0) * row_bytes, (size_t)copied);
        memset(to + copied, c->x_zp, (size_t)(end - copied));
    }
}

/* Computes one output row; where channels are few, several pixels count as one of w.channels. */
static void depthwise_row(const work *k, const uint8_t *a, uint8_t *out) {
    const qs_conv_i8 *c = k->c;
    int32_t channels = c->w.groups;
    qk_depthwise_u8s8 d = {.a = a,
                           .a_stride = (ptrdiff_t)c->g.stride_w * channels,
                           .tap_offset = c->p.offset,
                           .m = c->p.wo,
                           .taps = c->w.taps,
                           .channels = channels,
                           .w = c->b,
                           .out = out,
                           .out_stride = (ptrdiff_t)(k->element * (size_t)channels),
                           .o = c->o};
    if (c->w.channels != channels) {
        int64_t total = (int64_t)c->p.wo * channels;
        d.channels = c->w.channels;
        d.a_stride = d.channels;
        d.out_stride = (ptrdiff_t)k->element * d.channels;
        d.m = (int32_t)(total / d.channels);
        if (d.m > 0)
            c->w.t->depthwise(&d);
        d.a += d.m * d.a_stride;
        d.out = out + d.m * d.out_stride;
        d.channels = (int32_t)(total % d.channels);
        d.m = d.channels > 0;
    }
    if (d.m > 0)
        c->w.t->depthwise(&d);
}

static void run_window(const work *k, const strip *s, int32_t first, int32_t rows, uint8_t *out) {
    const qs_conv_i8 *c = k->c;
    qk_window_u8s8 d = {.image = s->image,
                        .zeros = s->zeros,
                        .h = c->p.h,
                        .wd = c->p.wd,
                        .channels = c->w.groups,
                        .top = s->top + (int64_t)first * c->g.stride_h,
                        .left = -c->g.pad_left,
                        .kh = c->w.kh,
                        .kw = c->w.kw,
                        .stride_h = c->g.stride_h,
                        .stride_w = c->g.stride_w,
                        .dilation_h = c->g.dilation_h,
                        .dilation_w = c->g.dilation_w,
                        .rows = rows,
                        .wo = c->p.wo,
                        .split = c->w.zero_points == QS_ZP_SPLIT,
                        .w = c->b,
                        .out = out,
                        .o = c->o};
    c->w.t->window(&d);
}

/* Computes output rows [first, first + rows) of a strip into contiguous rows at `out`. */
static void depthwise_rows(const work *k, const strip *s, int32_t first, int32_t rows,
                           uint8_t *out) {
    const qs_conv_i8 *c = k->c;
    const ptrdiff_t down = (ptrdiff_t)c->g.stride_h * c->p.strip_stride;
    const ptrdiff_t row_bytes = (ptrdiff_t)k->element * c->p.wo * c->w.groups;
    if (c->w.choice == QS_CONV_DEPTHWISE_2D) {
        run_window(k, s, first, rows, out);
        return;
    }
    for (int32_t r = 0; r < rows; r++)
        depthwise_row(k, s->a + (first + r) * down, out + r * row_bytes);
}

static void run_depthwise(const work *k, const strip *s) {
    const qs_conv_i8 *c = k->c;
    if (!c->after) {
        depthwise_rows(k, s, 0, s->rows, s->out);
        return;
    }
    const size_t bytes = k->element * (size_t)c->w.groups;
    const size_t pitch = k->element * (size_t)qs_conv_i8_out(c);
    for (int32_t first = 0, rows; first < s->rows && !qs_stop_code(k->ctx); first += rows) {
        const size_t pixel = (size_t)first * (size_t)c->p.wo;
        rows = least(c->p.block_rows, s->rows - first);
        uint8_t *y = s->out + pixel * pitch, *to = c->after_in_place ? y : s->results;
        depthwise_rows(k, s, first, rows, to);
        const qs_conv_i8_block block = {.x = to,
                                        .n = bytes,
                                        .rows = (size_t)rows * (size_t)c->p.wo,
                                        .x_stride = bytes,
                                        .at = ((size_t)s->first + pixel) * bytes,
                                        .stride = bytes,
                                        .y = y,
                                        .y_stride = pitch};
        c->after(c->after_arg, &block);
    }
}

/* Fills `rows` with the input addresses of product rows [first, first + m) of a strip. */
static void fill_rows(const qs_conv_i8 *c, const uint8_t *a, int32_t first, int32_t m,
                      const uint8_t **rows) {
    ptrdiff_t step = (ptrdiff_t)((int64_t)c->w.pixels * c->g.stride_w * qs_conv_i8_in(c));
    ptrdiff_t down = (ptrdiff_t)c->g.stride_h * c->p.strip_stride;
    int32_t wide = c->p.wo / c->w.pixels, x = first % wide;
    const uint8_t *line = a + first / wide * down;
    for (int32_t i = 0; i < m;) {
        const uint8_t *p = line + x * step;
        int32_t run = least(m - i, wide - x);
#pragma GCC unroll 4
        for (int32_t j = 0; j < run; j++)
            rows[i + j] = p + j * step;
        i += run;
        x = 0;
        line += down;
    }
}

/* qs_requantize for a sum that may not fit int32. */
static uint8_t requantize_wide(const qs_conv_i8 *c, int64_t sum, float m) {
    float v = (float)sum * m;
    v = qs_maxf(v, (float)(c->o.lo - c->o.zp));
    return (uint8_t)(qs_round_even(qs_minf(v, (float)(c->o.hi - c->o.zp))) + c->o.zp);
}

static void post_row(const qsim_ctx *ctx, const qs_conv_i8 *c, int32_t group, int64_t row,
                     const int32_t *acc, int32_t n, uint8_t *out) {
    const qs_conv_i8_post *p = c->post;
    int64_t at = (int64_t)group * n;
    uint32_t zp = (uint32_t)(p->row_zp ? p->row_zp[row] : p->zp);
    uint32_t rest = c->w.zero_points == QS_ZP_COLUMN ? (uint32_t)acc[n] - (uint32_t)p->k * zp : 0;
    if (p->mult && p->w_zp && !p->wide_bias) {
        qk_post_row_i8 row_of = {.acc = acc,
                                 .colsum = p->colsum + at,
                                 .w_zp = p->w_zp + at,
                                 .mult = p->mult + at,
                                 .n = n,
                                 .row_zp = zp,
                                 .rest = rest,
                                 .out = out,
                                 .o = c->o};
        c->w.t->post(&row_of);
        return;
    }
    for (int32_t i = 0; i < n && !qs_stopped_at(ctx, (size_t)i); i++) {
        uint32_t sum = (uint32_t)acc[i] - zp * (uint32_t)p->colsum[at + i];
        if (p->w_zp)
            sum -= (uint32_t)p->w_zp[at + i] * rest;
        int32_t value = (int32_t)sum;
        if (!p->mult && !p->row_scale) {
            memcpy(out + 4 * (size_t)i, &value, 4);
            continue;
        }
        float m =
            p->mult ? p->mult[at + i]
                    : qs_requantize_multiplier(p->row_scale[row], p->col_scale[at + i], p->y_scale);
        out[i] = p->wide_bias ? requantize_wide(c, (int64_t)value + p->wide_bias[at + i], m)
                              : (uint8_t)qs_requantize(value, m, c->o.lo, c->o.hi, c->o.zp);
    }
}

/* Multiplies one block of pixels by all panels of one group; stores the first n columns. */
static void run_panels(const work *k, const strip *s, int32_t group, int32_t n, qk_gemm_u8s8 *g) {
    const qs_conv_i8 *c = k->c;
    const qk_form_i8 *f = &c->w.form;
    size_t element = c->post ? 4 : k->element;
    int64_t position = (int64_t)group * f->positions;
    uint8_t *out = g->out;
    g->b = c->b + (size_t)group * f->bytes;
    for (int32_t first = 0, panel = 0, together; first < n && !qs_stopped(k->ctx);
         panel += together) {
        g->width = qk_i8_panel(c->w.t, f->n - first);
        together = panel < s->panel ? 0 : qk_i8_panels(c->w.t, g->m, f->n - first);
        together = least(together, s->panels - panel);
        together = least(together, (n - first + g->width - 1) / g->width);
        void (*gemm)(const qk_gemm_u8s8 *g, int32_t panels) = together > 0 ? c->w.t->panels : NULL;
        together = together > 1 ? together : 1;
        g->cols = least((int64_t)g->width * together, n - first);
        g->out = out + element * (size_t)first;
        g->o.bias = c->o.bias + position;
        g->o.mult = c->o.mult && !c->post ? c->o.mult + position : NULL;
        if (c->o.scale) {
            g->o.scale = c->o.scale + position;
            g->o.add = c->o.add + position;
        }
        const size_t bytes =
            (size_t)f->segs * 4 * (size_t)f->k4 * (size_t)g->width * (size_t)together;
        g->next = c->p.fetch && g->width == c->w.t->widest ? g->b + bytes : NULL;
        if (panel >= s->panel && panel < s->panels) {
            assert(qk_gemm_u8s8_valid(c->w.t, g, together));
            if (gemm)
                gemm(g, together);
            else
                c->w.t->gemm(g);
            g->gather = NULL;
        }
        first += together * g->width;
        position += (int64_t)together * g->width;
        g->b += bytes;
    }
}

/* Passes a block of n columns to `after`; its first byte belongs at `to` in y. */
static void finish_block(const work *k, const strip *s, int32_t n, int32_t m, const uint8_t *to,
                         size_t to_stride) {
    const qs_conv_i8 *c = k->c;
    const size_t all = (size_t)qs_conv_i8_out(c), own = (size_t)c->w.groups * (size_t)c->w.n;
    const size_t place = (size_t)(to - k->y), from = (size_t)s->from;
    const int32_t end = least(s->upto, n);
    const qs_conv_i8_block block = {.x = s->results + from,
                                    .n = (size_t)end - from,
                                    .rows = (size_t)m,
                                    .x_stride = (size_t)n,
                                    .at = place / all * own + place % all - (size_t)c->g.y_column +
                                          from,
                                    .stride = to_stride / all * own,
                                    .y = k->y + place + from,
                                    .y_stride = to_stride};
    if (s->from < end)
        c->after(c->after_arg, &block);
}

/* Computes g->m rows of the product, from row `first` of the strip on; stores n columns. */
static void run_block(const work *k, const strip *s, int32_t group, int32_t first, int32_t n,
                      qk_gemm_u8s8 *g) {
    const qs_conv_i8 *c = k->c;
    int32_t init[QS_CONV_I8_BLOCK];
    uint8_t *to = (uint8_t *)g->out + (int64_t)k->element * group * c->w.n;
    const bool handed = c->after && !c->after_in_place;
    uint8_t *out = handed ? s->results : to;
    const ptrdiff_t stored = c->post ? c->w.n : n, to_stride = g->out_stride;
    const ptrdiff_t out_stride = handed ? stored : to_stride;
    g->segs = c->w.form.segs;
    g->k4 = c->w.form.k4;
    g->seg_offset = g->segs > 1 ? c->p.offset : NULL;
    g->o = c->o;
    g->out = c->post ? (uint8_t *)s->block : out;
    g->out_stride = c->post ? 4 * (ptrdiff_t)c->w.form.n : out_stride;
    if (c->w.zero_points == QS_ZP_SAME) {
        c->w.t->row_sums(g, c->w.form.k, -c->w_zp, init);
        g->row_init = init;
    }
    run_panels(k, s, group, n, g);
    for (int32_t i = 0; c->post && i < g->m; i++, out += out_stride)
        post_row(k->ctx, c, group, s->first + first + i, s->block + (int64_t)i * c->w.form.n,
                 c->w.n, out);
    if (handed)
        finish_block(k, s, (int32_t)stored, g->m, to, (size_t)to_stride);
}

/*
 * Computes m rows of the product whose pixels follow each other in the output. Tiles take a part of
 * one output row or whole rows.
 */
static void run_pixels(const work *k, const strip *s, int32_t group, int32_t first, int32_t m) {
    const qs_conv_i8 *c = k->c;
    const uint8_t *rows[QS_CONV_I8_BLOCK], *a = s->a + (int64_t)group * c->w.c;
    qk_gemm_u8s8 g = {.m = m, .a = a};
    g.out_stride = (ptrdiff_t)k->element * c->w.pixels * qs_conv_i8_out(c);
    g.out = s->out + first * g.out_stride;
    if (c->w.t->tiles) {
        g.a_stride = (ptrdiff_t)c->g.stride_w * (ptrdiff_t)qs_conv_i8_in(c);
        g.line_stride = (ptrdiff_t)c->g.stride_h * c->p.strip_stride;
        g.line = m > c->p.wo ? c->p.wo : 0;
        g.a += first / c->p.wo * g.line_stride + first % c->p.wo * g.a_stride;
    } else {
        fill_rows(c, a, first, m, rows);
        g.rows = rows;
    }
    run_block(k, s, group, first, c->w.form.n, &g);
}

/*
 * The same with kernel rows gathered first, per output row or for several whole rows. Where one
 * gather call suffices, the micro-kernel makes it.
 */
static void run_gathered(const work *k, const strip *s, int32_t first, int32_t m) {
    const qs_conv_i8 *c = k->c;
    qk_gather_u8 t = {.a_stride = (ptrdiff_t)c->g.stride_w * c->w.c,
                      .seg_offset = c->p.offset,
                      .segs = c->w.kh,
                      .k = c->w.kw * c->w.c,
                      .out = s->gathered,
                      .out_stride = c->p.gather_stride,
                      .line = c->p.wo,
                      .line_stride = (ptrdiff_t)c->g.stride_h * c->p.strip_stride};
    qk_gemm_u8s8 g = {.m = m, .a = s->gathered, .a_stride = c->p.gather_stride};
    assert((size_t)m * (size_t)c->p.gather_stride + 64 <= c->p.gather_bytes); /* slack after it */
    for (int32_t i = 0, x = first % c->p.wo, y = first / c->p.wo; i < m; i += t.m, x = 0, y++) {
        t.m = c->p.whole_rows ? m : least(c->p.wo - x, m - i);
        t.a = s->a + (ptrdiff_t)y * c->g.stride_h * c->p.strip_stride + x * t.a_stride;
        if (t.m == m && c->w.zero_points != QS_ZP_SAME) {
            g.gather = &t;
            break;
        }
        c->w.t->gather(&t);
        t.out += t.m * t.out_stride;
    }
    g.out_stride = (ptrdiff_t)k->element * qs_conv_i8_out(c);
    g.out = s->out + first * g.out_stride;
    run_block(k, s, 0, first, c->w.form.n, &g);
}

/* Computes m rows of output column `x`: w.pixels pixels wide, or narrower at the right edge. */
static void run_column(const work *k, const strip *s, int32_t group, int32_t x, int32_t first,
                       int32_t m) {
    const qs_conv_i8 *c = k->c;
    int64_t pixel = (int64_t)x * c->w.pixels;
    int32_t pixels = least(c->w.pixels, c->p.wo - pixel);
    ptrdiff_t pixel_bytes = (ptrdiff_t)k->element * qs_conv_i8_out(c);
    qk_gemm_u8s8 g = {.m = m, .a_stride = (ptrdiff_t)c->g.stride_h * c->p.strip_stride};
    g.a = s->a + (int64_t)group * c->w.c + first * g.a_stride +
          pixel * c->g.stride_w * qs_conv_i8_in(c);
    g.out_stride = c->p.wo * pixel_bytes;
    g.out = s->out + first * g.out_stride + pixel * pixel_bytes;
    run_block(k, s, group, first, pixels == c->w.pixels ? c->w.form.n : pixels * c->w.n, &g);
}

/* Passes pixels [*from, end) to `after` once they have QS_CONV_I8_AFTER bytes, or if `last`. */
static void pass_on(const work *k, const strip *s, int32_t *from, int32_t end, bool last) {
    const qs_conv_i8 *c = k->c;
    const int32_t channels = c->w.groups * c->w.n, upto = least(s->upto, channels);
    const size_t own = k->element * (size_t)channels, rows = (size_t)(end - *from);
    const size_t pitch = k->element * (size_t)qs_conv_i8_out(c), first = (size_t)*from;
    if (!c->after_in_place || rows == 0 || (rows * own < QS_CONV_I8_AFTER && !last))
        return;
    const size_t column = k->element * (size_t)s->from;
    uint8_t *y = s->out + first * pitch + column;
    const qs_conv_i8_block block = {.x = y,
                                    .n = k->element * (size_t)(upto - s->from),
                                    .rows = rows,
                                    .x_stride = pitch,
                                    .at = ((size_t)s->first + first) * own + column,
                                    .stride = own,
                                    .y = y,
                                    .y_stride = pitch};
    *from = end;
    if (s->from < upto)
        c->after(c->after_arg, &block);
}

/* Computes a strip by columns of w.pixels pixels; `wide` of them cover an output row. */
static void run_columns(const work *k, const strip *s, int32_t wide) {
    const qs_conv_i8 *c = k->c;
    int32_t done = 0;
    for (int32_t first = 0; first < s->rows; first += c->p.columns) {
        const int32_t m = least(c->p.columns, s->rows - first);
        for (int32_t x = 0; x < wide && !qs_stop_code(k->ctx); x++)
            for (int32_t g = 0; g < c->w.groups && !qs_stopped_at(k->ctx, (size_t)g); g++)
                run_column(k, s, g, x, first, m);
        pass_on(k, s, &done, (first + m) * c->p.wo, first + m == s->rows);
    }
}

static void run_strip(const work *k, const strip *s) {
    const qs_conv_i8 *c = k->c;
    const int32_t all = s->rows * c->p.wo;
    int32_t done = 0;
    if (qs_conv_i8_is_depthwise(&c->w)) {
        run_depthwise(k, s);
        return;
    }
    for (int32_t first = 0, m;
         c->w.choice == QS_CONV_GATHERED && first < all && !qs_stop_code(k->ctx); first += m) {
        m = least(c->p.block, all - first);
        if (c->p.wo >= 48 && !c->p.whole_rows)
            m = least(m, c->p.wo - first % c->p.wo);
        run_gathered(k, s, first, m);
        pass_on(k, s, &done, first + m, first + m == all);
    }
    if (c->w.choice == QS_CONV_GATHERED)
        return;
    const int32_t wide = (c->p.wo + c->w.pixels - 1) / c->w.pixels;
    if (wide == 1 || c->p.wo % c->w.pixels) {
        run_columns(k, s, wide);
        return;
    }
    const int32_t pixels = s->rows * wide;
    for (int32_t first = 0, m; first < pixels && !qs_stop_code(k->ctx); first += m) {
        m = least(c->p.block, pixels - first);
        if (c->w.t->tiles && c->p.block < wide)
            m = least(m, wide - first % wide);
        for (int32_t g = 0; g < c->w.groups && !qs_stopped_at(k->ctx, (size_t)g); g++)
            run_pixels(k, s, g, first, m);
        pass_on(k, s, &done, (first + m) * c->w.pixels, first + m == pixels);
    }
}

/* Sets the ranges of panels and of columns that a column task computes. */
static void take_columns(const qs_conv_i8 *c, int32_t column, strip *s) {
    const int32_t n = c->w.form.n;
    int32_t panels = 0, at = 0;
    for (int32_t i = 0; i < n; i += qk_i8_panel(c->w.t, n - i))
        panels++;
    s->panel = (int32_t)((int64_t)panels * column / c->p.column_tasks);
    s->panels = (int32_t)((int64_t)panels * (column + 1) / c->p.column_tasks);
    for (int32_t i = 0; i < s->panel; i++)
        at += qk_i8_panel(c->w.t, n - at);
    s->from = at;
    for (int32_t i = s->panel; i < s->panels; i++)
        at += qk_i8_panel(c->w.t, n - at);
    s->upto = at;
}

/* Most divisors are 1, and a division takes as long as the sums of some pixels. */
static int64_t quotient(int64_t a, int64_t b) {
    return b == 1 ? a : a / b;
}

static void run_task(void *arg, size_t index) {
    const work *k = arg;
    const qs_conv_i8 *c = k->c;
    uint8_t *scratch = k->scratch + index * c->p.task_bytes;
    int64_t part = quotient((int64_t)index, c->p.column_tasks);
    int64_t end = k->first + quotient(k->count * (part + 1), c->p.row_tasks);
    int64_t image_bytes = (int64_t)c->p.h * c->p.wd * qs_conv_i8_in(c);
    int64_t pixel_bytes = (int64_t)k->element * qs_conv_i8_out(c);
    strip s = {.block = (int32_t *)(void *)(scratch + c->p.strip_bytes),
               .gathered = scratch + c->p.strip_bytes + c->p.block_bytes,
               .results = scratch + c->p.strip_bytes + c->p.block_bytes + c->p.gather_bytes,
               .panels = INT32_MAX,
               .upto = INT32_MAX};
    if (c->p.column_tasks > 1)
        take_columns(c, (int32_t)((int64_t)index % c->p.column_tasks), &s);
    if (c->w.choice == QS_CONV_DEPTHWISE_2D && !k->again)
        memset(scratch, c->x_zp, c->p.strip_bytes);
    for (int64_t i = k->first + quotient(k->count * part, c->p.row_tasks);
         i < end && !qs_stopped(k->ctx); i++) {
        int64_t n = quotient(i, c->p.strips), y = (i - n * c->p.strips) * c->p.strip_rows;
        const uint8_t *image = k->x + n * image_bytes;
        s.rows = least(c->p.strip_rows, c->p.ho - y);
        s.first = (n * c->p.ho + y) * c->p.wo;
        s.out = k->y + s.first * pixel_bytes + (int64_t)k->element * c->g.y_column;
        s.image = image;
        s.zeros = scratch;
        s.top = y * c->g.stride_h - c->g.pad_top;
        if (c->w.choice != QS_CONV_DEPTHWISE_2D)
            s.a = image + y * c->g.stride_h * c->p.strip_stride;
        if (c->p.input == QS_INPUT_BORDERED) {
            uint8_t *to = scratch + c->p.strip_lead;
            copy_strip(c, image, y * c->g.stride_h - c->g.pad_top, qs_conv_i8_rows(c, s.rows), to);
            s.a = to;
        }
        run_strip(k, &s);
    }
}

void qs_conv_i8_run(const qsim_ctx *ctx, const qs_conv_i8 *c, const uint8_t *x, void *y,
                    void *scratch, bool overlaps) {
    bool int32_out = c->post ? !c->post->mult && !c->post->row_scale : !c->o.mult;
    work k = {.ctx = ctx, .c = c, .x = x, .y = y, .scratch = scratch, .element = int32_out ? 4 : 1};
    size_t tasks = (size_t)(c->p.row_tasks * c->p.column_tasks);
    if (c->p.batch <= 0 || c->p.ho <= 0 || c->p.wo <= 0)
        return;
    const int64_t total = c->p.batch * c->p.strips, wave = overlaps ? c->p.wave : total;
    const bool backwards = overlaps && (uintptr_t)y > (uintptr_t)x;
    const int64_t step = backwards ? -wave : wave;
    k.first = (int64_t)qs_wave_first((size_t)total, (size_t)wave, backwards);
    for (; k.first >= 0 && k.first < total && !qs_stopped(ctx); k.first += step, k.again = true) {
        k.count = total - k.first < wave ? total - k.first : wave;
        if (tasks == 1)
            run_task(&k, 0);
        else
            qs_parallel(ctx, tasks, run_task, &k);
    }
}
