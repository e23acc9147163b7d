/* SPDX-License-Identifier: MIT */
/*
 * The kernel `map` (ew.h): functions of one float without branches and calls, so that compilers
 * make vectors of their loops; a file of an instruction set inlines qk_map. Errors in units in the
 * last place, of results that are no denormals: elu 1.5, softplus 2.5, mish 4 (below 2^-119 within
 * 2^-142).
 */
#ifndef QK_EW_MAPS_H
#define QK_EW_MAPS_H

#include "kernel/elementary.h"
#include "kernel/ew.h"

/* A conditional expression lets compilers compute one of both behind a branch. */
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

/* y = f(x); param: a, b, c. */
QK_INLINE void qk_map(qk_curve f, const float *param, const float *x, float *y, size_t n) {
    const float a = param[0], b = param[1], c = param[2];
#define LOOP(value)                                                                                \
    QS_IVDEP                                                                                       \
    for (size_t i = 0; i < n; i++) {                                                               \
        const float v = x[i];                                                                      \
        y[i] = value;                                                                              \
    }                                                                                              \
    break;

    switch (f) {
    case QK_ELU: LOOP(qk_elu(v, a, b, c))
    case QK_SOFTPLUS: LOOP(qk_softplus(v))
    case QK_MISH: LOOP(qk_mish(v))
    }
#undef LOOP
}

#endif
