/* SPDX-License-Identifier: MIT */
/* The context: what every other object is made with. */
#ifndef QS_CTX_H
#define QS_CTX_H

#include <stdatomic.h>

#include "base/base.h"

struct qs_pool;
struct qk_table;

/*
 * Whether work is to end, and why: of a context, or of a run inside it. What one of them has seen
 * stays so: tasks that were left out are noticed after the step, whatever happens meanwhile.
 */
typedef struct qs_stop {
    atomic_int code;       /* QSIM_OK: go on */
    struct qs_stop *outer; /* NULL: the context's own */
    uint64_t deadline_ns;  /* of qs_clock_ns; 0: none */
} qs_stop;

/* What a context's objects hold. */
typedef struct qs_account {
    uint64_t limit;                      /* 0: nobody counts */
    atomic_uint_least64_t held, refused; /* bytes; of the last request refused, 0: none was */
    atomic_uint_least64_t full;          /* held when that was refused */
} qs_account;

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
    qs_stop *stop;       /* in effect: `cancel`, or that of a run whose view this is */
    qs_account *account; /* `own`, or that of the context whose view this is */
    qs_stop cancel;
    qs_account own;
    qsim_limits limits; /* none is 0, but for memory and milliseconds */
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

/*
 * The context as one run sees it, with a stop of its own, whose `outer` is set. Takes no hold. The
 * steps of the run get it, so that what splits them or looks whether to go on needs no more.
 */
void qs_ctx_view(const qsim_ctx *ctx, qs_stop *stop, qsim_ctx *view);

/* QSIM_OK, QSIM_E_CANCELLED or QSIM_E_TIME: whether to go on. Cheap; `ctx` may be a view. */
int qs_stop_code(const qsim_ctx *ctx);
static inline bool qs_stopped(const qsim_ctx *ctx) {
    for (qs_stop *s = ctx->stop; s; s = s->outer)
        if (atomic_load_explicit(&s->code, memory_order_relaxed) || s->deadline_ns)
            return qs_stop_code(ctx) != QSIM_OK;
    return false;
}
/* The same in a loop over small things that counts to `i`: looks each 32768th time. */
static inline bool qs_stopped_at(const qsim_ctx *ctx, size_t i) {
    return (i & 0x7fff) == 0x7fff && qs_stopped(ctx);
}
/* The same as an error that says so: for loops over nodes, files, candidates. */
int qs_go_on(const qsim_ctx *ctx, const char *name, qsim_error *error);
/*
 * The way out of a long call: an error for want of memory gets the hint which limit there is and
 * what was needed. Returns `code`.
 */
int qs_leave(const qsim_ctx *ctx, int code, qsim_error *error);

/*
 * QSIM_E_LIMIT, naming the limit, if `need` is over it; `member` is a member of qsim_limits.
 */
#define QS_LIMIT(ctx, member, need, error, ...)                                                    \
    ((need) <= (ctx)->limits.member                                                                \
         ? QSIM_OK                                                                                 \
         : qs_over_limit(error, #member, (ctx)->limits.member, need, __VA_ARGS__))
int qs_over_limit(qsim_error *error, const char *limit, uint64_t value, uint64_t need,
                  const char *where);

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
