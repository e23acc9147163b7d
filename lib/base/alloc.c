/* SPDX-License-Identifier: MIT */
/* The context's memory: blocks that know their size, and arenas made of blocks. */
#include "base/base.h"
#include "base/ctx.h"
#include "base/posix.h"

#define BLOCK_ALIGN 64

/*
 * AddressSanitizer knows blocks only. It is told which bytes of them an arena has handed out, with
 * a gap behind each piece, or how many elements a short array has, and so reports what reads or
 * writes past their end.
 */
#ifdef QS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define ARENA_GAP      ((size_t)8)
#define ARRAY_SHORT    ((size_t)4096) /* bytes; of longer ones the time to show all would count */
#define HIDE(p, bytes) __asan_poison_memory_region(p, bytes)
#define SHOW(p, bytes) __asan_unpoison_memory_region(p, bytes)
#else
#define ARENA_GAP      ((size_t)0)
#define ARRAY_SHORT    ((size_t)0)
#define HIDE(p, bytes) ((void)0)
#define SHOW(p, bytes) ((void)0)
#endif

/*
 * The header before each block holds its size, so that qs_free needs none. It takes one alignment
 * unit, so that the block itself stays aligned.
 */
struct header {
    size_t total;
};

/* Adds `bytes` to those held; false: they exceed the limit, and are noted as refused. */
static bool count(qs_account *a, size_t bytes) {
    if (!a->limit)
        return true;
    if (bytes <= a->limit && atomic_fetch_add(&a->held, bytes) <= a->limit - bytes)
        return true;
    if (bytes <= a->limit)
        atomic_fetch_sub(&a->held, bytes);
    atomic_store(&a->full, atomic_load(&a->held));
    atomic_store(&a->refused, bytes);
    return false;
}

static void *take(qsim_ctx *ctx, size_t size) {
    size_t total;
    if (!qs_add(size, BLOCK_ALIGN, &total) || !count(ctx->account, total))
        return NULL;
    unsigned char *p = ctx->allocator.alloc(ctx->allocator.user, total, BLOCK_ALIGN);
    if (!p) {
        if (ctx->account->limit)
            atomic_fetch_sub(&ctx->account->held, total);
        return NULL;
    }
    ((struct header *)(void *)p)->total = total;
    return p + BLOCK_ALIGN;
}

void *qs_alloc(qsim_ctx *ctx, size_t count, size_t size) {
    size_t bytes;
    return qs_mul(count, size, &bytes) ? take(ctx, bytes) : NULL;
}

void *qs_calloc(qsim_ctx *ctx, size_t count, size_t size) {
    void *p = qs_alloc(ctx, count, size);
    if (p)
        memset(p, 0, count * size);
    return p;
}

void qs_free(qsim_ctx *ctx, void *ptr) {
    if (!ptr)
        return;
    unsigned char *p = (unsigned char *)ptr - BLOCK_ALIGN;
    const size_t total = ((struct header *)(void *)p)->total;
    SHOW(p, total);
    ctx->allocator.free(ctx->allocator.user, p, total);
    if (ctx->account->limit)
        atomic_fetch_sub(&ctx->account->held, total);
}

bool qs_grow(qsim_ctx *ctx, void **array, size_t *capacity, size_t count, size_t element) {
    if (count < *capacity) {
        if (*capacity * element <= ARRAY_SHORT)
            SHOW(*array, (count + 1) * element);
        return true;
    }
    size_t size = *capacity + *capacity / 2;
    if (size < 8)
        size = 8;
    if (size <= count || (!QS_IN_ADVANCE && count < 100))
        size = count + 1;
    void *p = qs_alloc(ctx, size, element);
    if (!p)
        return false;
    SHOW(*array, *capacity * element);
    if (*capacity)
        memcpy(p, *array, *capacity * element);
    qs_free(ctx, *array);
    if (size * element <= ARRAY_SHORT)
        HIDE((char *)p + (count + 1) * element, (size - count - 1) * element);
    *array = p;
    *capacity = size;
    return true;
}

/* ---- arena ---- */

#define ARENA_ALIGN 16

/* Blocks grow with the arena, so that the number of blocks stays logarithmic. */
#define ARENA_FIRST   ((size_t)4096)
#define ARENA_LARGE   ((size_t)512 * 1024)
#define ARENA_LARGEST ((size_t)16 << 20)

