/* SPDX-License-Identifier: MIT */
/* The memory planner: places tensors of known lifetimes in one arena. */
#include <assert.h>

#include "exec/exec.h"

#include <stdlib.h>

/*
 * Most blocks for which every pair is compared. Blocks are placed by time, which compares live
 * blocks only. If that wastes memory and there are not too many blocks, they are also placed with
 * the largest first, and with those alive at the peak first. If all three orders waste much, the
 * block that ends highest is moved forward in the order, repeatedly.
 */
#define PAIRWISE_MAX 1024
/* Most pairs of blocks that are compared when blocks are moved forward. */
#define REORDER_PAIRS ((size_t)1 << 20)
/* With more blocks alive at once gaps are not searched, which keeps the time linear. */
#define SEARCH_MAX 512

struct entry {
    qs_slot *slot;
    size_t offset;
    size_t peak; /* of the bytes in use during its lifetime */
};

static int larger_first(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->slot->bytes != y->slot->bytes)
        return x->slot->bytes < y->slot->bytes ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

static int earlier_first(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->slot->first != y->slot->first)
        return x->slot->first < y->slot->first ? -1 : 1;
    return larger_first(a, b);
}

/* The least distance from the start of block a to that of block b, if b comes after it. */
static size_t min_distance(const qs_slot *a, const qs_slot *b) {
    size_t least = a->bytes;
    if (a->successor == b && a->min_lag < least)
        least = a->min_lag;
    if (b->successor == a && b->min_lead < least)
        least = b->min_lead;
    return least;
}

/*
 * Raises the cursor to the lowest gap for `e` between the blocks of placed[0..n), sorted by offset,
 * that are alive at the same time. True: the search has to be repeated from there, since `e` would
 * be too close to a block that was skipped.
 */
static bool find_gap(const struct entry *e, struct entry *const *placed, size_t n, size_t *cursor) {
    const size_t from = *cursor;
    bool passed = false;
    for (size_t i = 0; i < n; i++) {
        const struct entry *p = placed[i];
        if (p->slot->first > e->slot->last || p->slot->last < e->slot->first)
            continue;
        if (p->offset >= *cursor && p->offset - *cursor >= e->slot->bytes)
            break;
        const size_t end = p->offset + min_distance(p->slot, e->slot);
        if (p->offset >= *cursor && p->offset - *cursor >= min_distance(e->slot, p->slot))
            passed = true;
        else if (end > *cursor)
            *cursor = end;
    }
    return passed && *cursor != from;
}

/* Places `e` in the lowest gap; *at: its index in `placed`. False: the offset overflows. */
static bool place_entry(struct entry *e, struct entry *const *placed, size_t n, size_t *at) {
    size_t cursor = 0, end, i;
    while (find_gap(e, placed, n, &cursor))
        ;
    if (!qs_add(cursor, e->slot->bytes, &end))
        return false;
    e->offset = cursor;
    for (i = 0; i < n && placed[i]->offset <= cursor; i++)
        ;
    *at = i;
    return true;
}

/* Removes blocks whose lifetime ended before step `now`. */
static size_t expire(struct entry **placed, size_t n, int32_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (placed[i]->slot->last >= now)
            placed[kept++] = placed[i];
    return kept;
}

/* Places the entries in their order and returns the total of bytes; SIZE_MAX: it overflows. */
static size_t place_all(struct entry *entries, size_t count, struct entry **placed, bool by_time) {
    size_t n = 0, total = 0, expire_at = 16;
    for (size_t i = 0; i < count; i++) {
        size_t at = n, end;
        if (by_time && n >= expire_at) {
            n = expire(placed, n, entries[i].slot->first);
            expire_at = 2 * n + 16;
        }
        if (n > SEARCH_MAX) {
            entries[i].offset = total;
            at = n;
            if (!qs_add(total, entries[i].slot->bytes, &end))
                return SIZE_MAX;
        } else if (!place_entry(&entries[i], placed, n, &at)) {
            return SIZE_MAX;
        }
        memmove(placed + at + 1, placed + at, (n - at) * sizeof(placed[0]));
        placed[at] = &entries[i];
        n++;
        if (entries[i].offset + entries[i].slot->bytes > total)
            total = entries[i].offset + entries[i].slot->bytes;
    }
    return total;
}

static int higher_peak_first(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->peak != y->peak)
        return x->peak < y->peak ? 1 : -1;
    return larger_first(a, b);
}

/*
 * Returns the peak of bytes in use; SIZE_MAX: it overflows. live[i]: bytes in use at step begin +
 * i.
 */
