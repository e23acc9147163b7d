/* SPDX-License-Identifier: MIT */
/*
 * Steps: what operators are lowered to and what a run executes. op/ makes them, exec/ runs them.
 *
 * Two moments. pack: once a session, independent of input sizes; the result (packed weights,
 * tables) is shared by all runs. lower: once per combination of input shapes, inside a run; every
 * size is known, and the step's parameters are final. Executing a step only computes.
 */
#ifndef QS_STEP_H
#define QS_STEP_H

#include "base/base.h"
#include "base/ctx.h"
#include "graph/graph.h"
#include "op/op.h"

/* ---- packing ---- */

typedef struct qs_pack {
    qsim_ctx *ctx;
    qs_graph *graph; /* shapes at load: sizes may be -1, constants have data */
    qs_id node_id;
    const qs_node *node;
    qs_arena *arena; /* the session's: lives as long as it */
    const char *model;
    qsim_error *error;
    /* By value id: what operators of one kind keep of weights they have packed; NULL: nothing. */
    const void **kept;
    const void *result; /* set by the operator; handed to its lower */
} qs_pack;

/* Constant input `index` aligned to its element, or NULL if it is absent or not constant. */
const void *qs_pack_const(qs_pack *p, int32_t index);
/* The same at any address: nothing is copied. */
const void *qs_pack_bytes(const qs_pack *p, int32_t index);

/* ---- lowering ---- */

struct qs_step;

/* Outputs that a row with a `bound` may have, and the sizes of one. */
#define QS_BOUND_OUTPUTS 4
typedef int64_t qs_sizes_out[QSIM_MAX_RANK];

/* The violation of its operator's rule that a step has met; code QSIM_OK: none. */
typedef struct qs_fault {
    int code;
    const char *what; /* "index": `value` is outside [low, end); NULL: no more is known */
    int64_t value, low, end;
    int32_t axis; /* that the bounds are of; -1: of none */
} qs_fault;

/* Addresses of every value of the plan while it executes, and the step's scratch memory. */
typedef struct qs_frame {
    qsim_ctx *ctx;
    void *const *address; /* by value id */
    void *scratch;        /* of this step, 64-byte aligned; of the size it asked for */
    qs_fault *fault;      /* may be NULL; a step that meets a value breaking its rule says so */
    /* For a row with a `bound`: the sizes of its outputs that the step has found. */
    qs_sizes_out *sizes;
} qs_frame;

/* For steps: the first fault stays. qs_step_fails: no more is known of it than the node. */
void qs_step_outside(const qs_frame *f, const char *what, int64_t value, int64_t low, int64_t end,
                     int32_t axis);
void qs_step_fails(const qs_frame *f);
/* The message of a fault, QSIM_OK without one. */
int qs_fault_report(const qs_fault *fault, const qs_graph *g, qs_id node, const char *model,
                    qsim_error *error);

typedef void (*qs_step_fn)(const struct qs_step *step, const qs_frame *frame);

typedef struct qs_step {
    qs_step_fn run;
    const void *params;
    const qs_id *in;  /* value ids: node->inputs */
    const qs_id *out; /* node->outputs */
    size_t scratch;   /* bytes */
    qs_id node;
    const char *kernel; /* kernel family, for profiles */
    int64_t macs;
    bool tiles; /* it computes by those of QSIM_ISA_AMX */
    /* Output 0 is written into this input's memory, which it extends; 0: it has its own memory. */
    int32_t reuses;
    /*
     * The step only copies bytes that lie together: output k is those of input 0 from views[k] on,
     * input k those of output 0 from joins[k] on. The planner may leave the step out.
     */
    const size_t *views, *joins;
    /*
     * Output 0 may overlap input 0, if this is the last step to read it: it then begins at least
     * min_lead bytes before it or min_lag bytes after it. 0: no overlap is allowed. The planner
     * sets `overlaps` where it places them so.
     */
    size_t min_lead, min_lag;
    bool overlaps;
} qs_step;

typedef struct qs_lower {
    qsim_ctx *ctx;
    const qs_graph *graph;
    const qs_value *values; /* the plan's: every size known; index by value id */
    const qs_node *node;
    qs_id node_id;
    const void *packed; /* what pack left */
    qs_arena *arena;    /* the plan's */
    const char *model;
    qsim_error *error;
    qs_step *step; /* to fill: run, params, scratch, kernel, macs */
    bool alias;    /* set instead of filling the step: output 0 is input 0's bytes, reshaped */
} qs_lower;

/* Parameters for the step, zeroed, in the plan's arena; step->params is set. NULL: out of memory.
 */
void *qs_lower_params(qs_lower *l, size_t size);

/* Value of input/output `index`; NULL for one left out. */
const qs_value *qs_lower_in(const qs_lower *l, int32_t index);
const qs_value *qs_lower_out(const qs_lower *l, int32_t index);

/* Address of the step's input/output while it executes; NULL for one left out. */
static inline const void *qs_step_in(const qs_step *s, const qs_frame *f, int32_t index) {
    return s->in[index] == QS_NONE ? NULL : f->address[s->in[index]];
}
static inline void *qs_step_out(const qs_step *s, const qs_frame *f, int32_t index) {
    return s->out[index] == QS_NONE ? NULL : f->address[s->out[index]];
}

#endif
