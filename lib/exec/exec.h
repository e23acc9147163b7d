/* SPDX-License-Identifier: MIT */
/* Types and functions that the files of lib/exec share: sessions, runs, plans. */
#ifndef QS_EXEC_H
#define QS_EXEC_H

#include <stdatomic.h>

#include "base/thread.h"
#include "graph/model.h"
#include "pass/pass.h"

#include <qsim/session.h>

/* Activation memory that a plan may ask for: 16 GiB. */
#define QS_ARENA_LIMIT (SIZE_MAX > UINT32_MAX ? (size_t)(UINT64_C(1) << 34) : SIZE_MAX / 4)
#define QS_PLANS       4

struct qsim_session {
    qsim_ctx *ctx;
    qsim_model *model; /* counted reference: the graph borrows its names and weights */
    qs_graph *graph;
    const char *name;       /* for messages */
    uint64_t seed;          /* of the runs' random numbers */
    const void **packed;    /* by node id */
    const void **constants; /* by value id: aligned, with slack; NULL if not constant */
    const char **output_names;
    bool *by_value; /* by input: sizes of other tensors depend on its value */
    bool any_by_value;
    bool observed; /* an observer sees each output when it is complete; runs do not keep outputs */
    bool *channels_last; /* by output of an observed session: it is in this layout */
    /*
     * The first shown_count outputs of an observed session are shown to the observer; 0: all. The
     * other outputs are those of the model: without them a run would not know which branches of an
     * If to take.
     */
    size_t shown_count;
    bool *integer; /* by node of the model, as qsim_model_node counts them */
    int32_t node_count;
    size_t stale; /* bytes of constants read since the file's pages were last released */
    struct qs_flow_bodies *bodies; /* by node id; NULL: no node has subgraphs */
    qs_arena arena;
    atomic_int holds;
};

/* For tests: QuantizeLinear and DequantizeLinear are executed as the model has them. */
#define QS_COMPILE_LITERAL 1
/* For qs_run_observe: outputs are in the fastest layout, and are not kept until a run ends. */
#define QS_COMPILE_OBSERVED 2
/*
 * qsim_session_create with QS_COMPILE_* flags. It writes no message to the log, because searches
 * compile hundreds of sessions.
 */
int qs_session_compile(const qsim_model *model, const qsim_session_options *options, int flags,
                       qsim_session **out, qsim_error *error);
/* Fills by_value (by_value.c). */
int qs_find_by_value(qsim_session *s);
qsim_session *qs_session_hold(const qsim_session *session);

/* ---- memory (memory.c, overlay.c) ---- */

/* A block of the activation arena, in use from step `first` to step `last`. */
typedef struct qs_slot {
    size_t bytes;
    size_t offset;
    int32_t first, last;
    /*
     * The slot of an output that may overlap this one if it begins at least min_lead bytes before
     * it or min_lag bytes after it; NULL: none may.
     */
    const struct qs_slot *successor;
    size_t min_lead, min_lag;
} qs_slot;

/*
 * Keeps the successors whose overlap lowers the peak of bytes in use, if the gain is worth the cost
 * of executing in waves; the others become NULL. `live` has the bytes in use at each of `steps`
 * from `begin` on, and is adjusted. Returns the new peak.
 */
size_t qs_memory_choose_overlaps(qs_slot *slots, size_t count, int32_t begin, size_t steps,
                                 size_t *live);
/* Whether the slot and its successor overlap at their offsets. */
bool qs_memory_overlaps(const qs_slot *slot);

/*
 * Chooses offsets such that slots in use at the same time do not overlap, except a slot and its
 * successor. *least: the peak of bytes in use, a lower bound of *total. A total of at most `enough`
 * bytes, which are there anyway, is not improved.
 */
int qs_memory_plan(qsim_ctx *ctx, qs_slot *slots, size_t count, size_t enough, size_t *total,
                   size_t *least);

/* ---- plans (plan.c, place.c) ---- */

/*
 * Reports that a value exceeds the limit of activations. A value that a pass has made has no name,
 * so its node and output are named.
 */
int qs_too_large(const qsim_session *s, qs_id value, size_t bytes, qsim_error *error);
/* A value that is a part of another one: the other value, and the offset in it. */
typedef struct qs_part {
    qs_id value; /* QS_NONE: it is not a part */
    size_t from; /* bytes */
} qs_part;

