/* SPDX-License-Identifier: MIT */
/*
 * A step that reads its input in waves, from one end to the other, can write its output over it,
 * shifted so far that it overwrites only bytes that were read already.
 */
#include "exec/exec.h"

/* The least gain that is worth the time that waves cost: one part in so many, and so many bytes. */
#define WORTH       16
#define WORTH_BYTES ((size_t)32 * 1024)

/* Most bytes that a block and its successor can share. */
static size_t common(const qs_slot *a) {
    const qs_slot *b = a->successor;
    if (!b)
        return 0;
    const size_t x = b->bytes > a->min_lead ? b->bytes - a->min_lead : 0;
    const size_t y = a->bytes > a->min_lag ? a->bytes - a->min_lag : 0;
    const size_t least = a->bytes < b->bytes ? a->bytes : b->bytes, most = x > y ? x : y;
    return least < most ? least : most;
}

size_t qs_memory_choose_overlaps(qs_slot *slots, size_t count, int32_t begin, size_t steps,
                                 size_t *live) {
    size_t before = 0, after = 0;
    for (size_t t = 0; t < steps; t++)
        before = live[t] > before ? live[t] : before;
    for (size_t i = 0; i < count; i++)
        live[slots[i].last - begin] -= common(&slots[i]);
    for (size_t t = 0; t < steps; t++)
        after = live[t] > after ? live[t] : after;
    const bool worth = before - after > before / WORTH && before - after >= WORTH_BYTES;
    for (size_t i = 0; i < count; i++) {
        size_t *at = &live[slots[i].last - begin];
        if (worth && *at + common(&slots[i]) > after)
            continue;
        *at += common(&slots[i]);
        slots[i].successor = NULL;
    }
    return worth ? after : before;
}

bool qs_memory_overlaps(const qs_slot *a) {
    const qs_slot *b = a->successor;
    return b && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}
