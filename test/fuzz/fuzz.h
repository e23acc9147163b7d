/* SPDX-License-Identifier: MIT */
/* What a fuzz target is to libFuzzer and to replay.c. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the index-th legal input into `buffer` and returns its size; 0: there are no more. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity);

#endif
