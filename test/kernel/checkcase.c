/* SPDX-License-Identifier: MIT */
/* Helpers for cases: random choices, guarded memory, comparisons. */
#include "checkkernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GUARD  64
#define POISON 0xa5

struct ck_block {
    struct ck_block *next;
    uint8_t *memory;
};

uint32_t ck_random(ck_state *s) {
    uint32_t chosen = 0;
    if (s->left >= sizeof(chosen)) {
        memcpy(&chosen, s->choices, sizeof(chosen));
        s->choices += sizeof(chosen);
        s->left -= sizeof(chosen);
        return chosen;
    }
    s->random ^= s->random >> 12;
    s->random ^= s->random << 25;
    s->random ^= s->random >> 27;
    return (uint32_t)((s->random * 2685821657736338717ull) >> 32);
}

int32_t ck_between(ck_state *s, int32_t least, int32_t greatest) {
    return least + (int32_t)(ck_random(s) % (uint32_t)(greatest - least + 1));
}

float ck_real(ck_state *s, float least, float greatest) {
    return least + (greatest - least) * (float)(ck_random(s) >> 8) / 16777216.0f;
}

static uint8_t *new_block(ck_state *s, size_t bytes) {
    struct ck_block *b = malloc(sizeof(*b));
    uint8_t *memory = NULL;
    if (!b || posix_memalign((void **)&memory, 64, bytes)) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    *b = (struct ck_block){s->blocks, memory};
    s->blocks = b;
    return memory;
}

void *ck_output(ck_state *s, size_t bytes) {
    uint8_t *memory = new_block(s, bytes + 2 * GUARD);
    memset(memory, POISON, bytes + 2 * GUARD);
    return memory + GUARD;
}

void *ck_input(ck_state *s, size_t bytes) {
    uint8_t *data = new_block(s, bytes + 64);
    for (size_t i = 0; i < bytes + 64; i++)
        data[i] = (uint8_t)ck_random(s);
    return data;
}

void *ck_floats(ck_state *s, size_t count, float least, float greatest) {
    float *data = ck_input(s, count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        data[i] = ck_real(s, least, greatest);
    return data;
}

void ck_free(ck_state *s) {
    while (s->blocks) {
        struct ck_block *b = s->blocks;
        s->blocks = b->next;
        free(b->memory);
        free(b);
    }
}

static bool guards_intact(const uint8_t *data, size_t bytes) {
    for (size_t i = 1; i <= GUARD; i++)
        if (data[bytes + i - 1] != POISON || *(data - i) != POISON)
            return false;
    return true;
}

void ck_same(ck_state *s, const void *expected, const void *actual, size_t bytes,
             const char *shape) {
    const uint8_t *e = expected, *a = actual;
    s->comparisons++;
    size_t i = 0;
    while (i < bytes && e[i] == a[i])
        i++;
    bool intact = guards_intact(a, bytes);
    if (i == bytes && intact)
        return;
    s->failures++;
    if (s->failures > 10)
        return;
    fprintf(stderr, "%s %s [%s]: ", s->isa, s->name, shape);
    if (i < bytes)
        fprintf(stderr, "byte %zu of %zu is %u, expected %u", i, bytes, a[i], e[i]);
    fprintf(stderr, "%s\n", intact ? "" : " wrote outside the output");
}

uint8_t ck_requantize(int64_t acc, float m, int32_t zp, int32_t lo, int32_t hi) {
    float v = (float)acc * m;
    v = fminf(fmaxf(v, (float)(lo - zp)), (float)(hi - zp));
    return (uint8_t)((int32_t)nearbyintf(v) + zp);
}
