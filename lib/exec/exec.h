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
    const void **packed;    /* by node id */
    const void **constants; /* by value id: aligned, with slack; NULL if not constant */
    const char **output_names;
    bool *by_value; /* by input: sizes depend on its value */
    bool any_by_value;
    bool observed; /* outputs are shown to an observer and live no longer than steps read them */
    bool *channels_last; /* observed: by output, in place of the model's layout */
    bool *integer;       /* by node of the model, as qsim_model_node counts them */
    int32_t node_count;
    size_t stale; /* bytes of weights used up since the file's pages were last given back */
    struct qs_flow_bodies *bodies; /* by node id; NULL: no node has subgraphs */
    qs_arena arena;
    atomic_int holds;
};

/* literal, for tests: quantize/dequantize pairs run in float as written. */
#define QS_COMPILE_LITERAL 1
/* For qs_run_observe: outputs are in the fastest layout and do not live until the end of a run. */
#define QS_COMPILE_OBSERVED 2
/* qsim_session_create with flags, and without its line in the log: searches compile hundreds. */
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
     * Slot of the output that may overlap this one, if it begins at least min_lead bytes before it
     * or min_lag bytes after it; NULL: none may.
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
/* Whether the slot and its successor overlap as placed. */
bool qs_memory_overlaps(const qs_slot *slot);

/*
 * Chooses offsets so that slots in use at the same time do not overlap, except a slot and its
 * successor. least: the peak of bytes in use, below which no choice can get.
 */
int qs_memory_plan(qsim_ctx *ctx, qs_slot *slots, size_t count, size_t *total, size_t *least);

/* ---- plans (plan.c, place.c) ---- */

/*
 * Reports that there is no memory for a value. One without a name, made by a pass, is named by the
 * node and output that it comes from.
 */
int qs_too_large(const qsim_session *s, qs_id value, size_t bytes, qsim_error *error);
/*
 * Where a value's bytes are part of another value's: from byte `from` on. value QS_NONE: of none.
 */
typedef struct qs_part {
    qs_id value;
    size_t from;
} qs_part;

/* An input or output of the session at the sizes of a plan. */
typedef struct qs_port {
    qs_id value;
    int32_t dtype, rank;
    const int64_t *dims;
    size_t bytes;
    const struct qs_part *shared; /* re-addressed when the bytes are the caller's */
    int32_t shared_count;
    bool in_place;     /* input: read where the caller has it; output: written where he wants it */
    size_t offset;     /* of a place in the arena; QS_NOWHERE: none */
    const void *fixed; /* input: the value that the plan holds for, or NULL */
    int64_t *found_dims; /* output of a deferred node: gets its sizes; else NULL */
} qs_port;

#define QS_NOWHERE SIZE_MAX

/* Everything an execution needs to know that depends on the sizes of the inputs. */
typedef struct qs_plan {
    qs_arena arena;
    qs_value *values; /* by id, every size known */
    qs_step *steps;
    size_t *scratch;       /* offset of each step's scratch memory */
    uint64_t *nanoseconds; /* duration of each step's last timed execution */
    size_t timed;          /* steps of it that were executed */
    uint64_t began_ns;     /* when its first step began, */
    uint64_t began_ticks;  /* by both clocks */
    uint64_t clock_ticks;  /* between both, at least: what reading them takes */
    double tick_ns;        /* nanoseconds of a tick */
    size_t step_count;
    void **address; /* by value id */
    size_t *offset; /* by value id; QS_NOWHERE: not in the arena */
    qs_port *inputs, *outputs;
    /* Of an observed session: the outputs sorted by the step that completes them, and that step. */
    int32_t *shown, *ready;
    size_t arena_bytes;
    size_t live_bytes; /* peak of bytes in use */
    uint64_t used;     /* when it was last used: the plan unused longest is replaced */
    qs_team team;
    struct qs_deferred *deferred; /* nodes that execute after the steps; NULL: none */
} qs_plan;

int qs_plan_create(const qsim_session *s, const qsim_tensor *inputs, qs_plan **out,
                   qsim_error *error);
void qs_plan_free(qsim_ctx *ctx, qs_plan *plan);
/* Points every address into the arena at `base`. */
void qs_plan_rebase(const qsim_session *s, qs_plan *plan, uint8_t *base);

/*
 * Decides where every value lives: fills offset, scratch, ports' sharing and arena_bytes. part[v]:
 * the value that v is part of. kept[v]: v is read after all steps. deferred_values[v]: a deferred
 * node makes v, in memory of its own.
 */
int qs_plan_place(const qsim_session *s, qs_plan *plan, const qs_part *part, const bool *kept,
                  const bool *deferred_values, qsim_error *error);
/*
 * Makes the bytes that a lowered step would only copy part of the larger tensor; true if the step
 * is not needed any more (share.c).
 */
bool qs_plan_share(const qsim_session *s, const qs_plan *plan, const qs_step *step, qs_part *part);

/*
 * Fills shown and ready: output shown[i] is complete after step ready[i]; -1: before the first one;
 * step_count: after the deferred nodes (observe.c).
 */
int qs_plan_find_ready(const qsim_session *s, qs_plan *plan, const bool *deferred_values);

/*
 * Called before and after the steps of a timed execution (profile.c). Steps read the CPU's counter,
 * which costs a third of asking for the time; these two ask for the time, which gives the length of
 * a tick.
 */
uint64_t qs_plan_time(qs_plan *plan);
void qs_plan_timed(qs_plan *plan);

/*
 * packed_by[i] for the i-th node of the order: an earlier node that packs the same constants with
 * the same settings, or QS_NONE (packed_by.c).
 */
int qs_find_packed_by(qsim_ctx *ctx, const qs_graph *g, qs_id *packed_by);

#endif
