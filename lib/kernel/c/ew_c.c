/* SPDX-License-Identifier: MIT */
/*
 * The specification of the element-wise kernels, which also run where an instruction set has none
 * of its own. The compiler vectorizes these loops; nothing in them depends on the width, so the
 * bits are the same.
 */
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/ew_maps.h"
#include "kernel/table.h"
#include "quant/observer_loops.h"
#include "quant/requantize.h"
#include "tensor/minifloat.h"

#define CURVE(name)                                                                                \
    static void each_##name(const float *x, float *y, size_t n) {                                  \
        for (size_t i = 0; i < n; i++)                                                             \
            y[i] = qk_##name(x[i]);                                                                \
    }

CURVE(exp)
CURVE(sigmoid)
CURVE(silu)
CURVE(hardswish)
CURVE(tanh)
CURVE(erf)
CURVE(gelu)
CURVE(gelu_tanh)

static void map(qk_curve f, const float *param, const float *x, float *y, size_t n) {
    qk_map(f, param, x, y, n);
}

/* Below 2^-14 an addition of floats rounds to the float16, above an addition of integers does. */
static uint16_t half_of(float x) {
    const uint32_t sign = qk_bits(x) >> 16 & 0x8000u, m = qk_bits(x) & 0x7fffffffu;
    const uint32_t tiny = qk_bits(qk_from_bits(m) + 0.5f) - 0x3f000000u;
    const uint32_t near = (m - 0x38000000u + 0xfffu + (m >> 13 & 1u)) >> 13;
    const uint32_t half = m < 0x38800000u ? tiny : near < 0x7c00u ? near : 0x7c00u;
    return (uint16_t)(m > 0x7f800000u ? 0x7e00u : sign | half);
}

static void cast(qk_cast how, const void *vx, void *vy, size_t n) {
    const float low = how == QK_TO_U8 ? 0.0f : -128.0f, high = low + 255.0f;
    const float *const x = vx;
    float *const y = vy;
    const uint8_t *const bytes = vx;
#define EACH(to, value)                                                                            \
    for (size_t i = 0; i < n; i++)                                                                 \
        (to)[i] = value;                                                                           \
    break;
#define NUMBER(least) (x[i] != x[i] ? 0.0f : x[i] < (least) ? (least) : x[i])
    switch (how) {
    case QK_FROM_BOOL: EACH(y, bytes[i] != 0)
    case QK_FROM_U8: EACH(y, bytes[i])
    case QK_FROM_S8: EACH(y, ((const int8_t *)vx)[i])
    case QK_FROM_S32: EACH(y, (float)((const int32_t *)vx)[i])
    case QK_FROM_HALF: EACH(y, qs_half_value(((const uint16_t *)vx)[i]))
    case QK_FROM_BRAIN: EACH(y, qs_brain_value(((const uint16_t *)vx)[i]))
    case QK_TO_HALF: EACH((uint16_t *)vy, half_of(x[i]))
    case QK_TO_S32:
        EACH((int32_t *)vy, x[i] < 0x1p31f ? (int32_t)NUMBER(-0x1p31f)
                            : x[i] != x[i] ? 0
                                           : INT32_MAX)
    case QK_TO_BOOL: EACH((uint8_t *)vy, x[i] != 0)
    default: EACH((uint8_t *)vy, (uint8_t)(int32_t)(x[i] > high ? high : NUMBER(low)))
    }
#undef EACH
#undef NUMBER
}

/* 16 lanes, whatever the width of the registers. */
typedef float lanes __attribute__((vector_size(64)));

/*
 * An integer that is ordered like the float; a NaN is 0. Compilers vectorize extremes of integers,
 * not those of floats.
 */
static inline int32_t order_of(float x) {
    const int32_t b = (int32_t)qk_bits(x), m = b & 0x7fffffff;
    return (b ^ ((b >> 31) & 0x7fffffff)) & ~((0x7f800000 - m) >> 31);
}

/* Sums of x or of (x - shift)^2 by the tree over 16 lanes (ew.h). */
__attribute__((always_inline)) static inline float tree(const float *x, float shift, size_t n,
                                                        bool square) {
    lanes sums = {0};
    float part[16];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        lanes v;
        memcpy(&v, x + i, sizeof(v));
        sums += square ? (v - shift) * (v - shift) : v;
    }
    memcpy(part, &sums, sizeof(part));
    for (size_t k = 0; i + k < n; k++) {
        const float v = x[i + k];
        part[k] += square ? (v - shift) * (v - shift) : v;
    }
    for (size_t half = 8; half; half /= 2)
        for (size_t k = 0; k < half; k++)
            part[k] += part[k + half];
    return part[0];
}

static float sum(const float *x, float unused, size_t n) {
    return tree(x, unused, n, false);
}

static float sum_squares(const float *x, float shift, size_t n) {
    return tree(x, shift, n, true);
}

/* Of a NaN the bits without the sign are greater than those of all numbers. */
static float greatest(const float *x, size_t n, uint32_t sign) {
    int32_t top = INT32_MIN;
    for (size_t i = 0; i < n; i++) {
        const int32_t m = (int32_t)(qk_bits(x[i]) & 0x7fffffff);
        const int32_t v = m > 0x7f800000 ? m : order_of(qk_flip(x[i], sign));
        top = v > top ? v : top;
    }
    return qk_from_bits((uint32_t)(top ^ ((top >> 31) & 0x7fffffff)));
}

