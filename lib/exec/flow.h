/* SPDX-License-Identifier: MIT */
/* Types and functions that executing If, Loop and Scan share (flow.c, flow_scan.c). */
#ifndef QS_FLOW_H
#define QS_FLOW_H

#include "exec/deferred.h"
#include "exec/run.h"
#include "op/rules.h"

/* A tensor in memory of its own that grows. */
typedef struct qs_store {
    qsim_tensor t; /* rank -1: nothing yet */
    int64_t dims[QSIM_MAX_RANK];
    void *data;
    size_t capacity;
} qs_store;

/* The results of all iterations, one after the other. */
typedef struct qs_stack {
    qs_store at;  /* the first one's type and sizes; data: all of them */
    size_t bytes; /* of one */
    size_t used;  /* of all */
    int64_t count;
    bool joins; /* along axis 0, in which sizes may differ: at.dims[0] is their sum */
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
/* Makes node->flow: runs of the subgraphs, `states` states, stacks for the other outputs. */
int qs_flow_prepare(qs_flow_call *c, int32_t states);
/* Input `index` of the node; its sizes go to `dims`. */
qsim_tensor qs_flow_input(const qs_flow_call *c, int32_t index, int64_t *dims);
/* Runs subgraph `which` with `fed` as its first inputs; its outputs are in node->flow->out. */
int qs_flow_run(qs_flow_call *c, int which, const qsim_tensor *fed);
/* Keeps a copy of a tensor. */
int qs_flow_copy(qs_flow_call *c, qs_store *s, const qsim_tensor *t);
/* Output `index` of the node becomes a copy of a tensor. */
int qs_flow_give(qs_flow_call *c, int32_t index, const qsim_tensor *t);
int qs_flow_push(qs_flow_call *c, qs_stack *s, const qsim_tensor *t);
/*
 * For a stack that nothing was pushed to: type and sizes that output `output` of the body would
 * have.
 */
void qs_flow_describe(const qs_flow_call *c, size_t output, qs_stack *s);
/*
 * Copies the results one after the other along axis `axis` of a tensor; the last one first if
 * `back`.
 */
void qs_flow_unstack(const qs_stack *s, int32_t axis, bool back, void *to);

int qs_flow_scan(qs_flow_call *c);

#endif
