/* SPDX-License-Identifier: MIT */
/*
 * Included before each test on Windows: calls of POSIX and C11 that it lacks. Memory that is
 * aligned is freed by a call of its own there, so all of a test's memory is.
 */
#ifndef QS_WINDOWS_CALLS_H
#define QS_WINDOWS_CALLS_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* a printf of the standard's */
#endif
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void *test_aligned(size_t align, size_t size) {
    return _aligned_malloc(size ? size : 1, align);
}
static inline void *test_malloc(size_t size) {
    return test_aligned(16, size);
}
static inline void *test_calloc(size_t count, size_t size) {
    void *p = size && count > SIZE_MAX / size ? NULL : test_malloc(count * size);
    return p ? memset(p, 0, count * size) : NULL;
}
static inline void *test_realloc(void *p, size_t size) {
    return _aligned_realloc(p, size, 16);
}
static inline void test_free(void *p) {
    _aligned_free(p);
}
static inline int test_memalign(void **p, size_t align, size_t size) {
    *p = test_aligned(align, size);
    return *p ? 0 : ENOMEM;
}
static inline char *test_mkdtemp(char *pattern) {
    return _mktemp(pattern) && _mkdir(pattern) == 0 ? pattern : NULL;
}

#define aligned_alloc     test_aligned
#define malloc            test_malloc
#define calloc            test_calloc
#define realloc           test_realloc
#define free              test_free
#define posix_memalign    test_memalign
#define mkdtemp           test_mkdtemp
#define mkdir(path, mode) _mkdir(path)
#define pipe(ends)        _pipe(ends, 65536, O_BINARY)

#endif
