/* SPDX-License-Identifier: MIT */
/*
 * From the quantization parameters of an integer product to what its kernels want: packed weights,
 * corrected biases, multipliers, and the proof that int32 sums suffice. Done once when everything
 * is constant, else while executing, in scratch memory.
 */
#ifndef QS_INT8_PREPARE_H
#define QS_INT8_PREPARE_H

#include "graph/graph.h"
#include "op/int8/conv_i8.h"

/* 8-bit numbers, one or one per column; NULL data: zeros. */
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

/* Does a weight have a zero point, in terms of s8 weights (u8 ones minus `flip`)? */
bool qs_i8_any_zero_point(const qs_i8_list *w_zp, uint8_t flip);

/*
 * Sets zero_points: how those of constant weights are dealt with. known:
 * all other parameters are constant; wide: sums need the general epilogue in any case.
 */
void qs_i8_choose(qs_conv_i8_weights *w, const qs_i8_list *w_zp, uint8_t flip, bool known,
                  bool wide);

/* For every column, the sum of w - zp and the sum of its positive terms. */
typedef struct qs_i8_totals {
    int64_t *sum, *above; /* groups * n */
} qs_i8_totals;

/* w_zp is in the terms of the stored weights, as below. */
void qs_i8_sum_up(const qs_conv_i8_weights *w, const qk_source_i8 *s, int64_t group_stride,
                  const qs_i8_list *w_zp, const qs_i8_totals *to);

/* Whether two sources are the same weights, and are laid out in the same way. */
bool qs_i8_alike(const qs_conv_i8_weights *v, const qk_source_i8 *s, const qs_conv_i8_weights *w,
                 const qk_source_i8 *t);

/* Packed weights of a layout. */
typedef struct qs_i8_weights {
    const int8_t *b;
    const int32_t *colsum; /* groups * n */
    const int32_t *w_zp;   /* the same many, NULL without QS_ZP_COLUMN */
    int32_t row_zp;        /* the zero point with QS_ZP_SAME, else 0 */
} qs_i8_weights;

/* Rows of a product that becomes y, of one sample where the batch is free; 0: unknown. */
int64_t qs_i8_sample_rows(const qs_value *y, const qs_conv_i8_weights *w);

/* Bytes that qs_i8_weights_fill needs, 64-byte aligned. false: too many. */
bool qs_i8_weights_bytes(const qs_conv_i8_weights *w, size_t *bytes);

/*
 * w_zp is in the terms of the stored weights: u8 weights are flipped into s8 together with it.
 * totals: where they are known, or NULL.
 */
void qs_i8_weights_fill(const qs_conv_i8_weights *w, const qk_source_i8 *s, int64_t group_stride,
                        const qs_i8_list *w_zp, const qs_i8_totals *totals, void *memory,
                        qs_i8_weights *out);

/* How sums become outputs, in natural order. */
typedef struct qs_i8_rules {
    bool int32_out;
    float x_scale, y_scale;
    const float *w_scale; /* one or one per column; with mult set: the multipliers themselves */
    int32_t w_scales;
    bool mult;
    const int32_t *bias; /* one per column, or NULL */
    bool wide;           /* found by qs_i8_prove: a sum leaves int32 when the bias is added */
    bool fits16;         /* and: qk_out_i8's */
    int32_t x_zp, y_zp, lo, hi;
    /* With int32_out: floats clamp(sum * (x_scale * w_scale[c]) + add[c]) of sums without a post.
     */
    const struct qs_i8_columns *floats;
    float low, high;
    /* Matrix products with parameters per row; NULL: the scalars above. */
    const int32_t *row_zp;
    const float *row_scale;
} qs_i8_rules;

/* In positions: what the epilogue of sums that become floats is made of. */
typedef struct qs_i8_columns {
    const int32_t *colsum;
    const float *w_scale, *add;
} qs_i8_columns;

/* Bytes that qs_i8_columns_fill needs. false: too many. */
bool qs_i8_columns_bytes(const qs_conv_i8_weights *w, size_t *bytes);

/* From natural order; add may be NULL. */
void qs_i8_columns_fill(const qs_conv_i8_weights *w, const int32_t *colsum, const float *w_scale,
                        const float *add, void *memory, qs_i8_columns *out);

typedef struct qs_i8_epilogue {
    qk_out_i8 o;
    qs_conv_i8_post post;
    bool use_post;
} qs_i8_epilogue;

bool qs_i8_epilogue_bytes(const qs_conv_i8_weights *w, size_t *bytes);

/*
 * o.clamp is as any weights need it: the caller that has proven bounds with qs_i8_prove clears it.
 */
void qs_i8_epilogue_fill(const qs_conv_i8_weights *w, const qs_i8_weights *packed,
                         const qs_i8_rules *r, void *memory, qs_i8_epilogue *out);

/*
 * Bounds every column's sum over all x and sets r->wide and r->fits16. Returns false if one does
 * not fit int32 even without its bias, or a multiplier is not finite (*column says which, *bound
 * the sum, 0 for a multiplier). *clamp: a product with the multiplier may leave int32.
 */
bool qs_i8_prove(const qs_conv_i8_weights *w, const qs_i8_totals *t, qs_i8_rules *r, bool *clamp,
                 int32_t *column, int64_t *bound);

/*
 * Channels whose every result is the same bound, because the bias is out of all proportion (dead
 * channels have such), get a bias of sane size in bias[] (one per column): the same results, and
 * no wide sums. False: some column is wide for another reason.
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
