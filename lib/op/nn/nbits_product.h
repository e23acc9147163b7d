/* SPDX-License-Identifier: MIT */
/* Products with weights of 2, 4 or 8 bits in blocks: what MatMulNBits is lowered to. */
#ifndef QS_NBITS_PRODUCT_H
#define QS_NBITS_PRODUCT_H

#include "kernel/nbits.h"
#include "op/rules.h"

typedef struct qs_nbits_form {
    int64_t k, n, bits, block, blocks; /* blocks along k */
    int64_t bytes, zero_bytes;         /* of a block, of a row of zero points */
    bool rounds;                       /* a becomes 8 bits */
} qs_nbits_form;

/*
 * The session's constants: as kernels take them, or where codes have 8 bits, zero points are real
 * numbers or blocks are not in order, as the file has them.
 */
typedef struct qs_nbits {
    qs_nbits_form f;
    qk_nbits_weights packed;          /* codes NULL: the fields below */
    const uint8_t *bits, *zeros;      /* zeros NULL: half of the range */
    const float *scales, *real_zeros; /* real_zeros NULL: the others */
    const int32_t *groups;            /* NULL: in order */
} qs_nbits;

/* Makes `packed` of the fields below it, where kernels take such weights. */
int qs_nbits_pack(qs_pack *p, qs_nbits *w);
/* m rows of input 0 times weights l->packed, plus input `bias`, -1: none. */
int qs_nbits_lower(qs_lower *l, size_t m, int32_t bias);

#endif
