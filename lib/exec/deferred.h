/* SPDX-License-Identifier: MIT */
/*
 * The deferred part of a plan: nodes whose sizes depend on data (If, Loop, Scan, NonZero and the
 * like, a Reshape to a computed shape), and every node that reads their results. They execute after
 * the plan's steps, one after the other. Sizes are inferred from the values of the inputs; a step
 * is lowered for them and kept for the next execution with the same sizes; results are in memory
 * that grows once and is used again.
 */
#ifndef QS_DEFERRED_H
#define QS_DEFERRED_H

#include "exec/exec.h"

/* ---- memory (chunks.c) ---- */

struct qs_chunk;

/* Memory for results: a chunk that was given back is used again for the same range of sizes. */
typedef struct qs_chunks {
    qsim_ctx *ctx;
    struct qs_chunk *free[256]; /* by range of sizes */
    struct qs_chunk *all;
    size_t bytes, limit;
} qs_chunks;

void qs_chunks_init(qs_chunks *c, qsim_ctx *ctx, size_t limit);
/* 64-byte aligned, with QS_SLACK behind; NULL: *code says why. */
struct qs_chunk *qs_chunk_take(qs_chunks *c, size_t bytes, int *code);
void *qs_chunk_data(const struct qs_chunk *chunk);
void qs_chunk_give_back(qs_chunks *c, struct qs_chunk *chunk);
void qs_chunks_free(qs_chunks *c);

/* ---- nodes (deferred.c) ---- */

struct qs_flow;

/* One node: the step that it was lowered to last, and for which inputs. */
typedef struct qs_deferred_node {
    qs_id node;
    qs_arena arena; /* of the step */
    qs_step step;
    bool lowered, alias;
    uint8_t *key; /* types, sizes and, where sizes depend on them, values of the inputs */
    size_t key_bytes, key_capacity;
    size_t scratch_capacity;
    void *scratch;
    qs_sizes_out *bounds;          /* of the outputs, where the row has a `bound` */
    struct qs_flow *flow;          /* of a node with subgraphs: their runs, */
    qs_dim (*dims)[QSIM_MAX_RANK]; /* and sizes of its outputs */
} qs_deferred_node;

typedef struct qs_deferred {
    qsim_ctx *ctx;
    const qsim_session *session;
    qs_deferred_node *nodes;
    size_t count;
    struct qs_chunk **chunk; /* by value id: where it lives; NULL: not in a chunk */
    qs_id *owner;            /* by value id: the value whose chunk it lies in */
    int32_t *readers;        /* by value id: nodes that still read it, or its aliases */
    int32_t *reader_count;   /* the same at the start */
    qs_chunks memory;
} qs_deferred;

/* Marks the values that deferred nodes read, by value id. */
void qs_deferred_mark(const qs_deferred *d, bool *kept);
int qs_deferred_create(const qsim_session *s, const bool *needed, const bool *deferred,
                       qs_deferred **out);
void qs_deferred_free(qs_deferred *d);
/* Executes all deferred nodes on the plan's values and addresses. `run` tells whether to stop. */
int qs_deferred_execute(qsim_run *run, qs_plan *plan, qsim_error *error);

/* ---- subgraphs (flow.c, flow_compile.c) ---- */

/* A subgraph, compiled with the session that it is in. */
typedef struct qs_flow_body {
    qsim_session *session;
    /*
     * By input of the session: the node's input that it captures, or -1 - i: the operator feeds
     * input i of the subgraph.
     */
    int32_t *source;
} qs_flow_body;

/* Of a node: then_branch and else_branch, or body. */
struct qs_flow_bodies {
    qs_flow_body body[2];
};

/* Fills s->bodies, which is freed with the session, even if this fails. */
int qs_flow_compile(qsim_session *s, int32_t level, bool literal, qsim_error *error);
void qs_flow_release(const qsim_session *s);

/* A deferred node with subgraphs, while it executes. */
typedef struct qs_flow_call {
    qsim_run *run;
    qs_plan *plan;
    qs_deferred *deferred;
    qs_deferred_node *node;
    const qs_node *n;
    qsim_error *error;
} qs_flow_call;

/* Executes If, Loop or Scan; gives its outputs types, sizes and memory. */
int qs_flow_execute(qs_flow_call *c);
void qs_flow_free(qsim_ctx *ctx, struct qs_flow *flow);
/* Memory for output `index`, whose type and sizes are given; its address is set. */
int qs_deferred_output(qs_flow_call *c, int32_t index, int32_t dtype, int32_t rank,
                       const int64_t *dims, void **data);

#endif
