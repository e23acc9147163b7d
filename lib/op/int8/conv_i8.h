/* SPDX-License-Identifier: MIT */
/*
 * INT8 convolution and matrix product of whole tensors: the driver that calls the micro-kernels of
 * kernel/i8.h, as nn/conv_float.c does those of kernel/f32.h. It knows borders, strips, groups and
 * threads; kernels know none of these. x is u8 and channels last, weights are s8, y is u8 or int32.
 * A matrix product is a 1 x 1 convolution over its rows.
 */
#ifndef QS_CONV_I8_H
#define QS_CONV_I8_H

#include "kernel/i8.h"

/* ---- weights ---- */

/* Zero points of weights, and what deals with them. */
typedef enum qs_conv_i8_zero_points {
    QS_ZP_NONE,
    QS_ZP_SAME,   /* all weights have one: the sums of a row's inputs start its sums (row_sums) */
    QS_ZP_COLUMN, /* any: the product has a column of ones, qs_conv_i8_post does the rest */
    QS_ZP_SPLIT   /* w - zp in two sets of s8 weights for the same inputs */
} qs_conv_i8_zero_points;

/* The type of the results. Only kernels for bytes and floats work on the image itself. */
typedef enum qs_conv_i8_result {
    QS_RESULT_ANY,
    QS_RESULT_BYTES, /* u8, without a clamp and without qs_conv_i8_post */
    QS_RESULT_FLOATS /* and nothing is dilated */
} qs_conv_i8_result;

/* Which micro-kernels a convolution becomes calls of. */
typedef enum qs_conv_i8_choice {
    QS_CONV_BY_TAPS,     /* a product, each tap a segment of its rows */
    QS_CONV_BY_ROWS,     /* a product, each kernel row a segment: its taps lie together in memory */
    QS_CONV_GATHERED,    /* a product with one segment: kernel rows are copied end to end first */
    QS_CONV_DEPTHWISE,   /* depthwise by a list of taps */
    QS_CONV_DEPTHWISE_2D /* depthwise on the image itself: qk_window_u8s8 */
} qs_conv_i8_choice;

typedef struct qs_conv_i8_weights {
    /* given */
    int32_t groups, n, kh, kw, c; /* n columns and c channels per group */
    int32_t stride_h, stride_w;   /* 0: no convolution */
    int64_t rows;                 /* of the product, of a batch of 1; 0: unknown */
    bool contiguous;              /* no dilation along the width */
    bool
        apart; /* pixels of the result do not follow each other: qs_conv_i8_geometry's y_channels */
    qs_conv_i8_zero_points zero_points;
    qs_conv_i8_result result;
    /* found by qs_conv_i8_weights_layout */
    const qk_i8 *t; /* what these weights are packed for: the context's table or one below it */
    qs_conv_i8_choice choice;
    int32_t pixels;   /* neighbouring outputs that make one row of the product */
    qk_form_i8 form;  /* of one group, columns of all pixels; not for depthwise */
    int32_t channels; /* depthwise: of packed weights, a multiple of the groups */
    int32_t taps;     /* depthwise: of packed weights */
    int32_t positions;
    size_t bytes;
} qs_conv_i8_weights;

static inline bool qs_conv_i8_is_depthwise(const qs_conv_i8_weights *w) {
    return w->choice == QS_CONV_DEPTHWISE || w->choice == QS_CONV_DEPTHWISE_2D;
}

/* false: sizes overflow */
bool qs_conv_i8_weights_layout(const qk_i8 *t, qs_conv_i8_weights *w);

/* `s` is the first group's source, the next lies group_stride elements on. colsum: groups * n,
 * or NULL. */
void qs_conv_i8_weights_pack(const qs_conv_i8_weights *w, const qk_source_i8 *s,
                             int64_t group_stride, int8_t *b, int32_t *colsum);

/* groups * n elements of 4 bytes into `positions` of them. */
void qs_conv_i8_weights_spread(const qs_conv_i8_weights *w, const void *in, void *out);

/* ---- the general epilogue ---- */

/*
 * The general epilogue handles cases that the micro-kernels' own does not: weight zero points, zero
 * points or scales per row of a matrix product, and biases with which a sum leaves int32. Arrays in
 * natural order; sums begin with the plain bias, or with 0 if wide_bias is set.
 *
 *     acc - zp[r] * colsum[n] - w_zp[n] * (rowsum - k * zp[r]) + wide_bias[n]
 */
typedef struct qs_conv_i8_post {
    const int32_t *colsum;    /* groups * n */
    const int32_t *w_zp;      /* groups * n, or NULL: 0 */
    const int32_t *row_zp;    /* per row, or NULL: zp */
    const int32_t *wide_bias; /* groups * n, added in 64 bits, or NULL */
    int32_t zp, k;            /* k: products per sum */
    const float *mult;        /* groups * n; NULL: int32, or by the three below */
    const float *row_scale, *col_scale;
    float y_scale; /* mult = (row_scale[r] * col_scale[n]) / y_scale */
} qs_conv_i8_post;

/* ---- convolution ---- */

