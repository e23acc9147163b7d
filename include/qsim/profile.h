/* SPDX-License-Identifier: MIT */
/*
 * qsim/profile.h - where the time goes.
 *
 * A run executes steps: nodes, fused as the session compiled them. With timing on, the run keeps
 * the duration of each step of its last execution; a profile receives each step of each execution:
 *
 *     qsim_run_profile_begin(run, on_event, NULL);
 *     qsim_run_execute(run, inputs, 1, outputs, 1, &e);
 *     qsim_run_profile_end(run);
 *
 * Either reads the CPU's counter once per step, which takes 10 to 50 ns, or 200 in some virtual
 * machines (qsim profile prints it), and costs about 100 ns per execution. A run is used by one
 * thread at a time, and so are these functions.
 */
#ifndef QSIM_PROFILE_H
#define QSIM_PROFILE_H

#include <qsim/base.h>
#include <qsim/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Type and shape of a tensor that a step reads or writes: `tensor` counts its inputs, then its
 * outputs. `out` gets dtype, rank, bytes and dims, which points to `dims`, an array of
 * QSIM_MAX_RANK sizes; its data is NULL. An optional tensor that is left out has dtype
 * QSIM_UNDEFINED. Inside a session activations are channels last where that is faster. Errors:
 * ARGUMENT (index, tensor, dims).
 */
QSIM_API int qsim_run_step_tensor(const qsim_run *run, int32_t index, int32_t tensor, int64_t *dims,
                                  qsim_tensor *out);

/* An event of a profile; `struct_size` is set by the library. */
typedef struct qsim_profile_event {
    size_t struct_size;
    int64_t execution; /* counted from 0 at qsim_run_profile_begin */
    uint64_t start_ns; /* on a clock that only runs forward, CLOCK_MONOTONIC where there is one */
    uint64_t duration_ns; /* of a step: up to the beginning of the next one */
    int32_t step;         /* as qsim_run_step counts them; -1: the execution as a whole */
    int32_t reserved;
} qsim_profile_event;

typedef void (*qsim_profile_fn)(void *user, const qsim_profile_event *event);

/*
 * From now on each execution of this run ends with calls of `event`, on the executing thread: one
 * for the execution as a whole, then one for each step that was executed (not all if it failed or
 * was cancelled). During the calls qsim_run_step and qsim_run_step_tensor describe that execution.
 * Errors: ARGUMENT (NULL), STATE (a profile has begun already).
 */
QSIM_API int qsim_run_profile_begin(qsim_run *run, qsim_profile_fn event, void *user);
/* Ends the profile. Returns the number of reported executions, or STATE if none has begun. */
QSIM_API int64_t qsim_run_profile_end(qsim_run *run);

/* ---- limits of the machine ---------------------------------------------------------------- */

#define QSIM_MEMORY_LEVELS 4 /* first, second, third level of cache, memory */

/* The machine's limits with the threads and instruction set of a context; 0: not known. */
typedef struct qsim_machine {
    size_t struct_size;
    double int8_gmacs;                      /* 10^9 multiply-accumulates of 8 bits a second */
    double float_gmacs;                     /* the same of 32-bit floats */
    double read_gbs[QSIM_MEMORY_LEVELS];    /* 10^9 bytes read a second, of blocks of ... */
    int64_t read_bytes[QSIM_MEMORY_LEVELS]; /* ... this size in all */
    int32_t threads;
    int32_t reserved;
    double tile_gmacs; /* of 8 bits by tiles; 0 unless the context's instruction set is AMX */
} qsim_machine;

/*
 * Measures, for about 0.3 s, loops that only compute in registers, with the instruction set of the
 * context, and loops that only read, with the best one of the CPU. `ctx` may be NULL: one thread
 * for each CPU. C, which has no vectors, has no limits of products, nor are those of ARM known.
 * Errors: ARGUMENT (struct_size), NOMEM.
 */
QSIM_API int qsim_machine_measure(qsim_ctx *ctx, qsim_machine *out, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
