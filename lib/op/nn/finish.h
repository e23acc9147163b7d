/* SPDX-License-Identifier: MIT */
/*
 * What runs on float results while they are in the cache, with the bits of the operators alone:
 * attribute "first": a curve; with a further input a sum, clamped to sum_lo and sum_hi; attribute
 * "then": a curve after all.
 */
#ifndef QS_FINISH_H
#define QS_FINISH_H

#include "kernel/ew.h"
#include "op/rules.h"

#define QS_THEN_SILU      1
#define QS_THEN_HARDSWISH 2
#define QS_THEN_SIGMOID   3

#define QS_FINISH_ATTRS                                                                            \
    {"sum_lo", QS_ATTR_FLOAT, 0, 0}, {"sum_hi", QS_ATTR_FLOAT, 0, 0},                              \
        {"first", QS_ATTR_INT, 0, 0}, {                                                            \
        "then", QS_ATTR_INT, 0, 0                                                                  \
    }

typedef struct qs_finish {
    const qk_ew *ew;
    qk_ew_f32_fn first, curve; /* or NULL */
    bool sum;
    float lo, hi; /* of the sum */
} qs_finish;

/* Input `other` has the shape of output 0, inferred before, if it is there. */
int qs_finish_infer(const qs_infer *x, int32_t other);
qs_finish qs_finish_lower(const qs_lower *l, int32_t other);

/* n results, and what is added to them. */
static inline void qs_finish_run(const qs_finish *f, float *y, const float *other, size_t n) {
    if (f->first)
        f->first(y, y, n);
    if (f->sum)
        f->ew->bound(y, other, f->lo, f->hi, y, n);
    if (f->curve)
        f->curve(y, y, n);
}

#endif
