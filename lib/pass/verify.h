/* SPDX-License-Identifier: MIT */
/*
 * The graph verifier. Debug and sanitizer builds (NDEBUG not defined) run it after every pass;
 * release builds do not contain it.
 */
#ifndef QS_VERIFY_H
#define QS_VERIFY_H

#include "graph/graph.h"

/*
 * Checks that
 * - every id of a value or node is in range, and inputs and outputs are marked as such;
 * - every value has at most one producer, which exists and makes it; constants and graph inputs
 *   have none;
 * - every live node has its row of the operator table and stands once in `order`, after the
 *   producers of its inputs;
 * - stored types, ranks and sizes agree with those that the operators' shape rules give.
 * QSIM_E_INTERNAL for a graph that breaks a rule; the message names the rule, the value, the node
 * and `after`, the pass that ran last.
 */
int qs_graph_verify(const qs_graph *g, const char *model, const char *after, qsim_error *error);

#endif
