/* SPDX-License-Identifier: MIT */
/*
 * Products with weights of 4 or 8 bits that have a scale and a zero point per block: w(k, j) =
 * (code - zero) * scale. Activations are floats, or integers in blocks of their own.
 */
#ifndef QK_NBITS_H
#define QK_NBITS_H

#include "kernel/table.h"

/* Adjacent columns, which make a group, and the number of groups that kernels take together. */
#define QK_NBITS_GROUP    16
#define QK_NBITS_TOGETHER 2

/*
 * Packed weights. Group after group of 16 columns; in a group, for every 8 k, 16 dwords, each with
 * the codes of one column, the first in the lowest bits. Codes of 8 bits: 16 dwords with those of
 * even k, then 16 with those of odd k. Scales and zero points: 16 for each block of a group. The
 * number of groups is even; missing columns have code and scale 0.
 */
typedef struct qk_nbits_weights {
    const uint32_t *codes;
    const float *scales;
    const uint8_t *zeros; /* zero points; NULL: all are 8 */
    size_t block, blocks; /* k per block, a multiple of 16; blocks of a column */
    bool bytes;           /* codes have 8 bits, and zero points are given; only for `rounded` */
} qk_nbits_weights;

/* Rows of integers in [-127, 127] with the scale and the sum of each block. */
typedef struct qk_nbits_rows {
    /* [rows][block * blocks]; of every 8, those of even index come first: qk_nbits_place */
    const int8_t *a;
    const float *scales; /* [rows][blocks] */
    const int32_t *sums; /* likewise */
    size_t rows;
} qk_nbits_rows;

/* The place of integer i of a row. */
static inline size_t qk_nbits_place(size_t i) {
    return (i & ~(size_t)7) + (i % 2 * 4) + i % 8 / 2;
}

typedef struct qk_nbits {
    /* to[k * width + j] = w(k, j of the group) for begin <= k < end, j < columns, which is 8 or 16;
     * begin is a multiple of 8 */
    void (*unpack)(const qk_nbits_weights *w, size_t group, size_t begin, size_t end,
                   size_t columns, float *to, size_t width);
    /*
     * y[j] = sum over k < depth of a[k] * w(k, j), for `groups` groups, a multiple of
     * QK_NBITS_TOGETHER: from +0, in the order of k, by fused multiply-adds. NULL: the float
     * product of unpacked weights, which has the same bits.
     */
    void (*row)(const qk_nbits_weights *w, const float *a, size_t depth, size_t group,
                size_t groups, float *y);
    /*
     * y[r * ldy + j] += float(sum of a (code - zero)) * (scale of a * scale of w) for each block
     * from begin to end, in order: products and sums are rounded one by one. For QK_NBITS_TOGETHER
     * groups.
     */
    void (*rounded)(const qk_nbits_weights *w, const qk_nbits_rows *a, size_t group, size_t begin,
                    size_t end, float *y, size_t ldy);
} qk_nbits;

extern const qk_nbits qk_nbits_c;
#if QK_X86
extern const qk_nbits qk_nbits_avx2, qk_nbits_avx512;
#endif

/* Dwords of `k` codes, a multiple of 8, of each column of a group. */
static inline size_t qk_nbits_dwords(const qk_nbits_weights *w, size_t k) {
    return k / (w->bytes ? 4 : 8) * QK_NBITS_GROUP;
}

/* The codes of a group. */
static inline const uint32_t *qk_nbits_codes(const qk_nbits_weights *w, size_t group) {
    return w->codes + group * qk_nbits_dwords(w, w->block * w->blocks);
}

#endif
