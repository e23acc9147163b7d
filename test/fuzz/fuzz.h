/* SPDX-License-Identifier: MIT */
/* The interface of a fuzz target to libFuzzer and to replay.c, and helpers of targets. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the index-th legal input into `buffer` and returns its size; 0: there are no more. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity);

/* Writes a seed of a list of texts, for fuzz_seed to return. */
static inline size_t fuzz_text_seed(const char *const *texts, size_t count, size_t index,
                                    uint8_t *buffer, size_t capacity) {
    const size_t size = index < count ? strlen(texts[index]) : 0;
    if (size > 0 && size <= capacity)
        memcpy(buffer, texts[index], size);
    return size <= capacity ? size : 0;
}

/* ---- an input as a list of choices ---- */

typedef struct fuzz_bytes {
    const uint8_t *data;
    size_t left;
} fuzz_bytes;

/* The next byte; 0 after the last. */
static inline uint8_t fuzz_byte(fuzz_bytes *b) {
    if (b->left == 0)
        return 0;
    b->left--;
    return *b->data++;
}

static inline size_t fuzz_below(fuzz_bytes *b, size_t n) {
    return fuzz_byte(b) % n;
}

/* Draws a number: small in most cases, else at the limits of arithmetic. */
static inline int64_t fuzz_number(fuzz_bytes *b) {
    static const int64_t odd[] = {-1,        -2,        INT8_MIN,  255,           256,
                                  INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,     65536,
                                  1 << 20,   1 << 30,   4096,      INT64_MAX / 4, INT64_MAX / 8};
    const uint8_t v = fuzz_byte(b);
    return v < 224 ? v % 32 : odd[(v - 224u) % (sizeof(odd) / sizeof(odd[0]))];
}

/* ---- memory ---- */

/*
 * A heap for one thread: 256 MiB at most, so that a model that asks for more gets NOMEM before the
 * machine runs out. If `refuse_at` is not 0, that request fails, with `refuse_on` all later ones,
 * too.
 */
typedef struct fuzz_heap {
    size_t in_use;
    uint64_t calls, refuse_at;
    bool refuse_on;
    bool refused; /* a request was refused */
} fuzz_heap;

/* A target's work on an input. `heap` tells whether a call may have lacked memory. */
typedef void (*fuzz_attempt)(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data,
                             size_t size);

/*
 * Makes an attempt with a context on a heap of its own, which must be empty afterwards; for one
 * input in four, chosen by its bytes, a second one with a refused allocation, chosen by them, too.
 */
void fuzz_run(fuzz_attempt attempt, const uint8_t *data, size_t size);
/* The same with limits of the context. */
void fuzz_run_limited(fuzz_attempt attempt, const qsim_limits *limits, const uint8_t *data,
                      size_t size);

/* Aborts if a call ended in INTERNAL; returns `code`. */
static inline int fuzz_legal(int code) {
    if (code == QSIM_E_INTERNAL)
        abort();
    return code;
}

/* Aborts if a condition is false though no memory was refused. */
static inline bool fuzz_must(const fuzz_heap *heap, bool condition) {
    if (!condition && !heap->refused)
        abort();
    return condition;
}

/* Reads an array that a parser has accepted. */
static inline void fuzz_read_array(const qsim_array *a, const uint8_t *data, size_t size) {
    int64_t rows = a->rank > 0 ? a->dims[0] : 1;
    uint8_t *out = malloc(a->bytes + 1);
    /* An accepted array holds all its elements: only their values may be refused. */
    int code = out ? qsim_array_read(a, data, size, 0, rows, out, a->bytes, NULL) : QSIM_OK;
    if (code != QSIM_OK && code != QSIM_E_VALUE)
        abort();
    free(out);
}

#endif