/* A block of results on its way to y, or of sums in it: rows of n bytes. */
typedef struct qs_conv_i8_block {
    const uint8_t *x; /* where they are, x_stride bytes apart */
    size_t n, rows, x_stride;
    size_t at, stride; /* where they would be if y had no other channels than these */
    uint8_t *y;        /* where they belong, y_stride bytes apart */
    size_t y_stride;
} qs_conv_i8_block;

/* Pixels of a block whose addresses or sums of inputs are needed, at most. */
#define QS_CONV_I8_BLOCK 128
/* Bytes of results that `after` takes at a time, about. */
#define QS_CONV_I8_AFTER (16 << 10)

/* The image and how the kernel goes over it; pads at the far ends follow from the sizes. */
typedef struct qs_conv_i8_geometry {
    int64_t batch;
    int32_t h, wd, ho, wo; /* rows and columns of the input and the output */
    int32_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    /*
     * Channels of y, of which these are y_column and the following ones; 0: y has no others. With
     * w.apart, and for depthwise with `after`.
     */
    int32_t y_channels, y_column;
} qs_conv_i8_geometry;

/* Where kernels find a pixel's inputs. */
typedef enum qs_conv_i8_input {
    QS_INPUT_IMAGE,   /* in the image */
    QS_INPUT_FLAT,    /* in the image, whose pixels are rows of one matrix product */
    QS_INPUT_BORDERED /* in a strip of it, copied into scratch with its padding */
} qs_conv_i8_input;

/* How a convolution is cut into strips, blocks and tasks: qs_conv_i8_make_plan. */
typedef struct qs_conv_i8_plan {
    qs_conv_i8_input input;
    int64_t batch; /* these five as in the geometry, or of the flat image */
    int32_t h, wd, ho, wo;
    const int32_t *offset; /* of segments or taps */
    int32_t strip_rows, strips, row_tasks, column_tasks;
    bool fetch;         /* weights come from far: each panel fetches the next one */
    bool whole_rows;    /* gathered pixels make whole rows of the image */
    int32_t block;      /* pixels per micro-kernel call */
    int32_t columns;    /* the same where they lie one below the other */
    int32_t block_rows; /* of a depthwise convolution's output, for `after` */
    int32_t strip_stride, strip_lead, gather_stride;
    /* y may overlap x if it begins at least so many bytes before or after x; strips are then done
     * in waves of `wave`. */
    size_t min_lead, min_lag;
    int64_t wave;
    size_t strip_bytes, block_bytes, gather_bytes, task_bytes; /* of scratch */
} qs_conv_i8_plan;

typedef struct qs_conv_i8 {
    qs_conv_i8_geometry g;
    qs_conv_i8_weights w;
    const int8_t *b;             /* packed weights */
    uint8_t x_zp;                /* what padding holds */
    int32_t w_zp;                /* with QS_ZP_SAME: what is subtracted from every weight */
    qk_out_i8 o;                 /* bias and mult in positions; mult NULL: y is int32 */
    const qs_conv_i8_post *post; /* or NULL */
    /*
     * Or NULL: takes each block of results while it is in the cache and writes y. With
     * after_in_place (depthwise, and bytes without y_channels) the results are in y already.
     */
    void (*after)(const void *arg, const qs_conv_i8_block *block);
    const void *after_arg;
    bool after_in_place;
    qs_conv_i8_plan p;
} qs_conv_i8;

/* Single rows do not gain by tiles, though their weights are packed for them. */
static inline bool qs_conv_i8_by_tiles(const qs_conv_i8 *c) {
    return c->w.t->tiles && (c->p.wo > 1 || c->p.ho > 1);
}

/* Rows of input that `rows` rows of output look at, border included. */
static inline int64_t qs_conv_i8_rows(const qs_conv_i8 *c, int64_t rows) {
    return (rows - 1) * c->g.stride_h + (int64_t)(c->w.kh - 1) * c->g.dilation_h + 1;
}

/* Channels of x and of y. */
static inline int64_t qs_conv_i8_in(const qs_conv_i8 *c) {
    return (int64_t)c->w.groups * c->w.c;
}
static inline ptrdiff_t qs_conv_i8_out(const qs_conv_i8 *c) {
    return c->g.y_channels ? c->g.y_channels : (ptrdiff_t)c->w.groups * c->w.n;
}

/* Elements of the array that a plan keeps offsets in. */
static inline size_t qs_conv_i8_offsets(const qs_conv_i8_weights *w) {
    return 2 * ((size_t)w->kh + 1) * (size_t)w->kw + 8;
}

/* Scratch bytes in *scratch; false: a size overflows. `offset` lives as long as the plan. */
bool qs_conv_i8_make_plan(qs_conv_i8 *c, int32_t threads, int32_t *offset, size_t *scratch);

/* overlaps: y overlaps x. */
void qs_conv_i8_run(const qsim_ctx *ctx, const qs_conv_i8 *c, const uint8_t *x, void *y,
                    void *scratch, bool overlaps);

int64_t qs_conv_i8_macs(const qs_conv_i8 *c);
/* Nanoseconds of one thread for them, at best (base/slices.h). */
double qs_conv_i8_ns(const qs_conv_i8 *c);

#endif
