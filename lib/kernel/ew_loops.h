/* SPDX-License-Identifier: MIT */
/*
 * The loops of the element-wise family, to be instantiated once for each instruction set:
 *
 *   QK_EW_INSTANCE(suffix, target)   defines qk_ew_<suffix>; target: an attribute or nothing
 *
 * The compiler vectorizes them; nothing in them depends on the width, so the bits are the same.
 */
#ifndef QK_EW_LOOPS_H
#define QK_EW_LOOPS_H

#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "quant/requantize.h"

#define QK_EW_F32(name, suffix, TARGET)                                                            \
    TARGET static void name##_##suffix(const float *x, float *y, size_t n) {                       \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = qk_##name(x[i]);                                                                \
    }

/* 16 lanes, whatever the width of the registers. */
typedef float qk_ew_lanes __attribute__((vector_size(64)));

/*
 * An integer that is ordered like the float; a NaN is 0. Compilers vectorize extremes of integers,
 * not those of floats.
 */
static inline int32_t qk_ew_order(float x) {
    const int32_t b = (int32_t)qk_bits(x), m = b & 0x7fffffff;
    return (b ^ ((b >> 31) & 0x7fffffff)) & ~((0x7f800000 - m) >> 31);
}

/* The tree over TERM, an expression of v: one element, or 16 of them. */
#define QK_EW_TREE(name, TARGET, TERM)                                                             \
    TARGET static float name(const float *x, float shift, size_t n) {                              \
        qk_ew_lanes lanes = {0};                                                                   \
        float part[16];                                                                            \
        size_t i = 0;                                                                              \
        (void)shift;                                                                               \
        for (; i + 16 <= n; i += 16) {                                                             \
            qk_ew_lanes v;                                                                         \
            memcpy(&v, x + i, sizeof(v));                                                          \
            lanes += TERM;                                                                         \
        }                                                                                          \
        memcpy(part, &lanes, sizeof(part));                                                        \
        for (size_t k = 0; i + k < n; k++) {                                                       \
            const float v = x[i + k];                                                              \
            part[k] += TERM;                                                                       \
        }                                                                                          \
        for (size_t half = 8; half; half /= 2)                                                     \
            for (size_t k = 0; k < half; k++)                                                      \
                part[k] += part[k + half];                                                         \
        return part[0];                                                                            \
    }

#define QK_EW_ROWS(suffix, TARGET)                                                                 \
    QK_EW_TREE(sum_##suffix, TARGET, v)                                                            \
    QK_EW_TREE(sum_squares_##suffix, TARGET, (v - shift) * (v - shift))                            \
    TARGET static float greatest_##suffix(const float *x, size_t n) {                              \
        int32_t top = INT32_MIN;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            const int32_t v = qk_ew_order(x[i]);                                                   \
            top = v > top ? v : top;                                                               \
        }                                                                                          \
        return qk_from_bits((uint32_t)(top ^ ((top >> 31) & 0x7fffffff)));                         \
    }                                                                                              \
    TARGET static void divide_##suffix(const float *x, float d, float *y, size_t n) {              \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = x[i] / d;                                                                       \
    }                                                                                              \
    TARGET static void normalize_##suffix(const float *x, float shift, float factor,               \
                                          const float *scale, const float *bias, float *y,         \
                                          size_t n) {                                              \
        if (bias) {                                                                                \
            for (size_t i = 0; i < n; i++)                                                         \
                y[i] = (x[i] - shift) * factor * scale[i] + bias[i];                               \
        } else {                                                                                   \
            for (size_t i = 0; i < n; i++)                                                         \
                y[i] = (x[i] - shift) * factor * scale[i];                                         \
        }                                                                                          \
    }

/* A sum and the float it becomes may share memory. */
static inline float qk_ew_sum(const void *x, size_t i) {
    int32_t acc;
    memcpy(&acc, (const int32_t *)x + i, sizeof(acc));
    return (float)acc;
}

