/* SPDX-License-Identifier: MIT */
/*
 * INT8 convolution and matrix product of whole tensors: the driver of the micro-kernels of
 * kernel/i8.h, as nn/conv_float.c is of those of kernel/f32.h. It handles padding, strips, groups
 * and threads; kernels handle none of these. x is u8 and channels last, weights are s8, y is u8,
 * int32 or float. A matrix product is a 1 x 1 convolution over its rows.
 */
#ifndef QS_CONV_I8_H
#define QS_CONV_I8_H

#include "kernel/i8.h"

/* ---- weights ---- */

/* How zero points of weights are handled. */
typedef enum qs_conv_i8_zero_points {
    QS_ZP_NONE,
    QS_ZP_SAME,   /* one for all weights: sums start with -zp * sum of the row's inputs */
    QS_ZP_COLUMN, /* any: the product has a column of ones, qs_conv_i8_post corrects the sums */
    QS_ZP_SPLIT   /* w - zp is the sum of two sets of s8 weights for the same inputs */
} qs_conv_i8_zero_points;

/* Type of the results. Window kernels (QS_CONV_DEPTHWISE_2D) exist for bytes and floats only. */
typedef enum qs_conv_i8_result {
    QS_RESULT_ANY,
    QS_RESULT_BYTES, /* u8, without a clamp and without qs_conv_i8_post */
    QS_RESULT_FLOATS /* without dilation */
} qs_conv_i8_result;

/* The micro-kernel that computes a convolution, and how its rows are cut into segments. */
typedef enum qs_conv_i8_choice {
    QS_CONV_BY_TAPS,     /* a product; each tap is a segment of its rows */
    QS_CONV_BY_ROWS,     /* a product; each kernel row is a segment: its taps are contiguous */
    QS_CONV_GATHERED,    /* a product with one segment: kernel rows are copied end to end first */
    QS_CONV_DEPTHWISE,   /* depthwise by a list of tap offsets: qk_depthwise_u8s8 */
    QS_CONV_DEPTHWISE_2D /* depthwise on the image itself: qk_window_u8s8 */
} qs_conv_i8_choice;

typedef struct qs_conv_i8_weights {
    /* set by the caller */
    int32_t groups, n, kh, kw, c; /* n output columns and c input channels per group */
    int32_t stride_h, stride_w;   /* 0: a matrix product */
    int64_t rows;     /* of the product, for a batch of 1 if the batch is unknown; 0: unknown */
    bool contiguous;  /* no dilation along the width */
    bool strided_out; /* y has other channels between its pixels (geometry's y_channels) */
    qs_conv_i8_zero_points zero_points;
    qs_conv_i8_result result;
    /* set by qs_conv_i8_weights_layout */
    const qk_i8 *t; /* table that weights are packed for: the context's, or its `below` */
    qs_conv_i8_choice choice;
    int32_t pixels;   /* neighbouring output pixels that make one row of the product */
    qk_form_i8 form;  /* of one group, with columns of all `pixels`; unused for depthwise */
    int32_t channels; /* depthwise: channels of packed weights, a multiple of the groups */
    int32_t taps;     /* depthwise: taps of packed weights, those of both sets */
    int32_t positions;
    size_t bytes;
} qs_conv_i8_weights;

static inline bool qs_conv_i8_is_depthwise(const qs_conv_i8_weights *w) {
    return w->choice == QS_CONV_DEPTHWISE || w->choice == QS_CONV_DEPTHWISE_2D;
}

/* Chooses kernel and layout from the fields that the caller has set. false: a size overflows. */
bool qs_conv_i8_weights_layout(const qk_i8 *t, qs_conv_i8_weights *w);

/*
 * `s` describes the first group; each next one begins group_stride elements later. colsum gets the
 * sums of groups * n columns, or is NULL.
 */
void qs_conv_i8_weights_pack(const qs_conv_i8_weights *w, const qk_source_i8 *s,
                             int64_t group_stride, int8_t *b, int32_t *colsum);

/* Reorders groups * n elements of 4 bytes into w->positions elements (qk_i8_spread). */
void qs_conv_i8_weights_spread(const qs_conv_i8_weights *w, const void *in, void *out);

/* ---- the general epilogue ---- */

/*
 * The general epilogue handles cases that the micro-kernels' own does not: weight zero points, zero
 * points or scales per row of a matrix product, and biases with which a sum leaves int32. It needs
 * QS_ZP_COLUMN, except for matrix products with QS_ZP_NONE. Arrays in natural order; sums begin
 * with the plain bias, or with 0 if wide_bias is set.
 *
 *     acc - zp[r] * colsum[n] - w_zp[n] * (rowsum - k * zp[r]) + wide_bias[n]
 */
typedef struct qs_conv_i8_post {
    const int32_t *colsum;    /* groups * n */
    const int32_t *w_zp;      /* groups * n, or NULL: 0 */
    const int32_t *row_zp;    /* per row, or NULL: zp */
    const int32_t *wide_bias; /* groups * n, added in 64 bits, or NULL */
    int32_t zp, k;            /* zp: of x; k: products per sum */
    const float *mult; /* groups * n; NULL: int32 results, or multipliers from the three below */
    const float *row_scale, *col_scale;
    float y_scale; /* mult = (row_scale[r] * col_scale[n]) / y_scale */
} qs_conv_i8_post;

