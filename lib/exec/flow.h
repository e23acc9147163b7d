/* SPDX-License-Identifier: MIT */
/* Types and functions that If, Loop and Scan share (flow.c, flow_scan.c). */
#ifndef QS_FLOW_H
#define QS_FLOW_H

#include "exec/deferred.h"
#include "exec/run.h"
#include "op/rules.h"

/* A copy of a tensor, in memory that grows. */
typedef struct qs_store {
    qsim_tensor t; /* rank -1: nothing yet */
    int64_t dims[QSIM_MAX_RANK];
    void *data;
    size_t capacity;
} qs_store;

/* A scan output: the results of all iterations, one after the other. */
typedef struct qs_stack {
    qs_store at;  /* type and sizes of one result, data of all */
    size_t bytes; /* of one result */
    size_t used;  /* bytes of all */
    int64_t count;
    bool joins; /* results are joined along axis 0 and may differ there: at.dims[0] is the sum */
} qs_stack;

struct qs_flow {
    qsim_run *run[2];
    qsim_tensor *in, *out;
    int64_t (*dims)[QSIM_MAX_RANK]; /* of `in` */
    size_t in_count[2], out_count[2];
    qs_store *state;
    qs_stack *stack;
    int32_t states, stacks;
};

int qs_flow_fail(const qs_flow_call *c, int code, const char *what);
/*
 * Makes node->flow, once: runs of the subgraphs, `states` states, and a stack for each other
 * output.
 */
int qs_flow_prepare(qs_flow_call *c, int32_t states);
/* Input `index` of the node; its sizes go to `dims`. */
qsim_tensor qs_flow_input(const qs_flow_call *c, int32_t index, int64_t *dims);
/* Runs subgraph `which` with `fed` as its first inputs; its outputs are in node->flow->out. */
int qs_flow_run(qs_flow_call *c, int which, const qsim_tensor *fed);
/* Keeps a copy of a tensor. */
int qs_flow_copy(qs_flow_call *c, qs_store *s, const qsim_tensor *t);
/* Makes output `index` of the node a copy of a tensor. */
int qs_flow_set_output(qs_flow_call *c, int32_t index, const qsim_tensor *t);
int qs_flow_push(qs_flow_call *c, qs_stack *s, const qsim_tensor *t);
/* Sets type and sizes of an empty stack from output `output` of the body; unknown sizes are 0. */
void qs_flow_describe(const qs_flow_call *c, size_t output, qs_stack *s);
/* Copies the results to a tensor, along axis `axis`; the last one first if `reverse`. */
void qs_flow_unstack(const qsim_ctx *ctx, const qs_stack *s, int32_t axis, bool reverse, void *to);

int qs_flow_scan(qs_flow_call *c);

#endif
