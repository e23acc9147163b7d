/* SPDX-License-Identifier: MIT */
#include "draw_conv_i8.h"

#include <stdio.h>
#include <stdlib.h>

/* The most multiplications of a random convolution, which a plain loop computes, too. */
#define MOST_MACS 1200000

int32_t ck_out_size(int32_t in, int32_t pads, int32_t k, int32_t stride, int32_t dilation) {
    return (in + pads - (k - 1) * dilation - 1) / stride + 1;
}

/* ---- values ---- */

/* Strides of weights [n, kh, kw, c] of a group: as ONNX has them, or any order. */
static void draw_order(ck_state *s, ck_image *p) {
    qk_source_i8 *w = &p->source;
    const int64_t counts[4] = {w->n, w->kh, w->kw, w->c};
    int32_t order[4] = {2, 1, 3, 0}; /* the last axis, that of rows, channels, outputs */
    int64_t strides[4], step = 1;
    for (int32_t i = 0, any = ck_random(s) % 4 == 0; i < 4 && any; i++) {
        const int32_t k = ck_between(s, i, 3), moved = order[i];
        order[i] = order[k];
        order[k] = moved;
    }
    for (int32_t i = 0; i < 4; i++) {
        strides[order[i]] = step;
        step *= counts[order[i]];
    }
    w->sn = strides[0];
    w->sy = strides[1];
    w->sx = strides[2];
    w->sc = strides[3];
    w->flip = ck_between(s, 0, 2) ? 0 : 0x80;
    p->group_stride = step;
}

/* The largest value of a column before rounding. */
static float reach(const ck_image *p, int32_t column) {
    const qk_source_i8 w = ck_column(p, column);
    int64_t sum = llabs((int64_t)p->bias[column]);
    for (int32_t y = 0; y < w.kh; y++)
        for (int32_t x = 0; x < w.kw; x++)
            for (int32_t c = 0; c < w.c; c++)
                sum += 255 * abs(ck_weight(&w, y, x, c) - p->w_zp[column]);
    return (float)sum * p->mult[column];
}

/* Parameters per output pixel, as rows of a matrix product have them. */
static void draw_rows(ck_state *s, ck_image *p, size_t columns) {
    const qs_conv_i8_geometry *g = &p->conv.g;
    const size_t pixels = (size_t)g->batch * (size_t)g->ho * (size_t)g->wo;
    p->row_zp = ck_input(s, 4 * pixels);
    for (size_t i = 0; i < pixels; i++)
        p->row_zp[i] = ck_between(s, 0, 255);
    p->row_scale = ck_floats(s, pixels, 0.01f, 0.2f);
    p->col_scale = ck_floats(s, columns, 0.01f, 0.2f);
    p->y_scale = ck_real(s, 1.0f, 50.0f);
}

/* Zero points of weights: one for all, any, or some of them, small or large. */
static int32_t draw_zero_point(ck_state *s, const qs_conv_i8 *c) {
    const int32_t any = ck_between(s, c->w.zero_points == QS_ZP_COLUMN ? -128 : -127, 127);
    return c->w.zero_points == QS_ZP_SAME     ? c->w_zp
           : c->w.zero_points == QS_ZP_COLUMN ? any
           : c->w.zero_points == QS_ZP_SPLIT  ? ck_random(s) % 8 ? 0 : any
                                              : 0;
}

void ck_fill_image(ck_state *s, ck_image *p) {
    qs_conv_i8 *c = &p->conv;
    const size_t columns = (size_t)c->w.groups * (size_t)c->w.n;
    const size_t pixels = (size_t)c->g.batch * (size_t)c->g.ho * (size_t)c->g.wo;
    p->x = ck_input(s, (size_t)c->g.batch * (size_t)c->g.h * (size_t)c->g.wd * (size_t)c->w.groups *
                           (size_t)c->w.c);
    p->source = (qk_source_i8){.n = c->w.n, .kh = c->w.kh, .kw = c->w.kw, .c = c->w.c};
    draw_order(s, p);
    p->source.w = ck_input(s, (size_t)c->w.groups * (size_t)p->group_stride);
    p->bias = ck_input(s, 4 * columns);
    p->w_zp = ck_input(s, 4 * columns);
    for (size_t i = 0; i < columns; i++) {
        p->bias[i] = p->wide && ck_random(s) % 4 == 0 ? p->bias[i] : ck_between(s, -3000, 3000);
        p->w_zp[i] = draw_zero_point(s, c);
    }
    p->mult = p->clamp ? ck_floats(s, columns, 1e-3f, 1e6f) : ck_floats(s, columns, 1e-4f, 2e-3f);
    p->add = ck_floats(s, columns, -1.0f, 1.0f);
    c->o.fits16 = !p->clamp;
    for (size_t i = 0; i < columns && c->o.fits16; i++)
        c->o.fits16 = reach(p, (int32_t)i) < QK_I8_FITS16;
    if (p->post && ck_random(s) % 3 == 0)
        draw_rows(s, p, columns);
    p->y_bytes = pixels * (c->g.y_channels ? (size_t)c->g.y_channels : columns);
    p->y_bytes *= p->int32_out ? 4 : 1;
    c->w.contiguous = c->g.dilation_w == 1;
    c->w.stride_h = c->g.stride_h;
    c->w.stride_w = c->g.stride_w;
    c->w.rows = ck_between(s, 0, 1) ? (int64_t)pixels : 0;
}

