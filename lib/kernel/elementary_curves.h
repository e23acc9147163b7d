/* SPDX-License-Identifier: MIT */
/*
 * A template of the elementary functions of floats, for numbers (elementary.h) and for vectors of
 * them (x86/ew_vectors.h). Before including it, define
 *
 *   QK_F                 a float, or a vector of them that has + - * /
 *   QK_CURVE             attributes of a function's definition
 *   QK_NAME(name)        its name
 *   QK_K(c)              the constant c
 *   QK_FMA(a, b, c)      a * b + c, rounded once
 *   QK_FNMA(a, b, c)     c - a * b, rounded once
 *   QK_MIN(a, b), QK_MAX(a, b)           b where either is a NaN or both are 0
 *   QK_ABS(x)            x without its sign
 *   QK_SCALE(p, k)       p * 2^n where the lowest 9 bits of k are those of n + 254; |n| < 160
 *   QK_JOIN(x, b, s, l)  s where |x| < b, else l with the sign of x
 *   QK_FAR, QK_REACHES(x, b)             the type, and the answer, of whether |x| >= b
 *   QK_ONE_WHERE(far, x)                 1 with the sign of x where `far`, else x
 *   QK_SCALE_WHERE(far, p, k, s)         QK_SCALE(p, k) where `far`, else s
 */

/*
 * e^x = 2^n e^r with |r| <= ln(2) / 2: (e^r - 1) / r is the result, n the lowest bits of *k
 * (QK_SCALE), for -110 <= x <= 90. The constant rounds x / ln(2) to an integer in the low bits; the
 * product with ln(2)'s first part is exact in the fused operation. e^r = 1 + r + r^2 P(r), P fitted
 * with an error of 3.2e-9 of e^r.
 */
QK_CURVE QK_F QK_NAME(exp_slope)(QK_F x, QK_F *k, QK_F *rest) {
    *k = QK_FMA(x, QK_K(1.44269504f), QK_K(12582912.0f + 254.0f)); /* 1.5 * 2^23 */
    const QK_F whole = *k - QK_K(12582912.0f + 254.0f);
    QK_F r = QK_FMA(whole, QK_K(-0.693147182f), x);
    r = QK_FMA(whole, QK_K(1.90465421e-9f), r);
    QK_F p = QK_K(1.38206617e-3f);
    p = QK_FMA(p, r, QK_K(8.36867467e-3f));
    p = QK_FMA(p, r, QK_K(4.16682661e-2f));
    p = QK_FMA(p, r, QK_K(1.66665211e-1f));
    p = QK_FMA(p, r, QK_K(4.99999940e-1f));
    *rest = r;
    return QK_FMA(p, r, QK_K(1.0f));
}

/* The same with e^r for a result. */
QK_CURVE QK_F QK_NAME(exp_parts)(QK_F x, QK_F *k) {
    QK_F r;
    const QK_F slope = QK_NAME(exp_slope)(x, k, &r);
    return QK_FMA(slope, r, QK_K(1.0f));
}

QK_CURVE QK_F QK_NAME(exp)(QK_F x) {
    QK_F k;
    const QK_F p = QK_NAME(exp_parts)(QK_MIN(QK_K(90.0f), QK_MAX(QK_K(-110.0f), x)), &k);
    return QK_SCALE(p, k);
}

/*
 * tanh x = x + x^3 P(x^2) where |x| < 0.625, P fitted on Chebyshev nodes (relative error 6.4e-10);
 * else 1 - 2 / (e^2|x| + 1) with the sign of x.
 */
QK_CURVE QK_F QK_NAME(tanh)(QK_F x) {
    const QK_F a = QK_ABS(x), z = x * x;
    QK_F p = QK_K(0.002295841f);
    p = QK_FMA(p, z, QK_K(-0.00834698044f));
    p = QK_FMA(p, z, QK_K(0.0217699613f));
    p = QK_FMA(p, z, QK_K(-0.0539594069f));
    p = QK_FMA(p, z, QK_K(0.133333042f));
    p = QK_FMA(p, z, QK_K(-0.333333343f));
    const QK_F small = QK_FMA(x * z, p, x);
    const QK_F large = QK_K(1.0f) - QK_K(2.0f) / (QK_NAME(exp)(a + a) + QK_K(1.0f));
    return QK_JOIN(x, 0.625f, small, large);
}

/* 0 - x keeps the sign of a NaN, so silu, a product, has the same NaN in either order. */
QK_CURVE QK_F QK_NAME(sigmoid)(QK_F x) {
    return QK_K(1.0f) / (QK_K(1.0f) + QK_NAME(exp)(QK_K(0.0f) - x));
}

QK_CURVE QK_F QK_NAME(silu)(QK_F x) {
    return x * QK_NAME(sigmoid)(x);
}

QK_CURVE QK_F QK_NAME(hardswish)(QK_F x) {
    const QK_F v = QK_FMA(x, QK_K(1.0f / 6.0f), QK_K(0.5f));
    return x * QK_MIN(QK_K(1.0f), QK_MAX(QK_K(0.0f), v));
}

/*
 * erf x = x - x P(x^2) where |x| < 0.92; else 1 - e^Q(|x|) with the sign of x, Q fitted to log(1 -
 * erf) on [0.92, 4], beyond which the float is 1. Errors: P 5e-10, Q 1.5e-9 of the result. Both are
 * s - s t, with s = x and t = P, or s = 1 and t = e^Q.
 */
QK_CURVE QK_F QK_NAME(erf)(QK_F x) {
    const QK_F a = QK_MIN(QK_K(4.0f), QK_ABS(x)), z = x * x;
    QK_F p = QK_K(-8.32748701e-5f);
    p = QK_FMA(p, z, QK_K(8.13321560e-4f));
    p = QK_FMA(p, z, QK_K(-5.20026077e-3f));
    p = QK_FMA(p, z, QK_K(2.68591195e-2f));
    p = QK_FMA(p, z, QK_K(-1.12836912e-1f));
    p = QK_FMA(p, z, QK_K(3.76126349e-1f));
    p = QK_FMA(p, z, QK_K(-1.28379166e-1f));
    QK_F q = QK_K(1.9494677e-4f), k;
    q = QK_FMA(q, a, QK_K(-3.0336925e-3f));
    q = QK_FMA(q, a, QK_K(2.2189777e-2f));
    q = QK_FMA(q, a, QK_K(-1.0385638e-1f));
    q = QK_FMA(q, a, QK_K(-6.3726574e-1f));
    q = QK_FMA(q, a, QK_K(-1.1276274f));
    q = QK_FMA(q, a, QK_K(-2.0700849e-4f));
    const QK_F e = QK_NAME(exp_parts)(q, &k);
    const QK_FAR far = QK_REACHES(x, 0.92f);
    const QK_F s = QK_ONE_WHERE(far, x), t = QK_SCALE_WHERE(far, e, k, p);
    return QK_FNMA(s, t, s);
}

/* x times the standard normal distribution function of x. */
QK_CURVE QK_F QK_NAME(gelu)(QK_F x) {
    const QK_F half = x * QK_K(0.5f);
    return QK_FMA(half, QK_NAME(erf)(x * QK_K(0.707106781f)), half);
}

/* The same with the usual approximation of that function by tanh. */
QK_CURVE QK_F QK_NAME(gelu_tanh)(QK_F x) {
    const QK_F half = x * QK_K(0.5f);
    const QK_F inner = x * QK_FMA(x * x, QK_K(0.0356774081f), QK_K(0.797884561f));
    return QK_FMA(half, QK_NAME(tanh)(inner), half);
}
