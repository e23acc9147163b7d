/* SPDX-License-Identifier: MIT */
/* Files, with the calls of posix.h. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64 /* for systems of 32 bits */
#endif
#define _GNU_SOURCE /* O_NOFOLLOW and friends where _POSIX_C_SOURCE hides them */
#include "base/closer.h"
#include "base/ctx.h"
#include "base/file.h"
#include "base/posix.h"

#ifdef __linux__
#include <sys/file.h> /* flock */
#endif
#include <time.h>

/* Bytes between two checks whether to go on. */
#define PIECE ((size_t)4 << 20)
/* The same where a disk needs longer than SLOW_NS for more; and those that a file begins with. */
#define LEAST_PIECE ((size_t)256 << 10)
#define FIRST_PIECE ((size_t)512 << 10)
#define SLOW_NS     30000000

static int fail_errno(qsim_error *error, const char *path, const char *what) {
    return qs_fail(error, QSIM_E_IO, "%s: %s: %s", path, what, strerror(errno));
}

/* Makes room for `least` bytes more. As qs_grow, but copying gigabytes can be cancelled. */
static int more_room(qsim_ctx *ctx, const char *path, uint8_t **data, size_t *capacity,
                     size_t least, qsim_error *error) {
    const size_t size = *capacity, half = size / 2;
    uint8_t *p;
    if (!qs_add(size, half > least ? half : least, capacity) || !(p = qs_alloc(ctx, *capacity, 1)))
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory after %zu bytes", path, size);
    const int code = qs_copy(ctx, p, *data, size);
    qs_free(ctx, *data);
    *data = p;
    return qs_stop_fail(ctx, code, path, error);
}

/* Reads to the end: for pipes, whose size is unknown, and for copies. `room`: the size expected. */
static int read_all(qsim_ctx *ctx, int fd, const char *path, size_t room, qs_map *map,
                    qsim_error *error) {
    uint8_t *data = NULL;
    size_t capacity = 0, size = 0;
    int code = QSIM_OK;
    for (;;) {
        if (size == capacity &&
            (code = more_room(ctx, path, &data, &capacity, size ? 65536 : room + 1, error)))
            break;
        const size_t most = capacity - size < PIECE ? capacity - size : PIECE;
        ssize_t n = read(fd, data + size, most);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR) {
            code = fail_errno(error, path, "cannot read");
            break;
        }
        size += n > 0 ? (size_t)n : 0;
        code = qs_go_on(ctx, path, error);
        if (!code)
            code = QS_LIMIT(ctx, stream, size, error, path);
        if (code)
            break;
    }
    if (code) {
        qs_free(ctx, data);
        return code;
    }
    map->data = data;
    map->size = size;
    map->mapped = false;
    return QSIM_OK;
}

static int map_fd(qsim_ctx *ctx, int fd, const struct stat *st, const char *path, bool copy,
                  qs_map *map, qsim_error *error) {
    if (S_ISREG(st->st_mode) && (uint64_t)st->st_size > ctx->limits.file)
        return qs_over_limit(error, "file", ctx->limits.file, (uint64_t)st->st_size, path);
    if (S_ISREG(st->st_mode) && (uintmax_t)st->st_size >= SIZE_MAX)
        return qs_fail(error, QSIM_E_LIMIT, "%s: too large to map", path);
    if (copy || !S_ISREG(st->st_mode) || st->st_size == 0)
        return read_all(ctx, fd, path, S_ISREG(st->st_mode) ? (size_t)st->st_size : 65535, map,
                        error);
    void *p = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return fail_errno(error, path, "cannot map");
    map->data = p;
    map->size = (size_t)st->st_size;
    map->mapped = true;
    return QSIM_OK;
}

int qs_map_open(qsim_ctx *ctx, const char *path, bool copy, qs_map *map, qsim_error *error) {
    struct stat st;
    memset(map, 0, sizeof(*map));
    if (!path[0])
        return qs_fail(error, QSIM_E_IO, "the name of a file is empty");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(error, path, "cannot open");
    int code = QSIM_OK;
    if (fstat(fd, &st))
        code = fail_errno(error, path, "cannot look at");
    else if (S_ISDIR(st.st_mode))
        code = qs_fail(error, QSIM_E_IO, "%s: is a directory", path);
    else if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode))
        code = qs_fail(error, QSIM_E_IO, "%s: is not a regular file", path);
    else
        code = map_fd(ctx, fd, &st, path, copy, map, error);
    close(fd);
    return code;
}

const char *qs_path_fault(const char *path) {
    for (const char *p = path; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return "has a control byte";
    if (strchr(path, '\\'))
        return "has a backslash";
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return "has an empty, \".\" or \"..\" component";
    }
    return NULL;
}

