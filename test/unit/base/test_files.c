/* SPDX-License-Identifier: MIT */
/*
 * What the system may answer to calls on files: work goes on after an interrupted call, a name that
 * is taken and what a file system does not offer; every other failure is reported. The new file is
 * complete or the old one is there, with nothing beside it.
 */
#define _GNU_SOURCE
#include "base/base.h"
#include "base/file.h"
#include "base/tree.h"

#include "folder_count.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "files"
#define PATH   FOLDER "/a"
#define LARGE                                                                                      \
    ((size_t)9 << 20) /* over the pieces that are sent to the disk while it is written             \
                       */
#define NAMES 1000    /* most fresh names that are tried */

/* ---- calls that fail ---- */

enum { NAMELESS, NAMED, PROC, LINK, RENAME, WRITE, NOTHING, READ, SYNC, RANGE, CLOSE, CALLS };
static struct {
    int code;        /* errno */
    long left, made; /* calls that are to fail; calls since the count began */
} answers[CALLS];

static bool fails(int call) {
    answers[call].made++;
    if (answers[call].left == 0)
        return false;
    answers[call].left--;
    errno = answers[call].code;
    return true;
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
    const unsigned how = flags & O_CREAT || nameless ? va_arg(more, unsigned) : 0;
    va_end(more);
    if ((nameless || flags & O_CREAT) && fails(nameless ? NAMELESS : NAMED))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, how);
}

int access(const char *path, int how) {
    return fails(PROC) ? -1 : (int)syscall(SYS_faccessat, AT_FDCWD, path, how);
}

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    return fails(LINK) ? -1 : (int)syscall(SYS_linkat, from_dir, from, to_dir, to, flags);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return fails(RENAME) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

ssize_t write(int fd, const void *data, size_t size) {
    if (fails(NOTHING)) /* nothing is written and nothing is wrong: errno is an earlier call's */
        return 0;
    return fails(WRITE) ? -1 : (ssize_t)syscall(SYS_write, fd, data, size);
}

ssize_t read(int fd, void *data, size_t size) {
    /* A function of the C library, of which MemorySanitizer knows what it writes. */
    return fails(READ) ? -1 : readv(fd, &(struct iovec){data, size}, 1);
}

