/* SPDX-License-Identifier: MIT */
/* Every encoding of TensorProto gives the same plain bytes; invalid ones are refused. */
#include "test.h"
#include "proto.h"

#include <qsim/data.h>
#include <qsim/model.h>

enum { DIMS = 1, DTYPE = 2, SEGMENT = 3, FLOATS = 4, INT32S = 5, STRINGS = 6, INT64S = 7, RAW = 9 };
enum { DOUBLES = 10, UINT64S = 11, EXTERNAL = 13, LOCATION = 14 };

static void head(proto *t, int dtype, int64_t a, int64_t b) {
    t->size = 0;
    if (a >= 0)
        proto_int(t, DIMS, a);
    if (b >= 0)
        proto_int(t, DIMS, b);
    proto_int(t, DTYPE, dtype);
}

/* Integers in `field`, packed or one by one. */
static void ints(proto *t, uint32_t field, const int64_t *v, size_t n, int packed) {
    proto list = {0};
    for (size_t i = 0; i < n; i++) {
        if (packed)
            proto_varint(&list, (uint64_t)v[i]);
        else
            proto_int(t, field, v[i]);
    }
    if (packed)
        proto_take(t, field, &list);
    proto_free(&list);
}

static void expect(const proto *t, int dtype, size_t elements, const void *bytes, size_t size) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_error e = {0};
    uint8_t *message = exact_copy(t->data, t->size), *out = malloc(size ? size : 1);
    CHECK(message && out);
    CHECK_INT(qsim_proto_parse(message, t->size, &a, &e), QSIM_OK);
    CHECK_INT(a.dtype, dtype);
    CHECK_INT(a.elements, elements);
    CHECK_INT(a.bytes, size);
    CHECK_INT(qsim_proto_read(message, t->size, out, size, &e), QSIM_OK);
    CHECK(memcmp(out, bytes, size) == 0);
    if (e.code)
        fprintf(stderr, "%s\n", e.message);
    if (size)
        CHECK_INT(qsim_proto_read(message, t->size, out, size - 1, &e), QSIM_E_ARGUMENT);
    free(message);
    free(out);
}

static void refuse(const proto *t, int code) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_error e = {0};
    uint8_t out[64];
    int got = qsim_proto_parse(t->data, t->size, &a, &e);
    if (got == QSIM_OK)
        got = qsim_proto_read(t->data, t->size, out, sizeof(out), &e);
    CHECK_INT(got, code);
    CHECK_INT(e.code, code);
    CHECK(e.message[0] != 0);
}

static void check_integers(proto *t) {
    static const struct {
        int dtype;
        uint32_t field;
        int64_t v[3];
        size_t width;
    } cases[] = {
        {QSIM_INT8, INT32S, {-128, -1, 127}, 1},
        {QSIM_UINT8, INT32S, {0, 128, 255}, 1},
        {QSIM_INT16, INT32S, {-32768, 1, 32767}, 2},
        {QSIM_UINT16, INT32S, {0, 40000, 65535}, 2},
        {QSIM_INT32, INT32S, {INT32_MIN, -7, INT32_MAX}, 4},
        {QSIM_BOOL, INT32S, {0, 1, 1}, 1},
        {QSIM_FLOAT16, INT32S, {0x3c00, 0xbc00, 0x7c00}, 2},
        {QSIM_BFLOAT16, INT32S, {0x3f80, 0xbf80, 0}, 2},
        {QSIM_FLOAT8E4M3FN, INT32S, {0x38, 0xb8, 0x7f}, 1},
        {QSIM_INT64, INT64S, {INT64_MIN, -1, INT64_MAX}, 8},
        {QSIM_UINT32, UINT64S, {0, 1, UINT32_MAX}, 4},
        {QSIM_UINT64, UINT64S, {0, -1, 5}, 8},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t bytes[24];
        for (size_t k = 0; k < 3; k++) /* low byte first, whatever this machine does */
            for (size_t b = 0; b < cases[i].width; b++)
                bytes[k * cases[i].width + b] = (uint8_t)((uint64_t)cases[i].v[k] >> (8 * b));
        for (int packed = 0; packed < 2; packed++) {
            head(t, cases[i].dtype, 3, -1);
            ints(t, cases[i].field, cases[i].v, 3, packed);
            expect(t, cases[i].dtype, 3, bytes, 3 * cases[i].width);
        }
        head(t, cases[i].dtype, 3, 1);
        proto_bytes(t, RAW, bytes, 3 * cases[i].width);
        expect(t, cases[i].dtype, 3, bytes, 3 * cases[i].width);
        proto_bytes(t, RAW, bytes, 3 * cases[i].width - 1); /* the last one wins */
        refuse(t, QSIM_E_FORMAT);
        head(t, cases[i].dtype, 2, 2);
        ints(t, cases[i].field, cases[i].v, 3, 1);
        refuse(t, QSIM_E_FORMAT);
    }
}

