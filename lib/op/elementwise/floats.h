/* SPDX-License-Identifier: MIT */
/* Loops over two arrays of floats that compilers make vectors of. */
#ifndef QS_FLOATS_H
#define QS_FLOATS_H

#include "base/base.h"

typedef enum qs_comparison {
    QS_LESS,
    QS_LESS_OR_EQUAL,
    QS_SAME,
    QS_SAME_BITS /* of any numbers as long as floats */
} qs_comparison;
typedef enum qs_fold { QS_GREATEST, QS_LEAST, QS_SUM, QS_SLOPE } qs_fold;

/* y[i] = a[i * sa] compared with b[i * sb]; strides are 0 or 1. */
void qs_compare_floats(qs_comparison how, const float *a, size_t sa, const float *b, size_t sb,
                       uint8_t *y, size_t n);

/*
 * y[i] = a[i] joined with b[i * sb]; NaN on either side gives NaN. QS_SLOPE, PRelu, reads b only
 * where a is negative. y may be a.
 */
void qs_fold_floats(qs_fold how, const float *a, const float *b, size_t sb, float *y, size_t n);

#endif
