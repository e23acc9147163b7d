/* SPDX-License-Identifier: MIT */
/*
 * Integer convolution and matrix product of whole tensors, on top of the micro-kernels: borders,
 * strips, groups, threads. x is u8 and channels last, weights s8, y u8 or int32. A matrix product
 * is a 1 x 1 convolution over its rows.
 */
#ifndef QK_I8_CONV_H
#define QK_I8_CONV_H

#include "kernel/i8.h"

/* ---- weights ---- */

typedef struct qk_weights_i8 {
    /* given */
    int32_t groups, n, kh, kw, c; /* n columns and c channels per group */
    bool contiguous;              /* no dilation along the width: a kernel row is one segment */
    int32_t stride_h, stride_w;   /* 0: no convolution */
    bool sum_column;              /* some weight has a zero point: sums of x are needed */
    bool row_sums;                /* all have the same: sums of x start those of a row */
    bool split;                   /* depthwise with zero points: two sets of taps */
    bool plain;  /* sums become bytes, without a clamp or qk_post_i8: all that window kernels do */
    bool floats; /* sums become floats, nothing is dilated */
    bool apart;  /* pixels of the result do not follow each other: see y_channels */
    /* found by qk_weights_i8_layout */
    bool depthwise, merged;
    bool whole;       /* a pixel's kernel rows are gathered into one segment */
    bool window;      /* depthwise, packed for the kernel that works on the image itself */
    int32_t pixels;   /* neighbouring outputs that make one row of the product */
    qk_form_i8 form;  /* of one group, columns of all pixels; not for depthwise */
    int32_t channels; /* depthwise: of packed weights, a multiple of the groups */
    int32_t taps;     /* depthwise: of packed weights */
    int32_t positions;
    size_t bytes;
} qk_weights_i8;

/* false: sizes overflow */
bool qk_weights_i8_layout(const qk_i8 *t, qk_weights_i8 *w);

/* `s` is the first group's source, the next lies group_stride elements on. colsum: groups * n,
 * or NULL. */
void qk_weights_i8_pack(const qk_i8 *t, const qk_weights_i8 *w, const qk_source_i8 *s,
                        int64_t group_stride, int8_t *b, int32_t *colsum);

/* groups * n elements of 4 bytes into `positions` of them. */
void qk_weights_i8_spread(const qk_i8 *t, const qk_weights_i8 *w, const void *in, void *out);

/* ---- the general epilogue ---- */

/*
 * What the micro-kernels' own epilogue cannot do: weight zero points, zero points or scales per row
 * of a matrix product, and biases with which a sum leaves int32. Arrays in natural order; sums
 * begin with the plain bias, or with 0 where wide_bias is set.
 *
 *     acc - zp[r] * colsum[n] - w_zp[n] * (rowsum - k * zp[r]) + wide_bias[n]
 */
typedef struct qk_post_i8 {
    const int32_t *colsum;    /* groups * n */
    const int32_t *w_zp;      /* groups * n, or NULL: 0 */
    const int32_t *row_zp;    /* per row, or NULL: zp */
    const int32_t *wide_bias; /* groups * n, added in 64 bits, or NULL */
    int32_t zp, k;            /* k: products per sum */
    const float *mult;        /* groups * n; NULL: int32, or by the three below */
    const float *row_scale, *col_scale;
    float y_scale; /* mult = (row_scale[r] * col_scale[n]) / y_scale */
} qk_post_i8;

/* ---- convolution ---- */

/* A block of results on its way to y, or of sums in it: rows of n bytes. */
typedef struct qk_block {
    const uint8_t *x; /* where they are, x_stride bytes apart */
    size_t n, rows, x_stride;
    size_t at, stride; /* where they would be if y had no other channels than these */
    uint8_t *y;        /* where they belong, y_stride bytes apart */
    size_t y_stride;
} qk_block;

/* Pixels of a block whose addresses or sums of inputs are needed, at most. */
#define QK_I8_BLOCK 128
/* Bytes of results that `after` takes at a time, about. */
#define QK_I8_AFTER (16 << 10)

typedef struct qk_conv_i8 {
    /* given */
    const qk_i8 *t;
    qk_weights_i8 w;
    const int8_t *b;
    int64_t batch;
    int32_t h, wd, ho, wo; /* input and output; pads at the far ends follow from them */
    int32_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    uint8_t x_zp;           /* what padding holds */
    int32_t w_zp;           /* with row_sums: what is subtracted from every weight */
    qk_out_i8 o;            /* bias and mult in positions; mult NULL: y is int32 */
    const qk_post_i8 *post; /* or NULL */
    /* Of y, whose channels y_column and following these are; 0: it has no others. With w.apart,
     * and for depthwise with `after`. */
    int32_t y_channels, y_column;
    /* Or NULL: takes every block of results while it is in the cache, and writes y, which with
     * after_in_place (of depthwise and of bytes without y_channels) is where the results are. */
    void (*after)(const void *arg, const qk_block *block);
    const void *after_arg;
    bool after_in_place;
    /* found by qk_conv_i8_plan */
    const int32_t *offset; /* of segments or taps */
    bool bordered, flat;
    int32_t strip_rows, strips, row_tasks, column_tasks;
    bool whole_rows;    /* gathered pixels make whole rows of the image */
    int32_t block;      /* pixels per micro-kernel call */
    int32_t columns;    /* the same where they lie one below the other */
    int32_t block_rows; /* of a depthwise convolution's output, for `after` */
    int32_t strip_stride, strip_lead, gather_stride;
    /*
     * y may lie over x if it begins so many bytes before or after it: strips are then done in
     * waves of so many.
     */
    size_t before, behind;
    int64_t wave;
    size_t strip_bytes, block_bytes, gather_bytes, task_bytes; /* of scratch */
} qk_conv_i8;

/* Rows of input that `rows` rows of output look at, border included. */
static inline int64_t qk_conv_i8_rows(const qk_conv_i8 *c, int64_t rows) {
    return (rows - 1) * c->stride_h + (int64_t)(c->w.kh - 1) * c->dilation_h + 1;
}

/* Channels of x and of y. */
static inline int64_t qk_conv_i8_in(const qk_conv_i8 *c) {
    return (int64_t)c->w.groups * c->w.c;
}
static inline ptrdiff_t qk_conv_i8_out(const qk_conv_i8 *c) {
    return c->y_channels ? c->y_channels : (ptrdiff_t)c->w.groups * c->w.n;
}

/* Room for `offset`. */
static inline size_t qk_conv_i8_offsets(const qk_weights_i8 *w) {
    return 2 * ((size_t)w->kh + 1) * (size_t)w->kw + 8;
}

/* Scratch bytes in *scratch; false: a size overflows. `offset` lives as long as the plan. */
bool qk_conv_i8_plan(qk_conv_i8 *c, int32_t threads, int32_t *offset, size_t *scratch);

/* slides: y lies over x. */
void qk_conv_i8_run(const qsim_ctx *ctx, const qk_conv_i8 *c, const uint8_t *x, void *y,
                    void *scratch, bool slides);

int64_t qk_conv_i8_macs(const qk_conv_i8 *c);
/* What one thread takes for them, at best (base/slices.h). */
double qk_conv_i8_ns(const qk_conv_i8 *c);

#endif
