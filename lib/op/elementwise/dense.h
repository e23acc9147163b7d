/* SPDX-License-Identifier: MIT */
/* Functions of two numbers, over two arrays, and the loops that networks use most. */
#ifndef QS_DENSE_H
#define QS_DENSE_H

#include "base/base.h"

/*
 * y[k] = f(a[k], b[k]) for k < m; y may be a or b. The arrays have room for a multiple of
 * QS_DENSE_UNIT elements, so that compilers make no loop for a remainder.
 */
typedef void (*qs_dense_fn)(const void *a, const void *b, void *y, size_t m);
#define QS_DENSE_UNIT ((size_t)16)

/* Define a qs_dense_fn of elements a and b; QS_DENSE_RARE: for size. */
#define QS_DENSE(name, TX, TY, expression)                                                         \
    QS_DENSE_LOOP(, name, TX, TY, ((m + QS_DENSE_UNIT - 1) & ~(QS_DENSE_UNIT - 1)), expression)
#define QS_DENSE_RARE(name, TX, TY, expression) QS_DENSE_LOOP(QS_COLD, name, TX, TY, m, expression)
#define QS_DENSE_LOOP(RARE, name, TX, TY, count, expression)                                       \
    RARE static void name(const void *va, const void *vb, void *vy, size_t m) {                    \
        const TX *pa = va, *pb = vb;                                                               \
        TY *py = vy;                                                                               \
        const size_t n = count;                                                                    \
        QS_IVDEP                                                                                   \
        for (size_t k = 0; k < n; k++) {                                                           \
            const TX a = pa[k], b = pb[k];                                                         \
            py[k] = (TY)(expression);                                                              \
        }                                                                                          \
    }

/*
 * The functions of an operator by type. Other integers are computed as int64, of which the low bits
 * are the result. `truths`: the result is bool.
 */
typedef struct qs_dense_fns {
    qs_dense_fn f32, f64, s32, s64, u64, b8;
    bool truths;
} qs_dense_fns;

/* Of one type. */
typedef struct qs_dense {
    qs_dense_fn fn;
    size_t x, y;     /* bytes of an element of the operands and of the result, as fn sees them */
    int32_t narrow;  /* the operands' type if fn sees it as int64; else 0 */
    size_t from, to; /* bytes of an element in memory */
} qs_dense;

qs_dense qs_dense_of(const qs_dense_fns *fns, int32_t dtype);
/* y[i] = f(a[i * sa], b[i * sb]); strides are 0 or 1; y may be an operand with stride 1. */
void qs_dense_run(const qs_dense *d, const void *a, size_t sa, const void *b, size_t sb, void *y,
                  size_t n);

/* Copies x, of 1, 2, 4 or 8 bytes, over `bytes` bytes and up to 15 more: to a multiple of 16. */
void qs_spread(const void *x, size_t size, void *to, size_t bytes);

/* An extreme of a NaN is NaN. QS_SLOPE is PRelu, which reads b only where a is negative. */
extern const qs_dense_fns qs_dense_less, qs_dense_less_or_equal, qs_dense_same, qs_dense_greatest,
    qs_dense_least, qs_dense_slope;
/* Integers wrap. Differences and products of floats are op_binary.c's own. */
extern const qs_dense_fns qs_dense_plus, qs_dense_minus, qs_dense_times;
/* Any byte but 0 is true. */
extern const qs_dense_fns qs_dense_both, qs_dense_either, qs_dense_one_of;

#endif
