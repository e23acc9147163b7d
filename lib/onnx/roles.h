/* SPDX-License-Identifier: MIT */
/* What a graph's nodes and constants are there for, as far as its shape tells. */
#ifndef QS_ROLES_H
#define QS_ROLES_H

#include "graph/graph.h"

/*
 * 1 if the node computes on integers: a QLinear or Integer operator, or a float operator between
 * DequantizeLinear and QuantizeLinear that has an integer form.
 */
int32_t qs_node_is_integer(const qs_graph *g, const qs_uses *uses, qs_id node);

/*
 * Elements and bytes of the constants that nodes read as weights: no scales and zero points, no
 * shapes, axes and bounds. A constant counts once.
 */
int qs_count_parameters(const qs_graph *g, const qs_uses *uses, int64_t *elements, int64_t *bytes);

#endif
