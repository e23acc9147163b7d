/* SPDX-License-Identifier: MIT */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64 /* for systems of 32 bits */
#endif
#include "base/closer.h"

#include "base/ctx.h"
#include "base/posix.h"

#ifndef QS_NO_THREADS
#include <pthread.h>

/* Bytes that take 6 ms to release; smaller files are not worth a thread. */
#define LARGE ((int64_t)32 << 20)

/* A thread that closes a file. Each one waits for the one before it, so that the last ends last. */
typedef struct qs_closing {
    int fd;
    pid_t process; /* a forked child has no thread to wait for */
    pthread_t thread;
    struct qs_closing *earlier; /* or NULL */
    atomic_bool done;
} qs_closing;

static void wait_for(const qs_closing *c) {
    if (c && c->process == getpid())
        pthread_join(c->thread, NULL);
}

static void *close_file(void *closing) {
    qs_closing *c = closing;
    close(c->fd);
    wait_for(c->earlier);
    atomic_store(&c->done, true);
    return NULL;
}

/* Starts a thread that closes `fd` after those of `earlier`; NULL: it did not start. */
static qs_closing *start(qsim_ctx *ctx, int fd, qs_closing *earlier) {
    qs_closing *c = qs_calloc(ctx, 1, sizeof(*c));
    if (!c)
        return NULL;
    c->fd = fd;
    c->process = getpid();
    c->earlier = earlier;
    if (pthread_create(&c->thread, NULL, close_file, c) == 0)
        return c;
    qs_free(ctx, c);
    return NULL;
}

static void finish(qsim_ctx *ctx, qs_closing *c) {
    wait_for(c);
    while (c) {
        qs_closing *earlier = c->earlier;
        qs_free(ctx, c);
        c = earlier;
    }
}

/* Keeps `c` to be waited for; NULL was kept before, unless another thread has closed a file
 * meanwhile. */
static void keep(qsim_ctx *ctx, qs_closing *c) {
    finish(ctx, atomic_exchange(&ctx->closing, c));
}

void qs_close_apart(qsim_ctx *ctx, int fd) {
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) || st.st_size < LARGE) {
        close(fd);
        return;
    }
    qs_closing *earlier = atomic_exchange(&ctx->closing, NULL);
    if (earlier && atomic_load(&earlier->done)) {
        finish(ctx, earlier);
        earlier = NULL;
    }
    qs_closing *c = start(ctx, fd, earlier);
    if (!c)
        close(fd);
    keep(ctx, c ? c : earlier);
}

void qs_close_wait(qsim_ctx *ctx) {
    keep(ctx, NULL);
}
#else
void qs_close_apart(qsim_ctx *ctx, int fd) {
    (void)ctx;
    if (fd >= 0)
        close(fd);
}

void qs_close_wait(qsim_ctx *ctx) {
    (void)ctx;
}
#endif
