/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include <stdlib.h>

/*
 * Two orders of placing: the largest block first, which packs tightest but looks at every pair, and
 * the order of time, which only ever looks at what is alive. Small plans try both.
 */
#define PAIRWISE_MAX 1024
/* With more than this alive at once gaps are no longer looked for: the time stays linear. */
#define SEARCH_MAX 2048

struct entry {
    qs_slot *slot;
    size_t offset;
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

/*
 * Puts `e` into the lowest gap that fits between those of placed[0..n), sorted by offset, that are
 * alive at the same time. Returns where in `placed` it belongs; false when sizes overflow.
 */
static bool put(struct entry *e, struct entry *const *placed, size_t n, size_t *at) {
    size_t cursor = 0, end, i;
    for (i = 0; i < n; i++) {
        const struct entry *p = placed[i];
        if (p->slot->first > e->slot->last || p->slot->last < e->slot->first)
            continue;
        if (p->offset >= cursor && p->offset - cursor >= e->slot->bytes)
            break;
        if (p->offset + p->slot->bytes > cursor)
            cursor = p->offset + p->slot->bytes;
    }
    if (!qs_add(cursor, e->slot->bytes, &end))
        return false;
    e->offset = cursor;
    for (i = 0; i < n && placed[i]->offset <= cursor; i++)
        ;
    *at = i;
    return true;
}

/* Forgets blocks that ended before step `now`. */
static size_t expire(struct entry **placed, size_t n, int32_t now) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (placed[i]->slot->last >= now)
            placed[kept++] = placed[i];
    return kept;
}

/* Places all entries in their order; SIZE_MAX when the total overflows. */
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
        } else if (!put(&entries[i], placed, n, &at)) {
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

static void keep(struct entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        entries[i].slot->offset = entries[i].offset;
}

int qs_memory_plan(qsim_ctx *ctx, qs_slot *slots, size_t count, size_t *total) {
    *total = 0;
    if (!count)
        return QSIM_OK;
    struct entry *entries = qs_alloc(ctx, count, sizeof(*entries));
    struct entry **placed = qs_alloc(ctx, count, sizeof(*placed));
    int code = QSIM_E_NOMEM;
    if (!entries || !placed)
        goto done;
    for (size_t i = 0; i < count; i++)
        entries[i] = (struct entry){&slots[i], 0};
    qsort(entries, count, sizeof(*entries), earlier_first);
    *total = place_all(entries, count, placed, true);
    keep(entries, count);
    if (count <= PAIRWISE_MAX) {
        qsort(entries, count, sizeof(*entries), larger_first);
        size_t tight = place_all(entries, count, placed, false);
        if (tight <= *total) {
            *total = tight;
            keep(entries, count);
        }
    }
    code = *total == SIZE_MAX ? QSIM_E_LIMIT : QSIM_OK;
done:
    qs_free(ctx, entries);
    qs_free(ctx, placed);
    return code;
}
