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

/*
 * Calls `work` with one of its requests refused, the first one, then the second, until all are
 * granted, each time in a new context: it has to return NOMEM, at the end OK, and to leave nothing.
 */
typedef int (*test_work)(qsim_ctx *ctx, const void *arg, qsim_error *error);
static inline void test_each_request(test_work work, const void *arg, int number) {
    bool refused = true;
    for (long at = 1; refused; at++) {
        test_heap heap = {0};
        const qsim_allocator a = test_heap_allocator(&heap);
        const qsim_ctx_options co = {.struct_size = sizeof(co), .threads = 1, .allocator = &a};
        qsim_ctx *ctx = NULL;
        qsim_error e = {0};
        CHECK_INT(qsim_ctx_create(&co, &ctx, NULL), QSIM_OK);
        heap.fail_at = heap.calls + at;
        const int code = work(ctx, arg, &e);
        refused = heap.failed > 0;
        if (code != (refused ? QSIM_E_NOMEM : QSIM_OK))
            fprintf(stderr, "work %d, request %ld: %d %.300s\n", number, at, code, e.message);
        CHECK_INT(code, refused ? QSIM_E_NOMEM : QSIM_OK);
        qsim_ctx_free(ctx);
        CHECK_INT(heap.live, 0);
    }
}

#endif
