/* SPDX-License-Identifier: MIT */
/* Random integer convolutions for check_conv_i8.c, with their weights in any order of the axes. */
#ifndef DRAW_CONV_I8_H
#define DRAW_CONV_I8_H

#include "checkkernel.h"

#include "op/int8/conv_i8.h"

typedef struct ck_image {
    qs_conv_i8 conv; /* geometry and weights' shape */
    const uint8_t *x;
    qk_source_i8 source; /* of the first group, without zero points */
    int64_t group_stride;
    int32_t *bias, *w_zp; /* per column */
    float *mult, *add;
    size_t y_bytes;
    int32_t threads;
    bool int32_out;
    bool floats;           /* with int32_out */
    bool clamp;            /* products of sums and multipliers leave int32 */
    bool handed, in_place; /* a callback gets results block by block; it works in place */
    /* The general epilogue: always with QS_ZP_COLUMN, sometimes with other layouts. */
    bool post, wide;
    int32_t *row_zp; /* of each output pixel, or NULL: the zero point of x */
    float *row_scale, *col_scale;
    float y_scale;
    char text[200];
} ck_image;

/* One size of an output, from that of the input, both pads, taps, stride and dilation. */
int32_t ck_out_size(int32_t in, int32_t pads, int32_t k, int32_t stride, int32_t dilation);

/*
 * Windows of any shape, those that kernels are made for, and others of as many taps; images smaller
 * than windows and padding wider than them; channels, groups, epilogues and threads.
 */
ck_image ck_draw_image(ck_state *s);
/*
 * All windows of a list, on images that they just fill: many weights and few pixels, by channels
 * that packing takes together; or a row of pixels of few channels, which ends where the image does.
 */
ck_image ck_draw_packed(ck_state *s);
/* Depthwise windows over rows several times as wide. */
ck_image ck_draw_wide(ck_state *s);
/* More weights than caches hold, which are prefetched during products, and few pixels. */
ck_image ck_draw_far(ck_state *s);
/* Completes an image whose sizes and kind of output the caller has chosen. */
void ck_fill_image(ck_state *s, ck_image *p);

/* The weights of one column, all channels of a group: those of `source` from there on. */
static inline qk_source_i8 ck_column(const ck_image *p, int32_t column) {
    qk_source_i8 w = p->source;
    w.w += column / w.n * p->group_stride + column % w.n * w.sn;
    return w;
}

static inline int32_t ck_weight(const qk_source_i8 *w, int32_t y, int32_t x, int32_t c) {
    return (int8_t)((uint8_t)w->w[y * w->sy + x * w->sx + c * w->sc] ^ w->flip);
}

#endif
