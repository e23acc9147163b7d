/* SPDX-License-Identifier: MIT */
/* An allocator that counts, and fails where a test says. For one thread at a time. */
#ifndef TEST_HEAP_H
#define TEST_HEAP_H

#include "test.h"

#include <qsim/base.h>
#include <stdbool.h>

typedef struct test_heap {
    long live;          /* blocks not yet freed */
    long calls, failed; /* requests; refused requests */
    long fail_at;       /* number of the request to refuse, from 1; 0: none */
    bool fail_after;    /* refuse all later ones, too */
    size_t bytes, peak; /* live bytes, now and at most */
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
    void *p; /* of this size and no more, so that a sanitizer sees its end */
    return posix_memalign(&p, align, size) ? NULL : p;
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