int fsync(int fd) {
    return fails(SYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

static long now_ns, flush_ns; /* the time, which passes by flushes alone */

int clock_gettime(clockid_t clock, struct timespec *t) {
    (void)clock;
    *t = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

int sync_file_range(int fd, off_t from, off_t size, unsigned flags) {
    (void)fd, (void)from, (void)size, (void)flags;
    now_ns += flush_ns;
    return fails(RANGE) ? -1 : 0;
}

int close(int fd) {
    const bool failed = fails(CLOSE);
    const int code = (int)syscall(SYS_close, fd);
    if (failed)
        errno = answers[CLOSE].code;
    return failed ? -1 : code;
}

/* ---- */

static int put(qsim_ctx *ctx, const char *data, size_t size, qsim_error *e) {
    qs_out out;
    int code = qs_out_open(ctx, PATH, true, &out, e);
    if (!code) {
        (void)qs_out_write(&out, data, size / 2);
        (void)qs_out_write(&out, data + size / 2, size - size / 2);
        code = qs_out_commit(&out, e);
    }
    return code;
}

static bool holds(qsim_ctx *ctx, const char *data, size_t size) {
    qs_map map;
    if (qs_map_open(ctx, PATH, false, &map, NULL))
        return false;
    const bool same = map.size == size && memcmp(map.data, data, size) == 0;
    qs_map_close(ctx, &map);
    return same;
}

static const struct {
    int call, code;
    long times;
    int fresh, replaced; /* code where there is no file yet, and where there is one */
    long made;           /* calls in all, where one fails in the end; 0: any number */
} cases[] = {
    {WRITE, EINTR, 3, QSIM_OK, QSIM_OK, 0},
    {WRITE, EIO, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {WRITE, ENOSPC, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {NOTHING, EINTR, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {NAMELESS, EOPNOTSUPP, 1, QSIM_OK, QSIM_OK, 0},
    {PROC, ENOENT, 1, QSIM_OK, QSIM_OK, 0},
    /* The first is the name of the file itself, the next two are that of what replaces it. */
    {LINK, EEXIST, NAMES + 2, QSIM_OK, QSIM_OK, 0},
    {LINK, EEXIST, NAMES + 3, QSIM_E_IO, QSIM_E_IO, NAMES + 3},
    {LINK, EPERM, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {SYNC, EINVAL, 1, QSIM_OK, QSIM_OK, 0},
    {SYNC, EROFS, 1, QSIM_OK, QSIM_OK, 0},
    {SYNC, EIO, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {SYNC, ENOSPC, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {RENAME, EACCES, 1, QSIM_OK, QSIM_E_IO, 0}, /* nothing is renamed where there is no file */
    {CLOSE, EIO, 1, QSIM_E_IO, QSIM_E_IO, 0},
    {RANGE, EIO, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {RANGE, ENOSPC, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {RANGE, EDQUOT, 1, QSIM_E_IO, QSIM_E_IO, 1},
    {RANGE, EINVAL, 1, QSIM_OK, QSIM_OK, 0},
    {RANGE, ESPIPE, 1, QSIM_OK, QSIM_OK, 0},
    {RANGE, EINTR, 1, QSIM_OK, QSIM_OK, 0},
};

static void check_answer(qsim_ctx *ctx, size_t i, const char *data, bool replace) {
    const size_t size = cases[i].call == RANGE ? LARGE : 100;
    const int wanted = replace ? cases[i].replaced : cases[i].fresh;
    qsim_error e = {0};
    unlink(PATH);
    if (replace)
        CHECK_INT(put(ctx, "old", 3, &e), QSIM_OK);
    answers[cases[i].call].code = cases[i].code;
    answers[cases[i].call].left = cases[i].times;
    answers[cases[i].call].made = 0;
    const int code = put(ctx, data, size, &e);
    const long made = answers[cases[i].call].made;
    answers[cases[i].call].left = 0;
    if (code != wanted)
        fprintf(stderr, "case %zu, %s: %s\n", i, replace ? "replaced" : "new", e.message);
    CHECK_INT(code, wanted);
    CHECK(!cases[i].made || made == cases[i].made);
    if (cases[i].call == CLOSE) /* which fails when the file is at its place */
        CHECK(holds(ctx, data, size) && folder_count(FOLDER) == 1);
    else if (code)
        CHECK(strstr(e.message, strerror(cases[i].code)) &&
              (replace ? holds(ctx, "old", 3) : access(PATH, F_OK) != 0) &&
              folder_count(FOLDER) == replace);
    else
        CHECK(holds(ctx, data, size) && folder_count(FOLDER) == 1);
}

/* A slow disk gets smaller pieces, so that a save which is cancelled waits for less. */
static void check_slow(qsim_ctx *ctx, const char *data) {
    static const struct {
        long ms, made;
    } disks[] = {
        {1, 3},   /* after 0.5, 1 and 2.75 MB; twice as much would be 4 MB */
        {20, 8},  /* after 0.5 MB each, once 0.75 */
        {40, 17}, /* after 0.25 MB each, but the first */
    };
    qsim_error e = {0};
    for (size_t i = 0; i < QS_COUNT(disks); i++) {
        flush_ns = 1000000 * disks[i].ms;
        answers[RANGE].made = 0;
        CHECK_INT(put(ctx, data, LARGE / 2, &e), QSIM_OK);
        CHECK_INT(answers[RANGE].made, disks[i].made);
    }
    flush_ns = 0;
}

/* Where there are no files without a name. */
static void check_names(qsim_ctx *ctx) {
    static const struct {
        int call, code, wanted;
        long times, made;
    } names[] = {
        {NAMED, EEXIST, QSIM_OK, NAMES - 1, NAMES},
        {NAMED, EEXIST, QSIM_E_IO, NAMES, NAMES},
        {NAMED, EACCES, QSIM_E_IO, 1, 1},
        {RENAME, EACCES, QSIM_E_IO, 1, 1},
    };
    for (size_t i = 0; i < QS_COUNT(names); i++) {
        qsim_error e = {0};
        unlink(PATH);
        answers[NAMELESS].code = EOPNOTSUPP;
        answers[NAMELESS].left = 1;
        answers[names[i].call].code = names[i].code;
        answers[names[i].call].left = names[i].times;
        answers[names[i].call].made = 0;
        CHECK_INT(put(ctx, "new", 3, &e), names[i].wanted);
        CHECK_INT(answers[names[i].call].made, names[i].made);
        CHECK_INT(folder_count(FOLDER), names[i].wanted == QSIM_OK);
        answers[names[i].call].left = 0;
    }
}

static void check_reading(qsim_ctx *ctx) {
    qs_map map;
    qsim_error e = {0};
    CHECK_INT(put(ctx, "text", 4, &e), QSIM_OK);
    answers[READ].code = EINTR;
    answers[READ].left = 3;
    CHECK_INT(qs_map_open(ctx, PATH, true, &map, &e), QSIM_OK);
    CHECK(map.size == 4 && memcmp(map.data, "text", 4) == 0);
    qs_map_close(ctx, &map);
    answers[READ].code = EIO;
    answers[READ].left = 1;
    CHECK_INT(qs_map_open(ctx, PATH, true, &map, &e), QSIM_E_IO);
    CHECK(strstr(e.message, strerror(EIO)) != NULL);
}

/* Files of a folder, which are written by other calls. */
static void check_tree(qsim_ctx *ctx) {
    static const struct {
        int call, code, wanted;
        long times;
    } trees[] = {
        {WRITE, EINTR, QSIM_OK, 3},  {WRITE, EIO, QSIM_E_IO, 1},     {SYNC, EINVAL, QSIM_OK, 1},
        {SYNC, EROFS, QSIM_OK, 1},   {SYNC, EIO, QSIM_E_IO, 1},      {CLOSE, EIO, QSIM_E_IO, 1},
        {RENAME, EIO, QSIM_E_IO, 1}, {NOTHING, EINTR, QSIM_E_IO, 1},
    };
    static const char *const names[] = {"a"};
    for (size_t i = 0; i < QS_COUNT(trees); i++) {
        qs_tree tree;
        qsim_error e = {0};
        unlink(PATH);
        CHECK_INT(rmdir(FOLDER), 0);
        CHECK_INT(qs_tree_open(ctx, FOLDER, false, &tree, &e), QSIM_OK);
        answers[trees[i].call].code = trees[i].code;
        answers[trees[i].call].left = trees[i].times;
        int code = qs_tree_write(&tree, "a", "text", 4, &e);
        if (code)
            qs_tree_abort(&tree, names, 1);
        else
            code = qs_tree_commit(&tree, names, 1, &e);
        answers[trees[i].call].left = 0;
        CHECK_INT(code, trees[i].wanted);
        CHECK(code ? strstr(e.message, strerror(trees[i].code)) != NULL : holds(ctx, "text", 4));
        if (code)
            mkdir(FOLDER, 0777);
    }
}

/* Standard input may be closed: then a file has the descriptor 0. */
static void check_descriptors(qsim_ctx *ctx) {
    static const char *const names[] = {"a"}, *const inside[] = {"d/e/a"};
    const int kept = dup(0);
    qs_tree tree;
    qs_map map;
    qsim_error e = {0};
    close(0);
    CHECK_INT(put(ctx, "text", 4, &e), QSIM_OK);
    CHECK(holds(ctx, "text", 4));
    CHECK_INT(qs_map_open_below(ctx, FOLDER, "a", false, &map, &e), QSIM_OK);
    qs_map_close(ctx, &map);
    answers[NAMELESS].code = EOPNOTSUPP;
    answers[NAMELESS].left = 1;
    CHECK_INT(put(ctx, "more", 4, &e), QSIM_OK);
    CHECK(holds(ctx, "more", 4));
    CHECK_INT(qs_tree_open(ctx, FOLDER, true, &tree, &e), QSIM_OK);
    CHECK_INT(qs_tree_write(&tree, "a", "tree", 4, &e), QSIM_OK);
    CHECK_INT(qs_tree_commit(&tree, names, 1, &e), QSIM_OK);
    CHECK(holds(ctx, "tree", 4));
    CHECK_INT(qs_tree_open(ctx, FOLDER, true, &tree, &e), QSIM_OK);
    const int dir = dup(tree.dir); /* so that a folder inside is number 0 */
    close(tree.dir);
    tree.dir = dir;
    CHECK_INT(qs_tree_write(&tree, inside[0], "leaf", 4, &e), QSIM_OK);
    CHECK_INT(qs_tree_commit(&tree, inside, 1, &e), QSIM_OK);
    CHECK_INT(unlink(FOLDER "/d/e/a"), 0);
    CHECK(rmdir(FOLDER "/d/e") == 0 && rmdir(FOLDER "/d") == 0);
    const int next = dup(1); /* all of them were closed again */
    CHECK_INT(next, 0);
    if (kept >= 0)
        dup2(kept, 0);
    close(kept);
}

int main(void) {
    char *data = malloc(LARGE);
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    memset(data, 7, LARGE);
    mkdir(FOLDER, 0777);
    for (size_t i = 0; i < QS_COUNT(cases); i++)
        for (int replace = 0; replace <= 1; replace++)
            check_answer(ctx, i, data, replace);
    check_slow(ctx, data);
    check_names(ctx);
    check_reading(ctx);
    check_tree(ctx);
    check_descriptors(ctx);
    unlink(PATH);
    rmdir(FOLDER);
    qsim_ctx_free(ctx);
    free(data);
    return test_done();
}
