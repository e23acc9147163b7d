/* SPDX-License-Identifier: MIT */
/* The context, which every other object is made with. */
#ifndef QS_CTX_H
#define QS_CTX_H

#include <stdatomic.h>

#include "base/base.h"

struct qs_closing;
struct qs_pool;
struct qk_table;

/*
 * Whether the work of a context, or of a run inside it, has to end, and why. Once work has seen a
 * reason to end, the reason stays, so that tasks that were skipped are noticed after the step even
 * if the cancellation is withdrawn meanwhile.
 */
typedef struct qs_stop {
    atomic_int code;       /* QSIM_OK: go on */
    struct qs_stop *outer; /* NULL: the context's own */
    uint64_t deadline_ns;  /* of qs_clock_ns; 0: none */
} qs_stop;

/* Memory that a context's objects hold. */
typedef struct qs_account {
    uint64_t limit;                      /* 0: not counted */
    atomic_uint_least64_t held, refused; /* bytes; bytes of the last refused request, 0: none */
    atomic_uint_least64_t full;          /* bytes held when it was refused */
} qs_account;

struct qsim_ctx {
    qsim_allocator allocator;
    qsim_log_fn log;
    void *log_user;
    qsim_parallel_fn parallel;
    void *parallel_user;
    struct qs_pool *pool;                 /* NULL with parallel_for or one thread */
    _Atomic(struct qs_closing *) closing; /* closer.h; or NULL */
    const struct qk_table *kernels;       /* filled by the kernel layer */
    atomic_int holds;                     /* reference count */
    int32_t threads;                      /* >= 1 */
    int32_t isa;                          /* QSIM_ISA_*, never AUTO */
    qs_secret secret;
    qs_stop *stop;       /* the one in effect: `cancel`, or in a view the run's */
    qs_account *account; /* `own`, or in a view that of the context */
    qs_stop cancel;
    qs_account own;
    qsim_limits limits; /* none is 0, except memory and milliseconds */
};

/*
 * The last part of qsim_ctx_create (kernel/context.c), after instruction set and kernels have been
 * chosen. QS_OPTIONS has checked `o`.
 */
int qs_ctx_init(const qsim_ctx_options *o, int32_t isa, const struct qk_table *kernels,
                qsim_ctx **out, qsim_error *error);

/*
 * Takes a reference to the context. NULL makes a bare context: the system's memory, one thread, no
 * kernels. It serves the layers below the kernels (files, observers); all others call qs_ctx_hold
 * of kernel/context.h.
 */
int qs_ctx_hold_bare(qsim_ctx *ctx, qsim_ctx **out, qsim_error *error);
/* Releases a reference; the last one frees the context. NULL does nothing. */
void qs_ctx_drop(qsim_ctx *ctx);

/*
 * A view of the context for one run, with a stop of its own, whose `outer` is set. Takes no
 * reference. The run's steps get this view: code that splits work or checks whether to go on needs
 * nothing else.
 */
void qs_ctx_view(const qsim_ctx *ctx, qs_stop *stop, qsim_ctx *view);

/* Whether to go on: QSIM_OK, QSIM_E_CANCELLED or QSIM_E_TIME. Cheap; `ctx` may be a view. */
int qs_stop_code(const qsim_ctx *ctx);
static inline bool qs_stopped(const qsim_ctx *ctx) {
    return qs_stop_code(ctx) != QSIM_OK;
}
/* The same for a loop over small items with counter `i`: checks every 32768th time. */
inline bool qs_stopped_at(const qsim_ctx *ctx, size_t i) {
    return (i & 0x7fff) == 0x7fff && qs_stop_code(ctx) != QSIM_OK;
}
/*
 * Bytes that are copied or set between two checks for a stop: some ms if the system has to hand out
 * their pages.
 */
#define QS_COPY_PIECE ((size_t)1 << 20)
/*
 * memcpy and memset that end early if work has to end, with qs_stop_code's code: for memory that
 * may be as large as a tensor. Without a context (NULL) nothing ends them.
 */
int qs_copy(const qsim_ctx *ctx, void *to, const void *from, size_t bytes);
int qs_clear(const qsim_ctx *ctx, void *to, size_t bytes);
/* qs_stopped_at for a loop that handles `bytes` each time; `done` counts them between checks. */
bool qs_stopped_after(const qsim_ctx *ctx, size_t *done, size_t bytes);
/* Returns `code`, which is that of a stop or NOMEM, with `error` set, or QSIM_OK. */
int qs_stop_fail(const qsim_ctx *ctx, int code, const char *name, qsim_error *error);
/* qs_stop_fail of qs_stop_code: for loops over nodes, files, candidates. */
int qs_go_on(const qsim_ctx *ctx, const char *name, qsim_error *error);
/* The same at every 1024th item `i`: for walks over all nodes or values that take little of each.
 */
int qs_go_on_at(const qsim_ctx *ctx, size_t i, const char *name, qsim_error *error);
/* The same, or CANCELLED if a callback of the caller has `ended` the work. */
int qs_go_on_unless(const qsim_ctx *ctx, bool ended, const char *name, qsim_error *error);
/*
 * Called at the end of a long call: adds to an out-of-memory error a hint with the memory limit and
 * the bytes needed. Returns `code`.
 */
int qs_leave(const qsim_ctx *ctx, int code, qsim_error *error);

/* QSIM_E_LIMIT, naming the limit, if `need` exceeds it; `member` is a member of qsim_limits. */
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
 * Asks the operating system for a CPU feature that it grants on demand, AMX's tiles, before the
 * first kernel that uses it. False: refused. Asking again is harmless.
 */
bool qs_cpu_take_isa(int32_t isa);

#endif
