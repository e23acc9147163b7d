/* SPDX-License-Identifier: MIT */
/* Reading the node Constant. */
#ifndef QS_SOURCE_H
#define QS_SOURCE_H

#include "graph/graph.h"

/* If `n` is a Constant of a supported form: its dtype, rank, data, elements, bytes; no dims. */
bool qs_constant_read(const qs_node *n, qs_const *out);

#endif
