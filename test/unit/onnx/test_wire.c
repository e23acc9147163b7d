/* SPDX-License-Identifier: MIT */
/* Numbers of the wire format: every length of a varint, both fixed widths, and what is refused.
 * What each kind of field may hold, and text. */
#include "test.h"
#include "proto.h"

#include "onnx/onnx_fields.h"
#include "onnx/schema.h"
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

/* A field with `size` bytes after its tag, and after their length if it has one. */
static int check_field(enum qs_message kind, uint32_t number, uint32_t wire, const void *data,
                       size_t size) {
    proto p = {0};
    proto_tag(&p, number, wire);
    if (wire == PB_WT_STRING)
        proto_varint(&p, size);
    proto_raw(&p, data, size);
    uint8_t *copy = exact_copy(p.data, p.size);
    const int code = qs_schema_check((qs_span){copy, p.size}, kind, "m", NULL);
    free(copy);
    proto_free(&p);
    return code;
}

/* Fields of each kind with each wire type. */
static void check_kinds(void) {
    static const struct {
        enum qs_message message;
        uint32_t number;
        bool varint, fixed64, string, fixed32;
    } kinds[] = {
        {QS_MESSAGE_TENSOR, TENSOR_DTYPE, true, false, false, false},
        {QS_MESSAGE_ATTR, ATTR_F, false, false, false, true},
        {QS_MESSAGE_TENSOR, TENSOR_NAME, false, false, true, false},
        {QS_MESSAGE_TENSOR, TENSOR_RAW, false, false, true, false},
        {QS_MESSAGE_TENSOR, TENSOR_SEGMENT, false, false, true, false},
        {QS_MESSAGE_TENSOR, TENSOR_DIMS, true, false, true, false},
        {QS_MESSAGE_TENSOR, TENSOR_FLOATS, false, false, true, true},
        {QS_MESSAGE_TENSOR, TENSOR_DOUBLES, false, true, true, false},
        {QS_MESSAGE_TENSOR, 999, true, true, true, true}, /* unknown fields are skipped */
    };
    static const uint8_t zeros[8];
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        const enum qs_message message = kinds[i].message;
        const uint32_t n = kinds[i].number;
        CHECK_INT(check_field(message, n, PB_WT_VARINT, zeros, 1),
                  kinds[i].varint ? QSIM_OK : QSIM_E_FORMAT);
        CHECK_INT(check_field(message, n, PB_WT_64BIT, zeros, 8),
                  kinds[i].fixed64 ? QSIM_OK : QSIM_E_FORMAT);
        CHECK_INT(check_field(message, n, PB_WT_STRING, zeros, 0),
                  kinds[i].string ? QSIM_OK : QSIM_E_FORMAT);
        CHECK_INT(check_field(message, n, PB_WT_32BIT, zeros, 4),
                  kinds[i].fixed32 ? QSIM_OK : QSIM_E_FORMAT);
    }
}

/* Packed lists of every length; varints that go on too long or have more than 64 bits. */
static void check_lists(void) {
    static const uint8_t zeros[17];
    uint8_t bytes[16];
    for (size_t n = 0; n <= 17; n++) {
        CHECK_INT(check_field(QS_MESSAGE_TENSOR, TENSOR_FLOATS, PB_WT_STRING, zeros, n),
                  n % 4 ? QSIM_E_FORMAT : QSIM_OK);
        CHECK_INT(check_field(QS_MESSAGE_TENSOR, TENSOR_DOUBLES, PB_WT_STRING, zeros, n),
                  n % 8 ? QSIM_E_FORMAT : QSIM_OK);
        CHECK_INT(check_field(QS_MESSAGE_TENSOR, TENSOR_DIMS, PB_WT_STRING, zeros, n), QSIM_OK);
    }
    for (size_t n = 1; n <= 13; n++)
        for (int last = 0; last <= 2; last++) {
            memset(bytes, 0xff, n - 1);
            bytes[n - 1] = (uint8_t)last;
            bytes[n] = 5; /* another one */
            const bool good = n < 10 || (n == 10 && last <= 1);
            for (size_t more = 0; more <= 1; more++)
                CHECK_INT(
                    check_field(QS_MESSAGE_TENSOR, TENSOR_DIMS, PB_WT_STRING, bytes, n + more),
                    good ? QSIM_OK : QSIM_E_FORMAT);
            bytes[n - 1] = 0x80; /* it does not end */
            CHECK_INT(check_field(QS_MESSAGE_TENSOR, TENSOR_DIMS, PB_WT_STRING, bytes, n),
                      QSIM_E_FORMAT);
        }
}

