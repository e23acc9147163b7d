/* SPDX-License-Identifier: MIT */
/* The context: what every other object is made with. */
#ifndef QS_CTX_H
#define QS_CTX_H

#include <stdatomic.h>

#include "base/base.h"

struct qs_pool;
struct qk_table;

struct qsim_ctx {
    qsim_allocator allocator;
    qsim_log_fn log;
    void *log_user;
    qsim_parallel_fn parallel;
    void *parallel_user;
    struct qs_pool *pool;           /* NULL with parallel_for or one thread */
    const struct qk_table *kernels; /* filled by the kernel layer */
    atomic_int holds;               /* freed when the last object lets go */
    int32_t threads;                /* >= 1 */
    int32_t isa;                    /* QSIM_ISA_*, never AUTO */
    qs_secret secret;
};

/*
 * The last part of qsim_ctx_create (kernel/context.c), after the choice of instruction set and
 * kernels. `o` has been through QS_OPTIONS.
 */
int qs_ctx_init(const qsim_ctx_options *o, int32_t isa, const struct qk_table *kernels,
                qsim_ctx **out, qsim_error *error);

/*
 * Takes one more hold on the context. NULL makes a bare one: the system's memory, one thread, no
 * kernels. Enough for the layers below the kernels (files, observers); all others call
 * qs_ctx_hold of kernel/context.h.
 */
int qs_ctx_hold_bare(qsim_ctx *ctx, qsim_ctx **out, qsim_error *error);
/* Gives a hold back; the last one frees the context. NULL does nothing. */
void qs_ctx_drop(qsim_ctx *ctx);

void qs_log(const qsim_ctx *ctx, int32_t level, const char *format, ...) QS_PRINTF(3, 4);

/*
 * Calls task(arg, i) for i in [0, n) on the context's threads; returns when all are done. When the
 * pool is busy with another caller, or n is 1, everything runs inline on this thread.
 */
void qs_parallel(const qsim_ctx *ctx, size_t n, qsim_task_fn task, void *arg);

/*
 * Sets rounding to nearest-even and denormals on for the calling thread and returns what it was, to
 * be given back to qs_fp_restore: hosts (audio) run with other settings.
 */
uint64_t qs_fp_enter(void);
void qs_fp_restore(uint64_t saved);

/* QSIM_ISA_* numbers are below it. */
#define QS_ISA_COUNT 9

/* Whether this CPU (and its system) runs an instruction set; says nothing of the build. */
bool qs_cpu_has_isa(int32_t isa);
/*
 * Asks the operating system for what it grants a process on demand, before the first kernel of a
 * set that the CPU has: AMX's tiles. False: refused. Asking again is harmless.
 */
bool qs_cpu_take_isa(int32_t isa);

#endif