static size_t fill_live(const qs_slot *slots, size_t count, int32_t begin, size_t steps,
                        size_t *live) {
    size_t most = 0, sum = 0, all = 0;
    for (size_t i = 0; i < count; i++)
        if (!qs_add(all, slots[i].bytes, &all))
            return SIZE_MAX;
    memset(live, 0, (steps + 1) * sizeof(*live));
    for (size_t i = 0; i < count; i++) { /* differences, which may wrap */
        live[slots[i].first - begin] += slots[i].bytes;
        live[slots[i].last - begin + 1] -= slots[i].bytes;
    }
    for (size_t t = 0; t < steps; t++) {
        live[t] = sum += live[t];
        most = sum > most ? sum : most;
    }
    return most;
}

static void find_peaks(struct entry *entries, size_t count, int32_t begin, const size_t *live) {
    for (size_t i = 0; i < count; i++)
        for (int32_t t = entries[i].slot->first; t <= entries[i].slot->last; t++)
            if (live[t - begin] > entries[i].peak)
                entries[i].peak = live[t - begin];
}

static void store_offsets(struct entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        entries[i].slot->offset = entries[i].offset;
}

/* Whether the total exceeds `enough`, and the least possible by more than 1 / `fraction`. */
static bool wastes(size_t total, size_t least, size_t enough, size_t fraction) {
    return total > enough && total - least > least / fraction;
}

/* Places the entries in their order; stores the offsets if the total is the least so far. */
static size_t try_placing(struct entry *entries, size_t count, struct entry **placed, bool by_time,
                          size_t *total) {
    const size_t needed = place_all(entries, count, placed, by_time);
    if (needed < *total) {
        *total = needed;
        store_offsets(entries, count);
    }
    return needed;
}

/*
 * Local search: moves the entry that ends highest halfway to the front or, in every second trial,
 * to the front.
 */
static void reorder(struct entry *entries, size_t count, struct entry **placed, size_t least,
                    size_t enough, size_t *total) {
    const size_t trials = REORDER_PAIRS / (count * count);
    for (size_t trial = 0; trial < trials && wastes(*total, least, enough, 16); trial++) {
        const size_t needed = try_placing(entries, count, placed, false, total);
        size_t top = 0;
        while (top < count && entries[top].offset + entries[top].slot->bytes < needed)
            top++;
        if (top == 0 || top == count)
            return;
        const struct entry e = entries[top];
        const size_t to = trial % 2 ? 0 : top / 2;
        memmove(entries + to + 1, entries + to, (top - to) * sizeof(e));
        entries[to] = e;
    }
}

int qs_memory_plan(qsim_ctx *ctx, qs_slot *slots, size_t count, size_t enough, size_t *total,
                   size_t *least) {
    *total = *least = 0;
    if (!count)
        return QSIM_OK;
    int32_t begin = slots[0].first, end = slots[0].last;
    for (size_t i = 0; i < count; i++) {
        begin = slots[i].first < begin ? slots[i].first : begin;
        end = slots[i].last > end ? slots[i].last : end;
    }
    const size_t steps = (size_t)(end - begin) + 1;
    struct entry *entries = qs_alloc(ctx, count, sizeof(*entries));
    struct entry **placed = qs_alloc(ctx, count, sizeof(*placed));
    size_t *live = qs_alloc(ctx, steps + 1, sizeof(*live));
    int code = QSIM_E_NOMEM;
    if (!entries || !placed || !live)
        goto done;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct entry){.slot = &slots[i]};
    *total = SIZE_MAX;
    *least = fill_live(slots, count, begin, steps, live);
    if (*least != SIZE_MAX)
        *least = qs_memory_choose_overlaps(slots, count, begin, steps, live);
    qsort(entries, count, sizeof(*entries), earlier_first);
    try_placing(entries, count, placed, true, total);
    if (count <= PAIRWISE_MAX && wastes(*total, *least, enough, 64)) {
        qsort(entries, count, sizeof(*entries), larger_first);
        try_placing(entries, count, placed, false, total);
    }
    if (count <= PAIRWISE_MAX && wastes(*total, *least, enough, 64)) {
        find_peaks(entries, count, begin, live);
        qsort(entries, count, sizeof(*entries), higher_peak_first);
        try_placing(entries, count, placed, false, total);
        reorder(entries, count, placed, *least, enough, total);
    }
    code = *total == SIZE_MAX ? QSIM_E_LIMIT : QSIM_OK;
    for (size_t i = 0; i < count && !code; i++)
        assert(slots[i].offset <= *total && slots[i].bytes <= *total - slots[i].offset);
done:
    qs_free(ctx, entries);
    qs_free(ctx, placed);
    qs_free(ctx, live);
    return code;
}
