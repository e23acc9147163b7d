/* SPDX-License-Identifier: MIT */
/* Copying subgraphs, for qs_graph_clone. */
#ifndef QS_SUBGRAPH_H
#define QS_SUBGRAPH_H

#include "graph/graph.h"

/* The node, just copied into `g`, gets copies of its subgraphs. Errors: those of qs_graph_clone. */
int qs_subgraphs_clone(qs_graph *g, qs_node *n);

#endif