const char *qs_location_fault(const char *location) {
    if (!*location)
        return "is empty";
    if (*location == '/' || *location == '\\')
        return "is absolute";
    if (strlen(location) >= PATH_MAX)
        return "is too long";
    return strchr(location, ':') ? "has a drive or scheme" : qs_path_fault(location);
}

/* Opens the last component, walking from `dir` without following any link. Returns -1 with errno.
 */
static int open_beneath(int dir, const char *location) {
    int at = dup(dir);
    const char *p = location;
    while (at >= 0) {
        char part[NAME_MAX + 1];
        size_t n = strcspn(p, "/");
        if (n > NAME_MAX) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, p, n);
        part[n] = 0;
        bool last = p[n] == 0;
        /* O_NONBLOCK: a FIFO without a writer must not block; regular files ignore the flag. */
        int next = openat(
            at, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | (last ? 0 : O_DIRECTORY));
        int saved = errno;
        close(at);
        errno = saved;
        if (last)
            return next;
        at = next;
        p += n + 1;
    }
    return -1;
}

int qs_map_open_below(qsim_ctx *ctx, const char *folder, const char *location, bool copy,
                      qs_map *map, qsim_error *error) {
    struct stat st;
    memset(map, 0, sizeof(*map));
    const char *fault = qs_location_fault(location);
    if (fault)
        return qs_fail(error, QSIM_E_VALUE, "external data location '%s' %s", location, fault);
    int dir = open(*folder ? folder : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (dir < 0)
        return fail_errno(error, folder, "cannot open the folder");
    int fd = open_beneath(dir, location);
    int saved = errno;
    close(dir);
    if (fd < 0)
        return qs_fail(error, QSIM_E_IO, "external data file '%s': %s", location,
                       saved == ELOOP ? "is a symbolic link" : strerror(saved));
    int code = QSIM_OK;
    if (fstat(fd, &st))
        code = fail_errno(error, location, "cannot look at");
    else if (!S_ISREG(st.st_mode))
        code = qs_fail(error, QSIM_E_IO, "external data file '%s' is not a regular file", location);
    else
        code = map_fd(ctx, fd, &st, location, copy, map, error);
    close(fd);
    return code;
}

void qs_map_forget(const qs_map *map) {
    if (map->mapped)
        madvise((void *)(uintptr_t)map->data, map->size, MADV_DONTNEED);
}

void qs_map_close(qsim_ctx *ctx, qs_map *map) {
    if (map->mapped)
        munmap((void *)(uintptr_t)map->data, map->size);
    else
        qs_free(ctx, (void *)(uintptr_t)map->data);
    memset(map, 0, sizeof(*map));
}

/* ---- writing ---- */

/* Ends the name of a file that is about to replace another one; or six letters end it. */
#define REPLACES ".qs-new"

char *qs_text_join(qsim_ctx *ctx, const char *a, size_t n, const char *b) {
    const size_t rest = strlen(b) + 1;
    char *p = qs_alloc(ctx, n + rest, 1);
    if (p) {
        memcpy(p, a, n);
        memcpy(p + n, b, rest);
    }
    return p;
}

static void out_forget(qs_out *out) {
    qs_free(out->ctx, out->path);
    qs_free(out->ctx, out->shown);
    qs_free(out->ctx, out->temporary);
    out->path = out->shown = out->temporary = NULL;
    out->fd = -1;
}

void qs_fresh_letters(char *letters, uint64_t *state) {
    struct timespec now = {0};
    if (*state == 0 && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        *state = (uint64_t)now.tv_nsec + (uint64_t)getpid() * 1000003u + (uintptr_t)letters / 8;
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    for (int i = 0; i < 6; i++)
        letters[i] = (char)('a' + (*state >> (24 + 5 * i)) % 26);
}

typedef int make_named(qs_out *out);

/* Calls `make` with one temporary name after the other until one is free. */
static int under_fresh_name(qs_out *out, make_named *make) {
    char *letters = out->temporary + strlen(out->temporary) - 6;
    uint64_t state = 0;
    int result = -1;
    for (int tries = 0; tries < 1000; tries++) {
        qs_fresh_letters(letters, &state);
        if ((result = make(out)) >= 0 || errno != EEXIST)
            break;
    }
    return result;
}

/*
 * Not mkstemp, whose files are private: finding out the permissions of an ordinary file would mean
 * setting the process's umask.
 */
static int create_named(qs_out *out) {
    return open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

#ifdef O_TMPFILE
static const char *descriptor_path(int fd, char text[32]) {
    snprintf(text, 32, "/proc/self/fd/%d", fd);
    return text;
}

static int create_nameless(qs_out *out) {
    struct stat st;
    char text[32], *slash = strrchr(out->temporary, '/');
    const char *folder = slash == out->temporary ? "/" : slash ? out->temporary : ".";
    if (slash)
        *slash = 0;
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (slash)
        *slash = '/';
    /* give() names the file by its path in /proc. */
    if (fd >= 0 && fstatat(AT_FDCWD, descriptor_path(fd, text), &st, 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int give(const qs_out *out, const char *name) {
    char text[32];
    (void)flock(out->fd, LOCK_EX | LOCK_NB); /* as long as the process lives: see remove_left */
    return linkat(AT_FDCWD, descriptor_path(out->fd, text), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

/*
 * Removes what a process has left that was killed while it replaced a file. One that lives has its
 * file locked. Only who holds the lock removes the file, so that its name stays that file's.
 */
static void remove_left(const char *name) {
    struct stat locked, named;
    const int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &locked) &&
        !fstatat(AT_FDCWD, name, &named, AT_SYMLINK_NOFOLLOW) && locked.st_ino == named.st_ino)
        (void)!unlinkat(AT_FDCWD, name, 0);
    if (fd >= 0)
        close(fd);
}
#else
static int create_nameless(qs_out *out) {
    (void)out;
    return -1;
}

static int give(const qs_out *out, const char *name) {
    (void)out;
    (void)name;
    return -1;
}

static void remove_left(const char *name) {
    (void)name;
}
#endif

static int give_name(qs_out *out) {
    return give(out, out->temporary);
}

/*
 * Names a file that is to replace another one: always alike, so that the next process to replace
 * that one finds what a killed process has left. A fresh name if a living process has the other.
 */
static int name_to_replace(qs_out *out) {
    for (int tries = 0; tries < 2; tries++) {
        if (give_name(out) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
        remove_left(out->temporary);
    }
    return under_fresh_name(out, give_name);
}

/*
 * A file without a name is linked to its target directly if the target does not exist, so a process
 * that is killed leaves nothing behind. To replace a file it needs a temporary name for a moment.
 */
static int put_in_place(qs_out *out) {
    if (out->nameless) {
        if (give(out, out->path) == 0)
            return 0;
        if (errno != EEXIST || name_to_replace(out))
            return -1;
        out->nameless = false;
    }
    return renameat(AT_FDCWD, out->temporary, AT_FDCWD, out->path);
}

/* Opens a new file, which gets the permissions of the file that it will replace, `old`. */
static int open_new(qs_out *out, const struct stat *old) {
    out->fd = create_nameless(out);
    out->nameless = out->fd >= 0;
    if (out->fd < 0)
        out->fd = under_fresh_name(out, create_named);
    if (out->fd >= 0 && old)
        (void)!fchmod(out->fd, old->st_mode & 07777);
    return out->fd;
}

/* Reports a failed creation; names a folder that does not exist, never the temporary file. */
static int fail_create(qs_out *out, qsim_error *error) {
    struct stat st;
    int code = errno;
    char *slash = strrchr(out->temporary, '/');
    if (code == ENOENT && slash && slash != out->temporary) {
        *slash = 0;
        if (fstatat(AT_FDCWD, out->temporary, &st, 0) && errno == ENOENT)
            return qs_fail(error, QSIM_E_IO, "%s: the folder '%s' does not exist", out->shown,
                           out->temporary);
    }
    return qs_fail(error, QSIM_E_IO, "%s: cannot create a file in its folder: %s", out->shown,
                   strerror(code));
}

int qs_out_open(qsim_ctx *ctx, const char *path, bool replace, qs_out *out, qsim_error *error) {
    struct stat st;
    memset(out, 0, sizeof(*out));
    out->ctx = ctx;
    out->fd = -1;
    out->piece = FIRST_PIECE;
    bool old = fstatat(AT_FDCWD, path, &st, 0) == 0;
    if (old) {
        if (S_ISDIR(st.st_mode))
            return qs_fail(error, QSIM_E_IO, "%s: is a directory", path);
        if (!S_ISREG(st.st_mode)) /* renaming would replace a device by a file */
            return qs_fail(error, QSIM_E_IO, "%s: is not a regular file", path);
        if (!replace)
            return qs_fail(error, QSIM_E_EXISTS, "%s: exists already", path);
    }
    /* Renaming would replace a link, /dev/stdout for instance, and not its target. */
    char target[PATH_MAX];
    const char *name = old && realpath(path, target) ? target : path;
    out->path = qs_text_join(ctx, name, strlen(name), "");
    out->shown = qs_text_join(ctx, path, strlen(path), "");
    out->temporary = qs_text_join(ctx, name, strlen(name), REPLACES);
    int code = QSIM_OK;
    if (!out->path || !out->shown || !out->temporary)
        code = qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path);
    else if (open_new(out, old ? &st : NULL) < 0)
        code = fail_create(out, error);
    if (code) {
        out_forget(out);
    }
    return code;
}

/*
 * Sends what has been written to the disk piece by piece, so that the flush at the end, which
 * nothing can cancel, finds little left to do. Nothing can cancel a piece, either: its size follows
 * the speed of the disk.
 */
static void flush_piece(qs_out *out) {
#if defined(SYNC_FILE_RANGE_WRITE) && defined(__linux__)
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (out->written - out->flushed < out->piece)
        return;
    const uint64_t began = qs_clock_ns();
    const int failed = sync_file_range(out->fd, 0, 0, all);
    const uint64_t took = qs_clock_ns() - began;
    if (took > SLOW_NS && out->piece > LEAST_PIECE)
        out->piece /= 2;
    else if (took < SLOW_NS / 2 && out->piece < PIECE)
        out->piece *= 2;
    if (failed && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
        out->code = errno; /* the system reports it once: the flush at the end would not */
    out->flushed = out->written;
#else
    (void)out;
#endif
}

int qs_out_write(qs_out *out, const void *data, size_t size) {
    const uint8_t *p = data;
    while (size > 0 && out->code == 0 && !out->stopped) {
        out->stopped = qs_stop_code(out->ctx);
        ssize_t n = out->stopped ? 0 : write(out->fd, p, size < out->piece ? size : out->piece);
        if (out->stopped)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            out->code = errno ? errno : EIO;
            break;
        }
        p += n;
        size -= (size_t)n;
        out->written += (uint64_t)n;
        flush_piece(out);
    }
    return out->stopped ? out->stopped : out->code ? QSIM_E_IO : QSIM_OK;
}

int qs_out_seek(qs_out *out, uint64_t at) {
    if (out->code == 0 && lseek(out->fd, (off_t)at, SEEK_SET) < 0)
        out->code = errno;
    return out->code ? QSIM_E_IO : QSIM_OK;
}

int qs_out_map(const qs_out *out, qs_map *map, qsim_error *error) {
    struct stat st;
    memset(map, 0, sizeof(*map));
    if (fstat(out->fd, &st))
        return fail_errno(error, out->shown, "cannot look at");
    return map_fd(out->ctx, out->fd, &st, out->shown, false, map, error);
}

/*
 * Opens a file that is to lose its name, so that its pages are not released at that moment but when
 * the descriptor is closed. -1: there is no file, or the system has no such descriptors.
 */
static int hold_pages(const char *path) {
#ifdef O_PATH
    return open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
#else
    (void)path;
    return -1;
#endif
}

void qs_file_remove(qsim_ctx *ctx, const char *path) {
    const int fd = hold_pages(path);
    (void)!unlinkat(AT_FDCWD, path, 0);
    qs_close_apart(ctx, fd);
}

/* Makes the rename itself survive a crash; a file system that cannot sync a folder is no failure.
 */
static void sync_folder(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        slash[slash == path] = 0;
    int fd = open(slash ? path : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd >= 0) {
        (void)!fsync(fd);
        close(fd);
    }
}

int qs_out_commit(qs_out *out, qsim_error *error) {
    int code = QSIM_OK;
    if (out->stopped || qs_stop_code(out->ctx)) {
        code = qs_go_on(out->ctx, out->shown, error);
        if (!code) /* work may go on again, but bytes are missing */
            code = qs_stop_fail(out->ctx, out->stopped, out->shown, error);
        qs_out_abort(out);
        return code;
    }
    if (!out->code && fsync(out->fd) && errno != EINVAL && errno != EROFS)
        out->code = errno;
    const int old = out->code ? -1 : hold_pages(out->path);
    if (!out->code && put_in_place(out))
        out->code = errno;
    out->placed = !out->code;
    if (close(out->fd) && !out->code)
        out->code = errno;
    qs_close_apart(out->ctx, old);
    if (out->code) {
        if (!out->nameless)
            qs_file_remove(out->ctx, out->temporary);
        code = qs_fail(error, QSIM_E_IO, "%s: cannot write: %s", out->shown, strerror(out->code));
    } else {
        sync_folder(out->temporary); /* cuts the path, which is not needed any more */
    }
    out_forget(out);
    return code;
}

void qs_out_abort(qs_out *out) {
    if (out->fd >= 0 && out->nameless) {
        qs_close_apart(out->ctx, out->fd);
    } else if (out->fd >= 0) {
        close(out->fd);
        qs_file_remove(out->ctx, out->temporary);
    }
    out_forget(out);
}
