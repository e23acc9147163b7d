/* SPDX-License-Identifier: MIT */
/* NaN and infinities: whether data, weights or a node's arithmetic bring them in. */
#ifndef QSIM_NOT_FINITE_H
#define QSIM_NOT_FINITE_H

#include "common/dataset.h"
#include "name_index.h"

extern const char *const not_finite_nan; /* "a NaN" */
/* Words for the first number that is not finite, "an infinity" or not_finite_nan; NULL: none is. */
const char *not_finite(const qsim_tensor *x, size_t *at);
/* The first node that reads the constant `name`, by name_index_readers; false: no node does. */
bool not_finite_reader(const qsim_model *m, const name_index *readers, const char *name,
                       qsim_node_info *n);
/*
 * Prints that calibrating failed with `e` (VALUE), for what its numbers come from: a sample, an
 * initializer, else the node that computes them. `d`: the data that gave the batch. Returns the
 * exit code.
 */
int not_finite_fail(const tool *t, const char *file, const qsim_model *m, const dataset *d,
                    const batch *b, const qsim_error *e);

#endif
