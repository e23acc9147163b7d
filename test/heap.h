/* SPDX-License-Identifier: MIT */
/* An allocator that counts, and fails where a test wants it to. One thread at a time. */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include "test.h"

#include <qsim/base.h>
#include <stdbool.h>

typedef struct test_heap {
    long live;          /* blocks that are not given back */
    long calls, failed; /* requests, and those that were refused */
    long fail_at;       /* the request, counted from 1, that is refused; 0: none */
    bool fail_after;    /* and all after it */
    size_t bytes, peak; /* live now, and at most */
} test_heap;

static inline void *test_heap_alloc(void *user, size_t size, size_t align) {
    test_heap *h = user;
    h->calls++;
    if (h->fail_at && (h->calls == h->fail_at || (h->fail_after && h->calls > h->fail_at))) {
        h->failed++;
        return NULL;
    }
    h->live++;
    h->bytes += size;
    h->peak = h->bytes > h->peak ? h->bytes : h->peak;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static inline void test_heap_free(void *user, void *ptr, size_t size) {
    test_heap *h = user;
    h->live--;
    h->bytes -= size;
    free(ptr);
}

static inline qsim_allocator test_heap_allocator(test_heap *h) {
    return (qsim_allocator){test_heap_alloc, test_heap_free, h};
}

#endif