/* The least and the greatest entry of a list are taken, one less and one more are not. */
static void check_ranges(proto *t) {
    static const struct {
        int dtype;
        uint32_t field;
        int64_t low, high;
    } types[] = {
        {QSIM_INT8, INT32S, -128, 127},        {QSIM_UINT8, INT32S, 0, 255},
        {QSIM_INT16, INT32S, -32768, 32767},   {QSIM_UINT16, INT32S, 0, 65535},
        {QSIM_FLOAT16, INT32S, 0, 65535},      {QSIM_BFLOAT16, INT32S, 0, 65535},
        {QSIM_FLOAT8E5M2, INT32S, 0, 255},     {QSIM_BOOL, INT32S, 0, 1},
        {QSIM_UINT32, UINT64S, 0, UINT32_MAX}, {QSIM_UINT4, INT32S, -128, 255},
        {QSIM_INT2, INT32S, -128, 255}, /* a byte each */
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        for (int side = 0; side < 2; side++) {
            int64_t v = side ? types[i].high : types[i].low;
            qsim_array a = {.struct_size = sizeof(a)};
            head(t, types[i].dtype, 1, -1);
            ints(t, types[i].field, &v, 1, 1);
            uint8_t element[8];
            CHECK_INT(qsim_proto_parse(t->data, t->size, &a, NULL), QSIM_OK);
            CHECK_INT(qsim_proto_read(t->data, t->size, element, sizeof(element), NULL), QSIM_OK);
            v += side ? 1 : -1;
            head(t, types[i].dtype, 1, -1);
            ints(t, types[i].field, &v, 1, 1);
            refuse(t, QSIM_E_VALUE);
        }
}

static void check_packed_types(proto *t) {
    static const int64_t nibbles[] = {0x21, 0x03}, pairs[] = {0xe4, 0x01};
    static const uint8_t four[] = {0x21, 0x03}, two[] = {0xe4, 0x01}, dirty[] = {0x21, 0xf3};
    head(t, QSIM_INT4, 3, -1); /* 1, 2, 3 */
    ints(t, INT32S, nibbles, 2, 1);
    expect(t, QSIM_INT4, 3, four, 2);
    head(t, QSIM_UINT4, 3, -1);
    proto_bytes(t, RAW, dirty, 2); /* bits after the end are cleared */
    expect(t, QSIM_UINT4, 3, four, 2);
    head(t, QSIM_UINT2, 5, -1); /* 0, 1, 2, 3, 1 */
    ints(t, INT32S, pairs, 2, 0);
    expect(t, QSIM_UINT2, 5, two, 2);
    head(t, QSIM_UINT4, 5, -1);
    proto_bytes(t, RAW, dirty, 2);
    refuse(t, QSIM_E_FORMAT);
}

static void check_floats(proto *t) {
    static const float f[] = {1.5f, -2.25f, 3e38f, 0.f};
    static const double d[] = {1e300, -0.5};
    head(t, QSIM_FLOAT, 2, 2);
    proto_bytes(t, FLOATS, f, sizeof(f));
    expect(t, QSIM_FLOAT, 4, f, sizeof(f));
    head(t, QSIM_FLOAT, 2, 2);
    proto_bytes(t, FLOATS, f, 8); /* a mixture of packed and single ones is legal */
    for (int i = 2; i < 4; i++) {
        proto_tag(t, FLOATS, 5);
        proto_raw(t, &f[i], 4);
    }
    expect(t, QSIM_FLOAT, 4, f, sizeof(f));
    head(t, QSIM_COMPLEX64, 2, -1);
    proto_bytes(t, FLOATS, f, sizeof(f));
    expect(t, QSIM_COMPLEX64, 2, f, sizeof(f));
    head(t, QSIM_DOUBLE, 2, -1);
    proto_bytes(t, DOUBLES, d, sizeof(d));
    expect(t, QSIM_DOUBLE, 2, d, sizeof(d));
    head(t, QSIM_FLOAT, -1, -1); /* a scalar */
    proto_bytes(t, RAW, f, 4);
    expect(t, QSIM_FLOAT, 1, f, 4);
    head(t, QSIM_FLOAT, 0, 7);
    expect(t, QSIM_FLOAT, 0, f, 0);
}

static void check_refusals(proto *t) {
    static const float f[4] = {0};
    static const int64_t big[] = {300}, low[] = {-1};
    proto location = {0};
    head(t, QSIM_INT8, 1, -1);
    ints(t, INT32S, big, 1, 1);
    refuse(t, QSIM_E_VALUE);
    head(t, QSIM_UINT8, 1, -1);
    ints(t, INT32S, low, 1, 0);
    refuse(t, QSIM_E_VALUE);
    head(t, QSIM_FLOAT, 2, 2);
    proto_bytes(t, RAW, f, 16);
    proto_bytes(t, FLOATS, f, 16);
    refuse(t, QSIM_E_FORMAT);
    head(t, QSIM_FLOAT, 2, 2);
    proto_bytes(t, DOUBLES, f, 16);
    refuse(t, QSIM_E_FORMAT);
    head(t, 99, 2, 2);
    refuse(t, QSIM_E_DTYPE);
    head(t, QSIM_STRING, 1, -1);
    proto_text(t, STRINGS, "s");
    refuse(t, QSIM_E_DTYPE);
    head(t, QSIM_FLOAT, INT64_MAX, INT64_MAX);
    refuse(t, QSIM_E_LIMIT);
    head(t, QSIM_FLOAT, 1 << 30, 1); /* 4 GiB that the file does not hold */
    refuse(t, TEST_WIDE(QSIM_E_FORMAT));
    head(t, QSIM_FLOAT, 1, -1);
    proto_int(t, DIMS, -1);
    refuse(t, QSIM_E_SHAPE);
    head(t, QSIM_FLOAT, 1, -1);
    proto_int(t, LOCATION, 1);
    proto_text(&location, 1, "location");
    proto_text(&location, 2, "w.bin");
    proto_take(t, EXTERNAL, &location);
    refuse(t, QSIM_E_UNSUPPORTED);
    head(t, QSIM_FLOAT, 1, -1);
    for (int i = 0; i < 16; i++)
        proto_int(t, DIMS, 1);
    refuse(t, QSIM_E_LIMIT);
    proto_free(&location);
}

/* The one list that holds elements of each type, as ONNX's text has it, and no other. */
static void check_lists(proto *t) {
    static const uint32_t lists[] = {FLOATS, INT32S, INT64S, DOUBLES, UINT64S};
    static const uint8_t zeros[32];
    for (int dtype = QSIM_FLOAT; dtype <= QSIM_INT2; dtype++) {
        const int pair = dtype == QSIM_COMPLEX64 || dtype == QSIM_COMPLEX128;
        const uint32_t own = dtype == QSIM_FLOAT || dtype == QSIM_COMPLEX64     ? FLOATS
                             : dtype == QSIM_DOUBLE || dtype == QSIM_COMPLEX128 ? DOUBLES
                             : dtype == QSIM_INT64                              ? INT64S
                             : dtype == QSIM_UINT32 || dtype == QSIM_UINT64     ? UINT64S
                                                                                : INT32S;
        const size_t bits = (size_t)qsim_dtype_bits(dtype), bytes = bits < 8 ? 1 : bits / 8;
        for (int k = 0; k < 5 && dtype != QSIM_STRING; k++)
            for (int count = 1; count <= 3; count++) {
                const size_t width = lists[k] == FLOATS ? 4 : lists[k] == DOUBLES ? 8 : 1;
                head(t, dtype, 1, -1);
                proto_bytes(t, lists[k], zeros, (size_t)count * width);
                if (lists[k] == own && count == 1 + pair)
                    expect(t, dtype, 1, zeros, bytes);
                else
                    refuse(t, QSIM_E_FORMAT);
            }
    }
    for (int dtype = QSIM_INT2 + 1; dtype >= QSIM_UNDEFINED; dtype -= QSIM_INT2 + 1) {
        head(t, dtype, 0, -1);
        refuse(t, QSIM_E_DTYPE);
    }
}

/* Elements stand in one place. An empty list or empty bytes beside them are none. */
static void check_places(proto *t) {
    static const struct {
        uint32_t first, second; /* fields; 0: none */
        size_t bytes[2];
        int location, code;
    } cases[] = {
        {RAW, 0, {4, 0}, -1, QSIM_OK},
        {RAW, 0, {4, 0}, 0, QSIM_OK},
        {RAW, 0, {4, 0}, 2, QSIM_E_FORMAT},
        {RAW, 0, {4, 0}, 1, QSIM_E_FORMAT},
        {FLOATS, 0, {4, 0}, 1, QSIM_E_FORMAT},
        {RAW, 0, {0, 0}, 1, QSIM_E_UNSUPPORTED},
        {RAW, FLOATS, {4, 4}, -1, QSIM_E_FORMAT},
        {RAW, FLOATS, {4, 0}, -1, QSIM_OK},
        {RAW, FLOATS, {0, 4}, -1, QSIM_OK},
        {FLOATS, DOUBLES, {4, 8}, -1, QSIM_E_FORMAT},
        {DOUBLES, FLOATS, {8, 4}, -1, QSIM_E_FORMAT},
        {FLOATS, DOUBLES, {4, 0}, -1, QSIM_OK},
        {DOUBLES, FLOATS, {0, 4}, -1, QSIM_OK},
        {FLOATS, SEGMENT, {4, 0}, -1, QSIM_E_UNSUPPORTED},
    };
    static const float f[2] = {1.5f, 0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        head(t, QSIM_FLOAT, 1, -1);
        proto_bytes(t, cases[i].first, f, cases[i].bytes[0]);
        if (cases[i].second)
            proto_bytes(t, cases[i].second, f, cases[i].bytes[1]);
        if (cases[i].location >= 0)
            proto_int(t, LOCATION, cases[i].location);
        if (cases[i].code)
            refuse(t, cases[i].code);
        else
            expect(t, QSIM_FLOAT, 1, f, sizeof(*f));
    }
}

/* What is left of the last byte behind elements of 4 and 2 bits is 0, whatever the file has. */
static void check_tails(proto *t) {
    static const struct {
        int dtype, each; /* elements of a byte */
    } types[] = {{QSIM_UINT4, 2}, {QSIM_INT4, 2}, {QSIM_UINT2, 4}, {QSIM_INT2, 4}};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        for (int n = 1; n <= 9; n++) {
            uint8_t ones[8], wanted[8];
            const int each = types[i].each, bytes = (n + each - 1) / each, over = bytes * each - n;
            memset(ones, 0xff, sizeof(ones));
            memset(wanted, 0xff, sizeof(wanted));
            wanted[bytes - 1] = (uint8_t)(0xff >> over * 8 / each);
            head(t, types[i].dtype, n, -1);
            proto_bytes(t, RAW, ones, (size_t)bytes);
            expect(t, types[i].dtype, (size_t)n, wanted, (size_t)bytes);
            proto_bytes(t, RAW, wanted, (size_t)bytes); /* the last one wins */
            expect(t, types[i].dtype, (size_t)n, wanted, (size_t)bytes);
        }
}

/* Calls without a place, and tensors whose facts contradict each other. */
static void check_arguments(void) {
    static const int64_t dims[] = {1}, none[] = {0};
    float f = 1;
    uint8_t buffer[64];
    size_t need = 0, again = 0;
    qsim_array a = {.struct_size = sizeof(a)}, old = {.struct_size = sizeof(a) - 1};
    qsim_tensor x = {QSIM_FLOAT, 1, dims, &f, sizeof(f)};
    CHECK_INT(qsim_proto_write(&x, NULL, buffer, sizeof(buffer), &need), QSIM_OK);
    CHECK_INT(qsim_proto_parse(buffer, need, &a, NULL), QSIM_OK);
    CHECK_INT(qsim_proto_parse(buffer, need, &old, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_parse(buffer, need, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_parse(NULL, need, &a, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_parse(NULL, 0, &a, NULL), QSIM_E_DTYPE);
    CHECK_INT(qsim_proto_read(NULL, 0, NULL, 0, NULL), QSIM_E_DTYPE);
    for (size_t room = need - 1; room <= need + 1; room++) { /* all is written, or nothing */
        uint8_t *exact = calloc(1, room);
        CHECK_INT(qsim_proto_write(&x, NULL, exact, room, &again), QSIM_OK);
        CHECK_INT(again, need);
        CHECK(exact && (exact[0] != 0) == (room >= need));
        free(exact);
    }
    CHECK_INT(qsim_proto_write(&x, NULL, NULL, 0, &need), QSIM_OK);
    x.data = NULL;
    CHECK_INT(qsim_proto_write(&x, NULL, NULL, 0, &need), QSIM_E_ARGUMENT);
    x.bytes = 0;
    CHECK_INT(qsim_proto_write(&x, NULL, NULL, 0, &need), QSIM_E_ARGUMENT);
    x.dims = none;
    CHECK_INT(qsim_proto_write(&x, NULL, NULL, 0, &need), QSIM_OK);
    x.rank = -1;
    CHECK_INT(qsim_proto_write(&x, NULL, NULL, 0, &need), QSIM_E_SHAPE);
}

static void check_write(void) {
    static const int64_t dims[] = {2, 2};
    float f[] = {1, 2, 3, 4};
    qsim_tensor x = {QSIM_FLOAT, 2, dims, f, sizeof(f)};
    uint8_t buffer[64];
    size_t need = 0;
    CHECK_INT(qsim_proto_write(&x, "x", NULL, 0, &need), QSIM_OK);
    CHECK(need > 16 && need < sizeof(buffer));
    CHECK_INT(qsim_proto_write(&x, "x", buffer, sizeof(buffer), &need), QSIM_OK);
    proto t = {buffer, need, 0};
    expect(&t, QSIM_FLOAT, 4, f, sizeof(f));
    CHECK_INT(qsim_proto_write(NULL, "x", buffer, sizeof(buffer), &need), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_write(&x, "x", buffer, sizeof(buffer), NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_write(&x, "x", NULL, sizeof(buffer), &need), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_read(NULL, 1, f, sizeof(f), NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_read(t.data, t.size, NULL, sizeof(f), NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_proto_read(t.data, t.size, f, sizeof(f), NULL), QSIM_OK);
    x.bytes = 15;
    CHECK_INT(qsim_proto_write(&x, NULL, NULL, 0, &need), QSIM_E_ARGUMENT);
}

/* Strings are constants of models alone: as many as the shape says, and nowhere else. */
static void check_strings(proto *t) {
    static const struct {
        int64_t size;
        uint32_t other; /* field beside the strings */
        int code;
        const char *text;
    } cases[] = {{2, 0, QSIM_OK, ""},
                 {3, 0, QSIM_E_FORMAT, "2 strings, the shape needs 3"},
                 {1, 0, QSIM_E_FORMAT, "2 strings, the shape needs 1"},
                 {2, RAW, QSIM_E_FORMAT, "strings stand in string_data only"},
                 {2, FLOATS, QSIM_E_FORMAT, "'s'"},
                 {2, INT32S, QSIM_E_FORMAT, "'s'"},
                 {2, EXTERNAL, QSIM_E_FORMAT, "'s'"}};
    const int64_t dims[] = {4};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        proto graph = {0}, model = {0};
        qsim_model *m = NULL;
        qsim_error e = {0};
        head(t, QSIM_STRING, cases[i].size, -1);
        proto_text(t, 8, "s");
        for (int k = 0; k < 2; k++)
            proto_text(t, STRINGS, "ab");
        if (cases[i].other == EXTERNAL)
            proto_external(t, "location", "a");
        else if (cases[i].other)
            proto_text(t, cases[i].other, "abab");
        proto_node(&graph, "Relu", NULL, "x", NULL, "y");
        proto_take(&graph, 5, t);
        proto_text(&graph, 2, "g");
        proto_value(&graph, 11, "x", QSIM_FLOAT, dims, 1);
        proto_value(&graph, 12, "y", QSIM_FLOAT, dims, 1);
        proto_model(&model, &graph);
        CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e),
                  cases[i].code);
        CHECK(strstr(e.message, cases[i].text) != NULL);
        qsim_model_free(m);
        proto_free(&model);
        proto_free(&graph);
    }
}

int main(void) {
    proto t = {0};
    check_integers(&t);
    check_ranges(&t);
    check_packed_types(&t);
    check_floats(&t);
    check_refusals(&t);
    check_strings(&t);
    check_lists(&t);
    check_places(&t);
    check_tails(&t);
    check_arguments();
    check_write();
    proto_free(&t);
    return test_done();
}