/* ---- kinds of outputs ---- */

static ck_image draw_outputs(ck_state *s) {
    ck_image p = {.int32_out = ck_random(s) % 3 == 0, .threads = 1};
    p.floats = p.int32_out && ck_random(s) % 2;
    p.clamp = !p.int32_out && ck_random(s) % 8 == 0;
    p.handed = (!p.int32_out || p.floats) && ck_random(s) % 3 == 0;
    if (ck_random(s) % 3 == 0)
        p.threads = ck_between(s, 2, 5);
    return p;
}

/* The epilogue that knows all cases: of weights with any zero points; of products without them. */
static void draw_post(ck_state *s, ck_image *p) {
    qs_conv_i8 *c = &p->conv;
    if (p->floats || ck_random(s) % 6)
        return;
    p->post = true;
    p->wide = !p->int32_out && ck_between(s, 0, 1);
    if (c->w.groups > 1 || c->w.kh > 1 || c->w.kw > 1 || ck_between(s, 0, 2))
        c->w.zero_points = QS_ZP_COLUMN;
}

/* Draws everything but the sizes. */
static ck_image finish(ck_state *s, ck_image p) {
    qs_conv_i8 *c = &p.conv;
    const bool depthwise = c->w.groups > 1 && c->w.n * c->w.c == 1;
    draw_post(s, &p);
    if (!p.post && ck_random(s) % 4 == 0) { /* one zero point for all weights */
        c->w.zero_points = QS_ZP_SAME;
        c->w_zp = ck_between(s, -128, 127);
        c->w.n = depthwise ? ck_between(s, 1, 3) : c->w.n;
    } else if (!p.post && ck_random(s) % (depthwise ? 2 : 6) == 0) {
        c->w.zero_points = QS_ZP_SPLIT;
    }
    c->x_zp = (uint8_t)ck_random(s);
    c->o = (qk_out_i8){.zp = ck_random(s) % 3 ? ck_between(s, 0, 255) : 0, .hi = 255};
    c->o.clamp = p.clamp && !p.post;
    if (ck_random(s) % 2) {
        c->o.lo = ck_between(s, 0, 50);
        c->o.hi = ck_between(s, c->o.lo, 255);
    }
    const bool elsewhere = p.handed && !p.floats; /* not in place */
    const bool product =
        !depthwise || c->w.zero_points == QS_ZP_SAME || c->w.zero_points == QS_ZP_COLUMN;
    c->w.strided_out = (product || elsewhere) && ck_random(s) % 3 == 0;
    if (c->w.strided_out) { /* channels of a larger tensor, whose other channels stay unchanged */
        c->g.y_column = ck_between(s, 0, 70);
        c->g.y_channels = c->g.y_column + c->w.groups * c->w.n + ck_between(s, 0, 70);
    }
    p.in_place = p.handed && (p.floats || (!c->w.strided_out && ck_random(s) % 2));
    ck_fill_image(s, &p);
    c->o.fits16 = c->o.fits16 && ck_random(s) % 4 > 0;
    snprintf(p.text, sizeof(p.text),
             "%lldx%dx%d groups %d c %d n %d kernel %dx%d strides %d %d dilations %d %d pads %d %d "
             "to %dx%d zp %d%s%s%s",
             (long long)c->g.batch, c->g.h, c->g.wd, c->w.groups, c->w.c, c->w.n, c->w.kh, c->w.kw,
             c->g.stride_h, c->g.stride_w, c->g.dilation_h, c->g.dilation_w, c->g.pad_top,
             c->g.pad_left, c->g.ho, c->g.wo, c->w.zero_points, p.post ? " post" : "",
             p.clamp ? " clamp" : "", p.int32_out ? p.floats ? " floats" : " int32" : "");
    return p;
}

/* ---- sizes ---- */

