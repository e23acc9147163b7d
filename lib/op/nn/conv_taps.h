/* SPDX-License-Identifier: MIT */
/*
 * Float convolution tap by tap, for weights far larger than the image: each tap is multiplied by
 * all pixels whose windows have it inside the image, so that weights are read once. The output
 * holds the sums meanwhile.
 */
#ifndef QS_CONV_TAPS_H
#define QS_CONV_TAPS_H

#include "op/nn/conv_float.h"
#include "op/nn/window.h"

/* Taps [from, to) of a kernel's row or column that lie inside the image. */
typedef struct qs_tap_span {
    size_t from, to;
} qs_tap_span;

/*
 * Taps inside an image of `size` elements, for the window that begins at `at` elements from the
 * start of the padding, which has `before` elements.
 */
qs_tap_span qs_taps_inside(size_t at, size_t before, size_t taps, size_t dilation, size_t size);

/* Output columns [ox, ox + count) whose windows have a given kernel column inside the image. */
typedef struct qs_tap_column {
    size_t ox, count;
    ptrdiff_t *row, *out; /* offsets of a band's pixels; out NULL: contiguous */
} qs_tap_column;

typedef struct qs_taps {
    const qk_f32 *kernels;
    const qs_conv_form *form; /* of a single group */
    const qs_geometry *g;
    size_t line, stride;    /* floats of a row of the image, of a pixel of the output */
    float lo, hi;           /* of the clamp */
    qs_tap_span *inside;    /* kernel rows inside the image, per output row */
    qs_tap_column *columns; /* one per kernel column */
} qs_taps;

/* Whether a convolution that leaves padding out is faster tap by tap. */
bool qs_taps_suit(const qk_f32 *k, const qs_conv_form *f, const qs_geometry *g);

/* Makes the tables, for at most `lines` rows of output at a time; false: out of memory. */
bool qs_taps_make(qs_arena *arena, qs_taps *t, size_t lines);

/* A part of an image's output. */
typedef struct qs_taps_part {
    const float *image;
    size_t oy, end;        /* output rows */
    size_t first, columns; /* columns [first, first + columns), whole panels */
    float *y;              /* the first pixel of row oy; must not overlap the image */
} qs_taps_part;

void qs_taps_run(const qsim_ctx *ctx, const qs_taps *t, const qs_conv_weights *w,
                 const qs_taps_part *part);

#endif
