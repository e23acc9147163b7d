/* SPDX-License-Identifier: MIT */
/*
 * Float convolution tap by tap, where the weights are far larger than the image: each tap of the
 * kernel meets the pixels whose windows have it inside the image, so that weights pass through the
 * caches once, whatever pixels at the border lack. Sums stand in the output meanwhile.
 */
#ifndef QS_CONV_TAPS_H
#define QS_CONV_TAPS_H

#include "op/nn/conv_float.h"
#include "op/nn/window.h"

/* Taps [from, to) of a kernel's row or column that lie inside the image. */
typedef struct qs_tap_span {
    size_t from, to;
} qs_tap_span;

/* Which taps of a window that begins `before` in front of the image lie in its `size` elements. */
qs_tap_span qs_taps_inside(size_t at, size_t before, size_t taps, size_t dilation, size_t size);

/* Output columns [ox, ox + count) that have a column of the kernel inside. */
typedef struct qs_tap_column {
    size_t ox, count;
    ptrdiff_t *row, *out; /* of a band's pixels; out is NULL where they follow each other */
} qs_tap_column;

typedef struct qs_taps {
    const qk_f32 *kernels;
    const qs_conv_form *form; /* of one group */
    const qs_geometry *g;
    size_t line, stride;    /* floats of a row of the image, of a pixel of the output */
    float lo, hi;           /* of the clamp */
    qs_tap_span *inside;    /* of every output row */
    qs_tap_column *columns; /* of every column of the kernel */
} qs_taps;

/* Whether a convolution gains by it whose padding is left out, as its weights are finite. */
bool qs_taps_suit(const qk_f32 *k, const qs_conv_form *f, const qs_geometry *g);

/* Makes the tables, for at most `lines` rows of output at a time; false: out of memory. */
bool qs_taps_make(qs_arena *arena, qs_taps *t, size_t lines);

/*
 * Output rows [oy, end) of an image and columns [first, first + columns), whole panels. y: the
 * first pixel of row oy. It must not overlap the image.
 */
void qs_taps_run(const qs_taps *t, const qs_conv_weights *w, const float *image, size_t oy,
                 size_t end, size_t first, size_t columns, float *y);

#endif
