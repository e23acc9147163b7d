/* SPDX-License-Identifier: MIT */
/* The heap of targets: bounded, counted, and refusing the request that an input chooses. */
#include "fuzz.h"

#define MOST_MEMORY ((size_t)1 << 28)

static void *take(void *user, size_t size, size_t align) {
    fuzz_heap *h = user;
    h->calls++;
    const bool refuse =
        h->refuse_at && (h->calls == h->refuse_at || (h->refuse_on && h->calls > h->refuse_at));
    if (refuse || size > MOST_MEMORY - h->in_use) {
        h->refused = true;
        return NULL;
    }
    void *p = aligned_alloc(align, (size + align - 1) / align * align);
    if (!p)
        abort();
    h->in_use += size;
    return p;
}

static void give(void *user, void *ptr, size_t size) {
    ((fuzz_heap *)user)->in_use -= size;
    free(ptr);
}

static void run_once(fuzz_attempt attempt, const qsim_limits *limits, fuzz_heap *h,
                     const uint8_t *data, size_t size) {
    const qsim_allocator a = {take, give, h};
    const qsim_ctx_options o = {
        .struct_size = sizeof(o), .allocator = &a, .threads = 1, .limits = limits};
    qsim_ctx *ctx = NULL;
    if (fuzz_must(h, fuzz_legal(qsim_ctx_create(&o, &ctx, NULL)) == QSIM_OK))
        attempt(ctx, h, data, size);
    qsim_ctx_free(ctx);
    if (h->in_use != 0)
        abort(); /* a leak */
}

void fuzz_run(fuzz_attempt attempt, const uint8_t *data, size_t size) {
    fuzz_run_limited(attempt, NULL, data, size);
}

void fuzz_run_limited(fuzz_attempt attempt, const qsim_limits *limits, const uint8_t *data,
                      size_t size) {
    fuzz_heap whole = {0};
    uint64_t hash = 14695981039346656037ull;
    run_once(attempt, limits, &whole, data, size);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * 1099511628211ull;
    hash ^= hash >> 29;
    if (hash % 4 != 0)
        return;
    fuzz_heap starved = {.refuse_at = 1 + hash / 8 % whole.calls, .refuse_on = hash & 4};
    run_once(attempt, limits, &starved, data, size);
}
