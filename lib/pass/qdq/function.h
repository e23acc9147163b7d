/* SPDX-License-Identifier: MIT */
/* Element-wise float expressions of one dequantized tensor, evaluated for all 256 codes. */
#ifndef QS_FUNCTION_H
#define QS_FUNCTION_H

#include "pass/expression.h"
#include "pass/qdq/qdq.h"

typedef struct qs_function {
    qs_id nodes[QS_TABLE_NODES];
    int32_t count;
    qs_id leaf;         /* the tensor of uint8 */
    int32_t zero_point; /* its zero point */
    /* Constants may differ along one axis: it and its size; channels 0: all have one element. */
    int32_t axis;
    int64_t channels;
} qs_function;

/* Finds the expression whose result is `value`; false: it is none, or too large. */
bool qs_function_find(const qs_qdq *d, qs_id value, qs_function *f);
/*
 * Computes `value`, a result of the expression or of `reader`, a node behind it (QS_NONE: none),
 * for all codes: 256 elements or [256, channels]. They live until qs_expression_end(e), which is to
 * be called in any case. *out NULL: a node has no step of its own, or the results are too large.
 */
int qs_function_compute(const qs_qdq *d, const qs_function *f, qs_id reader, qs_id value,
                        qs_expression *e, const qs_const **out);

/*
 * Replaces the target, whose core is the result of the function of several channels, by QPiecewise
 * if that gives the same codes for each of them (qdq_piecewise.c).
 */
int qs_qdq_piecewise(qs_qdq *d, qs_target *t, const qs_function *f, bool *done);

#endif
