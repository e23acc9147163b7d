/* SPDX-License-Identifier: MIT */
/* Operators of one tensor, element by element, whose result may have a type of its own. */
#ifndef QS_MAPS_H
#define QS_MAPS_H

#include "op/rules.h"

/* y[i] = f(x[i]) for n elements; param: what qs_lower_map was given. */
typedef void (*qs_map_fn)(const void *x, void *y, size_t n, const double *param);

/* The loop of such a function: the expression is of x and param. */
#define QS_MAP(name, TX, TY, expression)                                                           \
    QS_COLD static void name(const void *vx, void *vy, size_t n, const double *param) {            \
        const TX *px = vx;                                                                         \
        TY *py = vy;                                                                               \
        (void)param;                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            const TX x = px[i];                                                                    \
            py[i] = (TY)(expression);                                                              \
        }                                                                                          \
    }

/* name_f32 and name_f64, computed in double, and both as name_reals. */
#define QS_MAP_REALS(name, expression)                                                             \
    QS_MAP(name##_f32, float, float, expression((double)x))                                        \
    QS_MAP(name##_f64, double, double, expression(x))                                              \
    static const qs_map_fn name##_reals[2] = {name##_f32, name##_f64}

/* Input 0 is of `types`; output 0 has its shape and `dtype`, or its type where that is 0. */
int qs_infer_map(qs_infer *x, uint32_t types, int32_t dtype);

/* Makes input 0 through the function of its type the step. */
int qs_lower_map(qs_lower *l, const qs_map_fn *fns, double param0, double param1);
/* The same of floats and doubles. */
int qs_lower_reals(qs_lower *l, const qs_map_fn reals[2], double param0, double param1);

#endif
