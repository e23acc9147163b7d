/* SPDX-License-Identifier: MIT */
/* Numbers of the wire format: every length of a varint, both fixed widths, and what is refused. */
#include "test.h"
#include "proto.h"

#include "onnx/wire.h"

/* Reads the first field of a message. */
static int first(const void *data, size_t size, qs_field *f) {
    qs_wire wire;
    qs_wire_begin(&wire, (qs_span){data, size});
    const int code = qs_wire_next(&wire, f);
    if (code == 1)
        CHECK(wire.at == wire.end && f->whole.size == size);
    else
        CHECK(qs_wire_problem(&wire)[0] != 0);
    return code;
}

static void check_value(uint64_t v) {
    proto p = {0};
    qs_field f;
    proto_tag(&p, 3, PB_WT_VARINT);
    proto_varint(&p, v);
    CHECK_INT(first(p.data, p.size, &f), 1);
    CHECK(f.number == 3 && f.type == PB_WT_VARINT && f.value == v);
    for (size_t n = 1; n < p.size; n++)
        CHECK_INT(first(p.data, n, &f), -1);
    proto_free(&p);
}

static void check_varints(void) {
    check_value(0);
    for (int bit = 0; bit < 64; bit++) {
        check_value((uint64_t)1 << bit);
        check_value(((uint64_t)1 << bit) - 1);
    }
    check_value(UINT64_MAX);
}

/* Varints longer than needed, legal up to ten bytes, and varints of more than 64 bits. */
static void check_long(void) {
    uint8_t bytes[13] = {8};
    qs_field f;
    for (size_t n = 2; n <= 12; n++) {
        memset(bytes + 1, 0x80, n - 1);
        bytes[1] = 0x85;
        bytes[n] = 0;
        CHECK_INT(first(bytes, n + 1, &f), n <= 10 ? 1 : -1);
        CHECK(n > 10 || f.value == 5);
    }
    memset(bytes + 1, 0xff, 9);
    for (int last = 0; last < 256; last++) {
        bytes[10] = (uint8_t)last;
        CHECK_INT(first(bytes, 11, &f), last <= 1 ? 1 : -1);
        CHECK(last > 1 || f.value == UINT64_MAX >> (1 - last));
    }
}

static void check_fixed(void) {
    static const uint8_t four[] = {0x0d, 0x78, 0x56, 0x34, 0xf2};
    static const uint8_t eight[] = {0x11, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0xf1};
    qs_field f;
    CHECK_INT(first(four, sizeof(four), &f), 1);
    CHECK(f.number == 1 && f.type == PB_WT_32BIT && f.value == 0xf2345678u);
    CHECK_INT(first(eight, sizeof(eight), &f), 1);
    CHECK(f.number == 2 && f.type == PB_WT_64BIT && f.value == 0xf123456789abcdefu);
    for (size_t n = 1; n < sizeof(four); n++)
        CHECK_INT(first(four, n, &f), -1);
    for (size_t n = 1; n < sizeof(eight); n++)
        CHECK_INT(first(eight, n, &f), -1);
}

/* Packed and single numbers of one field are counted together; other fields are not counted. */
static void check_counts(void) {
    for (size_t bytes = 0; bytes <= 24; bytes++) {
        static const uint8_t zeros[24];
        proto p = {0};
        proto_bytes(&p, 4, zeros, bytes);
        const qs_span packed = {p.data, p.size};
        CHECK_INT(qs_numbers_count(packed, 4, PB_WT_VARINT), bytes);
        CHECK_INT(qs_numbers_count(packed, 4, PB_WT_32BIT), bytes % 4 ? -1 : (int)bytes / 4);
        CHECK_INT(qs_numbers_count(packed, 4, PB_WT_64BIT), bytes % 8 ? -1 : (int)bytes / 8);
        CHECK_INT(qs_numbers_count(packed, 5, PB_WT_32BIT), 0);
        proto_tag(&p, 4, PB_WT_VARINT);
        proto_varint(&p, 300);
        CHECK_INT(qs_numbers_count((qs_span){p.data, p.size}, 4, PB_WT_VARINT), bytes + 1);
        CHECK_INT(qs_numbers_count((qs_span){p.data, p.size}, 4, PB_WT_32BIT), -1);
        proto_free(&p);
    }
}

int main(void) {
    check_counts();
    check_varints();
    check_long();
    check_fixed();
    return test_done();
}
