/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as an .npz file; accepted arrays are read. */
#include <stdlib.h>
#include <string.h>

#include <qsim/data.h>

#include "fuzz.h"

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    qsim_npz *z = NULL;
    (void)heap;
    if (fuzz_legal(qsim_npz_open(ctx, data, size, &z, NULL)) != QSIM_OK)
        return;
    for (int32_t i = 0; i < qsim_npz_count(z); i++) {
        qsim_array a = {.struct_size = sizeof(a)};
        if (qsim_npz_array(z, i, &a) != QSIM_OK || !qsim_npz_name(z, i))
            abort();
        if (a.bytes > 1u << 24)
            continue;
        uint8_t *out = malloc(a.bytes + 1);
        if (out)
            fuzz_legal(qsim_npz_read(z, i, out, a.bytes, NULL));
        free(out);
    }
    qsim_npz_free(z);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    return 0;
}

static void put16(uint8_t *p, size_t v) {
    p[0] = (uint8_t)(v & 255);
    p[1] = (uint8_t)(v >> 8);
}

/* The CRC-32 of zip files. */
static uint32_t crc(const uint8_t *p, size_t n) {
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

/* The fields common to local header and directory, from "version needed" on; 26 bytes. */
static void put_entry(uint8_t *p, uint32_t sum, size_t size, size_t name) {
    memset(p, 0, 26);
    put16(p, 20);
    p[8] = 0x21; /* 1980-01-01 */
    for (int i = 0; i < 4; i++)
        p[10 + i] = (uint8_t)(sum >> (8 * i));
    put16(p + 14, size);
    put16(p + 18, size);
    put16(p + 22, name);
}

/* Archives of one and two stored members, made by hand. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n";
    uint8_t member[128], directory[256];
    size_t length = sizeof(header) - 1, at = 0, dir = 0, size = 10 + length + 4;
    if (index > 1 || capacity < 1024)
        return 0;
    memcpy(member, "\x93NUMPY\1", 7);
    member[7] = 0;
    put16(member + 8, length);
    memcpy(member + 10, header, length);
    memcpy(member + 10 + length, "abcd", 4);
    for (size_t i = 0; i <= index; i++) {
        const char *name = i ? "y.npy" : "x.npy";
        memcpy(directory + dir, "PK\1\2\24\0", 6);
        put_entry(directory + dir + 6, crc(member, size), size, 5);
        memset(directory + dir + 32, 0, 14);
        put16(directory + dir + 42, at);
        memcpy(directory + dir + 46, name, 5);
        dir += 51;
        memcpy(buffer + at, "PK\3\4", 4);
        put_entry(buffer + at + 4, crc(member, size), size, 5);
        memcpy(buffer + at + 30, name, 5);
        memcpy(buffer + at + 35, member, size);
        at += 35 + size;
    }
    memcpy(buffer + at, directory, dir);
    memset(buffer + at + dir, 0, 22);
    memcpy(buffer + at + dir, "PK\5\6", 4);
    put16(buffer + at + dir + 8, index + 1);
    put16(buffer + at + dir + 10, index + 1);
    put16(buffer + at + dir + 12, dir);
    put16(buffer + at + dir + 16, at);
    return at + dir + 22;
}
