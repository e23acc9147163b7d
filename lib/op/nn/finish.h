/* SPDX-License-Identifier: MIT */
/*
 * Nodes fused after an operator with float results: they run while the results are in the cache,
 * with the bits of separate operators. First a curve; then, if there is another input, the sum with
 * it, clamped to sum_lo and sum_hi; then another curve. Attributes "first" and "then" name the
 * curves' operators, "first_param" and "then_param" are their alpha and beta.
 */
#ifndef QS_FINISH_H
#define QS_FINISH_H

#include "op/elementwise/curve.h"

#define QS_FINISH_ATTRS                                                                            \
    {"sum_lo", QSIM_ATTR_FLOAT, 0, 0}, {"sum_hi", QSIM_ATTR_FLOAT, 0, 0},                          \
        {"first", QSIM_ATTR_STRING, 0, 0}, {"first_param", QSIM_ATTR_FLOATS, 0, 0},                \
        {"then", QSIM_ATTR_STRING, 0, 0}, {                                                        \
        "then_param", QSIM_ATTR_FLOATS, 0, 0                                                       \
    }

typedef struct qs_finish {
    const qk_ew *ew;
    qs_curve first, curve;
    bool sum;
    float lo, hi; /* of the sum */
} qs_finish;

/* Checks that input `other`, if present, has the shape of output 0, which is inferred already. */
int qs_finish_infer(const qs_infer *x, int32_t other);
qs_finish qs_finish_lower(const qs_lower *l, int32_t other);
/* Makes the curve of node `from` the last curve of node `id`. */
int qs_finish_then(qs_graph *g, qs_id id, const qs_node *from);
/* Makes the last curve the first, since a sum follows. */
void qs_finish_then_is_first(qs_graph *g, qs_id id);

/*
 * Applies the fused nodes to n results at x; `other` has the numbers to be added. y is x, or, if
 * there is a sum, may be `other` or a third buffer.
 */
static inline void qs_finish_run(const qs_finish *f, float *x, const float *other, float *y,
                                 size_t n) {
    if (f->first.fn)
        qs_curve_run(&f->first, f->ew, x, x, n);
    if (f->sum)
        f->ew->bound(x, other, f->lo, f->hi, y, n);
    if (f->curve.fn)
        qs_curve_run(&f->curve, f->ew, y, y, n);
}

#endif
