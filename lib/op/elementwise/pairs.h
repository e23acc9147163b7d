/* SPDX-License-Identifier: MIT */
/* Operators of two broadcast tensors, whose result may have another type. */
#ifndef QS_PAIRS_H
#define QS_PAIRS_H

#include "op/elementwise/dense.h"
#include "op/rules.h"

/* y[i] = f(a[i * sa], b[i * sb]), of any types of a and b; strides are 0 or 1. */
typedef void (*qs_types_fn)(const int32_t types[2], const void *a, size_t sa, const void *b,
                            size_t sb, void *y, size_t n);

/* Gives output 0 the type `dtype` and the shape of both inputs broadcast. */
int qs_infer_pair(qs_infer *x, int32_t dtype);

/* Lower to a step that applies the function of its type to inputs 0 and 1; swapped: to 1 and 0. */
int qs_lower_pair(qs_lower *l, const qs_dense_fns *fns);
int qs_lower_swapped(qs_lower *l, const qs_dense_fns *fns);
int qs_lower_types(qs_lower *l, qs_types_fn fn);

/* The same with the shape of b for input 1. */
int qs_infer_pair_of(qs_infer *x, int32_t dtype, const qs_value *b);
int qs_lower_pair_of(qs_lower *l, const qs_dense_fns *fns, const qs_value *b);

/*
 * Before version 7: with attribute `broadcast`, b broadcasts over axes [axis, axis + its rank) of
 * a, the last ones by default. `wide` becomes b with the axes of size 1 appended that this needs;
 * false if it does not fit. qs_infer_pair and qs_lower_pair apply it.
 */
extern const qs_attr_rule qs_legacy_attrs[3];
bool qs_legacy_operand(const qs_node *n, const qs_value *a, const qs_value *b, qs_value *wide,
                       qs_dim dims[QSIM_MAX_RANK]);
/* Upgrades to version 7: an Unsqueeze adds those axes of size 1. */
extern const qs_op_more qs_legacy_more;

#endif
