/* SPDX-License-Identifier: MIT */
/*
 * Prepares an integer product for its kernels: packed weights, corrected biases, multipliers, and
 * the proof that int32 sums suffice. Done once if all parameters are constant, else in every run,
 * in scratch memory.
 */
#ifndef QS_INT8_PREPARE_H
#define QS_INT8_PREPARE_H

#include "graph/graph.h"
#include "op/int8/conv_i8.h"

/* 8-bit zero points, one or one per column. */
typedef struct qs_i8_list {
    const uint8_t *data; /* NULL: zero */
    int32_t count;       /* 1 or the number of columns */
    bool is_signed;
} qs_i8_list;

static inline int32_t qs_i8_list_at(const qs_i8_list *l, int64_t i) {
    if (!l->data)
        return 0;
    uint8_t v = l->count == 1 ? l->data[0] : l->data[i];
    return l->is_signed ? (int8_t)v : v;
}

/* Whether two lists of one type have the same zero points. */
bool qs_i8_list_same(const qs_i8_list *a, const qs_i8_list *b);

/* Whether a zero point is not 0, in terms of s8 weights (u8 ones minus `flip`). */
bool qs_i8_any_zero_point(const qs_i8_list *w_zp, uint8_t flip);

/*
 * Chooses w->zero_points for constant weights. one: x has one scale and zero point; wide: sums need
 * the general epilogue in any case.
 */
void qs_i8_choose(qs_conv_i8_weights *w, const qs_i8_list *w_zp, uint8_t flip, bool one, bool wide);

/* For every column: the sum of w - zp, and the sum of its positive terms. */
typedef struct qs_i8_totals {
    int64_t *sum, *above; /* groups * n */
} qs_i8_totals;

/* Computes totals; w_zp belongs to the weights as stored, before the flip. */
void qs_i8_sum_up(const qs_conv_i8_weights *w, const qk_source_i8 *s, int64_t group_stride,
                  const qs_i8_list *w_zp, const qs_i8_totals *to);

/* Whether two sources are the same weights, packed in the same layout. */
bool qs_i8_alike(const qs_conv_i8_weights *v, const qk_source_i8 *s, const qs_conv_i8_weights *w,
                 const qk_source_i8 *t);

/* Packed weights of a layout. */
typedef struct qs_i8_weights {
    const int8_t *b;
    const int32_t *colsum; /* groups * n */
    const int32_t *w_zp;   /* groups * n; NULL without QS_ZP_COLUMN */
    int32_t row_zp;        /* the zero point with QS_ZP_SAME, else 0 */
} qs_i8_weights;

/* Rows of the product whose result is y, for a batch of 1 if the batch is unknown; 0: unknown. */
int64_t qs_i8_sample_rows(const qs_value *y, const qs_conv_i8_weights *w);

/* Bytes that qs_i8_weights_fill needs, 64-byte aligned. false: a size overflows. */
bool qs_i8_weights_bytes(const qs_conv_i8_weights *w, size_t *bytes);

/*
 * Packs weights. w_zp belongs to the weights as stored: u8 weights and their zero points are
 * flipped into s8 here. totals: the columns' totals if they are known, or NULL.
 */
void qs_i8_weights_fill(const qs_conv_i8_weights *w, const qk_source_i8 *s, int64_t group_stride,
                        const qs_i8_list *w_zp, const qs_i8_totals *totals, void *memory,
                        qs_i8_weights *out);

/* Parameters of the epilogue; columns are in natural order. */
typedef struct qs_i8_rules {
    const qsim_ctx *ctx; /* its cancellation ends loops over columns early; NULL: none */
    bool int32_out;
    float x_scale, y_scale;
    const float *w_scale; /* one or one per column; with mult set: the multipliers themselves */
    int32_t w_scales;
    bool mult;
    const int32_t *bias; /* one per column, or NULL */
    bool wide;           /* set by qs_i8_prove: a sum leaves int32 once the bias is added */
    bool fits16;         /* set by qs_i8_prove: see qk_out_i8 */
    int32_t x_zp, y_zp, lo, hi;
    /*
     * With int32_out, without the general epilogue: results are floats, clamp(sum * (x_scale *
     * w_scale[c]) + add[c]) to low and high; NULL: int32.
     */
    const struct qs_i8_columns *floats;
    float low, high;
    /* Matrix products: zero point and scale per row; NULL: the scalars above. */
    const int32_t *row_zp;
    const float *row_scale;
} qs_i8_rules;

/* Arrays for the epilogue of float results, in position order. */
typedef struct qs_i8_columns {
    const int32_t *colsum;
    const float *w_scale, *add;
} qs_i8_columns;

/* Bytes that qs_i8_columns_fill needs. false: a size overflows. */
bool qs_i8_columns_bytes(const qs_conv_i8_weights *w, size_t *bytes);

/* Brings arrays from natural into position order; add NULL: zeros. */
void qs_i8_columns_fill(const qs_conv_i8_weights *w, const int32_t *colsum, const float *w_scale,
                        const float *add, void *memory, qs_i8_columns *out);

typedef struct qs_i8_epilogue {
    qk_out_i8 o;
    qs_conv_i8_post post;
    bool use_post;
} qs_i8_epilogue;

bool qs_i8_epilogue_bytes(const qs_conv_i8_weights *w, size_t *bytes);

/*
 * Sets o.clamp for the worst weights; callers with bounds from qs_i8_prove set it anew.
 */
void qs_i8_epilogue_fill(const qs_conv_i8_weights *w, const qs_i8_weights *packed,
                         const qs_i8_rules *r, void *memory, qs_i8_epilogue *out);

/*
 * Bounds every column's sum over all x and sets r->wide and r->fits16. Returns false if a sum
 * without its bias does not fit int32 or a multiplier is not finite: *column is the column, *bound
 * the sum (0: the multiplier). *clamp: sum times multiplier may leave int32.
 */
bool qs_i8_prove(const qs_conv_i8_weights *w, const qs_i8_totals *t, qs_i8_rules *r, bool *clamp,
                 int32_t *column, int64_t *bound);

/*
 * Channels whose huge bias puts all results at one bound (dead channels) get a smaller one in
 * bias[] (one per column): the same results from sums that fit int32. false: a column is wide for
 * another reason.
 */
bool qs_i8_narrow(const qs_conv_i8_weights *w, const qs_i8_totals *t, const qs_i8_rules *r,
                  int32_t *bias);

/* A matrix product of `rows` rows as a convolution: its geometry without the weights. */
static inline qs_conv_i8 qs_i8_rows(int32_t rows) {
    return (qs_conv_i8){.g = {.batch = 1,
                              .h = rows,
                              .ho = rows,
                              .wd = 1,
                              .wo = 1,
                              .stride_h = 1,
                              .stride_w = 1,
                              .dilation_h = 1,
                              .dilation_w = 1}};
}

#endif
