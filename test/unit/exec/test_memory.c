/* SPDX-License-Identifier: MIT */
/* The memory planner: no overlap in place and time, little waste. Limited chunks. */
#include "test.h"

#include "exec/deferred.h"

static bool overlap(const qs_slot *a, const qs_slot *b) {
    bool time = a->first <= b->last && b->first <= a->last;
    bool space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
    return time && space;
}

/* The most bytes alive at one step, a lower bound of every placement. */
static size_t least(const qs_slot *s, size_t n, int32_t steps) {
    size_t most = 0;
    for (int32_t t = 0; t < steps; t++) {
        size_t sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += s[i].first <= t && t <= s[i].last ? s[i].bytes : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

static void random_plans(qsim_ctx *ctx) {
    uint64_t state = 5;
    double wasted = 0;
    int unsaved = 0;
    for (int round = 0; round < 200; round++) {
        qs_slot s[60];
        size_t n = 1 + test_random(&state) % 60, total, live;
        for (size_t i = 0; i < n; i++) {
            int32_t first = (int32_t)(test_random(&state) % 50);
            s[i] = (qs_slot){.bytes = 64 * (size_t)(1 + test_random(&state) % 100),
                             .first = first,
                             .last = first + (int32_t)(test_random(&state) % 6)};
        }
        CHECK_INT(qs_memory_plan(ctx, s, n, 0, &total, &live), 0);
        int bad = 0;
        for (size_t i = 0; i < n; i++) {
            bad += s[i].offset + s[i].bytes > total;
            for (size_t k = 0; k < i; k++)
                bad += overlap(&s[i], &s[k]);
        }
        CHECK_INT(bad, 0);
        CHECK(live == least(s, n, 60));
        CHECK(total <= live + live / 4);
        wasted += (double)total / (double)live - 1;
        /* What is enough is not improved, what is less than the first order takes is. */
        size_t first, again;
        CHECK_INT(qs_memory_plan(ctx, s, n, SIZE_MAX, &first, &live), 0);
        CHECK_INT(qs_memory_plan(ctx, s, n, first, &again, &live), 0);
        CHECK(again == first);
        CHECK_INT(qs_memory_plan(ctx, s, n, first - 1, &again, &live), 0);
        CHECK(first >= total && again <= first);
        unsaved += first > total;
    }
    CHECK(wasted / 200 < 0.05);
    CHECK(unsaved > 20);
}

/* A chain needs two buffers at a time, however long it is. */
static void chain(qsim_ctx *ctx, size_t n) {
    qs_slot *s = calloc(n, sizeof(*s));
    size_t total, live;
    for (size_t i = 0; i < n; i++)
        s[i] = (qs_slot){.bytes = 640, .first = (int32_t)i, .last = (int32_t)i + 1};
    CHECK_INT(qs_memory_plan(ctx, s, n, 0, &total, &live), 0);
    CHECK_INT(total, n > 1 ? 1280 : 640);
    free(s);
}

/* Blocks that may be written over by the next: as far apart as needed, where that saves memory. */
static void successors(qsim_ctx *ctx) {
    uint64_t state = 9;
    size_t with = 0, without = 0;
    int bad = 0;
    for (int round = 0; round < 200; round++) {
        qs_slot s[40], plain[40];
        size_t n = 2 + test_random(&state) % 39, total, live;
        for (size_t i = 0; i < n; i++) {
            s[i] = (qs_slot){.bytes = 8192 * (size_t)(1 + test_random(&state) % 100),
                             .first = (int32_t)i,
                             .last = (int32_t)i + 1 + (test_random(&state) % 8 == 0)};
            plain[i] = s[i];
            if (i && s[i - 1].last == (int32_t)i && test_random(&state) % 8) {
                s[i - 1].successor = &s[i];
                s[i - 1].min_lead = 8192 * (size_t)(1 + test_random(&state) % 100);
                s[i - 1].min_lag = 8192 * (size_t)(1 + test_random(&state) % 100);
            }
        }
        CHECK_INT(qs_memory_plan(ctx, plain, n, 0, &total, &live), 0);
        without += total;
        CHECK_INT(qs_memory_plan(ctx, s, n, 0, &total, &live), 0);
        CHECK(live <= total);
        with += total;
        for (size_t i = 0; i < n; i++) {
            const qs_slot *h = s[i].successor;
            bad += s[i].offset + s[i].bytes > total;
            bad += h && h->offset + s[i].min_lead > s[i].offset &&
                   h->offset < s[i].offset + s[i].min_lag && qs_memory_overlaps(&s[i]);
            for (size_t k = 0; k < i; k++)
                bad += overlap(&s[i], &s[k]) && s[k].successor != &s[i];
        }
    }
    CHECK_INT(bad, 0);
    CHECK(with < without - without / 16);
}

/* Each block overlaps the one before, alternately above and below: at most one distance is added.
 */
static void slides(qsim_ctx *ctx, size_t n) {
    qs_slot *s = calloc(n, sizeof(*s));
    size_t total, live;
    for (size_t i = 0; i < n; i++)
        s[i] = (qs_slot){.bytes = 640000,
                         .first = (int32_t)i,
                         .last = (int32_t)i + 1,
                         .successor = i + 1 < n ? &s[i + 1] : NULL,
                         .min_lead = 192,
                         .min_lag = 256};
    CHECK_INT(qs_memory_plan(ctx, s, n, 0, &total, &live), 0);
    if (n < SIZE_MAX / 640000) /* the sum of all blocks is a size */
        CHECK_INT(live, 640000 + 192);
    CHECK_INT(total, 640000 + 256);
    for (size_t i = 0; i + 1 < n; i++)
        CHECK(qs_memory_overlaps(&s[i]));
    for (size_t i = 0; i < n; i++) { /* a gain this small is not taken */
        s[i].bytes = 6400;
        s[i].successor = i + 1 < n ? &s[i + 1] : NULL;
    }
    CHECK_INT(qs_memory_plan(ctx, s, n, 0, &total, &live), 0);
    CHECK_INT(total, 12800);
    free(s);
}

/* All blocks alive at once, more than the planner searches for gaps: still no overlap. */
static void crowd(qsim_ctx *ctx, size_t n) {
    qs_slot *s = calloc(n, sizeof(*s));
    size_t total, live, bad = 0;
    for (size_t i = 0; i < n; i++)
        s[i] = (qs_slot){.bytes = 64, .first = (int32_t)i, .last = (int32_t)n};
    CHECK_INT(qs_memory_plan(ctx, s, n, 0, &total, &live), 0);
    CHECK_INT(total, 64 * n);
    uint8_t *taken = calloc(n, 1);
    for (size_t i = 0; i < n; i++)
        bad += s[i].offset / 64 >= n || taken[s[i].offset / 64]++;
    CHECK_INT(bad, 0);
    free(taken);
    free(s);
}

/* Results of deferred nodes: the limit is of all chunks together, those of other sizes included. */
static void chunks(qsim_ctx *ctx) {
    const size_t bytes = 10000;
    qs_chunks c;
    int code = -1;
    qs_chunks_init(&c, ctx, 3 * bytes);
    CHECK(!qs_chunk_alloc(&c, 3 * bytes, &code));
    CHECK_INT(code, QSIM_E_LIMIT);
    CHECK(!qs_chunk_alloc(&c, SIZE_MAX, &code));
    CHECK_INT(code, QSIM_E_LIMIT);
    struct qs_chunk *first = qs_chunk_alloc(&c, bytes, &code);
    CHECK(first && c.bytes >= bytes);
    CHECK_INT(code, QSIM_OK);
    CHECK(!qs_chunk_alloc(&c, 2 * bytes, &code));
    CHECK_INT(code, QSIM_E_LIMIT);
    CHECK(qs_chunk_alloc(&c, bytes + bytes / 2, &code));
    CHECK_INT(code, QSIM_OK);
    qs_chunk_release(&c, first); /* is used again */
    CHECK(qs_chunk_alloc(&c, bytes, &code) == first);
    CHECK(!qs_chunk_alloc(&c, bytes, &code));
    CHECK_INT(code, QSIM_E_LIMIT);
    qs_chunks_free(&c);
    CHECK_INT((int)c.bytes, 0);
}

/* Sizes that grow from one execution to the next: only the chunks in use count. */
static void growing_chunks(qsim_ctx *ctx) {
    const size_t limit = 100000;
    qs_chunks c;
    int code = -1;
    qs_chunks_init(&c, ctx, limit);
    struct qs_chunk *kept = qs_chunk_alloc(&c, 1000, &code);
    CHECK(kept != NULL);
    memset(qs_chunk_data(kept), 7, 1000);
    for (size_t bytes = 1000; bytes < limit - limit / 4; bytes += 1000) {
        struct qs_chunk *grown = qs_chunk_alloc(&c, bytes, &code);
        CHECK_INT(code, QSIM_OK);
        if (!grown)
            break;
        memset(qs_chunk_data(grown), 9, bytes);
        qs_chunk_release(&c, grown);
        CHECK(c.bytes <= limit);
    }
    for (size_t i = 0; i < 1000; i++)
        CHECK_INT(((const uint8_t *)qs_chunk_data(kept))[i], 7);
    qs_chunks_free(&c);
}

int main(void) {
    qsim_ctx *ctx;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    random_plans(ctx);
    chain(ctx, 1);
    chain(ctx, 100);
    chain(ctx, 200000);
    successors(ctx);
    slides(ctx, 10);
    slides(ctx, 20000);
    crowd(ctx, 1000);
    crowd(ctx, 100000);
    chunks(ctx);
    growing_chunks(ctx);
    qs_slot huge[2] = {{.bytes = SIZE_MAX - 100, .last = 1}, {.bytes = 200, .last = 1}};
    size_t total, live;
    CHECK_INT(qs_memory_plan(ctx, huge, 2, 0, &total, &live), QSIM_E_LIMIT);
    qsim_ctx_free(ctx);
    return test_done();
}
