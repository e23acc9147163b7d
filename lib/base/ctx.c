/* SPDX-License-Identifier: MIT */
#if defined(__linux__)
#define _GNU_SOURCE /* madvise */
#endif
#include "base/closer.h"
#include "base/ctx.h"
#include "base/posix.h"
#include "base/thread.h"

#include <stdarg.h>

static void *system_alloc(void *user, size_t size, size_t align) {
    (void)user;
    bool large = size >= QS_WELL_FILLED;
    align = large ? QS_LARGE_PAGE : align;
    if (size > SIZE_MAX - align)
        return NULL;
#if defined(QS_EXACT_MEMORY) || defined(QS_ADDRESS_SANITIZER) /* which sees the exact end */
    void *p;
    p = posix_memalign(&p, align, size) ? NULL : p;
#else
    void *p = aligned_alloc(align, qs_align(size, align));
#endif
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (p && large)
        madvise(p, (size + QS_LARGE_PAGE - QS_WELL_FILLED) / QS_LARGE_PAGE * QS_LARGE_PAGE,
                MADV_HUGEPAGE);
#endif
    return p;
}

static void system_free(void *user, void *ptr, size_t size) {
    (void)user;
    (void)size;
    aligned_free(ptr);
}

static const qsim_allocator system_allocator = {system_alloc, system_free, NULL};

/* Gives members that are 0 their defaults; memory and milliseconds have none: 0 is no limit. */
static int take_limits(const qsim_limits *given, qsim_limits *out, qsim_error *error) {
    static const qsim_limits defaults = {.struct_size = sizeof(defaults),
                                         .file = (uint64_t)1 << 40,
                                         .stream = (uint64_t)1 << 34,
                                         .nodes = 4000000,
                                         .values = 16000000,
                                         .elements = (uint64_t)1 << 40,
                                         .attributes = 1000,
                                         .nesting = 16,
                                         .entries = 4096,
                                         .ratio = 100,
                                         .threads = 1024};
    const size_t first = offsetof(qsim_limits, memory);
    int code = QS_OPTIONS(*out, given, error);
    out->struct_size = sizeof(*out);
    for (size_t at = first; at < sizeof(*out) && !code; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, (const char *)out + at, sizeof(value));
        if (!value)
            memcpy((char *)out + at, (const char *)&defaults + at, sizeof(value));
    }
    out->nesting = out->nesting < defaults.nesting ? out->nesting : defaults.nesting;
    out->entries = out->entries < defaults.entries ? out->entries : defaults.entries;
    return code;
}

static void set_limits(qsim_ctx *ctx, const qsim_limits *limits) {
    ctx->limits = *limits;
    ctx->own.limit = limits->memory;
    atomic_init(&ctx->own.held, sizeof(*ctx));
    atomic_init(&ctx->own.refused, 0);
    atomic_init(&ctx->own.full, 0);
    ctx->account = &ctx->own;
    atomic_init(&ctx->cancel.code, QSIM_OK);
    ctx->stop = &ctx->cancel;
    if (limits->milliseconds)
        ctx->cancel.deadline_ns =
            qs_clock_ns() + (limits->milliseconds < UINT64_MAX / 4000000 ? limits->milliseconds
                                                                         : UINT64_MAX / 4000000) *
                                1000000;
}

int qs_ctx_init(const qsim_ctx_options *o, int32_t isa, const struct qk_table *kernels,
                qsim_ctx **out, qsim_error *error) {
    const qsim_allocator *a = o->allocator ? o->allocator : &system_allocator;
    if (!a->alloc || !a->free)
        return qs_fail(error, QSIM_E_ARGUMENT, "context: an allocator needs both alloc and free");
    qsim_limits limits;
    int code = take_limits(o->limits, &limits, error);
    if (!code && o->threads > 0 && (uint64_t)o->threads > limits.threads)
        code = qs_over_limit(error, "threads", limits.threads, (uint64_t)o->threads, "context");
    if (code)
        return code;
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
    set_limits(ctx, &limits);
    atomic_init(&ctx->holds, 1);
    ctx->threads = o->threads > 0 ? o->threads : qs_cpu_count();
    if ((uint64_t)ctx->threads > limits.threads)
        ctx->threads = (int32_t)limits.threads;
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
    qs_close_wait(ctx);
    qs_pool_free(ctx, ctx->pool);
    qsim_allocator a = ctx->allocator;
    a.free(a.user, ctx, sizeof(*ctx));
}

