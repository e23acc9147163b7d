/* SPDX-License-Identifier: MIT */
/*
 * Curves: functions of one float, a column of the operator table (op.h). Operators that compute
 * floats block by block, such as convolutions, apply one while the block is in the cache, with the
 * bits of the operator alone.
 */
#ifndef QS_CURVE_H
#define QS_CURVE_H

#include "kernel/ew.h"
#include "op/elementwise/maps.h"
#include "op/rules.h"

typedef struct qs_curve {
    qs_curve_fn fn;  /* NULL: none */
    double param[2]; /* alpha, beta */
} qs_curve;

/* The curve of a node with its parameters; none if its row has none. */
qs_curve qs_curve_of(const qs_node *n);
/* The curve of the newest operator of that name. */
qs_curve qs_curve_find(const char *name);

/*
 * Lower to a step on input 0: floats by the row's curve, or by another one, other types by a loop
 * with the curve's parameters.
 */
int qs_curve_lower(qs_lower *l, qs_map_fn others);
int qs_curve_lower_by(qs_lower *l, qs_curve curve, qs_map_fn others);

static inline void qs_curve_run(const qs_curve *c, const qk_ew *k, const float *x, float *y,
                                size_t n) {
    c->fn(k, c->param, x, y, n);
}

/* Defines name_curve from a kernel, or from a loop over floats made by UNARY or QS_MAP. */
#define QS_CURVE_KERNEL(name)                                                                      \
    static void name##_curve(const qk_ew *k, const double *param, const float *x, float *y,        \
                             size_t n) {                                                           \
        (void)param;                                                                               \
        k->name(x, y, n);                                                                          \
    }
/* The same from the kernel `map`, whose parameters a, b, c are made from those of the curve. */
#define QS_CURVE_MAP(name, which, a, b, c)                                                         \
    static void name##_curve(const qk_ew *k, const double *param, const float *x, float *y,        \
                             size_t n) {                                                           \
        const float own[3] = {(float)(a), (float)(b), (float)(c)};                                 \
        (void)param;                                                                               \
        k->map(which, own, x, y, n);                                                               \
    }
#define QS_CURVE_LOOP(name)                                                                        \
    static void name##_curve(const qk_ew *k, const double *param, const float *x, float *y,        \
                             size_t n) {                                                           \
        (void)k;                                                                                   \
        name##_f32(x, y, n, param);                                                                \
    }
/* The same from a loop over doubles. */
#define QS_CURVE_DOUBLES(name)                                                                     \
    static void name##_curve(const qk_ew *k, const double *param, const float *x, float *y,        \
                             size_t n) {                                                           \
        (void)k;                                                                                   \
        qs_map_floats(name##_f64, x, y, n, param);                                                 \
    }

#endif
