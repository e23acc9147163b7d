/* SPDX-License-Identifier: MIT */
#include "graph/names.h"

#include "base/ctx.h"

#include <stdio.h>

struct entry {
    const char *key; /* NULL: free */
    uint64_t hash;
    qs_id id;
    uint32_t next; /* the number that the next fresh name made from this one tries */
};

struct qs_names {
    struct entry *entries;
    size_t capacity; /* a power of two, at most two thirds full */
    size_t count;
    const qs_secret *secret; /* the context's, so that authors of files cannot make names collide */
};

static uint64_t hash_text(const struct qs_names *names, const char *s) {
    return qs_keyed_hash(names->secret, s, strlen(s));
}

static struct entry *slot(struct entry *entries, size_t capacity, const char *key, uint64_t hash) {
    size_t i = (size_t)hash & (capacity - 1);
    while (entries[i].key && (entries[i].hash != hash || strcmp(entries[i].key, key) != 0))
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

struct qs_names *qs_names_create(qsim_ctx *ctx) {
    struct qs_names *names = qs_calloc(ctx, 1, sizeof(*names));
    if (names)
        names->secret = qs_ctx_secret(ctx);
    return names;
}

void qs_names_free(qsim_ctx *ctx, struct qs_names *names) {
    if (names)
        qs_free(ctx, names->entries);
    qs_free(ctx, names);
}

qs_id qs_names_find(const struct qs_names *names, const char *key) {
    if (!names->capacity)
        return QS_NONE;
    const struct entry *e = slot(names->entries, names->capacity, key, hash_text(names, key));
    return e->key ? e->id : QS_NONE;
}

static int grow(qsim_ctx *ctx, struct qs_names *names) {
    size_t capacity = names->capacity ? names->capacity * 2 : 64;
    struct entry *entries = qs_calloc(ctx, capacity, sizeof(*entries));
    if (!entries)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < names->capacity; i++) {
        const struct entry *e = &names->entries[i];
        if (e->key)
            *slot(entries, capacity, e->key, e->hash) = *e;
    }
    qs_free(ctx, names->entries);
    names->entries = entries;
    names->capacity = capacity;
    return QSIM_OK;
}

int qs_names_put(qsim_ctx *ctx, struct qs_names *names, const char *key, qs_id id) {
    if (3 * names->count >= 2 * names->capacity && grow(ctx, names))
        return QSIM_E_NOMEM;
    uint64_t hash = hash_text(names, key);
    struct entry *e = slot(names->entries, names->capacity, key, hash);
    names->count += e->key == NULL;
    *e = (struct entry){key, hash, id, e->key ? e->next : 1};
    return QSIM_OK;
}

uint32_t *qs_names_counter(const struct qs_names *names, const char *key) {
    if (!names->capacity)
        return NULL;
    struct entry *e = slot(names->entries, names->capacity, key, hash_text(names, key));
    return e->key ? &e->next : NULL;
}

const char *qs_names_unused(const struct qs_names *names, qs_arena *arena, const char *base,
                            uint32_t first) {
    const size_t capacity = strlen(base) + 24;
    uint32_t *next = &slot(names->entries, names->capacity, base, hash_text(names, base))->next;
    char *name = qs_arena_alloc(arena, capacity, 1);
    for (*next += *next < first; name;) { /* a name once used is never free again */
        snprintf(name, capacity, "%s_%u", base, (unsigned)(*next)++);
        if (qs_names_find(names, name) == QS_NONE)
            break;
    }
    return name;
}

struct qs_names *qs_names_clone(qsim_ctx *ctx, const struct qs_names *names) {
    struct qs_names *copy = qs_names_create(ctx);
    if (!copy || !names->capacity)
        return copy;
    copy->entries = qs_alloc(ctx, names->capacity, sizeof(*copy->entries));
    if (!copy->entries) {
        qs_names_free(ctx, copy);
        return NULL;
    }
    (void)qs_copy(ctx, copy->entries, names->entries, names->capacity * sizeof(*copy->entries));
    copy->secret = names->secret;
    copy->capacity = names->capacity;
    copy->count = names->count;
    return copy;
}
