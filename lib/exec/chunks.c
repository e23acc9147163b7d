/* SPDX-License-Identifier: MIT */
/* Memory for values of deferred nodes, whose sizes are known only while a run executes. */
#include "exec/deferred.h"

struct qs_chunk {
    struct qs_chunk *next_free, *next;
    size_t bytes; /* of `data` */
    uint8_t range;
    bool used;
    void *data;
};

/* There are four ranges of sizes between powers of two, so at most a fifth of a chunk is unused. */
#define QUARTERS 4

/* The range of sizes that has `bytes`, and the largest size in it. */
static uint8_t range_of(size_t bytes, size_t *most) {
    size_t power = 8; /* 256 bytes and less are one range */
    while (power < 62 && ((size_t)1 << power) < bytes)
        power++;
    const size_t half = (size_t)1 << (power - 1), step = half / QUARTERS;
    size_t quarter = bytes <= half ? 0 : (bytes - half + step - 1) / step;
    if (power == 8)
        quarter = QUARTERS;
    *most = half + quarter * step;
    return (uint8_t)((power - 8) * QUARTERS + quarter);
}

void qs_chunks_init(qs_chunks *c, qsim_ctx *ctx, size_t limit) {
    memset(c, 0, sizeof(*c));
    c->ctx = ctx;
    c->limit = limit;
}

static struct qs_chunk *make_chunk(qs_chunks *c, size_t bytes, uint8_t range, int *code) {
    size_t total;
    *code = QSIM_E_LIMIT;
    if (!qs_add(c->bytes, bytes, &total) || total > c->limit)
        return NULL;
    *code = QSIM_E_NOMEM;
    struct qs_chunk *chunk = qs_alloc(c->ctx, 1, sizeof(*chunk));
    void *data = chunk ? qs_alloc(c->ctx, bytes, 1) : NULL;
    if (!data) {
        qs_free(c->ctx, chunk);
        return NULL;
    }
    *chunk = (struct qs_chunk){.next = c->all, .bytes = bytes, .range = range, .data = data};
    c->all = chunk;
    c->bytes = total;
    *code = QSIM_OK;
    return chunk;
}

/* Frees the chunks that no value uses: this execution may need other ranges of sizes. */
static void free_unused(qs_chunks *c) {
    for (struct qs_chunk **at = &c->all, *chunk; (chunk = *at) != NULL;) {
        if (chunk->used) {
            at = &chunk->next;
            continue;
        }
        *at = chunk->next;
        c->bytes -= chunk->bytes;
        qs_free(c->ctx, chunk->data);
        qs_free(c->ctx, chunk);
    }
    memset(c->free, 0, sizeof(c->free));
}

struct qs_chunk *qs_chunk_alloc(qs_chunks *c, size_t bytes, int *code) {
    size_t most;
    *code = QSIM_E_LIMIT;
    if (bytes >= c->limit || !qs_add(bytes, QS_SLACK, &bytes))
        return NULL;
    const uint8_t range = range_of(bytes, &most);
    struct qs_chunk *chunk = c->free[range];
    const size_t kept = c->bytes;
    *code = QSIM_OK;
    if (chunk) {
        c->free[range] = chunk->next_free;
    } else if (!(chunk = make_chunk(c, most, range, code))) {
        free_unused(c);
        if (c->bytes == kept || !(chunk = make_chunk(c, most, range, code)))
            return NULL;
    }
    chunk->used = true;
    return chunk;
}

void *qs_chunk_data(const struct qs_chunk *chunk) {
    return chunk->data;
}

void qs_chunk_release(qs_chunks *c, struct qs_chunk *chunk) {
    chunk->used = false;
    chunk->next_free = c->free[chunk->range];
    c->free[chunk->range] = chunk;
}

void qs_chunks_free(qs_chunks *c) {
    for (struct qs_chunk *chunk = c->all; chunk; chunk = chunk->next)
        chunk->used = false;
    free_unused(c);
}