/* ---- convolution ---- */

/* A block of results for `after`: rows of n bytes. */
typedef struct qs_conv_i8_block {
    const uint8_t *x; /* the results, rows x_stride bytes apart */
    size_t n, rows, x_stride;
    size_t at, stride; /* offset and row distance in a tensor of only these channels */
    uint8_t *y;        /* destination, rows y_stride bytes apart */
    size_t y_stride;
} qs_conv_i8_block;

/* Most rows of a block that needs arrays of row addresses or of sums of inputs. */
#define QS_CONV_I8_BLOCK 128
/* Bytes of results per call of `after`, approximately. */
#define QS_CONV_I8_AFTER (16 << 10)

/* Sizes, strides, dilations and padding; bottom and right padding follow from the sizes. */
typedef struct qs_conv_i8_geometry {
    int64_t batch;
    int32_t h, wd, ho, wo; /* rows and columns of the input and the output */
    int32_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    /*
     * y_channels: channels of y if it has others, too; results are those from y_column on. 0: y has
     * no others. Needs w.strided_out, and `after` for depthwise.
     */
    int32_t y_channels, y_column;
} qs_conv_i8_geometry;

/* Memory from which kernels read their inputs. */
typedef enum qs_conv_i8_input {
    QS_INPUT_IMAGE,   /* in the image */
    QS_INPUT_FLAT,    /* in the image, whose pixels are rows of one matrix product */
    QS_INPUT_BORDERED /* in a strip, copied into scratch memory with its padding */
} qs_conv_i8_input;

/* Strips, blocks and tasks of a convolution, set by qs_conv_i8_make_plan. */
typedef struct qs_conv_i8_plan {
    qs_conv_i8_input input;
    int64_t batch; /* these five: as in the geometry, or of the flattened image */
    int32_t h, wd, ho, wo;
    const int32_t *offset; /* in bytes, of each segment or tap from a row's address */
    int32_t strip_rows, strips, row_tasks, column_tasks;
    bool fetch;         /* weights exceed the cache: each panel prefetches the next one */
    bool whole_rows;    /* a block gathers whole output rows */
    int32_t block;      /* rows of the product per micro-kernel call */
    int32_t columns;    /* the same for calls that compute one output column */
    int32_t block_rows; /* depthwise: output rows per call of `after` */
    int32_t strip_stride, strip_lead, gather_stride;
    /*
     * y may overlap x if it begins at least min_lead bytes before or min_lag bytes after x; strips
     * are then computed in waves of `wave`.
     */
    size_t min_lead, min_lag;
    int64_t wave;
    size_t strip_bytes, block_bytes, gather_bytes, task_bytes; /* parts and total of scratch */
} qs_conv_i8_plan;

typedef struct qs_conv_i8 {
    qs_conv_i8_geometry g;
    qs_conv_i8_weights w;
    const int8_t *b;             /* packed weights */
    uint8_t x_zp;                /* zero point of x, the value of padding */
    int32_t w_zp;                /* with QS_ZP_SAME: the zero point of all weights */
    qk_out_i8 o;                 /* arrays in position order; mult NULL: y is int32 or float */
    const qs_conv_i8_post *post; /* general epilogue, or NULL */
    /*
     * Called with each block of results while it is in the cache, and writes y; or NULL. With
     * after_in_place the results are in y already and are changed there.
     */
    void (*after)(const void *arg, const qs_conv_i8_block *block);
    const void *after_arg;
    bool after_in_place;
    qs_conv_i8_plan p;
} qs_conv_i8;

/* Whether tiles compute it: not single rows, even if their weights are packed for tiles. */
static inline bool qs_conv_i8_by_tiles(const qs_conv_i8 *c) {
    return c->w.t->tiles && (c->p.wo > 1 || c->p.ho > 1);
}

/* Input rows that `rows` output rows read, padding included. */
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

/* Elements of the plan's array of offsets. */
static inline size_t qs_conv_i8_offsets(const qs_conv_i8_weights *w) {
    return 2 * ((size_t)w->kh + 1) * (size_t)w->kw + 8;
}

/*
 * Sets c->p; *scratch: bytes of scratch memory. `offset` (qs_conv_i8_offsets elements) has to live
 * as long as the plan. false: a size overflows.
 */
bool qs_conv_i8_make_plan(qs_conv_i8 *c, int32_t threads, int32_t *offset, size_t *scratch);

/* overlaps: x and y overlap, at a distance that the plan allows. */
void qs_conv_i8_run(const qsim_ctx *ctx, const qs_conv_i8 *c, const uint8_t *x, void *y,
                    void *scratch, bool overlaps);

int64_t qs_conv_i8_macs(const qs_conv_i8 *c);
/* Estimated nanoseconds of one thread (base/slices.h). */
double qs_conv_i8_ns(const qs_conv_i8 *c);

#endif
