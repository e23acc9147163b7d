/* SPDX-License-Identifier: MIT */
/* Trees of files, with the calls of posix.h. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64 /* for systems of 32 bits */
#endif
#define _GNU_SOURCE /* O_NOFOLLOW and friends where _POSIX_C_SOURCE hides them */
#include "base/tree.h"

#include "base/file.h"
#include "base/posix.h"

static int fail_errno(qsim_error *error, const char *folder, const char *name, const char *what) {
    int saved = errno;
    return qs_fail(error, QSIM_E_IO, "%s%s%s: %s: %s", folder, *name ? "/" : "", name, what,
                   strerror(saved == ELOOP ? ENOTDIR : saved));
}

static bool is_empty(const char *path) {
    DIR *d = opendir(path);
    if (!d)
        return false;
    bool empty = true;
    for (struct dirent *e; empty && (e = readdir(d)) != NULL;)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(d);
    return empty;
}

/* Replaces the last six letters of `path` so that no such folder exists. */
static bool make_temporary(char *path) {
    char *letters = path + strlen(path) - 6;
    uint64_t state = 0;
    for (int tries = 0; tries < 1000; tries++) {
        qs_fresh_letters(letters, &state);
        if (mkdirat(AT_FDCWD, path, 0777) == 0)
            return true;
        if (errno != EEXIST)
            return false;
    }
    return false;
}

static void forget(qs_tree *t) {
    if (t->dir >= 0)
        close(t->dir);
    qs_free(t->ctx, t->path);
    qs_free(t->ctx, t->temporary);
    t->path = t->temporary = NULL;
    t->dir = -1;
}

static int check_target(qs_tree *t, const char *path, bool replace, qsim_error *error) {
    struct stat st;
    t->exists = fstatat(AT_FDCWD, path, &st, 0) == 0;
    if (!t->exists)
        return QSIM_OK;
    if (!S_ISDIR(st.st_mode))
        return qs_fail(error, replace ? QSIM_E_IO : QSIM_E_EXISTS, "%s: exists and is not a folder",
                       path);
    if (!replace && !is_empty(path))
        return qs_fail(error, QSIM_E_EXISTS, "%s: exists already and is not empty", path);
    return QSIM_OK;
}

int qs_tree_open(qsim_ctx *ctx, const char *path, bool replace, qs_tree *t, qsim_error *error) {
    size_t n = strlen(path);
    memset(t, 0, sizeof(*t));
    t->ctx = ctx;
    t->dir = -1;
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n == 0)
        return qs_fail(error, QSIM_E_IO, "the folder to write to has no name");
    int code = check_target(t, path, replace, error);
    if (code)
        return code;
    t->path = qs_text_join(ctx, path, n, "");
    t->temporary = qs_text_join(ctx, path, n, t->exists ? "/..XXXXXX" : ".XXXXXX");
    if (!t->path || !t->temporary) {
        forget(t);
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory", path);
    }
    if (make_temporary(t->temporary))
        t->dir = open(t->temporary, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
    if (t->dir < 0) {
        code = fail_errno(error, path, "", "cannot make the folder");
        forget(t);
    }
    return code;
}

/*
 * The folder that holds the last component of `name`, below `root`; folders on the way are made.
 * `*last` points to that component. -1 with errno.
 */
static int open_parent(int root, const char *name, const char **last) {
    int at = dup(root);
    const char *slash;
    for (; at >= 0 && (slash = strchr(name, '/')) != NULL; name = slash + 1) {
        char part[NAME_MAX + 1];
        size_t n = (size_t)(slash - name);
        int next = -1;
        if (n > NAME_MAX)
            errno = ENAMETOOLONG;
        else {
            memcpy(part, name, n);
            part[n] = 0;
            if (mkdirat(at, part, 0777) == 0 || errno == EEXIST)
                next = openat(at, part, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
        }
        int saved = errno;
        close(at);
        errno = saved;
        at = next;
    }
    *last = name;
    return at;
}

static bool write_whole(int fd, const uint8_t *p, size_t size) {
    while (size > 0) {
        ssize_t n = write(fd, p, size < ((size_t)1 << 30) ? size : (size_t)1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return fsync(fd) == 0 || errno == EINVAL || errno == EROFS;
}

int qs_tree_write(qs_tree *t, const char *name, const void *data, size_t size, qsim_error *error) {
    const char *last;
    int parent = open_parent(t->dir, name, &last), fd = -1;
    if (parent >= 0)
        fd = openat(parent, last, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    bool good = fd >= 0 && write_whole(fd, data, size);
    int code = good ? QSIM_OK : fail_errno(error, t->path, name, "cannot write");
    if (fd >= 0 && close(fd) && !code)
        code = fail_errno(error, t->path, name, "cannot write");
    if (parent >= 0)
        close(parent);
    return code;
}

/* Removes the files that still exist, then their folders, innermost first. */
static void remove_all(const qs_tree *t, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        (void)!unlinkat(t->dir, names[i], 0);
    for (size_t i = 0; i < count; i++) {
        char folder[PATH_MAX];
        char *slash;
        const size_t n = strlen(names[i]) + 1;
        if (n > sizeof(folder))
            continue;
        memcpy(folder, names[i], n);
        while ((slash = strrchr(folder, '/')) != NULL) {
            *slash = 0;
            (void)!unlinkat(t->dir, folder, AT_REMOVEDIR);
        }
    }
    (void)!unlinkat(AT_FDCWD, t->temporary, AT_REMOVEDIR);
}

/* Finds failures that can be foreseen, before the first file is replaced. */
static int check_place(const qs_tree *t, int target, const char *name, qsim_error *error) {
    struct stat st;
    const int found = fstatat(target, name, &st, AT_SYMLINK_NOFOLLOW);
    if (found == 0 ? !S_ISDIR(st.st_mode) : errno != ENOTDIR)
        return QSIM_OK;
    errno = found == 0 ? EISDIR : ENOTDIR;
    return fail_errno(error, t->path, name, "cannot write");
}

static int move_one(const qs_tree *t, int target, const char *name, qsim_error *error) {
    const char *last;
    int parent = open_parent(target, name, &last);
    int code = QSIM_OK;
    if (parent < 0 || renameat(t->dir, name, parent, last) != 0)
        code = fail_errno(error, t->path, name, "cannot write");
    if (parent >= 0)
        close(parent);
    return code;
}

int qs_tree_commit(qs_tree *t, const char *const *names, size_t count, qsim_error *error) {
    int code = QSIM_OK;
    if (!t->exists) {
        if (renameat(AT_FDCWD, t->temporary, AT_FDCWD, t->path) != 0) {
            code = fail_errno(error, t->path, "", "cannot make the folder");
            remove_all(t, names, count);
        }
    } else {
        int target = open(t->path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
        if (target < 0)
            code = fail_errno(error, t->path, "", "cannot open the folder");
        for (size_t i = 0; i < count && !code; i++)
            code = check_place(t, target, names[i], error);
        for (size_t i = 0; i < count && !code; i++)
            code = move_one(t, target, names[i], error);
        if (target >= 0)
            close(target);
        remove_all(t, names, count);
    }
    forget(t);
    return code;
}

void qs_tree_abort(qs_tree *t, const char *const *names, size_t count) {
    if (t->dir >= 0)
        remove_all(t, names, count);
    forget(t);
}
