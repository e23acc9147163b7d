/* SPDX-License-Identifier: MIT */
/* What a fuzz target is to libFuzzer and to replay.c. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <qsim/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the index-th legal input into `buffer` and returns its size; 0: there are no more. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity);

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
