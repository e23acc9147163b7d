/* SPDX-License-Identifier: MIT */
/* Circular and hyperbolic functions and inverses; floats are computed in double, rounded once. */
#include "kernel/elementary64.h"
#include "op/elementwise/maps.h"

QS_COLD static int infer(qs_infer *x) {
    return qs_infer_map(x, QS_T_REAL, 0);
}

#define CURVE(id, title, from)                                                                     \
    QS_MAP_REALS(id, qk_##id##64);                                                                 \
    QS_COLD static int lower_##id(qs_lower *l) {                                                   \
        return qs_lower_reals(l, id##_reals, 0, 0);                                                \
    }                                                                                              \
    QS_OP(id, .name = title, .since = from, .min_in = 1, .traits = QS_ELEMENTWISE,                 \
          .kernel = QS_KERNEL_UNARY, .infer = infer, .lower = lower_##id)

CURVE(acos, "Acos", 7);
CURVE(acosh, "Acosh", 9);
CURVE(asin, "Asin", 7);
CURVE(asinh, "Asinh", 9);
CURVE(atan, "Atan", 7);
CURVE(atanh, "Atanh", 9);
CURVE(cos, "Cos", 7);
CURVE(cosh, "Cosh", 9);
CURVE(sin, "Sin", 7);
CURVE(sinh, "Sinh", 9);
CURVE(tan, "Tan", 7);
