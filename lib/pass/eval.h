/* SPDX-License-Identifier: MIT */
/* Evaluates single nodes: shape rule, step, and result if all inputs are constants. */
#ifndef QS_EVAL_H
#define QS_EVAL_H

#include "base/base.h"
#include "base/ctx.h"
#include "graph/graph.h"
#include "op/op.h"
#include "op/step.h"

/* Readable bytes after every tensor, since kernels may load whole vectors past its end. */
#define QS_SLACK 64

/* The values of a graph whose sizes are being inferred: the graph's own, or a plan's copy. */
typedef struct qs_eval {
    qsim_ctx *ctx;
    qs_graph *graph;
    qs_value *values;
    void **address;  /* of qs_eval_addresses; NULL if no node is evaluated */
    qs_arena *arena; /* dims, parameters and results */
    const char *model;
    qsim_error *error;
} qs_eval;

/* Room for the address of each value, all NULL, and of QS_NONE; NULL: out of memory. */
void **qs_eval_addresses(qs_arena *arena, const qs_graph *g);
/* Runs a node's shape rule on e->values and stores what it finds there. */
int qs_eval_infer(const qs_eval *e, qs_id node);
/* The same with the rule `bound`, which gives upper bounds of sizes that depend on data. */
int qs_eval_bound(const qs_eval *e, qs_id node);
/* Elements and bytes of a value whose sizes are all known; false otherwise or on overflow. */
bool qs_value_size(const qs_value *v, size_t *elements, size_t *bytes);
/* Lowers a node whose sizes are all known. *alias: no step, output 0 is input 0's bytes. */
int qs_eval_lower(const qs_eval *e, qs_id node, const void *packed, qs_step *step, bool *alias);
/*
 * Executes a node whose inputs are all constants and makes its outputs constants of e->values.
 * Results together larger than `limit` are not made: *done stays false.
 */
int qs_eval_const(const qs_eval *e, qs_id node, const void *packed, size_t limit, bool *done);

#endif
