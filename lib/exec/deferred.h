/* SPDX-License-Identifier: MIT */
/*
 * The deferred part of a plan: nodes whose sizes depend on data (If, Loop, Scan, NonZero and the
 * like, a Reshape to a computed shape), and every node that reads their results. They execute after
 * the plan's steps, one after the other. Their sizes are inferred from the values of their inputs.
 * The step that a node is lowered to is kept for the next execution with the same sizes, and so is
 * memory for results.
 */
#ifndef QS_DEFERRED_H
#define QS_DEFERRED_H

#include "exec/exec.h"

/* ---- memory (chunks.c) ---- */

struct qs_chunk;

/*
 * Memory for results. A released chunk is used again for sizes of the same range, and freed where
 * the limit or the system has no memory for another size.
 */
typedef struct qs_chunks {
    qsim_ctx *ctx;
    struct qs_chunk *free[256]; /* by range of sizes */
    struct qs_chunk *all;
    size_t bytes, limit;
} qs_chunks;

void qs_chunks_init(qs_chunks *c, qsim_ctx *ctx, size_t limit);
/* A chunk with aligned bytes and QS_SLACK after them; NULL: *code says why. */
struct qs_chunk *qs_chunk_alloc(qs_chunks *c, size_t bytes, int *code);
void *qs_chunk_data(const struct qs_chunk *chunk);
void qs_chunk_release(qs_chunks *c, struct qs_chunk *chunk);
void qs_chunks_free(qs_chunks *c);

/* ---- nodes (deferred.c) ---- */

struct qs_flow;

/* A deferred node, and the step that it was last lowered to. */
typedef struct qs_deferred_node {
    qs_id node;
    qs_arena arena; /* of the step */
    qs_step step;
    bool lowered, alias;
    uint8_t *key; /* of the step: types, sizes and, if sizes depend on them, values of the inputs */
    size_t key_bytes, key_capacity;
    size_t scratch_capacity;
    void *scratch;
    qs_sizes_out *bounds;          /* bounds of the sizes of outputs, if the row has `bound` */
    struct qs_flow *flow;          /* runs of the subgraphs of a node */
    qs_dim (*dims)[QSIM_MAX_RANK]; /* sizes of the outputs of a node with subgraphs */
} qs_deferred_node;

typedef struct qs_deferred {
    qsim_ctx *ctx;
    const qsim_session *session;
    qs_deferred_node *nodes;
    size_t count;
    /* By value: */
    struct qs_chunk **chunk; /* its memory; NULL: not in a chunk of its own */
    qs_id *owner;            /* the value whose chunk has its bytes */
    int32_t *readers;        /* nodes and outputs that have yet to read its chunk */
    int32_t *reader_count;   /* nodes and outputs that read it */
    qs_chunks memory;
} qs_deferred;

/* Marks the values that deferred nodes read. */
void qs_deferred_mark(const qs_deferred *d, bool *kept);
int qs_deferred_create(const qsim_session *s, const bool *needed, const bool *deferred,
                       qs_deferred **out);
void qs_deferred_free(qs_deferred *d);
/* Executes all deferred nodes on the plan's values and addresses. `run` tells whether to stop. */
int qs_deferred_execute(qsim_run *run, qs_plan *plan, qsim_error *error);

/* ---- subgraphs (flow.c, flow_compile.c) ---- */

/* A subgraph as a session of its own. */
typedef struct qs_flow_body {
    qsim_session *session;
    /*
     * By input of the session: the node's input that it captures; -1 - i: input i of the subgraph,
     * which the operator feeds.
     */
    int32_t *source;
    int32_t watched; /* the last outputs, which are shown to the observer of the outermost run */
} qs_flow_body;

/* The subgraphs of a node: then_branch and else_branch, or body. */
struct qs_flow_bodies {
    qs_flow_body body[2];
};

/* Fills s->bodies. They are freed with the session, also if this fails. */
int qs_flow_compile(qsim_session *s, int32_t level, bool literal, qsim_error *error);
void qs_flow_release(const qsim_session *s);

/* The execution of a deferred node with subgraphs. */
typedef struct qs_flow_call {
    qsim_run *run;
    qs_plan *plan;
    qs_deferred *deferred;
    qs_deferred_node *node;
    const qs_node *n;
    qsim_error *error;
    uint64_t iteration; /* of Loop or Scan */
} qs_flow_call;

/* Executes If, Loop or Scan and sets types, sizes and memory of its outputs. */
int qs_flow_execute(qs_flow_call *c);
void qs_flow_free(qsim_ctx *ctx, struct qs_flow *flow);
/* Allocates output `index`, of this type and these sizes. */
int qs_deferred_output(qs_flow_call *c, int32_t index, int32_t dtype, int32_t rank,
                       const int64_t *dims, void **data);

#endif