/* An input or output of the session, with the sizes of a plan. */
typedef struct qs_port {
    qs_id value;
    int32_t dtype, rank;
    const int64_t *dims;
    size_t bytes;
    const struct qs_part *shared; /* if in_place: all values in the caller's buffer */
    int32_t shared_count;
    bool in_place;       /* steps read or write it in the caller's buffer */
    size_t offset;       /* in the arena; QS_NOWHERE: it is not there */
    const void *fixed;   /* the plan is valid for these bytes of the input only; NULL: for all */
    int64_t *found_dims; /* an output of a deferred node: receives its sizes; else NULL */
} qs_port;

#define QS_NOWHERE SIZE_MAX

/*
 * What plans of a run share: sizes, constants, parameters of steps. A plan for other sizes keeps
 * what these do not change of the plan before it.
 */
typedef struct qs_plan_parts {
    qs_arena arena;
    size_t first; /* bytes of the first plan's */
    int32_t holds;
} qs_plan_parts;

/* What a run computes for one combination of input sizes. */
typedef struct qs_plan {
    qs_arena arena;
    qs_plan_parts *parts;
    qs_value *values; /* by id, every size known */
    qs_step *steps;
    size_t *scratch;   /* offset of each step's scratch memory */
    uint64_t *ended;   /* when each step of the last timed execution ended, in ns after began_ns */
    size_t timed;      /* number of steps of that execution */
    uint64_t began_ns; /* when its first step began */
    uint64_t began_ticks; /* the same by the CPU's counter */
    uint64_t clock_ticks; /* ticks that reading the time takes: the least seen */
    double tick_ns;       /* nanoseconds of a tick */
    size_t step_count;
    void **address; /* by value id */
    size_t *offset; /* by value id; QS_NOWHERE: not in the arena */
    qs_port *inputs, *outputs;
    /* Outputs of an observed session, sorted by the step that completes them, and these steps. */
    int32_t *shown, *ready;
    bool *untaken; /* by output: it belongs to a branch that is not taken; NULL: none does */
    size_t arena_bytes;
    size_t capacity;   /* bytes of the run's arena before the plan was made */
    size_t live_bytes; /* peak of bytes in use */
    uint64_t used;     /* when it was last used: the plan unused longest is replaced */
    qs_team team;
    struct qs_deferred *deferred; /* nodes that execute after the steps; NULL: none */
    bool any_deferred;            /* a node is, even if no output depends on it */
} qs_plan;

/*
 * Makes a plan. `ctx`: the session's context, or a view of it whose stop also ends planning.
 * `capacity`: bytes that the run's arena has already. `last`: the plan that the run used last, or
 * NULL.
 */
int qs_plan_create(const qsim_session *s, qsim_ctx *ctx, const qsim_tensor *inputs, size_t capacity,
                   const qs_plan *last, qs_plan **out, qsim_error *error);
void qs_plan_free(qsim_ctx *ctx, qs_plan *plan);
/* Whether all sizes of the outputs of a node are known. */
bool qs_plan_knows_sizes(const qs_plan *plan, const qs_node *n);
/* Sets the addresses of all values in the arena, which begins at `base`. */
void qs_plan_rebase(const qsim_session *s, qs_plan *plan, uint8_t *base);

/*
 * Chooses the memory of every value: fills offset, scratch, arena_bytes and the ports. part[v]: the
 * value that v is a part of. kept[v]: v is read after all steps. deferred_values[v]: a deferred
 * node computes v, which has memory of its own.
 */
int qs_plan_place(const qsim_session *s, const qs_eval *e, qs_plan *plan, const qs_part *part,
                  const bool *kept, const bool *deferred_values);
/*
 * If the step only copies contiguous bytes: makes its operands (or results) parts of the larger
 * tensor and returns true; the step is then left out (share.c).
 */
bool qs_plan_share(const qsim_session *s, const qs_plan *plan, const qs_step *step, qs_part *part);

/*
 * Fills shown and ready: output shown[i] is complete after step ready[i]; -1: before the first one;
 * step_count: after the deferred nodes (observe.c).
 */
int qs_plan_find_ready(const qsim_session *s, qs_plan *plan, const bool *deferred_values);

/*
 * Called before and after the steps of a timed execution (profile.c). After each step only the
 * CPU's counter is read, which takes a third as long as reading the time; these two read both,
 * which gives the length of a tick.
 */
uint64_t qs_plan_time(qs_plan *plan);
void qs_plan_timed(qs_plan *plan);

/*
 * packed_by[i] for the i-th node of the order: an earlier node that packs the same constants with
 * the same settings, or QS_NONE (packed_by.c).
 */
int qs_find_packed_by(qsim_ctx *ctx, const qs_graph *g, qs_id *packed_by);

#endif
