/* SPDX-License-Identifier: MIT */
#ifndef QS_SOURCE_H
#define QS_SOURCE_H

#include "graph/graph.h"

/*
 * If `n` is a Constant of int32 or int64: its dtype, rank, data, elements and bytes. dims are not
 * set.
 */
bool qs_constant_ints(const qs_node *n, qs_const *out);

#endif