/* Messages in messages: as deep as is possible, and one deeper. */
static void check_depth(void) {
    for (int depth = QS_MESSAGE_DEPTH - 2; depth <= QS_MESSAGE_DEPTH; depth++) {
        proto p = {0};
        for (int i = depth; i > 0; i--) { /* the outermost is a type: sequences of sequences */
            proto outer = {0};
            proto_take(&outer, i % 2 ? TYPE_SEQUENCE : ELEMENT_TYPE, &p);
            proto_free(&p);
            p = outer;
        }
        CHECK_INT(qs_schema_check((qs_span){p.data, p.size}, QS_MESSAGE_TYPE, "m", NULL),
                  depth < QS_MESSAGE_DEPTH ? QSIM_OK : QSIM_E_LIMIT);
        proto_free(&p);
    }
}

/* UTF-8 as RFC 3629 has it: the first and the last of each range, and their neighbours. */
static const char *const good_text[] = {
    "",
    "a",
    "\x7f",
    "\xc2\x80",
    "\xdf\xbf",
    "\xe0\xa0\x80",
    "\xe0\xbf\xbf",
    "\xe1\x80\x80",
    "\xec\xbf\xbf",
    "\xed\x80\x80",
    "\xed\x9f\xbf",
    "\xee\x80\x80",
    "\xef\xbf\xbf",
    "\xf0\x90\x80\x80",
    "\xf0\xbf\xbf\xbf",
    "\xf1\x80\x80\x80",
    "\xf3\xbf\xbf\xbf",
    "\xf4\x80\x80\x80",
    "\xf4\x8f\xbf\xbf",
    "a\xc3\xa9z",
};
static const char *const bad_text[] = {
    "\x80",
    "\xbf",
    "\xc0\x80",
    "\xc1\xbf",
    "\xc2",
    "\xc2\x7f",
    "\xc2\xc0",
    "\xdf",
    "\xe0\x9f\xbf",
    "\xe0\x80\x80",
    "\xe1",
    "\xe1\x80",
    "\xe1\x80\x7f",
    "\xe1\x80\xc0",
    "\xe1\x7f\x80",
    "\xe1\xc0\x80",
    "\xed\xa0\x80",
    "\xed\xbf\xbf",
    "\xf0\x8f\xbf\xbf",
    "\xf0\x80\x80\x80",
    "\xf1\x80\x80",
    "\xf1\x80\x80\x7f",
    "\xf1\x80\x80\xc0",
    "\xf4\x90\x80\x80",
    "\xf4\xbf\xbf\xbf",
    "\xf5\x80\x80\x80",
    "\xf8\x88\x80\x80",
    "\xff",
    "a\xff",
    "\xc3\xa9\x80",
};

static void check_text(void) {
    for (size_t i = 0;
         i < sizeof(good_text) / sizeof(*good_text) + sizeof(bad_text) / sizeof(*bad_text); i++) {
        const bool right = i < sizeof(good_text) / sizeof(*good_text);
        const char *text =
            right ? good_text[i] : bad_text[i - sizeof(good_text) / sizeof(*good_text)];
        const size_t size = strlen(text);
        uint8_t *copy = exact_copy(text, size);
        if (qs_text_ok((qs_span){copy, size}) != right)
            CHECK_FAIL(text);
        CHECK_INT(check_field(QS_MESSAGE_TENSOR, TENSOR_NAME, PB_WT_STRING, text, size),
                  right ? QSIM_OK : QSIM_E_FORMAT);
        free(copy);
    }
    CHECK(!qs_text_ok((qs_span){(const uint8_t *)"a\0b", 3}));
}

