/* SPDX-License-Identifier: MIT */
/*
 * Exact sums of doubles that are multiples of 2^-149, as sums of floats are: a fixed-point number
 * for up to 2^60 floats. As sums are exact, they do not depend on order and grouping.
 */
#ifndef QS_EXACT_SUM_H
#define QS_EXACT_SUM_H

#include "base/base.h"

#define QS_EXACT_LIMBS    6
#define QS_EXACT_EXPONENT (-149) /* of the lowest bit */

/*
 * Limbs in two's complement, lowest first, and what is not in them yet, high + low. Equal sums may
 * differ in that, not in their text.
 */
typedef struct qs_exact {
    uint64_t limb[QS_EXACT_LIMBS];
    double high, low;
} qs_exact;

/* Adds x, a multiple of 2^-149 with |x| < 2^160. */
void qs_exact_add(qs_exact *sum, double x);
/*
 * Adds x[i] to high[i] + low[i], QS_EXACT_TOGETHER elements at a time, as long as those can hold
 * it; returns the number of elements. A kernel (quant/observer.h).
 */
#define QS_EXACT_TOGETHER 8
typedef size_t (*qs_exact_add_fn)(double *high, double *low, const double *x, size_t count);
/*
 * The same as qs_exact_add for `count` sums, sum[i] + recent[i] + recent[count + i]: the caller's
 * `recent`, 0 at first, takes x[i] as long as it can hold it, so that the sums themselves are
 * rarely touched. False: this time they were.
 */
bool qs_exact_add_each(qs_exact *sum, double *recent, const double *x, size_t count,
                       qs_exact_add_fn add);
/* into[i] += from[i], of `count` sums. */
void qs_exact_merge(qs_exact *into, const qs_exact *from, size_t count);
/* The sum over `count`, in double: the same on every machine. */
double qs_exact_mean(const qs_exact *sum, uint64_t count);

/*
 * As text, sign, hexadecimal digits, 'p' and a decimal exponent of two: -1f3p-12 is -0x1f3 * 2^-12.
 * Without trailing zero bits, so that equal sums are equal texts; 0 is "0". With the NUL it fits
 * QS_EXACT_TEXT.
 */
#define QS_EXACT_TEXT 112
void qs_exact_write(const qs_exact *sum, char text[QS_EXACT_TEXT]);
/* Reads such a text of `size` bytes; false: qs_exact_write does not make this text. */
bool qs_exact_read(qs_exact *sum, const char *text, size_t size);

#endif
