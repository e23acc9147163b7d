/* SPDX-License-Identifier: MIT */
/*
 * Circular and hyperbolic functions and inverses; floats are computed in double and rounded once,
 * except for Sin and Cos.
 */
#include "kernel/elementary64.h"
#include "op/elementwise/curve.h"
#include "op/elementwise/maps.h"

QS_COLD static int infer(qs_infer *x) {
    return qs_infer_map(x, QS_T_REAL, 0);
}

#define ROW(id, title, from)                                                                       \
    QS_OP(id, .name = title, .since = from, .min_in = 1, .traits = QS_ELEMENTWISE,                 \
          .kernel = QS_KERNEL_UNARY, .infer = infer, .lower = lower_##id)
#define CURVE(id, title, from)                                                                     \
    QS_MAP(id##_f64, double, double, qk_##id##64(x))                                               \
    QS_COLD static int lower_##id(qs_lower *l) {                                                   \
        return qs_lower_reals(l, id##_f64, 0, 0);                                                  \
    }                                                                                              \
    ROW(id, title, from)

/* Floats by the kernel, in blocks; a block with a number beyond QK_NEAR is computed one by one. */
static void sine(const qk_ew *k, qk_curve f, const float *x, float *y, size_t n) {
    static const float none[3] = {0};
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < 256 ? n - i : 256;
        if (k->magnitude(x + i, m) < QK_NEAR) {
            k->map(f, none, x + i, y + i, m);
            continue;
        }
        for (size_t at = i; at < i + m; at++) {
            const double v = (double)x[at];
            if (fabs(v) < (double)QK_NEAR)
                k->map(f, none, x + at, y + at, 1);
            else
                y[at] = (float)(f == QK_SIN ? qk_sin64(v) : qk_cos64(v));
        }
    }
}

#define SINE(id, title, which)                                                                     \
    static void id##_curve(const qk_ew *k, const double *param, const float *x, float *y,          \
                           size_t n) {                                                             \
        (void)param;                                                                               \
        sine(k, which, x, y, n);                                                                   \
    }                                                                                              \
    QS_MAP(id##_f64, double, double, qk_##id##64(x))                                               \
    QS_COLD static int lower_##id(qs_lower *l) {                                                   \
        return qs_curve_lower_by(l, (qs_curve){id##_curve, {0, 0}}, id##_f64);                     \
    }                                                                                              \
    ROW(id, title, 7)

CURVE(acos, "Acos", 7);
CURVE(acosh, "Acosh", 9);
CURVE(asin, "Asin", 7);
CURVE(asinh, "Asinh", 9);
CURVE(atan, "Atan", 7);
CURVE(atanh, "Atanh", 9);
SINE(cos, "Cos", QK_COS);
CURVE(cosh, "Cosh", 9);
SINE(sin, "Sin", QK_SIN);
CURVE(sinh, "Sinh", 9);
CURVE(tan, "Tan", 7);