void qsim_ctx_free(qsim_ctx *ctx) {
    qs_ctx_drop(ctx);
}

/* ---- limits and the end of work ---- */

void qsim_ctx_cancel(qsim_ctx *ctx, int32_t on) {
    if (ctx)
        atomic_store(&ctx->cancel.code, on ? QSIM_E_CANCELLED : QSIM_OK);
}

int qsim_ctx_limits(const qsim_ctx *ctx, qsim_limits *limits) {
    return ctx ? qs_give(limits, &ctx->limits, sizeof(ctx->limits)) : QSIM_E_ARGUMENT;
}

uint64_t qsim_ctx_memory(const qsim_ctx *ctx) {
    return ctx && ctx->own.limit ? atomic_load(&ctx->own.held) : 0;
}

void qs_ctx_view(const qsim_ctx *ctx, qs_stop *stop, qsim_ctx *view) {
    memset(view, 0, sizeof(*view));
    view->allocator = ctx->allocator;
    view->log = ctx->log;
    view->log_user = ctx->log_user;
    view->parallel = ctx->parallel;
    view->parallel_user = ctx->parallel_user;
    view->pool = ctx->pool;
    view->kernels = ctx->kernels;
    view->threads = ctx->threads;
    view->isa = ctx->isa;
    view->secret = ctx->secret;
    view->limits = ctx->limits;
    view->account = ctx->account;
    view->stop = stop;
}

int qs_stop_code(const qsim_ctx *ctx) {
    for (qs_stop *s = ctx->stop; s; s = s->outer) {
        int code = atomic_load_explicit(&s->code, memory_order_relaxed);
        if (!code && s->deadline_ns && qs_clock_ns() > s->deadline_ns)
            code = QSIM_E_TIME;
        if (code) {
            if (s != ctx->stop)
                atomic_store_explicit(&ctx->stop->code, code, memory_order_relaxed);
            return code;
        }
    }
    return QSIM_OK;
}

/* The one copy for calls that are not inlined. */
extern inline bool qs_stopped_at(const qsim_ctx *ctx, size_t i);

bool qs_stopped_after(const qsim_ctx *ctx, size_t *done, size_t bytes) {
    *done += bytes < QS_COPY_PIECE ? bytes + 16 : QS_COPY_PIECE;
    if (*done < QS_COPY_PIECE)
        return false;
    *done = 0;
    return qs_stopped(ctx);
}

int qs_stop_fail(const qsim_ctx *ctx, int code, const char *name, qsim_error *error) {
    if (code == QSIM_E_TIME)
        return qs_fail(error, code, "%s: the limit 'milliseconds' is %llu: the time is up", name,
                       (unsigned long long)ctx->limits.milliseconds);
    if (!code)
        return QSIM_OK;
    return qs_fail(error, code, code == QSIM_E_NOMEM ? "%s: out of memory" : "%s: cancelled", name);
}

int qs_go_on(const qsim_ctx *ctx, const char *name, qsim_error *error) {
    return qs_go_on_unless(ctx, false, name, error);
}

int qs_go_on_at(const qsim_ctx *ctx, size_t i, const char *name, qsim_error *error) {
    return i % 1024 == 1023 ? qs_go_on(ctx, name, error) : QSIM_OK;
}

int qs_go_on_unless(const qsim_ctx *ctx, bool ended, const char *name, qsim_error *error) {
    return qs_stop_fail(ctx, ended ? QSIM_E_CANCELLED : qs_stop_code(ctx), name, error);
}

int qs_leave(const qsim_ctx *ctx, int code, qsim_error *error) {
    qs_account *a = ctx->account;
    const uint64_t refused = a->limit ? atomic_load(&a->refused) : 0;
    if (code == QSIM_E_NOMEM && refused && error && !error->hint[0])
        qs_hint(error, "the limit 'memory' is %llu bytes: %llu were held and %llu more needed",
                (unsigned long long)a->limit, (unsigned long long)atomic_load(&a->full),
                (unsigned long long)refused);
    return code;
}

int qs_over_limit(qsim_error *error, const char *limit, uint64_t value, uint64_t need,
                  const char *where) {
    return qs_fail(error, QSIM_E_LIMIT, "%s: the limit '%s' is %llu, %llu are needed", where, limit,
                   (unsigned long long)value, (unsigned long long)need);
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
