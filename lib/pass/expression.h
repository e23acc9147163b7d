/* SPDX-License-Identifier: MIT */
/* Evaluates element-wise nodes for given values of the one tensor that they are a function of. */
#ifndef QS_EXPRESSION_H
#define QS_EXPRESSION_H

#include "graph/graph.h"

#define QS_EXPRESSION_VALUES 64

/* The copied nodes, in a graph of their own. */
typedef struct qs_expression {
    qsim_ctx *ctx;
    const qs_graph *from;
    const char *model; /* for messages */
    qsim_error *error;
    qs_graph *g;
    qs_id of[QS_EXPRESSION_VALUES], copy[QS_EXPRESSION_VALUES];
    int32_t count;
} qs_expression;

/*
 * Begins with the tensor `leaf`, whose copy is a constant of `rank` axes with this data. Constants
 * of one element become scalars, others keep their sizes. Errors: NOMEM.
 */
int qs_expression_begin(qs_expression *e, qs_id leaf, int32_t dtype, int32_t rank,
                        const int64_t *dims, const void *data);
/* Copies a node; those whose results it reads come before it. Errors: LIMIT (too many), NOMEM. */
int qs_expression_add(qs_expression *e, qs_id node);
/*
 * Computes the elements of a copied node's output; *out lives as long as e->g. NULL: one of the
 * nodes has no step of its own.
 */
int qs_expression_value(qs_expression *e, qs_id value, const qs_const **out);
/* Frees the copy. */
void qs_expression_end(qs_expression *e);

#endif
