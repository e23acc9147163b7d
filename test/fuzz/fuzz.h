/* SPDX-License-Identifier: MIT */
/* What a fuzz target is to libFuzzer and to replay.c, and what targets share. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <qsim/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the index-th legal input into `buffer` and returns its size; 0: there are no more. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity);

/* ---- an input as a list of choices ---- */

typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t left;
} fuzz_bytes;

/* The next byte; 0 once all are taken. */
static inline uint8_t fuzz_byte(fuzz_bytes *b) {
    if (b->left == 0)
        return 0;
    b->left--;
    return *b->data++;
}

static inline size_t fuzz_below(fuzz_bytes *b, size_t n) {
    return fuzz_byte(b) % n;
}

/* A number: small in most cases, else where arithmetic ends. */
static inline int64_t fuzz_number(fuzz_bytes *b) {
    static const int64_t odd[] = {-1,        -2,        INT8_MIN,  255,           256,
                                  INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,     65536,
                                  1 << 20,   1 << 30,   4096,      INT64_MAX / 4, INT64_MAX / 8};
    const uint8_t v = fuzz_byte(b);
    return v < 224 ? v % 32 : odd[(v - 224u) % (sizeof(odd) / sizeof(odd[0]))];
}

/* ---- memory ---- */

/*
 * A heap of one thread: 256 MiB at most, so that a model that asks for much gets NOMEM before the
 * machine does, and one refusal, or all from there on, where `refuse_at` is not 0.
 */
typedef struct fuzz_heap {
    size_t in_use;
    uint64_t calls, refuse_at;
    bool refuse_on;
    bool refused; /* anything, by now */
} fuzz_heap;

/* What a target does with an input. `heap` tells it whether a call may want memory. */
typedef void (*fuzz_attempt)(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data,
                             size_t size);

/*
 * An attempt with a context on a heap of its own, which must be empty afterwards; then, for one
 * input in four, chosen by its bytes, again with an allocation refused, which they choose, too.
 */
void fuzz_run(fuzz_attempt attempt, const uint8_t *data, size_t size);

/* No call ends in INTERNAL; `code`. */
static inline int fuzz_legal(int code) {
    if (code == QSIM_E_INTERNAL)
        abort();
    return code;
}

/* What has to be true unless memory was wanting. */
static inline bool fuzz_must(const fuzz_heap *heap, bool condition) {
    if (!condition && !heap->refused)
        abort();
    return condition;
}

/* Reads an array that a parser has accepted. */
static inline void fuzz_read_array(const qsim_array *a, const uint8_t *data, size_t size) {
    int64_t rows = a->rank > 0 ? a->dims[0] : 1;
    uint8_t *out = malloc(a->bytes + 1);
    /* What was accepted holds its elements: only their values may still be refused. */
    int code = out ? qsim_array_read(a, data, size, 0, rows, out, a->bytes, NULL) : QSIM_OK;
    if (code != QSIM_OK && code != QSIM_E_VALUE)
        abort();
    free(out);
}

#endif
