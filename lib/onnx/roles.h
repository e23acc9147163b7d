/* SPDX-License-Identifier: MIT */
/* What a graph's nodes and constants are there for, as far as its shape tells. */
#ifndef QS_ROLES_H
#define QS_ROLES_H

#include "graph/graph.h"

/*
 * Which nodes (by id) compute on integers: QLinear and Integer operators, float operators between
 * DequantizeLinear and QuantizeLinear that have an integer form, and the DequantizeLinear and
 * QuantizeLinear that vanish into them.
 */
void qs_find_integer_nodes(const qs_graph *g, const qs_uses *uses, bool *integer);

/*
 * Elements and bytes of the constants that nodes read as weights: no scales and zero points, no
 * shapes, axes and bounds. A constant counts once.
 */
int qs_count_parameters(const qs_graph *g, const qs_uses *uses, int64_t *elements, int64_t *bytes);

#endif
