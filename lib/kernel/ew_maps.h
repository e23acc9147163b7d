/* SPDX-License-Identifier: MIT */
/*
 * The kernel `map` (ew.h): functions of one float without branches and calls, so that compilers
 * make vectors of their loops; a file of an instruction set inlines qk_map. Errors in units in the
 * last place, of results that are no denormals: log 1, elu, softsign and sine 1.5, softplus 2.5,
 * mish 4 (below 2^-119 within 2^-142).
 */
#ifndef QK_EW_MAPS_H
#define QK_EW_MAPS_H

#include "kernel/elementary.h"
#include "kernel/ew.h"

/* Chooses by masks: of a conditional expression compilers may make a branch, not vectors. */
QK_INLINE float qk_select(bool condition, float yes, float no) {
    const uint32_t mask = 0u - (uint32_t)condition;
    return qk_from_bits((qk_bits(yes) & mask) | (qk_bits(no) & ~mask));
}

/* e^x - 1 for x <= 0: 2^n (e^r - 1) + (2^n - 1). Below -30 it is -1. */
QK_INLINE float qk_expm1(float x) {
    float k, r;
    const float slope = qk_exp_slope(x < -30.0f ? -30.0f : x, &k, &r);
    const float power = qk_from_bits((qk_bits(k) - 127) << 23); /* 2^n */
    return fmaf(slope * r, power, power - 1.0f);
}

QK_INLINE float qk_elu(float x, float a, float slope, float divisor) {
    const float below = a * qk_expm1(x / divisor), above = slope * x;
    return qk_select(x < 0.0f, below, above);
}

QK_INLINE float qk_clamp01(float v) {
    v = v < 0.0f ? 0.0f : v;
    return v > 1.0f ? 1.0f : v;
}

/* gcc makes no vector instruction of floorf, which may trap, but one of rintf. */
QK_INLINE float qk_floor(float x) {
    const float near = rintf(x);
    return near - (near > x ? 1.0f : 0.0f);
}

/* max(x, 0) + log(1 + t), t = e^-|x|; log(1 + t) / t is fitted on [0, 1] with an error of 4e-9. */
QK_INLINE float qk_softplus(float x) {
    const float t = qk_exp(-qk_abs(x));
    float p = -0.00333873089f;
    p = fmaf(p, t, 0.0202777702f);
    p = fmaf(p, t, -0.0577591434f);
    p = fmaf(p, t, 0.106845371f);
    p = fmaf(p, t, -0.153532773f);
    p = fmaf(p, t, 0.196924552f);
    p = fmaf(p, t, -0.249573469f);
    p = fmaf(p, t, 0.333302766f);
    p = fmaf(p, t, -0.499999136f);
    p = fmaf(p, t, 1.0f);
    return fmaf(p, t, x > 0.0f ? x : 0.0f);
}

/* tanh(log(m)) is (m^2 - 1) / (m^2 + 1), with m = 1 + e^x here: n / (n + 2), 1 from x = 9 on. */
QK_INLINE float qk_mish(float x) {
    const float e = qk_exp(x > 20.0f ? 20.0f : x), n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

/* The sine of |x| + quarters pi / 2, negated by the bits `signs` of x; |x| < QK_NEAR. */
QK_INLINE float qk_sine(float x, uint32_t quarters, uint32_t signs) {
    const float a = qk_abs(x), k = fmaf(a, 0.636619772f, 12582912.0f), n = k - 12582912.0f;
    float r = fmaf(n, -1.57079637f, a);
    r = fmaf(n, 4.37113883e-8f, r);
    r = fmaf(n, 1.71512451e-15f, r);
    const float z = r * r;
    float s = -0.000195052387f, c = 2.44249204e-05f;
    s = fmaf(s, z, 0.00833209045f);
    s = fmaf(s, z, -0.166666538f);
    s = fmaf(s * z, r, r);
    c = fmaf(c, z, -0.00138872513f);
    c = fmaf(c, z, 0.0416666456f);
    c = fmaf(c, z, -0.5f);
    c = fmaf(c, z, 1.0f);
    const uint32_t q = qk_bits(k) + quarters;
    const float v = qk_select(q & 1, c, s);
    return qk_from_bits(qk_bits(v) ^ ((q & 2) << 30) ^ (qk_bits(x) & signs));
}

/*
 * log x = n log(2) + log(1 + r), where x = 2^n (1 + r) and 1 + r is from sqrt(1/2) to sqrt(2):
 * log(1 + r) = r - r^2 / 2 + r^3 P(r), P fitted with an error of 6e-9 of it. The product of n with
 * the first part of log(2) is exact. Denormals are multiplied by 2^23.
 */
QK_INLINE float qk_log(float x) {
    const uint32_t least = 0x3f3504f3u; /* sqrt(1/2) */
    const bool tiny = x < 0x1p-126f;
    const uint32_t u = qk_bits(qk_select(tiny, x * 0x1p23f, x)) - least;
    const float n = (float)((int32_t)u >> 23) - qk_select(tiny, 23.0f, 0.0f);
    const float r = qk_from_bits((u & 0x7fffffu) + least) - 1.0f;
    float p = -0.0763442963f;
    p = fmaf(p, r, 0.127615497f);
    p = fmaf(p, r, -0.131601945f);
    p = fmaf(p, r, 0.142017618f);
    p = fmaf(p, r, -0.166233569f);
    p = fmaf(p, r, 0.200012267f);
    p = fmaf(p, r, -0.250008225f);
    p = fmaf(p, r, 0.333333313f);
    p = fmaf(p, r, -0.5f);
    const float rest = fmaf(n, -2.12194440e-4f, r * r * p);
    const float y = fmaf(n, 0.693359375f, rest + r);
    const bool ordinary = qk_bits(x) - 1 < 0x7f7fffffu; /* finite and above 0 */
    const float other = qk_select(x < 0.0f, NAN, x);    /* infinity and NaN are kept */
    return qk_select(ordinary, y, qk_select(x == 0.0f, -INFINITY, other));
}

/*
 * y = f(x); param: a, b, c. The loops test at their end: compilers vectorize no others without
 * -ftree-ch, which lib/meson.build takes from kernels.
 */
QK_INLINE void qk_map(qk_curve f, const float *param, const float *x, float *y, size_t n) {
    const float a = param[0], b = param[1], c = param[2];
    const uint32_t sign = f == QK_CEIL || f == QK_SIN ? 0x80000000u : 0;
    size_t i = 0;
    if (n == 0)
        return;
#define LOOP(value)                                                                                \
    QS_IVDEP                                                                                       \
    do {                                                                                           \
        const float v = x[i];                                                                      \
        y[i] = value;                                                                              \
    } while (++i < n);                                                                             \
    break;

    switch (f) {
    case QK_ELU: LOOP(qk_elu(v, a, b, c))
    case QK_SOFTPLUS: LOOP(qk_softplus(v))
    case QK_MISH: LOOP(qk_mish(v))
    case QK_SOFTSIGN: LOOP(v / (1.0f + qk_abs(v)))
    case QK_HARDSIGMOID: LOOP(qk_clamp01(a * v + b))
    case QK_THRESHOLD: LOOP(!(v <= a) ? v : 0.0f)
    case QK_FLOOR:
    case QK_CEIL: LOOP(qk_flip(qk_floor(qk_flip(v, sign)), sign))
    case QK_ROUND: LOOP(rintf(v))
    case QK_SIN:
    case QK_COS: LOOP(qk_sine(v, f == QK_COS, sign))
    case QK_LOG: LOOP(qk_log(v))
    }
#undef LOOP
}

#endif
