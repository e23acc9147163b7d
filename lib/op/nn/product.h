/* SPDX-License-Identifier: MIT */
/*
 * Matrix products on floats, to which Gemm and MatMul are lowered: y = clamp(alpha * a b + beta *
 * addend), the sum over k in order, each step a fused multiply-add.
 */
#ifndef QS_PRODUCT_H
#define QS_PRODUCT_H

#include "kernel/f32.h"
#include "op/rules.h"

/* The right side of a product: `count` matrices of k x n, element (i, j) at i * step_k + j *
 * step_n.
 */
typedef struct qs_right {
    size_t k, n, count;
    ptrdiff_t step_k, step_n;
} qs_right;

typedef struct qs_product {
    const qk_f32 *kernels;
    qs_right right;
    size_t floats;       /* of one packed matrix, a multiple of 16; in place: of one */
    const float *packed; /* all matrices; NULL: packed in every run, or */
    bool in_place;       /* read as they are */
    size_t batches, m;
    bool transposed;      /* a is k x m: transposed into scratch memory first */
    const size_t *a, *b;  /* per batch: offset of a in elements, index of the matrix of b */
    int32_t addend_input; /* -1: none */
    ptrdiff_t addend_row, addend_col; /* its strides in elements; 0: broadcast */
    float alpha, beta, lo, hi;
    size_t rows, blocks;    /* rows of a block, blocks of a batch */
    size_t columns, splits; /* columns of a block, blocks per row */
    size_t slices, slice_floats, bias_floats;
    ptrdiff_t *row;
} qs_product;

/* Packs constant `data` into the session's arena, for l->packed. */
int qs_product_pack(qs_pack *p, const qs_right *right, const void *data);

/* Completes a plan whose fields up to `hi` are set, and sets up the step to run it. */
int qs_product_lower(qs_lower *l, qs_product *p);

#endif
