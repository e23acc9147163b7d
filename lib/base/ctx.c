/* SPDX-License-Identifier: MIT */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise */
#include <sys/mman.h>
#endif
#include "base/ctx.h"
#include "base/thread.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Pages of this size are worth it where they are well filled: the system hands out and clears 512
 * small ones one by one, in four times the time.
 */
#define HUGE_PAGE   ((size_t)2 << 20)
#define WELL_FILLED (HUGE_PAGE / 16 * 5)

static void *system_alloc(void *user, size_t size, size_t align) {
    (void)user;
    bool large = size >= WELL_FILLED;
    align = large ? HUGE_PAGE : align;
    if (size > SIZE_MAX - align)
        return NULL;
    void *p = aligned_alloc(align, qs_align(size, align));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (p && large)
        madvise(p, (size + HUGE_PAGE - WELL_FILLED) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return p;
}

static void system_free(void *user, void *ptr, size_t size) {
    (void)user;
    (void)size;
    free(ptr);
}

static const qsim_allocator system_allocator = {system_alloc, system_free, NULL};

int qs_ctx_init(const qsim_ctx_options *o, int32_t isa, const struct qk_table *kernels,
                qsim_ctx **out, qsim_error *error) {
    const qsim_allocator *a = o->allocator ? o->allocator : &system_allocator;
    if (!a->alloc || !a->free)
        return qs_fail(error, QSIM_E_ARGUMENT, "context: an allocator needs both alloc and free");
    qsim_ctx *ctx = a->alloc(a->user, sizeof(*ctx), _Alignof(max_align_t));
    if (!ctx)
        return qs_fail(error, QSIM_E_NOMEM, "context: out of memory");
    memset(ctx, 0, sizeof(*ctx));
    ctx->allocator = *a;
    ctx->log = o->log;
    ctx->log_user = o->log_user;
    ctx->parallel = o->parallel_for;
    ctx->parallel_user = o->parallel_user;
    ctx->kernels = kernels;
    ctx->isa = isa;
    qs_secret_choose(&ctx->secret);
    atomic_init(&ctx->holds, 1);
    ctx->threads = o->threads > 0 ? o->threads : qs_cpu_count();
#ifdef QS_NO_THREADS
    if (!ctx->parallel)
        ctx->threads = 1;
#endif
    if (!ctx->parallel && ctx->threads > 1) {
        ctx->pool = qs_pool_create(ctx, ctx->threads);
        if (!ctx->pool) {
            qs_fail(error, QSIM_E_NOMEM, "context: out of memory for %d threads",
                    (int)ctx->threads);
            qs_ctx_drop(ctx);
            return QSIM_E_NOMEM;
        }
    }
    *out = ctx;
    return QSIM_OK;
}

int qs_ctx_hold_bare(qsim_ctx *ctx, qsim_ctx **out, qsim_error *error) {
    const qsim_ctx_options bare = {.struct_size = sizeof(bare), .threads = 1};
    if (!ctx)
        return qs_ctx_init(&bare, QSIM_ISA_C, NULL, out, error);
    atomic_fetch_add(&ctx->holds, 1);
    *out = ctx;
    return QSIM_OK;
}

void qs_ctx_drop(qsim_ctx *ctx) {
    if (!ctx || atomic_fetch_sub(&ctx->holds, 1) != 1)
        return;
    qs_pool_free(ctx, ctx->pool);
    qsim_allocator a = ctx->allocator;
    a.free(a.user, ctx, sizeof(*ctx));
}

void qsim_ctx_free(qsim_ctx *ctx) {
    qs_ctx_drop(ctx);
}

const qs_secret *qs_ctx_secret(const qsim_ctx *ctx) {
    return &ctx->secret;
}

int32_t qsim_ctx_isa(const qsim_ctx *ctx) {
    return ctx ? ctx->isa : QSIM_ISA_AUTO;
}

int32_t qsim_ctx_threads(const qsim_ctx *ctx) {
    return ctx ? ctx->threads : 0;
}

void qs_log(const qsim_ctx *ctx, int32_t level, const char *format, ...) {
    if (!ctx->log)
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    ctx->log(ctx->log_user, level, line);
}
