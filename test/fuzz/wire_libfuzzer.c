/* SPDX-License-Identifier: MIT */
/* libFuzzer's mutations of bytes, and equally often those of fields. */
#include "wire_mutator.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two,
                                 size_t two_size, uint8_t *out, size_t capacity, unsigned int seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned int seed) {
    if (seed % 4 == 0)
        return LLVMFuzzerMutate(data, size, capacity);
    size = fuzz_wire_mutate(data, size, capacity, NULL, 0, seed);
    if (seed % 4 == 1)
        size = fuzz_wire_mutate(data, size, capacity, NULL, 0, seed + 1);
    return size;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *two,
                                 size_t two_size, uint8_t *out, size_t capacity,
                                 unsigned int seed) {
    const size_t n = one_size < capacity ? one_size : capacity;
    memcpy(out, one, n);
    return fuzz_wire_mutate(out, n, capacity, two, two_size, seed);
}
