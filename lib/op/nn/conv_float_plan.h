/* SPDX-License-Identifier: MIT */
/*
 * How a float convolution is cut into bands, strips and slices: found once a shape
 * (conv_float_plan.c), read by every run (conv_float.c). int8/conv_i8.h is its INT8 twin: geometry,
 * choice, plan.
 */
#ifndef QS_CONV_FLOAT_PLAN_H
#define QS_CONV_FLOAT_PLAN_H

#include "op/nn/conv_taps.h"
#include "op/nn/finish.h"

/* How padding is handled, which decides on the kernels. */
typedef enum qs_conv_choice {
    QS_CONV_WHOLE,    /* there is none */
    QS_CONV_BORDERED, /* bands of the image are copied with zeros around */
    QS_CONV_STRIPS,   /* left out: pixels that have the same taps inside the image go together */
    QS_CONV_TAPS,     /* left out: tap by tap (conv_taps.h) */
    QS_CONV_CUT       /* left out by depthwise_3x3 itself, or there is none */
} qs_conv_choice;

/* Columns of the output that have the same columns of the kernel inside the image. */
typedef struct qs_conv_strip {
    size_t ox, count;
    qs_tap_span inside;
    size_t x; /* floats from a line's begin to their first tap */
    /* Tables of products; a depthwise convolution needs none. */
    size_t per_row, k;    /* segments of a kernel row, and their length */
    ptrdiff_t *row, *out; /* of a band's pixels; out is NULL where they follow each other */
    ptrdiff_t *seg;       /* per_row for every kernel row */
    size_t *at;           /* the segments' rows of the weights */
} qs_conv_strip;

typedef struct qs_conv_plan {
    const qk_f32 *kernels;
    qs_conv_form form;
    const qs_conv_weights *weights; /* NULL: packed into scratch by every run */
    qs_geometry g;
    qs_conv_choice choice;
    size_t stretch; /* of depthwise_3x3 */
    bool has_bias;
    size_t line;            /* floats from one row of the (bordered) image to the next */
    size_t band, bands;     /* output rows of a band, bands of an image */
    size_t splits, columns; /* a group's columns are cut into blocks of `columns` */
    qs_conv_strip *strips;
    size_t strip_count;
    qs_taps *taps;               /* QS_CONV_TAPS */
    qs_tap_span *inside;         /* QS_CONV_STRIPS: of every output row */
    size_t height;               /* rows from the first to the last tap of a window */
    size_t slices, slice_floats; /* scratch of a slice */
    bool by_columns;             /* a slice is a block of columns, of all bands */
    size_t wave; /* items that are done before any of the next, if the output is over the input */
    size_t stride, column; /* from pixel to pixel of the result, and where in one it begins */
    float lo, hi;
    qs_finish end; /* of each band's results */
} qs_conv_plan;

/* Bands of nearly as many rows: halves of them are halves of the rows. */
static inline size_t qs_conv_band(const qs_conv_plan *p, size_t band) {
    return p->g.oh * band / p->bands;
}

/* For a step whose params are a qs_conv_plan. */
void qs_conv_run(const qs_step *s, const qs_frame *f);

#endif
