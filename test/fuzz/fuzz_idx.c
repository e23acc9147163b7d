/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as an IDX file; what is accepted is read. */
#include <stdlib.h>
#include <string.h>

#include <qsim/data.h>

#include "fuzz.h"

static void read_all(const qsim_array *a, const uint8_t *data, size_t size) {
    int64_t rows = a->rank > 0 ? a->dims[0] : 1;
    uint8_t *out = malloc(a->bytes + 1);
    /* What was accepted holds its elements: only their values may still be refused. */
    int code = out ? qsim_array_read(a, data, size, 0, rows, out, a->bytes, NULL) : QSIM_OK;
    if (code != QSIM_OK && code != QSIM_E_VALUE)
        abort();
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_error e;
    if (qsim_idx_parse(data, size, &a, &e) == QSIM_OK)
        read_all(&a, data, size);
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
