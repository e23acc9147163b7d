/* SPDX-License-Identifier: MIT */
/*
 * Overlap of blocks: a step that reads its input in waves, from one end to the other, can write its
 * output over it, at such a distance that it overwrites only bytes that it has read.
 */
#include "exec/exec.h"

/* The least gain that is worth the time that waves cost: a fraction of the peak, and bytes. */
#define LEAST_GAIN       16
#define LEAST_GAIN_BYTES ((size_t)32 * 1024)

/* Most bytes that a block and its successor can share. */
static size_t max_overlap(const qs_slot *a) {
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
        live[slots[i].last - begin] -= max_overlap(&slots[i]);
    for (size_t t = 0; t < steps; t++)
        after = live[t] > after ? live[t] : after;
    const bool worth = before - after > before / LEAST_GAIN && before - after >= LEAST_GAIN_BYTES;
    for (size_t i = 0; i < count; i++) {
        size_t *at = &live[slots[i].last - begin];
        if (worth && *at + max_overlap(&slots[i]) > after)
            continue;
        *at += max_overlap(&slots[i]);
        slots[i].successor = NULL;
    }
    return worth ? after : before;
}

bool qs_memory_overlaps(const qs_slot *a) {
    const qs_slot *b = a->successor;
    return b && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}