/* Windows that kernels, packing and layouts are made for, and others of as many taps or bytes. */
static const uint8_t windows[][2] = {{1, 1},  {1, 9},  {9, 1},  {5, 5},  {1, 25}, {25, 1}, {7, 7},
                                     {2, 8},  {8, 2},  {4, 4},  {16, 1}, {1, 16}, {8, 8},  {4, 16},
                                     {16, 4}, {5, 13}, {13, 5}, {1, 70}, {70, 1}, {3, 17}, {17, 3},
                                     {2, 2},  {1, 3},  {3, 1},  {3, 2},  {2, 3},  {3, 5},  {5, 3}};

static void draw_listed(ck_state *s, qs_conv_i8 *c) {
    const uint8_t *w = windows[ck_random(s) % QS_COUNT(windows)];
    c->w.kh = w[0];
    c->w.kw = w[1];
}

static void draw_kernel(ck_state *s, qs_conv_i8 *c) {
    const uint32_t kind = ck_random(s) % 4;
    draw_listed(s, c);
    if (kind != 1) {
        c->w.kh = kind == 0 ? 3 : ck_between(s, 1, 8);
        c->w.kw = kind == 0 ? 3 : ck_between(s, 1, 8);
    }
}

/* Padding within the window as a rule, sometimes of as many taps as there are, or more. */
static int32_t draw_pad(ck_state *s, int32_t k, int32_t dilation) {
    const uint32_t kind = ck_random(s) % 8;
    return kind == 0   ? ck_between(s, 0, 2 * k * dilation + 8)
           : kind == 1 ? ck_between(s, 0, (k - 1) * dilation)
                       : ck_between(s, 0, k - 1);
}

/* Draws one axis: in and out sizes, its padding before; half of the images hold whole windows. */
static void draw_axis(ck_state *s, int32_t k, int32_t stride, int32_t dilation, int32_t most,
                      int32_t *in, int32_t *out, int32_t *pad) {
    const int32_t extent = (k - 1) * dilation + 1, after = draw_pad(s, k, dilation);
    *pad = draw_pad(s, k, dilation);
    *in = ck_random(s) % 8 ? ck_between(s, 1, most) : 1;
    *in += ck_random(s) % 2 ? extent - 1 : 0;
    if (*in + *pad + after < extent)
        *in = extent - *pad - after;
    *out = ck_out_size(*in, *pad + after, k, stride, dilation);
}

/* Equal strides as a rule; others along each axis, and longer ones than layouts are made for. */
static void draw_strides(ck_state *s, qs_conv_i8 *c) {
    const uint32_t kind = ck_random(s) % 12;
    const int32_t most = kind == 0 ? 70 : kind == 1 ? 7 : 2;
    c->g.stride_h = c->g.stride_w = ck_between(s, 1, most);
    if (kind < 4)
        c->g.stride_h = ck_between(s, 1, most);
}

/* Draws the window and, with at most so many rows and columns beside it, the image. */
static void draw_window(ck_state *s, qs_conv_i8 *c, int32_t most_h, int32_t most_w) {
    const bool plain = ck_random(s) % 2;
    draw_kernel(s, c);
    draw_strides(s, c);
    c->g.batch = ck_between(s, 1, 2);
    c->g.dilation_h = plain ? 1 : ck_between(s, 1, 2);
    c->g.dilation_w = plain ? 1 : ck_between(s, 1, ck_random(s) % 4 ? 2 : 20);
    draw_axis(s, c->w.kh, c->g.stride_h, c->g.dilation_h, most_h, &c->g.h, &c->g.ho, &c->g.pad_top);
    draw_axis(s, c->w.kw, c->g.stride_w, c->g.dilation_w, most_w, &c->g.wd, &c->g.wo,
              &c->g.pad_left);
}

/* Draws groups of channels, a few or many. */
static void draw_channels(ck_state *s, qs_conv_i8 *c) {
    const bool few = ck_random(s) % 2; /* several pixels make a row of the product */
    c->w.groups = c->w.n = c->w.c = 1;
    switch (ck_random(s) % 8) {
    case 0: c->w.groups = few ? 32 : 16; break; /* several pixels share a vector */
    case 1:
    case 2:
    case 3: c->w.groups = ck_between(s, 2, few ? 200 : 40); break;
    case 4: /* neither of one channel nor of all */
        c->w.groups = ck_between(s, 2, few ? 4 : 9);
        c->w.n = ck_between(s, 1, few ? 40 : 5);
        c->w.c = few ? ck_between(s, 1, 40) : ck_between(s, 1, 5);
        break;
    case 5: /* multiples of what packing takes at a time, and others */
        c->w.n = ck_between(s, 1, 40);
        c->w.c = ck_between(s, 0, 1) ? 4 * ck_between(s, 1, 12) : ck_between(s, 1, 200);
        break;
    default: c->w.n = ck_between(s, 1, few ? 12 : 90); c->w.c = ck_between(s, 1, few ? 4 : 20);
    }
}