static void divide(const float *x, float d, float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] / d;
}

static void subtract(const float *x, float a, float b, float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] - a - b;
}

static void normalize(const qk_norm *how, const float *x, float *y, size_t n, size_t rows) {
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        const float mean = how->centred ? sum(x, 0, n) / (float)n : 0.0f;
        const float inverse = 1.0f / sqrtf(sum_squares(x, mean, n) / (float)n + how->epsilon);
        for (size_t i = 0; i < n; i++) {
            const float v = (x[i] - mean) * inverse * how->scale[i];
            y[i] = how->bias ? v + how->bias[i] : v;
        }
        if (how->mean)
            how->mean[r] = mean;
        if (how->inverse)
            how->inverse[r] = inverse;
    }
}

/* Reads a sum by memcpy: it may share memory with the float that it becomes. */
static float sum_at(const void *x, size_t i) {
    int32_t acc;
    memcpy(&acc, (const int32_t *)x + i, sizeof(acc));
    return (float)acc;
}

static void range(const float *x, size_t n, float *low, float *high) {
    int32_t lo = 0, hi = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t v = order_of(x[i]);
        lo = v < lo ? v : lo;
        hi = v > hi ? v : hi;
    }
    lo += lo == -1; /* the order of -0 */
    *low = qk_from_bits((uint32_t)(lo ^ ((lo >> 31) & 0x7fffffff)));
    *high = qk_from_bits((uint32_t)hi);
}

static float magnitude(const float *x, size_t n) {
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t m = qk_bits(x[i]) & 0x7fffffffu;
        top = m > top ? m : top;
    }
    return qk_from_bits(top);
}

static void bound(const float *a, const float *b, float lo, float hi, float *y, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float v = b ? a[i] + b[i] : a[i], low = v < lo ? lo : v;
        y[i] = low > hi ? hi : low;
    }
}

static void muladd(const float *x, const float *f, const float *b, float lo, float hi, float *y,
                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        const float p = x[i] * f[i], v = b ? p + b[i] : p, low = v < lo ? lo : v;
        y[i] = low > hi ? hi : low;
    }
}

static void scale(const void *x, const qk_scale *how, float *y, size_t n) {
    const float by = how->rows ? 1.0f : how->factor, then = how->rows ? how->factor : 1.0f;
    for (size_t i = 0; i < n; i++) { /* a product with 1 is exact */
        const float v = sum_at(x, i) * (by * how->scale[i]) * then;
        const float w = how->bias ? v + how->bias[i] : v, low = w < how->lo ? how->lo : w;
        const float z = low > how->hi ? how->hi : low;
        memcpy(y + i, &z, sizeof(z));
    }
}

static void exp_shifted(const float *x, float shift, float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = qk_exp(x[i] - shift);
}

void qk_softmax_by(const qk_ew *k, const float *x, float *y, size_t n, size_t rows, bool logs) {
    for (; rows > 0; rows--, x += n, y += n) {
        const float top = k->greatest(x, n, 0);
        k->exp_shifted(x, top, y, n);
        const float sum = k->sum(y, 0, n);
        if (logs)
            k->subtract(x, top, (float)qk_log64((double)sum), y, n);
        else
            k->divide(y, sum, y, n);
    }
}

static void softmax(const float *x, float *y, size_t n, size_t rows, bool logs) {
    qk_softmax_by(&qk_ew_c, x, y, n, rows, logs);
}

static bool extremes(const float *x, size_t n, float *min, float *max, qs_waiting *w) {
    (void)w;
    return qs_find_extremes(x, n, min, max);
}

static size_t bins(const float *x, size_t n, float inverse, uint16_t *at, qs_waiting *w) {
    (void)w;
    return qs_bins(x, n, inverse, at);
}

static bool read_rows(qs_row_read *r, qs_waiting *w) {
    r->found = QS_NOT_FOUND;
    if (!r->sum)
        return extremes(r->x, r->rows * r->channels, &r->min, &r->max, w);
    return qs_rows(r);
}

static size_t add_sums(double *high, double *low, const double *x, size_t count) {
    return qs_sums_aside(high, low, x, count);
}

static uint16_t add_table(uint16_t *restrict into, const uint16_t *restrict from, size_t n) {
    return qs_table_sum(into, from, n);
}

const qk_ew qk_ew_c = {.exp = each_exp,
                       .sigmoid = each_sigmoid,
                       .silu = each_silu,
                       .hardswish = each_hardswish,
                       .tanh = each_tanh,
                       .erf = each_erf,
                       .gelu = each_gelu,
                       .gelu_tanh = each_gelu_tanh,
                       .map = map,
                       .cast = cast,
                       .exp_shifted = exp_shifted,
                       .greatest = greatest,
                       .divide = divide,
                       .subtract = subtract,
                       .softmax = softmax,
                       .sum = sum,
                       .sum_squares = sum_squares,
                       .normalize = normalize,
                       .range = range,
                       .magnitude = magnitude,
                       .bound = bound,
                       .muladd = muladd,
                       .scale = scale,
                       .reads = {extremes, bins, read_rows, add_sums, add_table}};
