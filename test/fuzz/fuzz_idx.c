/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as an IDX file; accepted arrays are read. */
#include <string.h>

#include <qsim/data.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_error e;
    if (qsim_idx_parse(data, size, &a, &e) == QSIM_OK)
        fuzz_read_array(&a, data, size);
    return 0;
}

/* One file of each element type, 2 x 3. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const uint8_t types[] = {8, 9, 11, 12, 13, 14}, sizes[] = {1, 1, 2, 4, 4, 8};
    if (index >= sizeof(types) || capacity < 64)
        return 0;
    memset(buffer, 0, 64);
    buffer[2] = types[index];
    buffer[3] = 2;
    buffer[7] = 2;
    buffer[11] = 3;
    return 12 + 6 * (size_t)sizes[index];
}
