/* SPDX-License-Identifier: MIT */
/* Element-wise operators of one tensor, whose result may have another type. */
#ifndef QS_MAPS_H
#define QS_MAPS_H

#include "op/rules.h"

/* y[i] = f(x[i]) for n elements; param: the numbers given to qs_lower_map. */
typedef void (*qs_map_fn)(const void *x, void *y, size_t n, const double *param);

/* Defines such a function; the expression uses x and param. */
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

/* Checks that input 0 is of `types`; output 0 has its shape and `dtype` (0: its type). */
int qs_infer_map(qs_infer *x, uint32_t types, int32_t dtype);

/* Lowers to a step that applies fn to input 0. */
int qs_lower_map(qs_lower *l, qs_map_fn fn, double param0, double param1);
/* The same for fn on doubles; floats are computed in double and rounded once. */
int qs_lower_reals(qs_lower *l, qs_map_fn fn, double param0, double param1);
/* Applies fn on doubles to n floats in that way. */
void qs_map_floats(qs_map_fn fn, const float *x, float *y, size_t n, const double *param);

#endif
