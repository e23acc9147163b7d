/* SPDX-License-Identifier: MIT */
/*
 * Steps: nodes are lowered to steps (op/), which a run executes (exec/).
 *
 * `pack` is called once per session, before sizes are known; all runs share its result (packed
 * weights, tables). `lower` is called once per plan, when every size is known, and computes all
 * parameters of the step. Executing a step only computes: it allocates nothing.
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
    qs_arena *arena; /* of the session */
    const char *model;
    qsim_error *error;
    /* By value id: weights that operators of one kind have packed; NULL: they are not shared. */
    const void **kept;
    const void *result; /* set by the operator; becomes qs_lower.packed */
    bool no_memory;     /* qs_pack_const had none: packing fails whatever the operator returns */
} qs_pack;

/*
 * Constant input `index`, aligned for its elements; NULL if it is absent, not constant or could not
 * be aligned for want of memory.
 */
const void *qs_pack_const(qs_pack *p, int32_t index);
/* The same constant without alignment; nothing is copied. */
const void *qs_pack_bytes(const qs_pack *p, int32_t index);

/* ---- lowering ---- */

struct qs_step;

/* Most outputs of a row with a `bound`, and the sizes of one output. */
#define QS_BOUND_OUTPUTS 4
typedef int64_t qs_sizes_out[QSIM_MAX_RANK];

/* A value that breaks its operator's rule, found by a step. Code QSIM_OK: none was found. */
typedef struct qs_fault {
    int code;
    const char *what; /* "index": `value` is outside [low, end); NULL: no details */
    int64_t value, low, end;
    int32_t axis; /* axis that the bounds belong to; -1: none */
} qs_fault;

/* The memory of a step while it executes: addresses of all values, and scratch memory. */
typedef struct qs_frame {
    qsim_ctx *ctx;
    void *const *address; /* by value id; address[QS_NONE] is NULL */
    void *scratch;        /* of this step, 64-byte aligned, as large as the step asked for */
    qs_fault *fault;      /* set by a step that finds such a value; may be NULL */
    /* For a row with a `bound`: the outputs' actual sizes, written by the step. */
    qs_sizes_out *sizes;
    uint64_t seed; /* of random numbers */
    uint64_t turn; /* a number that differs in each iteration of the loops around; first: 0 */
} qs_frame;

/* Report a fault from a step; the first one stays. qs_step_fails: without details. */
void qs_step_outside(const qs_frame *f, const char *what, int64_t value, int64_t low, int64_t end,
                     int32_t axis);
void qs_step_fails(const qs_frame *f);
/* Sets *error to a fault's message and returns its code; QSIM_OK without a fault. */
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
    const char *kernel; /* kernel family, for profiles; NULL: that of the operator */
    int64_t macs;
    bool tiles; /* computes with AMX tiles */
    /* Output 0 is in the memory of this input, and keeps its elements; 0: in memory of its own. */
    int32_t reuses;
    /*
     * The step only copies contiguous bytes: output k is input 0 from byte views[k] on, or input k
     * is output 0 from byte joins[k] on. The planner may leave the step out.
     */
    const size_t *views, *joins;
    /*
     * Output 0 may overlap input 0 if this is the last step to read it: output 0 then begins at
     * least min_lead bytes before or min_lag bytes after input 0. 0: no overlap is allowed. The
     * planner sets `overlaps` if it makes them overlap.
     */
    size_t min_lead, min_lag;
    bool overlaps;
    /* Bit k: output 0 may have the memory of input k, of its size, that no later step reads. */
    uint32_t in_place;
} qs_step;

typedef struct qs_lower {
    qsim_ctx *ctx;
    const qs_graph *graph;
    const qs_value *values; /* the plan's, by value id; every size is known */
    const qs_node *node;
    qs_id node_id;
    const void *packed; /* result of pack */
    qs_arena *arena;    /* of the plan */
    const char *model;
    qsim_error *error;
    qs_step *step; /* lower sets run, params, scratch, kernel, macs */
    bool alias;    /* lower sets it instead of a step: output 0 is input 0 with another shape */
} qs_lower;

/* Sets step->params to zeroed parameters in the plan's arena; returns NULL if out of memory. */
void *qs_lower_params(qs_lower *l, size_t size);

/* The run of a step whose outputs have no elements. */
void qs_run_nothing(const qs_step *s, const qs_frame *f);

/* Value of input or output `index`; NULL if it is left out. */
const qs_value *qs_lower_in(const qs_lower *l, int32_t index);
const qs_value *qs_lower_out(const qs_lower *l, int32_t index);

/* Address of the step's input or output during execution; NULL if it is left out. */
static inline const void *qs_step_in(const qs_step *s, const qs_frame *f, int32_t index) {
    return f->address[s->in[index]];
}
static inline void *qs_step_out(const qs_step *s, const qs_frame *f, int32_t index) {
    return f->address[s->out[index]];
}

#endif
