/* SPDX-License-Identifier: MIT */
/*
 * The plan of a float convolution, its bands, strips and slices: made once per shape
 * (conv_float_plan.c), read by every run (conv_float.c). int8/conv_i8.h is the INT8 counterpart.
 */
#ifndef QS_CONV_FLOAT_PLAN_H
#define QS_CONV_FLOAT_PLAN_H

#include "op/nn/conv_taps.h"
#include "op/nn/finish.h"

/* How padding is handled, which decides on the kernels. */
typedef enum qs_conv_choice {
    QS_CONV_WHOLE,    /* no padding */
    QS_CONV_BORDERED, /* bands of the image are copied with zeros around them */
    QS_CONV_STRIPS, /* left out: pixels with the same taps inside the image are computed together */
    QS_CONV_TAPS,   /* left out: tap by tap (conv_taps.h) */
    QS_CONV_CUT     /* left out by depthwise_3x3 itself, or no padding */
} qs_conv_choice;

/* Output columns whose windows have the same kernel columns inside the image. */
typedef struct qs_conv_strip {
    size_t ox, count;
    qs_tap_span inside;
    size_t x; /* floats from the start of a row to their first tap */
    /* Tables for matrix products; depthwise convolutions need none. */
    size_t per_row, k;    /* segments of a kernel row, and their length */
    ptrdiff_t *row, *out; /* offsets of a band's pixels; out NULL: contiguous */
    ptrdiff_t *seg;       /* offsets of segments, per_row for each kernel row */
    size_t *at;           /* row of the weights where each segment begins */
} qs_conv_strip;

typedef struct qs_conv_plan {
    const qk_f32 *kernels;
    qs_conv_form form;
    const qs_conv_weights *weights; /* NULL: packed into scratch memory in every run */
    qs_geometry g;
    qs_conv_choice choice;
    size_t stretch; /* qk_depthwise_f32's */
    bool has_bias;
    size_t line;            /* floats between rows of the (padded) image */
    size_t band, bands;     /* output rows of a band, bands of an image */
    size_t splits, columns; /* a group's columns are cut into blocks of `columns` */
    qs_conv_strip *strips;
    size_t strip_count;
    qs_taps *taps;               /* QS_CONV_TAPS */
    qs_tap_span *inside;         /* QS_CONV_STRIPS: kernel rows inside the image, per output row */
    size_t height;               /* rows from the first to the last tap of a window */
    size_t slices, slice_floats; /* slice_floats: scratch memory of a slice */
    size_t bordered_floats;      /* of that, the padded image; a band's results follow */
    bool by_columns;             /* a slice is a block of columns, of all bands */
    size_t wave;           /* items computed before any later one, if input and output overlap */
    size_t stride, column; /* floats between pixels of y; its first channel that is written */
    float lo, hi;
    qs_finish end; /* nodes fused after it, run on each band */
} qs_conv_plan;

/* First output row of a band. Bands have nearly the same number of rows. */
static inline size_t qs_conv_band(const qs_conv_plan *p, size_t band) {
    return p->g.oh * band / p->bands;
}

/* Runs a step whose params are a qs_conv_plan. */
void qs_conv_run(const qs_step *s, const qs_frame *f);

#endif
