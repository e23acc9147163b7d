/* SPDX-License-Identifier: MIT */
/*
 * Elementary functions of doubles beside those of elementary.h: trigonometric, hyperbolic and their
 * inverses, within 3 units in the last place where the result is not near 0 by cancellation. The
 * same bits everywhere: additions, multiplications, divisions and square roots in a written order.
 */
#ifndef QK_ELEMENTARY64_H
#define QK_ELEMENTARY64_H

#include "kernel/elementary.h"

#define QK_HALF_PI 1.57079632679489661923
#define QK_LOG2    0.69314718055994530942

/* The remainder of |x| by pi / 2 in [-pi / 4, pi / 4]; *quadrant: the multiple modulo 4. */
double qk_quarter64(double x, unsigned *quadrant);

/* sin and cos of |r| <= pi / 4, by their Taylor series. */
static inline double qk_sin_near64(double r) {
    const double z = r * r;
    double p = 1;
    for (int i = 20; i > 0; i -= 2)
        p = 1 - p * z / (double)(i * (i + 1));
    return r * p;
}
static inline double qk_cos_near64(double r) {
    const double z = r * r;
    double p = 1;
    for (int i = 21; i > 0; i -= 2)
        p = 1 - p * z / (double)(i * (i + 1));
    return p;
}

static inline double qk_sin64(double x) {
    unsigned q;
    const double r = qk_quarter64(x, &q), v = q & 1 ? qk_cos_near64(r) : qk_sin_near64(r);
    return (signbit(x) != 0) != (q >> 1) ? -v : v;
}

static inline double qk_cos64(double x) {
    unsigned q;
    const double r = qk_quarter64(x, &q), v = q & 1 ? qk_sin_near64(r) : qk_cos_near64(r);
    return q == 1 || q == 2 ? -v : v;
}

static inline double qk_tan64(double x) {
    unsigned q;
    const double r = qk_quarter64(x, &q), s = qk_sin_near64(r), c = qk_cos_near64(r);
    const double v = q & 1 ? -c / s : s / c;
    return signbit(x) ? -v : v;
}

/* atan x: of 1 / x where |x| > 1; the angle is halved twice, then the series. */
static inline double qk_atan64(double x) {
    const double a = fabs(x);
    double t = a > 1 ? 1 / a : a, p = 0;
    for (int i = 0; i < 2; i++)
        t = t / (1 + sqrt(1 + t * t));
    for (int i = 27; i > 0; i -= 2)
        p = 1.0 / i - p * t * t;
    t = 4 * (p * t);
    t = a > 1 ? QK_HALF_PI - t : t;
    return x < 0 ? -t : a == 0 ? x : t;
}

static inline double qk_asin64(double x) {
    return x == 0 ? x : qk_atan64(x / sqrt((1 - x) * (1 + x)));
}

static inline double qk_acos64(double x) {
    return 2 * qk_atan64(sqrt((1 - x) / (1 + x)));
}

/* e^x - 1 and log(1 + x), accurate near 0. */
static inline double qk_expm164(double x) {
    double p = 1;
    if (!(fabs(x) < 0.5))
        return qk_exp64(x) - 1;
    for (int i = 17; i > 1; i--)
        p = p * (x / i) + 1;
    return p * x;
}

static inline double qk_log1p64(double x) {
    const double s = x / (2 + x), z = s * s;
    double p = 0;
    if (!(fabs(x) < 0.4))
        return qk_log64(1 + x);
    for (int i = 25; i > 0; i -= 2)
        p = p * z + 2.0 / i;
    return s * p;
}

static inline double qk_sinh64(double x) {
    const double a = fabs(x), e = a < 40 ? qk_expm164(a) : qk_exp64(a * 0.5);
    const double v = a < 40 ? (e + e / (e + 1)) * 0.5 : e * 0.5 * e;
    return x < 0 ? -v : a == 0 ? x : v;
}

static inline double qk_cosh64(double x) {
    const double a = fabs(x), e = qk_exp64(a < 40 ? a : a * 0.5);
    return a < 40 ? (e + 1 / e) * 0.5 : e * 0.5 * e;
}

static inline double qk_tanh64(double x) {
    const double a = fabs(x), e = qk_expm164(2 * (a < 20 ? a : 20)), v = e / (e + 2);
    return x != x ? x : x < 0 ? -v : a == 0 ? x : v;
}

static inline double qk_asinh64(double x) {
    const double a = fabs(x);
    const double v =
        a > 1e8 ? qk_log64(a) + QK_LOG2 : qk_log1p64(a + a * a / (sqrt(a * a + 1) + 1));
    return x < 0 ? -v : a == 0 ? x : v;
}

static inline double qk_acosh64(double x) {
    const double t = x - 1;
    return x > 1e8 ? qk_log64(x) + QK_LOG2 : qk_log1p64(t + sqrt(2 * t + t * t));
}

static inline double qk_atanh64(double x) {
    const double a = fabs(x), v = 0.5 * qk_log1p64(2 * a / (1 - a));
    return x < 0 ? -v : a == 0 ? x : v;
}

#endif