#define QK_EW_DYNAMIC(suffix, TARGET)                                                              \
    TARGET static void range_##suffix(const float *x, size_t n, float *low, float *high) {         \
        int32_t lo = 0, hi = 0;                                                                    \
        for (size_t i = 0; i < n; i++) {                                                           \
            const int32_t v = qk_ew_order(x[i]);                                                   \
            lo = v < lo ? v : lo;                                                                  \
            hi = v > hi ? v : hi;                                                                  \
        }                                                                                          \
        lo += lo == -1; /* the order of -0 */                                                      \
        *low = qk_from_bits((uint32_t)(lo ^ ((lo >> 31) & 0x7fffffff)));                           \
        *high = qk_from_bits((uint32_t)hi);                                                        \
    }                                                                                              \
    TARGET static float magnitude_##suffix(const float *x, size_t n) {                             \
        uint32_t top = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            const uint32_t m = qk_bits(x[i]) & 0x7fffffffu;                                        \
            top = m > top ? m : top;                                                               \
        }                                                                                          \
        return qk_from_bits(top);                                                                  \
    }                                                                                              \
    TARGET static void bound_##suffix(const float *a, const float *b, float lo, float hi,          \
                                      float *y, size_t n) {                                        \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float v = b ? a[i] + b[i] : a[i], low = v < lo ? lo : v;                         \
            y[i] = low > hi ? hi : low;                                                            \
        }                                                                                          \
    }                                                                                              \
    TARGET static void muladd_##suffix(const float *x, const float *f, const float *b, float lo,   \
                                       float hi, float *y, size_t n) {                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            const float p = x[i] * f[i], v = b ? p + b[i] : p, low = v < lo ? lo : v;              \
            y[i] = low > hi ? hi : low;                                                            \
        }                                                                                          \
    }                                                                                              \
    TARGET static void scale_##suffix(const void *x, const qk_scale *how, float *y, size_t n) {    \
        const float by = how->rows ? 1.0f : how->factor, then = how->rows ? how->factor : 1.0f;    \
        for (size_t i = 0; i < n; i++) { /* a product with 1 is exact */                           \
            const float v = qk_ew_sum(x, i) * (by * how->scale[i]) * then;                         \
            const float w = how->bias ? v + how->bias[i] : v, low = w < how->lo ? how->lo : w;     \
            const float z = low > how->hi ? how->hi : low;                                         \
            memcpy(y + i, &z, sizeof(z));                                                          \
        }                                                                                          \
    }

#define QK_EW_INSTANCE(suffix, TARGET)                                                             \
    QK_EW_F32(exp, suffix, TARGET)                                                                 \
    QK_EW_F32(sigmoid, suffix, TARGET)                                                             \
    QK_EW_F32(silu, suffix, TARGET)                                                                \
    QK_EW_F32(hardswish, suffix, TARGET)                                                           \
    QK_EW_F32(tanh, suffix, TARGET)                                                                \
    QK_EW_F32(erf, suffix, TARGET)                                                                 \
    QK_EW_F32(gelu, suffix, TARGET)                                                                \
    QK_EW_F32(gelu_tanh, suffix, TARGET)                                                           \
    QK_EW_ROWS(suffix, TARGET)                                                                     \
    QK_EW_DYNAMIC(suffix, TARGET)                                                                  \
    TARGET static void exp_shifted_##suffix(const float *x, float shift, float *y, size_t n) {     \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = qk_exp(x[i] - shift);                                                           \
    }                                                                                              \
    const qk_ew qk_ew_##suffix = {.exp = exp_##suffix,                                             \
                                  .sigmoid = sigmoid_##suffix,                                     \
                                  .silu = silu_##suffix,                                           \
                                  .hardswish = hardswish_##suffix,                                 \
                                  .tanh = tanh_##suffix,                                           \
                                  .erf = erf_##suffix,                                             \
                                  .gelu = gelu_##suffix,                                           \
                                  .gelu_tanh = gelu_tanh_##suffix,                                 \
                                  .exp_shifted = exp_shifted_##suffix,                             \
                                  .greatest = greatest_##suffix,                                   \
                                  .divide = divide_##suffix,                                       \
                                  .sum = sum_##suffix,                                             \
                                  .sum_squares = sum_squares_##suffix,                             \
                                  .normalize = normalize_##suffix,                                 \
                                  .range = range_##suffix,                                         \
                                  .magnitude = magnitude_##suffix,                                 \
                                  .bound = bound_##suffix,                                         \
                                  .muladd = muladd_##suffix,                                       \
                                  .scale = scale_##suffix};

#endif
