/* SPDX-License-Identifier: MIT */
/* Element-wise kernels on floats; their specification is c/ew_c.c. */
#ifndef QK_EW_H
#define QK_EW_H

#include "base/base.h"
#include "quant/observer.h"

typedef void (*qk_ew_f32_fn)(const float *x, float *y, size_t n);

/*
 * Conversion of int32 sums to floats:
 *     clamp((float)x * (factor * scale) + bias), or with `rows`
 *     clamp(((float)x * scale) * factor + bias)
 * scale and bias are arrays, bias may be NULL; the clamp `v < lo ? lo : v`, `v > hi ? hi : v` lets
 * NaN pass.
 */
typedef struct qk_scale {
    float factor, lo, hi;
    const float *scale, *bias;
    bool rows;
} qk_scale;

/*
 * Rows become (x - mean) * inverse * scale + bias, where inverse is 1 / sqrt(variance + epsilon);
 * scale and bias are as long as a row, bias may be NULL. The mean and the variance are trees over
 * 16 lanes, divided by n; the mean is 0 where rows are not `centred`.
 */
typedef struct qk_norm {
    float epsilon;
    bool centred;
    const float *scale, *bias;
    float *mean, *inverse; /* of each row; may be NULL */
} qk_norm;

/* Functions of a float x and of parameters a, b, c: ew_maps.h. */
typedef enum qk_curve {
    QK_ELU,         /* x < 0 ? a (e^(x / c) - 1) : b x, where c > 0 */
    QK_SOFTPLUS,    /* log(1 + e^x) */
    QK_MISH,        /* x tanh(log(1 + e^x)) */
    QK_SOFTSIGN,    /* x / (1 + |x|) */
    QK_HARDSIGMOID, /* a x + b, not below 0 and not above 1; NaN is kept, as by all others */
    QK_THRESHOLD,   /* x > a ? x : 0 */
    QK_FLOOR,
    QK_CEIL,
    QK_ROUND, /* halves to even */
    QK_SIN,   /* of |x| < QK_NEAR, as QK_COS */
    QK_COS,
    QK_LOG
} qk_curve;
#define QK_NEAR 262144.0f

/* Casts between floats and the types that networks have beside them. */
typedef enum qk_cast {
    QK_FROM_BOOL, /* any but 0 is 1 */
    QK_FROM_U8,
    QK_FROM_S8,
    QK_FROM_S32,
    QK_FROM_HALF, /* float16; a NaN becomes quiet */
    QK_FROM_BRAIN,
    QK_TO_HALF, /* to nearest even; NaN is 0x7e00 */
    QK_TO_S32,  /* towards 0, saturated; NaN is 0, as in the next two */
    QK_TO_U8,
    QK_TO_S8,
    QK_TO_BOOL
} qk_cast;

#define QK_LEAST 0x80000000u /* of `greatest`: the bits that negate */

typedef struct qk_ew {
    qk_ew_f32_fn exp, sigmoid, silu, hardswish, tanh, erf, gelu, gelu_tanh;
    /* y = f(x); param: a, b, c. y may be x. */
    void (*map)(qk_curve f, const float param[3], const float *x, float *y, size_t n);
    /* n: a multiple of 16 */
    void (*cast)(qk_cast how, const void *x, void *y, size_t n);
    /* y = exp(x - shift) */
    void (*exp_shifted)(const float *x, float shift, float *y, size_t n);
    /*
     * Greatest element, or with QK_LEAST minus the least one, which is the greatest of the negated
     * ones; +0 above -0; NaN if there is one. n >= 1.
     */
    float (*greatest)(const float *x, size_t n, uint32_t sign);
    /* y = x / d; y = (x - a) - b; x and y may be the same. */
    void (*divide)(const float *x, float d, float *y, size_t n);
    void (*subtract)(const float *x, float a, float b, float *y, size_t n);
    /*
     * y = exp(x - greatest) / sum of exp(x - greatest) in each row of n >= 1; y may be x. `logs`:
     * y = (x - greatest) - log(sum), the logarithm in double; y is not x.
     */
    void (*softmax)(const float *x, float *y, size_t n, size_t rows, bool logs);
    /* Sums of x, of (x - shift)^2 by a tree: element i to lane i mod 16, then halves 8-4-2-1. */
    float (*sum)(const float *x, float unused, size_t n);
    float (*sum_squares)(const float *x, float shift, size_t n);
    /* Normalizes rows of n >= 1 elements each; x and y may be the same. */
    void (*normalize)(const qk_norm *how, const float *x, float *y, size_t n, size_t rows);
    /* Least and greatest of 0 and all elements; NaNs are skipped. */
    void (*range)(const float *x, size_t n, float *low, float *high);
    /* Greatest magnitude; NaN if there is one. */
    float (*magnitude)(const float *x, size_t n);
    /* y = clamp(a + b), or clamp(a) where b is NULL, as qk_scale clamps; y may be a or b. */
    void (*bound)(const float *a, const float *b, float lo, float hi, float *y, size_t n);
    /* y = clamp(x * f + b), product and sum each rounded; b NULL: clamp(x * f); y may be x or b. */
    void (*muladd)(const float *x, const float *f, const float *b, float lo, float hi, float *y,
                   size_t n);
    /* The same as qk_scale; y may be x. */
    void (*scale)(const void *x, const qk_scale *how, float *y, size_t n);
    qs_reads reads; /* loops of the observers */
} qk_ew;

/* softmax by the other kernels of the table k. */
void qk_softmax_by(const qk_ew *k, const float *x, float *y, size_t n, size_t rows, bool logs);

extern const qk_ew qk_ew_c;
extern const qk_ew qk_ew_avx2;
extern const qk_ew qk_ew_avx512;

#endif
