/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a .npy file; accepted arrays are read. */
#include <string.h>

#include <qsim/data.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_error e;
    if (qsim_npy_parse(data, size, 0, &a, &e) == QSIM_OK)
        fuzz_read_array(&a, data, size);
    return 0;
}

size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '>i2', 'fortran_order': True, 'shape': (3, 4), }",
        "{'shape': (24,), 'fortran_order': False, 'descr': '|u1'}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 7), }",
    };
    static const size_t bytes[] = {24, 24, 24, 8, 0};
    if (index >= sizeof(headers) / sizeof(headers[0]) || capacity < 256)
        return 0;
    size_t length = strlen(headers[index]), start = index % 2 ? 12 : 10;
    memset(buffer, 1, 256);
    memcpy(buffer, "\x93NUMPY", 6);
    buffer[6] = (uint8_t)(index % 2 ? 2 : 1);
    memset(buffer + 7, 0, 5);
    buffer[8] = (uint8_t)(length + 1);
    memcpy(buffer + start, headers[index], length);
    buffer[start + length] = '\n';
    return start + length + 1 + bytes[index];
}
