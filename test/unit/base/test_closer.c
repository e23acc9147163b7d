/* SPDX-License-Identifier: MIT */
/*
 * Who closes a file that has lost its name: a thread of its own if the file is large, so that the
 * caller need not wait until the system has released the pages, else the caller.
 */
#define _GNU_SOURCE
#include "heap.h"
#include "no_threads.h"
#include "test.h"

#include "base/closer.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH  "closer_file"
#define LARGE ((uint64_t)64 << 20)
#define SMALL ((uint64_t)1 << 20)

/* ---- calls of the library: what closes large files, and whether it may go on ---- */

static pthread_t test_thread;
static atomic_int by_caller, by_others; /* large files closed */
static atomic_bool gate_closed;         /* other threads wait before they close */
static bool nameless_fails;

int close(int fd) {
    struct stat st;
    const bool mine = pthread_equal(pthread_self(), test_thread);
    const struct timespec rest = {0, 1000000};
    const bool large = fstat(fd, &st) == 0 && (uint64_t)st.st_size >= LARGE && st.st_nlink == 0;
    while (!mine && atomic_load(&gate_closed))
        nanosleep(&rest, NULL);
    const int code = (int)syscall(SYS_close, fd);
    if (large)
        atomic_fetch_add(mine ? &by_caller : &by_others, 1);
    return code;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    const unsigned how = flags & O_CREAT || nameless ? va_arg(more, unsigned) : 0;
    va_end(more);
    if (nameless && nameless_fails) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, how);
}

static void check_closed(int caller, int others) {
    CHECK_INT(atomic_exchange(&by_caller, 0), caller);
    CHECK_INT(atomic_exchange(&by_others, 0), others);
}

/* ---- */

/* Opens a file of `size` bytes, most of which take no room on the disk. */
static void begin(qsim_ctx *ctx, uint64_t size, qs_out *out) {
    qsim_error e = {0};
    CHECK_INT(qs_out_open(ctx, PATH, true, out, &e), QSIM_OK);
    CHECK_INT(qs_out_seek(out, size - 1), QSIM_OK);
    CHECK_INT(qs_out_write(out, "", 1), QSIM_OK);
}

static void put(qsim_ctx *ctx, uint64_t size) {
    qs_out out;
    qsim_error e = {0};
    begin(ctx, size, &out);
    CHECK_INT(qs_out_commit(&out, &e), QSIM_OK);
}

static void give_up(qsim_ctx *ctx, uint64_t size) {
    qs_out out;
    begin(ctx, size, &out);
    qs_out_abort(&out);
}

/* A file that is given up, one that is replaced and one that is removed. */
static void check_each(qsim_ctx *ctx, int caller, int others) {
    for (int named = 0; named <= 1; named++) {
        nameless_fails = named;
        give_up(ctx, LARGE);
        qs_close_wait(ctx);
        check_closed(caller, others);
        CHECK(access(PATH, F_OK) != 0);
    }
    nameless_fails = false;
    put(ctx, LARGE);
    qs_close_wait(ctx);
    check_closed(0, 0);
    put(ctx, SMALL);
    qs_close_wait(ctx);
    check_closed(caller, others);
    put(ctx, LARGE);
    qs_file_remove(ctx, PATH);
    qs_close_wait(ctx);
    check_closed(caller, others);
    CHECK(access(PATH, F_OK) != 0);
}

/* While one file is being closed, the caller goes on with others, and a forked child ends. */
static void check_waiting(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    atomic_store(&gate_closed, true);
    for (int i = 0; i < 3; i++)
        give_up(ctx, LARGE);
    check_closed(0, 0);
    const pid_t child = fork();
    if (child == 0) {
        qsim_ctx_free(ctx);
        _exit(0);
    }
    int status = -1;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    atomic_store(&gate_closed, false);
    qsim_ctx_free(ctx);
    check_closed(0, 3);
}

int main(void) {
    test_heap heap = {0};
    const qsim_allocator a = test_heap_allocator(&heap);
    const qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    test_thread = pthread_self();
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    check_each(ctx, 0, 1);
    give_up(ctx, SMALL);
    check_closed(0, 0);
#if defined(__GLIBC__)
    refuse_threads(true);
    check_each(ctx, 1, 0);
    refuse_threads(false);
#endif
    qs_out out;
    begin(ctx, LARGE, &out);
    heap.fail_at = heap.calls + 1;
    qs_out_abort(&out);
    CHECK_INT(heap.failed, 1);
    check_closed(1, 0);
    give_up(ctx, LARGE);
    qsim_ctx_free(ctx);
    check_closed(0, 1);
    CHECK_INT(heap.live, 0);
    check_waiting();
    return test_done();
}
