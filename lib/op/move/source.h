/* SPDX-License-Identifier: MIT */
/* Reads the node Constant. */
#ifndef QS_SOURCE_H
#define QS_SOURCE_H

#include "graph/graph.h"

/* Reads dtype, rank, data, elements and bytes, but no dims; false if n is no supported Constant. */
bool qs_constant_read(const qs_node *n, qs_const *out);

#endif
