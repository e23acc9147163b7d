/* SPDX-License-Identifier: MIT */
/*
 * qsim/profile.h - how long each step of an execution takes.
 *
 * A run executes steps: the nodes of the session's graph, some of them fused. With timing on
 * (qsim_run_set_timing), the run keeps the duration of each step of its last execution. A profile
 * receives the duration of each step of every execution:
 *
 *     qsim_run_profile_begin(run, on_event, NULL);
 *     qsim_run_execute(run, inputs, 1, outputs, 1, &e);
 *     qsim_run_profile_end(run);
 *
 * Both read the CPU's counter once per step, which takes 10 to 50 ns, or 200 ns in some virtual
 * machines (`qsim profile` prints how long), and cost about 100 ns per execution. These functions
 * belong to the run: one thread at a time.
 */
#ifndef QSIM_PROFILE_H
#define QSIM_PROFILE_H

#include <qsim/base.h>
#include <qsim/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gives type and shape of a tensor that step `index` reads or writes. `tensor` is 0 for the step's
 * first input; outputs are counted after all inputs. `dims` is the caller's array of QSIM_MAX_RANK
 * sizes. Sets dtype, rank, bytes and dims of `out`; out->dims points to `dims`, out->data is NULL.
 * An optional tensor that is left out has dtype QSIM_UNDEFINED. A session may keep activations
 * channels last, so shapes may differ from the model's. Errors: ARGUMENT (index, tensor, dims).
 */
QSIM_API int qsim_run_step_tensor(const qsim_run *run, int32_t index, int32_t tensor, int64_t *dims,
                                  qsim_tensor *out);

/* The time of one execution or of one of its steps. */
typedef struct qsim_profile_event {
    size_t struct_size; /* set by the library */
    int64_t execution;  /* the execution's number, from 0 at qsim_run_profile_begin */
    uint64_t start_ns;  /* on a clock that only runs forward, CLOCK_MONOTONIC where there is one */
    uint64_t duration_ns; /* of a step: until the next step starts */
    int32_t step;         /* index for qsim_run_step; -1: the execution as a whole */
    int32_t reserved;
} qsim_profile_event;

/*
 * A step of an event: all nodes together whose sizes depend on data (NonZero, branches of If,
 * bodies of Loop, and nodes that read their results). They run after the steps and are none.
 */
#define QSIM_STEP_DEFERRED (-2)

/* Receives one event of a profile, which is valid during the call. */
typedef void (*qsim_profile_fn)(void *user, const qsim_profile_event *event);

/*
 * Begins a profile. At the end of each execution of this run, the executing thread calls `event`
 * once for the execution as a whole and once for each step that was executed (fewer than all if the
 * execution failed or was cancelled), then once for nodes without steps, if there are any. During
 * these calls qsim_run_step and qsim_run_step_tensor describe that execution. Errors: ARGUMENT
 * (NULL), STATE (a profile has begun already).
 */
QSIM_API int qsim_run_profile_begin(qsim_run *run, qsim_profile_fn event, void *user);
/* Ends the profile. Returns the number of reported executions, or STATE if none had begun. */
QSIM_API int64_t qsim_run_profile_end(qsim_run *run);

/* ---- limits of the machine ---------------------------------------------------------------- */

#define QSIM_MEMORY_LEVELS 4 /* level 1, 2 and 3 caches, main memory */

/* The fastest that the machine can compute and read, with a context's threads; 0: not known. */
typedef struct qsim_machine {
    size_t struct_size;                     /* sizeof(qsim_machine), set by the caller */
    double int8_gmacs;                      /* 10^9 multiply-accumulates of 8 bits per second */
    double float_gmacs;                     /* the same of 32-bit floats */
    double read_gbs[QSIM_MEMORY_LEVELS];    /* 10^9 bytes per second read from each level */
    int64_t read_bytes[QSIM_MEMORY_LEVELS]; /* the size of the block that was read for that */
    int32_t threads;                        /* that took part */
    int32_t reserved;
    double tile_gmacs; /* as int8_gmacs, by AMX tiles; 0 unless the context's isa is AMX */
} qsim_machine;

/*
 * Measures the limits, which takes about 0.3 s: loops that only compute in registers, with the
 * context's instruction set, and loops that only read memory, with the best instruction set of the
 * CPU. `ctx` may be NULL: one thread for each CPU. The multiply-accumulates of instruction set C
 * and of ARM are not known (0). Errors: ARGUMENT (struct_size), NOMEM, CANCELLED.
 */
QSIM_API int qsim_machine_measure(qsim_ctx *ctx, qsim_machine *out, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
