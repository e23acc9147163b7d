/* SPDX-License-Identifier: MIT */
/*
 * The functions of POSIX that this layer needs. On Windows, windows.c defines functions with the
 * same names, rules and errno, which take file names in UTF-8. Threads and clocks are not listed
 * here, because mingw-w64 has them.
 */
#ifndef QS_POSIX_H
#define QS_POSIX_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef _WIN32
#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define aligned_free free

#if defined(__SANITIZE_ADDRESS__)
#define QS_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define QS_ADDRESS_SANITIZER
#endif
#endif
#else
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>

#define aligned_alloc(align, size) _aligned_malloc(size, align)
#define aligned_free               _aligned_free

/* Bytes of UTF-8. A component has up to 255 UTF-16 units, of at most three bytes each. */
#undef PATH_MAX
#undef NAME_MAX
#define PATH_MAX            4096
#define NAME_MAX            765

/* Files are always binary and never inherited. */
#define O_CLOEXEC           0
#define O_NONBLOCK          0
#define O_DIRECTORY         0x100000
#define O_NOFOLLOW          0x200000
#define AT_REMOVEDIR        1
#define AT_SYMLINK_NOFOLLOW 1

#undef S_ISREG
#undef S_ISDIR
#undef S_ISFIFO
#define S_ISREG(mode)  ((mode) == QS_WIN_FILE)
#define S_ISDIR(mode)  ((mode) == QS_WIN_FOLDER)
#define S_ISFIFO(mode) ((mode) == QS_WIN_PIPE)
#define S_ISSOCK(mode) false /* sockets are pipes here */

enum { QS_WIN_OTHER, QS_WIN_FILE, QS_WIN_FOLDER, QS_WIN_PIPE };

struct qs_win_stat {
    int st_mode; /* QS_WIN_* */
    int64_t st_size;
};

struct dirent {
    char d_name[NAME_MAX + 1];
};

typedef struct qs_win_dir DIR;

int qs_win_openat(int at, const char *path, int flags, ...);
ptrdiff_t qs_win_read(int fd, void *data, size_t size);
ptrdiff_t qs_win_write(int fd, const void *data, size_t size);
int qs_win_fsync(int fd);
int qs_win_fstat(int fd, struct qs_win_stat *st);
int qs_win_stat(const char *path, struct qs_win_stat *st);
int qs_win_fstatat(int at, const char *path, struct qs_win_stat *st, int flags);
int qs_win_mkdirat(int at, const char *path, int mode);
int qs_win_unlinkat(int at, const char *path, int flags);
int qs_win_renameat(int from_at, const char *from, int to_at, const char *to);
char *qs_win_realpath(const char *path, char *resolved);
DIR *qs_win_opendir(const char *path);
struct dirent *qs_win_readdir(DIR *d);
int qs_win_closedir(DIR *d);
void *qs_win_map(int fd, size_t size);
int qs_win_unmap(void *data);
int qs_win_entropy(void *data, size_t size);
int qs_win_cpus(void);

#define AT_FDCWD (-100)

#define openat                                  qs_win_openat
#define open(...)                               qs_win_openat(AT_FDCWD, __VA_ARGS__)
#define read                                    qs_win_read
#define write                                   qs_win_write
#define fsync                                   qs_win_fsync
#define fchmod(fd, mode)                        0 /* no permissions to keep */
#define stat                                    qs_win_stat
#define fstat                                   qs_win_fstat
#define fstatat                                 qs_win_fstatat
#define mkdir(path, mode)                       qs_win_mkdirat(AT_FDCWD, path, mode)
#define mkdirat                                 qs_win_mkdirat
#define unlink(path)                            qs_win_unlinkat(AT_FDCWD, path, 0)
#define rmdir(path)                             qs_win_unlinkat(AT_FDCWD, path, AT_REMOVEDIR)
#define unlinkat                                qs_win_unlinkat
#define renameat                                qs_win_renameat
#define realpath                                qs_win_realpath
#define opendir                                 qs_win_opendir
#define readdir                                 qs_win_readdir
#define closedir                                qs_win_closedir
#define getentropy                              qs_win_entropy
#define sysconf(name)                           qs_win_cpus()
#define PROT_READ                               0
#define MAP_PRIVATE                             0
#define MAP_FAILED                              NULL
#define MADV_DONTNEED                           0
#define mmap(where, size, rights, kind, fd, at) qs_win_map(fd, size)
#define munmap(data, size)                      qs_win_unmap(data)
#define madvise(data, size, advice)             (void)(data)
#endif

#endif