/* A byte or sequence at each place of a longer text: ASCII is looked at in words. */
static void check_places(void) {
    static const struct {
        const char *bytes;
        size_t size;
        bool right;
    } parts[] = {{"", 1, false},
                 {"\x80", 1, false},
                 {"\x01", 1, true},
                 {"\x7f", 1, true},
                 {"\xff", 1, false},
                 {"\xc3\xa9", 2, true},
                 {"\xf0\x90\x80\x80", 4, true},
                 {"\x01\0", 2, false}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        for (size_t size = parts[i].size; size <= 24; size++)
            for (size_t at = 0; at + parts[i].size <= size; at++) {
                uint8_t text[24];
                memset(text, 'x', size);
                memcpy(text + at, parts[i].bytes, parts[i].size);
                uint8_t *copy = exact_copy(text, size);
                if (qs_text_ok((qs_span){copy, size}) != parts[i].right)
                    CHECK_FAIL(parts[i].bytes);
                free(copy);
            }
}

/* A first field that cannot be read, with what is said of it; "": it can. */
static void check_problems(void) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *problem;
    } fields[] = {
        {"\x08", 1, "a number is malformed or truncated"},
        {"\x08\x80", 2, "a number is malformed or truncated"},
        {"\x08\x7f", 2, ""},
        {"\x0d\0\0\0", 4, "a 32-bit number is truncated"},
        {"\x0d\0\0\0\0", 5, ""},
        {"\x09\0\0\0\0\0\0\0", 8, "a 64-bit number is truncated"},
        {"\x09\0\0\0\0\0\0\0\0", 9, ""},
        {"\x0a", 1, "a length is malformed"},
        {"\x0a\x80", 2, "a length is malformed"},
        {"\x0a\1", 2, "a length reaches beyond the end"},
        {"\x0a\3ab", 4, "a length reaches beyond the end"},
        {"\x0a\2ab", 4, ""},
        {"\x0a\0", 2, ""},
        {"\x0b", 1, "a field has a wire type that no message uses"},
        {"\x0c", 1, "a field has a wire type that no message uses"},
        {"\x0e", 1, "a field has a wire type that no message uses"},
        {"\x0f", 1, "a field has a wire type that no message uses"},
        {"\0\0", 2, "a field has the number 0"},
        {"\7\0", 2, "a field has the number 0"},
        {"\x80", 1, "a field tag is malformed"},
        {"\xf8\xff\xff\xff\x0f\0", 6, ""}, /* the greatest number of 32 bits */
        {"\x88\x80\x80\x80\x10\0", 6, "a field tag is malformed"},
        {"\x88\x80\x80\x80\x80\x80\x80\x80\x80\x02\0", 11, "a field tag is malformed"},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        uint8_t *copy = exact_copy(fields[i].bytes, fields[i].size);
        qs_wire wire;
        qs_field f;
        qs_wire_begin(&wire, (qs_span){copy, fields[i].size});
        const int code = qs_wire_next(&wire, &f);
        CHECK_INT(code, fields[i].problem[0] ? -1 : 1);
        if (code < 0)
            CHECK_STR(qs_wire_problem(&wire), fields[i].problem);
        free(copy);
    }
}

/* What is said of a message: where, which field of which message, and what. */
static void check_messages(void) {
    static const struct {
        enum qs_message message;
        const char *bytes;
        size_t size;
        const char *wanted;
    } cases[] = {
        {QS_MESSAGE_TENSOR, "\x15", 1,
         "m: malformed near byte 1: a 32-bit number is truncated (TensorProto)"},
        {QS_MESSAGE_TENSOR, "\x12\0", 2,
         "m: malformed near byte 2: field 2 of TensorProto has the wrong wire type"},
        {QS_MESSAGE_TENSOR, "\x40\0", 2,
         "m: malformed near byte 2: field 8 of TensorProto has the wrong wire type"},
        {QS_MESSAGE_TENSOR, "\x42\1\xff", 3,
         "m: malformed near byte 3: field 8 of TensorProto is not UTF-8 text or holds a NUL"},
        {QS_MESSAGE_TENSOR, "\x0a\1\x80", 3,
         "m: malformed near byte 3: field 1 of TensorProto is a malformed list of numbers"},
        {QS_MESSAGE_TENSOR, "\x22\3abc", 5,
         "m: malformed near byte 5: field 4 of TensorProto is a truncated list of floats"},
        {QS_MESSAGE_TENSOR, "\x52\4abcd", 6,
         "m: malformed near byte 6: field 10 of TensorProto is a truncated list of doubles"},
        {QS_MESSAGE_TENSOR, "\x10\1\x1a\2\x0a\0", 6,
         "m: malformed near byte 6: field 1 of TensorProto.Segment has the wrong wire type"},
        {QS_MESSAGE_ATTR, "\x10\1", 2,
         "m: malformed near byte 2: field 2 of AttributeProto has the wrong wire type"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint8_t *copy = exact_copy(cases[i].bytes, cases[i].size);
        qsim_error e = {0};
        CHECK_INT(qs_schema_check((qs_span){copy, cases[i].size}, cases[i].message, "m", &e),
                  QSIM_E_FORMAT);
        CHECK_STR(e.message, cases[i].wanted);
        free(copy);
    }
}

int main(void) {
    check_problems();
    check_messages();
    check_kinds();
    check_lists();
    check_depth();
    check_text();
    check_places();
    check_counts();
    check_varints();
    check_long();
    check_fixed();
    return test_done();
}