/* Computes fewer rows and columns, then fewer channels, of images that would take long. */
static void limit(qs_conv_i8 *c) {
    while (qs_conv_i8_macs(c) > MOST_MACS) {
        if (c->g.batch > 1)
            c->g.batch = 1;
        else if (c->g.ho > 2 || c->g.wo > 2)
            *(c->g.ho > c->g.wo ? &c->g.ho : &c->g.wo) /= 2;
        else
            *(c->w.n > 4 ? &c->w.n : &c->w.c) /= 2;
    }
}

ck_image ck_draw_image(ck_state *s) {
    ck_image p = draw_outputs(s);
    qs_conv_i8 *c = &p.conv;
    const bool first = ck_random(s) % 8 == 0; /* a first layer, with im2row */
    draw_window(s, c, 20, first ? 150 : 20);
    draw_channels(s, c);
    if (first && c->w.groups == 1) {
        c->w.n = ck_between(s, 1, 70);
        c->w.c = ck_between(s, 1, 4);
    }
    limit(c);
    return finish(s, p);
}

ck_image ck_draw_packed(ck_state *s) {
    ck_image p = draw_outputs(s);
    qs_conv_i8 *c = &p.conv;
    const bool line = ck_random(s) % 4 == 0; /* one row of few channels, several pixels at a time */
    const int32_t down = line || ck_between(s, 0, 1) ? 0 : ck_between(s, 0, 2);
    const int32_t across = line ? ck_between(s, 0, 20) : down;
    draw_listed(s, c);
    c->g = (qs_conv_i8_geometry){.batch = 1, .stride_h = 1, .stride_w = 1, .dilation_h = 1};
    c->g.dilation_w = line || ck_random(s) % 4 ? 1 : 2;
    c->g.pad_left = line || ck_between(s, 0, 3) ? 0 : c->w.kw / 2;
    c->g.ho = 1 + down;
    c->g.wo = 1 + across;
    c->g.h = c->w.kh + down;
    c->g.wd = (c->w.kw - 1) * c->g.dilation_w + 1 + across - c->g.pad_left;
    c->w.groups = line || ck_random(s) % 4 ? 1 : ck_between(s, 2, 3);
    c->w.n = ck_between(s, 1, !line && ck_random(s) % 4 ? 150 : 12);
    c->w.c = ck_between(s, 0, 2) ? 4 * ck_between(s, 1, 12) : ck_between(s, 1, 70);
    c->w.c = line ? ck_between(s, 1, 4) : c->w.c;
    limit(c);
    return finish(s, p);
}

/*
 * Windows of 3 to 8 of single channels: vectors read for one pixel serve the next ones, and their
 * buffer is reused.
 */
ck_image ck_draw_wide(ck_state *s) {
    static const int32_t sizes[] = {3, 5, 7, 3, 5, 7, 4, 6, 8};
    const int32_t k = sizes[ck_random(s) % QS_COUNT(sizes)];
    ck_image p = draw_outputs(s);
    qs_conv_i8 *c = &p.conv;
    c->g.batch = 1;
    c->w.kh = k;
    c->w.kw = ck_random(s) % 4 ? k : ck_between(s, 1, 8);
    c->g.stride_h = c->g.stride_w = ck_random(s) % 3 ? 1 : 2;
    if (ck_random(s) % 4 == 0)
        c->g.stride_w = ck_between(s, 1, 3);
    c->g.dilation_h = c->g.dilation_w = 1;
    c->g.pad_top = c->g.pad_left = ck_random(s) % 2 ? k / 2 : 0;
    c->g.h = ck_between(s, k, 2 * k + 3);
    c->g.wd = ck_between(s, 3 * k, 8 * k);
    c->g.ho = ck_out_size(c->g.h, 2 * c->g.pad_top, c->w.kh, c->g.stride_h, 1);
    c->g.wo = ck_out_size(c->g.wd, 2 * c->g.pad_left, c->w.kw, c->g.stride_w, 1);
    c->w.groups = ck_between(s, 8, 100);
    c->w.n = c->w.c = 1;
    limit(c);
    return finish(s, p);
}

ck_image ck_draw_far(ck_state *s) {
    ck_image p = draw_outputs(s);
    qs_conv_i8 *c = &p.conv;
    draw_window(s, c, 4, 4);
    c->w.groups = 1;
    c->w.c = ck_between(s, 20, 40);
    c->w.n = (1 << 19) / (c->w.c * c->w.kh * c->w.kw) + 1;
    if (c->w.n > 400) { /* one tap, or a few */
        c->w.n = ck_between(s, 200, 400);
        c->w.c = (1 << 19) / (c->w.n * c->w.kh * c->w.kw) + 1;
    }
    return finish(s, p);
}
