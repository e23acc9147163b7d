/* SPDX-License-Identifier: MIT */
/* Products with weights of 2, 4 or 8 bits in blocks, to which MatMulNBits is lowered. */
#ifndef QS_NBITS_PRODUCT_H
#define QS_NBITS_PRODUCT_H

#include "kernel/nbits.h"
#include "op/rules.h"

typedef struct qs_nbits_form {
    int64_t k, n, bits, block, blocks; /* blocks along k */
    int64_t bytes, zero_bytes;         /* of a block, of a row of zero points */
    bool rounds;                       /* a is quantized to 8 bits */
} qs_nbits_form;

/*
 * Constant weights: packed for kernels or, if zero points are floats, blocks are not in order, or
 * codes of 8 bits are multiplied with floats, as in the file.
 */
typedef struct qs_nbits {
    qs_nbits_form f;
    qk_nbits_weights packed;          /* codes NULL: the fields below are used */
    const uint8_t *bits, *zeros;      /* zeros NULL: half of the range */
    const float *scales, *real_zeros; /* real_zeros NULL: `zeros` */
    const int32_t *groups;            /* block of each k; NULL: in order */
} qs_nbits;

/* Sets `packed` from the fields below it if kernels support such weights. */
int qs_nbits_pack(qs_pack *p, qs_nbits *w);
/* Lowers the product of m rows of input 0 and weights l->packed, plus input `bias` (-1: none). */
int qs_nbits_lower(qs_lower *l, size_t m, int32_t bias);

#endif
