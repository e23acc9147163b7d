/* SPDX-License-Identifier: MIT */
/* NaN and infinities: whether data, weights or a node's arithmetic bring them in. */
#ifndef QSIM_NOT_FINITE_H
#define QSIM_NOT_FINITE_H

#include "common/dataset.h"
#include "name_index.h"

/* Words for the first number that is not finite, "an infinity" or "a NaN"; NULL: none is. */
const char *not_finite(const qsim_tensor *x, size_t *at);
/*
 * Words for the next initializer from *from on with a NaN that a node reads, or with an infinity
 * that a layer reads: elsewhere it may be a mask or a bound. NULL: there is none. Sets `v` to it
 * and `n` to the first such node. `readers`: by name_index_readers.
 */
const char *not_finite_next(const qsim_model *m, const name_index *readers, int32_t *from,
                            qsim_value_info *v, qsim_node_info *n);
/*
 * Prints that calibrating failed with `e` (VALUE), for what its numbers come from: a sample, an
 * initializer, else the node that computes them. `d`: the data that gave the batch. Returns the
 * exit code.
 */
int not_finite_fail(const tool *t, const char *file, const qsim_model *m, const dataset *d,
                    const batch *b, const qsim_error *e);

#endif