struct qs_arena_block {
    struct qs_arena_block *next;
    size_t used, size; /* from the start of the block, header included */
};

void qs_arena_init(qs_arena *arena, qsim_ctx *ctx) {
    arena->ctx = ctx;
    arena->blocks = NULL;
    arena->bytes = 0;
}

static struct qs_arena_block *arena_block(qs_arena *arena, size_t bytes, size_t align) {
    struct qs_arena_block *b = arena->blocks;
    if (QS_IN_ADVANCE && b && qs_align(b->used, align) <= b->size &&
        b->size - qs_align(b->used, align) >= bytes)
        return b;
    size_t size = arena->bytes < ARENA_FIRST ? ARENA_FIRST : arena->bytes;
    if (size > ARENA_LARGE)
        size = size / 8 < ARENA_LARGE ? ARENA_LARGE : size / 8;
    if (size > ARENA_LARGEST)
        size = ARENA_LARGEST;
    if (!QS_IN_ADVANCE)
        size = 0;
    size_t needed;
    if (!qs_add(bytes, qs_align(sizeof(*b), align), &needed))
        return NULL;
    bool own = needed > size; /* a block of its own: the current one stays in use */
    b = qs_alloc(arena->ctx, 1, own ? needed : size);
    if (!b)
        return NULL;
    b->used = sizeof(*b);
    b->size = own ? needed : size;
    HIDE(b + 1, b->size - b->used);
    if (own && arena->blocks) {
        b->next = arena->blocks->next;
        arena->blocks->next = b;
    } else {
        b->next = arena->blocks;
        arena->blocks = b;
    }
    return b;
}

int qs_arena_reserve(qs_arena *arena, size_t bytes) {
    size_t size;
    if (!QS_IN_ADVANCE)
        return QSIM_OK;
    if (!qs_add(bytes, sizeof(struct qs_arena_block) + BLOCK_ALIGN, &size))
        return QSIM_E_NOMEM;
    struct qs_arena_block *b = qs_alloc(arena->ctx, 1, size);
    if (!b)
        return QSIM_E_NOMEM;
    *b = (struct qs_arena_block){arena->blocks, sizeof(*b), size};
    HIDE(b + 1, b->size - b->used);
    arena->blocks = b;
    return QSIM_OK;
}

static void *arena_take(qs_arena *arena, size_t bytes, size_t align) {
    struct qs_arena_block *b = arena_block(arena, bytes, align);
    if (!b)
        return NULL;
    size_t at = qs_align(b->used, align);
    b->used = at + bytes + ARENA_GAP;
    arena->bytes += bytes;
    SHOW((unsigned char *)b + at, bytes);
    return (unsigned char *)b + at;
}

void *qs_arena_alloc(qs_arena *arena, size_t count, size_t size) {
    size_t bytes;
    void *p = qs_mul(count, size, &bytes) ? arena_take(arena, bytes, ARENA_ALIGN) : NULL;
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *qs_arena_raw64(qs_arena *arena, size_t bytes) {
    return arena_take(arena, bytes, BLOCK_ALIGN);
}

void *qs_arena_alloc64(qs_arena *arena, size_t bytes) {
    void *p = qs_arena_raw64(arena, bytes);
    if (p)
        memset(p, 0, bytes);
    return p;
}

void *qs_arena_copy(qs_arena *arena, const void *data, size_t bytes) {
    void *p = arena_take(arena, bytes, ARENA_ALIGN);
    if (p && bytes)
        memcpy(p, data, bytes);
    return p;
}

char *qs_arena_string(qs_arena *arena, const char *text, size_t length) {
    size_t bytes;
    char *p = qs_add(length, 1, &bytes) ? arena_take(arena, bytes, 1) : NULL;
    if (p) {
        if (length)
            memcpy(p, text, length);
        p[length] = 0;
    }
    return p;
}

void qs_arena_free(qs_arena *arena) {
    struct qs_arena_block *b = arena->blocks;
    while (b) {
        struct qs_arena_block *next = b->next;
        SHOW(b, b->size);
        qs_free(arena->ctx, b);
        b = next;
    }
    arena->blocks = NULL;
    arena->bytes = 0;
}
