/* SPDX-License-Identifier: MIT */
/* .npy and IDX: files are made here byte by byte, after the formats' documents. */
#include "test.h"

#include <qsim/data.h>
#include <stdbool.h>

/* A .npy file of version `major` with this dictionary and data; returns its size. */
static size_t make_npy(uint8_t *out, int major, const char *dict, const void *data, size_t bytes) {
    size_t length = strlen(dict) + 1, at = 8;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)major;
    out[7] = 0;
    out[at++] = (uint8_t)(length & 255);
    out[at++] = (uint8_t)(length >> 8 & 255);
    if (major > 1) {
        out[at++] = (uint8_t)(length >> 16 & 255);
        out[at++] = (uint8_t)(length >> 24);
    }
    memcpy(out + at, dict, length - 1);
    out[at + length - 1] = '\n';
    memcpy(out + at + length, data, bytes);
    return at + length + bytes;
}

static const uint8_t six[6] = {1, 2, 3, 4, 5, 6};
static uint8_t file[200000];

static int parse(const char *dict, const void *data, size_t bytes, qsim_array *a) {
    size_t size = make_npy(file, 1, dict, data, bytes);
    a->struct_size = sizeof(*a);
    return qsim_npy_parse(file, size, 0, a, NULL);
}

static void test_npy_good(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    uint8_t out[6];
    const char *dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
    for (int major = 1; major <= 3; major++) {
        size_t size = make_npy(file, major, dict, six, 6);
        CHECK_INT(qsim_npy_parse(file, size, 0, &a, NULL), QSIM_OK);
        CHECK_INT(a.dtype, QSIM_UINT8);
        CHECK_INT(a.rank, 2);
        CHECK(a.dims[0] == 2 && a.dims[1] == 3 && a.elements == 6 && a.bytes == 6);
        CHECK_INT(qsim_array_read(&a, file, size, 0, 2, out, 6, NULL), QSIM_OK);
        CHECK(memcmp(out, six, 6) == 0);
        CHECK_INT(qsim_array_read(&a, file, size, 1, 1, out, 3, NULL), QSIM_OK);
        CHECK(memcmp(out, six + 3, 3) == 0);
        CHECK_INT(qsim_array_read(&a, file, size, 1, 2, out, 6, NULL), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_array_read(&a, file, size, 0, 2, out, 5, NULL), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_array_read(&a, file, size - 1, 0, 2, out, 6, NULL), QSIM_E_ARGUMENT);
    }
    CHECK_INT(parse("{'shape':(),\"descr\":'<i2','fortran_order':False}", six, 2, &a), QSIM_OK);
    CHECK_INT(a.rank, 0);
    CHECK_INT(parse("{'descr': 'u2', 'fortran_order': False, 'shape': (3L,)}", six, 6, &a),
              QSIM_OK);
    CHECK_INT(a.dims[0], 3);
    CHECK_INT(parse("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 7)}", six, 0, &a),
              QSIM_OK);
    CHECK_INT(a.bytes, 0);
}

static void test_npy_order(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    uint16_t out[6];
    /* Big-endian 0x0102 0x0304 0x0506. */
    CHECK_INT(parse("{'descr': '>u2', 'fortran_order': False, 'shape': (3,)}", six, 6, &a),
              QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, sizeof(file), 0, 3, out, sizeof(out), NULL), QSIM_OK);
    CHECK(out[0] == 0x0102 && out[1] == 0x0304 && out[2] == 0x0506);
    /* Column by column: 1 3 5 / 2 4 6. */
    uint8_t rows[6];
    CHECK_INT(parse("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", six, 6, &a),
              QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, sizeof(file), 0, 2, rows, 6, NULL), QSIM_OK);
    CHECK(memcmp(rows, "\1\3\5\2\4\6", 6) == 0);
    CHECK_INT(qsim_array_read(&a, file, sizeof(file), 1, 1, rows, 6, NULL), QSIM_OK);
    CHECK(memcmp(rows, "\2\4\6", 3) == 0);
    /* Rank 3, against the definition: element (i, j, k) stands at i + 2 j + 6 k. */
    uint8_t cube[24], sorted[24];
    for (int i = 0; i < 24; i++)
        cube[i] = (uint8_t)i;
    CHECK_INT(parse("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3, 4)}", cube, 24, &a),
              QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, sizeof(file), 0, 2, sorted, 24, NULL), QSIM_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                CHECK_INT(sorted[(i * 3 + j) * 4 + k], i + 2 * j + 6 * k);
}

/* As many axes as there can be, of one element but for two; 1 2 3 4 5 6 stands column by column. */
static void test_npy_axes(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    for (int i = 0; i < 16; i++)
        for (int k = i + 1; k < 16; k++) {
            char dict[160] = "{'descr': '|u1', 'fortran_order': True, 'shape': (", *end = dict;
            uint8_t rows[6];
            for (int axis = 0; axis < 16; axis++)
                sprintf(end = strchr(end, 0), "%d,", axis == i ? 2 : axis == k ? 3 : 1);
            strcat(end, ")}");
            CHECK_INT(parse(dict, six, 6, &a), QSIM_OK);
            CHECK_INT(qsim_array_read(&a, file, sizeof(file), 0, a.dims[0], rows, 6, NULL),
                      QSIM_OK);
            CHECK(memcmp(rows, "\1\3\5\2\4\6", 6) == 0);
        }
}

static void test_npy_bad(void) {
    static const struct {
        const char *dict;
        size_t bytes;
        int code;
    } cases[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': [6]}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2*3,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2 3)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (None,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': maybe, 'shape': (6,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (6,)}", 6,
         QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,), 'x': 1}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,)", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,)} + x", 6, QSIM_E_FORMAT},
        {"{'descr': '|u1' 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_FORMAT},
        {"{xdescrx: '|u1', 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_FORMAT},
        {"('descr', '|u1')", 6, QSIM_E_FORMAT},
        {"", 6, QSIM_E_FORMAT},
        {"{'descr': '', 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|u2', 'fortran_order': False, 'shape': (3,)}", 6, QSIM_E_FORMAT},
        {"{'descr': 1, 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_FORMAT},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_UNSUPPORTED},
        {"{'descr': '<U3', 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_UNSUPPORTED},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (0,)}", 0, QSIM_E_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", 6, QSIM_E_UNSUPPORTED},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 0,
         QSIM_E_LIMIT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (18446744073709551617,)}", 1,
         QSIM_E_LIMIT},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)}",
         6, QSIM_E_LIMIT},
    };
    qsim_array a = {.struct_size = sizeof(a)};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int code = parse(cases[i].dict, six, cases[i].bytes, &a);
        if (code != cases[i].code)
            fprintf(stderr, "%s\n", cases[i].dict);
        CHECK_INT(code, cases[i].code);
    }
    size_t size =
        make_npy(file, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (6,)}", six, 6);
    uint8_t out[6];
    CHECK_INT(qsim_npy_parse(file, size, 0, &a, NULL), QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, size, 0, 6, out, 6, NULL), QSIM_E_VALUE);
    for (size_t cut = 0; cut < size; cut++)
        CHECK(qsim_npy_parse(file, cut, 0, &a, NULL) != QSIM_OK);
    /* A member whose header alone has been inflated. */
    CHECK_INT(qsim_npy_parse(file, size - 6, size, &a, NULL), QSIM_OK);
    file[6] = 9;
    CHECK_INT(qsim_npy_parse(file, size, 0, &a, NULL), QSIM_E_UNSUPPORTED);
}

/*
 * A header whose every character matters: cut off anywhere, or with a character that is replaced,
 * left out or put in, it is refused. Its memory ends with it.
 */
static const char strict[] = "{'descr':'<i2','fortran_order':False,'shape':(0,23)}";
enum { STRICT = sizeof(strict) - 1 };

/* Parses a file of this header alone; `claimed`: the length that the file tells. */
static int parse_exact(const char *dict, size_t length, size_t claimed, qsim_array *a) {
    char text[512] = "\x93NUMPY\1";
    text[8] = (char)(claimed & 255);
    text[9] = (char)(claimed >> 8);
    memcpy(text + 10, dict, length);
    char *copy = exact_copy(text, length + 10);
    const int code = qsim_npy_parse(copy, length + 10, 0, a, NULL);
    free(copy);
    return code;
}

static void test_npy_strict(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    char text[256] = "";
    memcpy(text, strict, sizeof(strict));
    CHECK_INT(parse_exact(text, STRICT, STRICT, &a), QSIM_OK);
    CHECK(a.dtype == QSIM_INT16 && a.rank == 2 && a.dims[0] == 0 && a.dims[1] == 23);
    CHECK_INT(parse_exact(text, STRICT, STRICT + 1, &a), QSIM_E_FORMAT);
    for (size_t n = 0; n < STRICT; n++) {
        CHECK_INT(parse_exact(text, n, n, &a), QSIM_E_FORMAT);
        CHECK_INT(parse_exact(text, STRICT, n, &a), QSIM_E_FORMAT);
    }
    static const char others[] = "!/:*[\\\n";
    for (size_t i = 0; i < STRICT; i++)
        for (const char *other = others; *other; other++) {
            const size_t rest = STRICT - i;
            text[i] = *other;
            CHECK(*other == strict[i] || (*other == '\n' && strchr("23", strict[i])) ||
                  parse_exact(text, STRICT, STRICT, &a) != QSIM_OK);
            memcpy(text + i + 1, strict + i, rest);
            const int code = parse_exact(text, STRICT + 1, STRICT + 1, &a);
            CHECK(code == QSIM_OK ? *other == '\n' : code < 0);
            memcpy(text + i, strict + i + 1, rest - 1);
            /* without its byte order a type has this machine's */
            CHECK(strict[i] == '<' || strchr("0123", strict[i]) ||
                  parse_exact(text, STRICT - 1, STRICT - 1, &a) != QSIM_OK);
            memcpy(text, strict, sizeof(strict));
        }
}

/* Blanks before, between and after all parts, and none of them inside a part. */
static void test_npy_blanks(void) {
    static const char *const parts[] = {
        "{", "'descr'", ":", "'|u1'",   ",", "\"fortran_order\"",
        ":", "True",    ",", "'shape'", ":", "(",
        "6", ",",       ")", ",",       "}",
    };
    enum { PARTS = sizeof(parts) / sizeof(*parts) };
    static const char *const blanks[] = {"", " ", "\t", "\n", " \t\n ", "\r", "\v"};
    qsim_array a = {.struct_size = sizeof(a)};
    for (int at = 0; at <= PARTS; at++)
        for (int k = 0; k < 7; k++) {
            char text[256] = "";
            for (int i = 0; i <= PARTS; i++) {
                strcat(text, i == at ? blanks[k] : "");
                strcat(text, i < PARTS ? parts[i] : "");
            }
            const size_t header = strlen(text);
            CHECK_INT(parse(text, six, 6, &a), k < 5 ? QSIM_OK : QSIM_E_FORMAT);
            CHECK(k >= 5 || (a.fortran && a.rank == 1 && a.dims[0] == 6));
            CHECK(parse_exact(text, header, header, &a) != QSIM_OK); /* no data */
        }
}

/* Sizes and ranks on either side of what is possible. */
static void test_npy_shapes(void) {
    static const struct {
        const char *shape;
        int code, rank;
    } shapes[] = {
        {"(9223372036854775807,0)", TEST_WIDE(QSIM_OK), 2},
        {"(9223372036854775808,0)", QSIM_E_LIMIT, 0},
        {"(92233720368547758070,0)", QSIM_E_LIMIT, 0},
        {"(0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", QSIM_OK, 16},
        {"(0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)", QSIM_OK, 16},
        {"(0,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)", QSIM_E_LIMIT, 0},
        {"(0L,7L)", QSIM_OK, 2},
        {"(0LL,7)", QSIM_E_FORMAT, 0},
        {"(L,7)", QSIM_E_FORMAT, 0},
        {"(0,,7)", QSIM_E_FORMAT, 0},
        {"(0,7,)", QSIM_OK, 2},
        {"(0,)", QSIM_OK, 1},
        {"(0)", QSIM_E_FORMAT, 0},
    };
    qsim_array a = {.struct_size = sizeof(a)};
    char text[256];
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        snprintf(text, sizeof(text), "{'descr':'|u1','fortran_order':False,'shape':%s}",
                 shapes[i].shape);
        CHECK_INT(parse_exact(text, strlen(text), strlen(text), &a), shapes[i].code);
        CHECK(shapes[i].code || a.rank == shapes[i].rank);
    }
}

static void test_npy_types(void) {
    static const struct {
        const char *type;
        int code, dtype;
    } types[] = {
        {"|b1", QSIM_OK, QSIM_BOOL},    {"b1", QSIM_OK, QSIM_BOOL},
        {"<i1", QSIM_OK, QSIM_INT8},    {">i1", QSIM_OK, QSIM_INT8},
        {"=i4", QSIM_OK, QSIM_INT32},   {"|i4", QSIM_E_FORMAT, 0},
        {"=u8", QSIM_OK, QSIM_UINT64},  {">f2", QSIM_OK, QSIM_FLOAT16},
        {"<f8", QSIM_OK, QSIM_DOUBLE},  {"<f16", QSIM_E_UNSUPPORTED, 0},
        {"<f1", QSIM_E_UNSUPPORTED, 0}, {"<b8", QSIM_E_UNSUPPORTED, 0},
        {"<f", QSIM_E_UNSUPPORTED, 0},  {"<", QSIM_E_FORMAT, 0},
        {"O", QSIM_E_UNSUPPORTED, 0},
    };
    qsim_array a = {.struct_size = sizeof(a)};
    char text[256];
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        const bool swapped = types[i].type[0] == '>' && types[i].type[2] != '1';
        snprintf(text, sizeof(text), "{'descr':'%s','fortran_order':False,'shape':(0,)}",
                 types[i].type);
        CHECK_INT(parse_exact(text, strlen(text), strlen(text), &a), types[i].code);
        CHECK(types[i].code || (a.dtype == types[i].dtype && a.swapped == swapped));
    }
}

/* Each version and length of the header, and each byte of the magic number. */
static void test_npy_begins(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    qsim_error e = {0};
    for (int major = 0; major <= 4; major++)
        for (int minor = 0; minor <= 1; minor++) {
            const size_t size = make_npy(file, major, strict, six, 0);
            file[7] = (uint8_t)minor;
            const bool known = major >= 1 && major <= 3 && minor == 0;
            CHECK_INT(qsim_npy_parse(file, size, 0, &a, NULL),
                      known ? QSIM_OK : QSIM_E_UNSUPPORTED);
            for (size_t n = 0; n < 12 && known; n++) {
                uint8_t *copy = exact_copy(file, n);
                CHECK_INT(qsim_npy_parse(copy, n, 0, &a, &e), QSIM_E_FORMAT);
                CHECK(strstr(e.message, n < 10      ? "it does not begin with"
                                        : major > 1 ? "it is cut short"
                                                    : "it is longer than the file"));
                free(copy);
            }
        }
    for (int i = 0; i < 6; i++) {
        const size_t size = make_npy(file, 1, strict, six, 0);
        file[i] ^= 1;
        CHECK_INT(qsim_npy_parse(file, size, 0, &a, NULL), QSIM_E_FORMAT);
    }
    for (size_t length = 65535; length <= 65537; length++) { /* the limit of headers is 65536 */
        static char padded[65538];
        memset(padded, ' ', sizeof(padded));
        memcpy(padded, strict, STRICT);
        padded[length - 1] = 0; /* a newline follows */
        const size_t size = make_npy(file, 2, padded, six, 0);
        CHECK_INT(qsim_npy_parse(file, size, 0, &a, NULL),
                  length <= 65536 ? QSIM_OK : QSIM_E_LIMIT);
    }
}

/* Facts of an array that others than the parser have set, one by one; positions about its ends. */
static void test_array_reads(void) {
    qsim_array a = {.struct_size = sizeof(a)}, wrong[10];
    qsim_error e = {0};
    uint8_t out[6] = {0};
    CHECK_INT(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)}", six, 6, &a),
              QSIM_OK);
    const size_t size = a.offset + 6;
    uint8_t *copy = exact_copy(file, size);
    for (int i = 0; i < 10; i++)
        wrong[i] = a;
    wrong[0].struct_size--;
    wrong[1].dtype = QSIM_STRING;
    wrong[2].dtype = QSIM_UINT16;
    wrong[3].rank = 17;
    wrong[4].dims[0] = -1;
    wrong[5].elements++;
    wrong[6].bytes--;
    wrong[7].offset = size + 1;
    wrong[8].offset++;
    wrong[9].dims[0] = 4;
    for (int i = 0; i < 10; i++) {
        CHECK_INT(qsim_array_read(&wrong[i], copy, size, 0, 1, out, 6, &e), QSIM_E_ARGUMENT);
        CHECK_STR(e.message, "the array was not parsed from these bytes");
    }
    CHECK_INT(qsim_array_read(NULL, copy, size, 0, 1, out, 6, NULL), QSIM_E_ARGUMENT);
    for (int64_t first = -1; first <= 4; first++)
        for (int64_t count = -1; count <= 4; count++) {
            const bool good = first >= 0 && count >= 0 && first + count <= 3;
            uint8_t *exact = malloc(count > 0 ? 2 * (size_t)count : 1);
            CHECK_INT(qsim_array_read(&a, copy, size, first, count, exact,
                                      count > 0 ? 2 * (size_t)count : 0, &e),
                      good ? QSIM_OK : QSIM_E_ARGUMENT);
            CHECK(good ? memcmp(exact, six + 2 * first, 2 * (size_t)count) == 0
                       : strstr(e.message, "of an array of 3") != NULL);
            free(exact);
        }
    CHECK_INT(qsim_array_read(&a, copy, size, 0, 3, out, 5, &e), QSIM_E_ARGUMENT);
    CHECK_STR(e.message, "6 bytes do not fit a buffer of 5");
    CHECK_INT(qsim_array_read(&a, copy, size, 0, 3, NULL, 6, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_array_read(&a, NULL, size, 0, 3, out, 6, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_array_read(&a, NULL, size, 3, 0, NULL, 0, NULL), QSIM_OK);
    free(copy);
    CHECK_INT(parse("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 2)}", six, 0, &a),
              QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, a.offset, 0, 0, out, 6, NULL), QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, a.offset, 0, 1, out, 6, NULL), QSIM_E_ARGUMENT);
    /* Column by column in the other byte order: 0x0102 0x0304 beside 0x0506. */
    uint16_t words[3];
    CHECK_INT(parse("{'descr': '>u2', 'fortran_order': True, 'shape': (3, 1)}", six, 6, &a),
              QSIM_OK);
    CHECK_INT(qsim_array_read(&a, file, a.offset + 6, 0, 3, words, 6, NULL), QSIM_OK);
    CHECK(words[0] == 0x0102 && words[1] == 0x0304 && words[2] == 0x0506);
}

/* Each of the three facts is stated, though the bytes would fit an array without it. */
static void test_npy_missing(void) {
    static const char *const facts[] = {"'descr':'|u1',", "'fortran_order':False,",
                                        "'shape':(1,),"};
    qsim_array a = {.struct_size = sizeof(a)};
    for (int set = 0; set < 8; set++)
        for (size_t bytes = 0; bytes < 2; bytes++) {
            char dict[128] = "{";
            for (int i = 0; i < 3; i++)
                strcat(dict, set >> i & 1 ? facts[i] : "");
            strcat(dict, "}");
            CHECK_INT(parse(dict, six, bytes, &a), set == 7 && bytes ? QSIM_OK : QSIM_E_FORMAT);
        }
}

static void test_npy_arguments(void) {
    qsim_array a = {.struct_size = sizeof(a)}, old = {.struct_size = sizeof(old) - 1};
    CHECK_INT(qsim_npy_parse(file, 64, 0, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npy_parse(file, 64, 0, &old, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npy_parse(NULL, 64, 0, &a, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npy_parse(NULL, 0, 0, &a, NULL), QSIM_E_FORMAT);
}

/* What is written is read back, and has the shape of a file that numpy.save writes. */
static void test_npy_write(void) {
    int64_t dims[16];
    for (int i = 0; i < 16; i++)
        dims[i] = 1;
    float value[3] = {1, 2, 3};
    char header[QSIM_NPY_HEADER_MAX];
    for (int rank = 0; rank <= 16; rank++) {
        if (rank > 0)
            dims[rank - 1] = 3;
        qsim_tensor t = {QSIM_FLOAT, rank, dims, value, rank ? 12 : 4};
        int n = qsim_npy_header(&t, header);
        CHECK(n > 0 && n % 64 == 0 && header[n - 1] == '\n');
        memcpy(file, header, (size_t)n);
        memcpy(file + n, value, t.bytes);
        qsim_array a = {.struct_size = sizeof(a)};
        CHECK_INT(qsim_npy_parse(file, (size_t)n + t.bytes, 0, &a, NULL), QSIM_OK);
        CHECK_INT(a.rank, rank);
        CHECK_INT(a.dtype, QSIM_FLOAT);
        CHECK(memcmp(a.dims, dims, (size_t)rank * sizeof(int64_t)) == 0);
        if (rank > 0)
            dims[rank - 1] = 1;
    }
    /* As NumPy pads: the bytes are aligned to 64, and none is spent beyond that. */
    for (int rank = 1; rank <= 16; rank++) {
        int64_t size = 1;
        for (int digits = 1; digits <= 18; digits++, size *= 10) {
            dims[rank - 1] = size;
            const qsim_tensor sized = {QSIM_FLOAT, rank, dims, value, 4};
            const int n = qsim_npy_header(&sized, header);
            header[n - 1] = 0;
            const int text = (int)(strchr(header + 10, '}') + 1 - header);
            CHECK_INT(n, (text + 1 + 63) / 64 * 64);
        }
        dims[rank - 1] = 1;
    }
    int64_t one[] = {5};
    qsim_tensor t = {QSIM_INT4, 1, one, value, 3};
    CHECK_INT(qsim_npy_header(&t, header), QSIM_E_UNSUPPORTED);
    t.dtype = QSIM_DOUBLE;
    int n = qsim_npy_header(&t, header);
    header[n - 1] = 0;
    CHECK(strstr(header + 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (5,), }") ==
          header + 10);
    t.dims = (int64_t[]){0};
    CHECK(qsim_npy_header(&t, header) == n && strstr(header + 10, "'shape': (0,), }"));
    t.dims = (int64_t[]){-1};
    CHECK_INT(qsim_npy_header(&t, header), QSIM_E_SHAPE);
}

/* Tensors that no file can hold, and the name of each type. */
static void test_npy_headers(void) {
    float value[1] = {1};
    char header[QSIM_NPY_HEADER_MAX];
    qsim_tensor t = {QSIM_FLOAT, 17, (int64_t[17]){0}, value, 0};
    CHECK_INT(qsim_npy_header(&t, header), QSIM_E_SHAPE);
    t.rank = -1;
    CHECK_INT(qsim_npy_header(&t, header), QSIM_E_SHAPE);
    t = (qsim_tensor){QSIM_FLOAT, 1, NULL, value, 0};
    CHECK_INT(qsim_npy_header(&t, header), QSIM_E_SHAPE);
    t.rank = 0;
    CHECK(qsim_npy_header(&t, header) > 0);
    CHECK_INT(qsim_npy_header(&t, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npy_header(NULL, header), QSIM_E_ARGUMENT);
    static const struct {
        int32_t dtype;
        const char *type;
    } types[] = {
        {QSIM_BOOL, "'|b1'"},    {QSIM_UINT8, "'|u1'"},  {QSIM_UINT16, "'<u2'"},
        {QSIM_UINT32, "'<u4'"},  {QSIM_UINT64, "'<u8'"}, {QSIM_INT8, "'|i1'"},
        {QSIM_INT16, "'<i2'"},   {QSIM_INT32, "'<i4'"},  {QSIM_INT64, "'<i8'"},
        {QSIM_FLOAT16, "'<f2'"}, {QSIM_FLOAT, "'<f4'"},  {QSIM_DOUBLE, "'<f8'"},
    };
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        t.dtype = types[i].dtype;
        CHECK(qsim_npy_header(&t, header) > 0);
        CHECK(strncmp(header + 20, types[i].type, 5) == 0);
    }
}

static void test_idx(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
    uint8_t out[8];
    qsim_error e = {0};
    CHECK_INT(qsim_idx_parse(images, sizeof(images), &a, NULL), QSIM_OK);
    CHECK(a.rank == 3 && a.dims[0] == 1 && a.dims[1] == 2 && a.dims[2] == 3);
    CHECK_INT(a.dtype, QSIM_UINT8);
    CHECK_INT(qsim_array_read(&a, images, sizeof(images), 0, 1, out, 6, NULL), QSIM_OK);
    CHECK(memcmp(out, six, 6) == 0);
    for (size_t cut = 0; cut < sizeof(images); cut++) {
        CHECK_INT(qsim_idx_parse(images, cut, &a, &e), QSIM_E_FORMAT);
        CHECK(strstr(e.message, cut < 4    ? "does not begin with two zeros"
                                : cut < 16 ? "the header is cut short"
                                           : "6 bytes") != NULL);
    }
    uint8_t wide[] = {0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 0, 1, 2, 0xff, 0xff, 0xff, 0xfe};
    int32_t ints[2];
    CHECK_INT(qsim_idx_parse(wide, sizeof(wide), &a, NULL), QSIM_OK);
    CHECK_INT(qsim_array_read(&a, wide, sizeof(wide), 0, 2, ints, 8, NULL), QSIM_OK);
    CHECK(ints[0] == 258 && ints[1] == -2);
    for (int i = 0; i < 2; i++) {
        wide[i] = 1;
        CHECK_INT(qsim_idx_parse(wide, sizeof(wide), &a, &e), QSIM_E_FORMAT);
        CHECK(strstr(e.message, "begin with two zeros") != NULL);
        wide[i] = 0;
    }
    wide[2] = 0x0a;
    CHECK_INT(qsim_idx_parse(wide, sizeof(wide), &a, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, "unknown element type 0x0a") != NULL);
    const uint8_t none[] = {0, 0, 8, 0, 7}; /* a byte that an array without axes would be */
    CHECK_INT(qsim_idx_parse(none, 4, &a, NULL), QSIM_E_FORMAT);
    CHECK_INT(qsim_idx_parse(none, sizeof(none), &a, NULL), QSIM_E_FORMAT);
    uint8_t axes[4 + 4 * 17 + 1] = {0, 0, 8, 16}; /* axes of 1: as many as there can be, one more */
    for (size_t i = 7; i < sizeof(axes); i += 4)
        axes[i] = 1;
    CHECK_INT(qsim_idx_parse(axes, sizeof(axes) - 4, &a, NULL), QSIM_OK);
    CHECK(a.rank == 16 && a.elements == 1);
    axes[3] = 17;
    CHECK_INT(qsim_idx_parse(axes, sizeof(axes), &a, NULL), QSIM_E_LIMIT);
    const uint8_t empty[] = {0, 0, 8, 1, 0, 0, 0, 0};
    CHECK_INT(qsim_idx_parse(empty, sizeof(empty), &a, NULL), QSIM_OK);
    CHECK(a.rank == 1 && a.elements == 0);
    for (size_t cut = 0; cut < sizeof(empty); cut++) {
        uint8_t *copy = exact_copy(empty, cut);
        CHECK_INT(qsim_idx_parse(copy, cut, &a, NULL), QSIM_E_FORMAT);
        free(copy);
    }
}

static void test_idx_types(void) {
    qsim_array a = {.struct_size = sizeof(a)};
    static const int32_t types[16] = {[8] = QSIM_UINT8,  [9] = QSIM_INT8,   [11] = QSIM_INT16,
                                      [12] = QSIM_INT32, [13] = QSIM_FLOAT, [14] = QSIM_DOUBLE};
    for (int type = 0; type < 256; type++) {
        const uint8_t typed[] = {0, 0, (uint8_t)type, 1, 0, 0, 0, 0};
        const int32_t wanted = type < 16 ? types[type] : 0;
        CHECK_INT(qsim_idx_parse(typed, sizeof(typed), &a, NULL), wanted ? QSIM_OK : QSIM_E_FORMAT);
        CHECK(!wanted || a.dtype == wanted);
    }
    uint8_t longer[] = {0, 0, 8, 1, 0, 0, 0, 1, 5, 6}; /* a byte more than its array */
    CHECK_INT(qsim_idx_parse(longer, sizeof(longer) - 1, &a, NULL), QSIM_OK);
    CHECK_INT(qsim_idx_parse(longer, sizeof(longer), &a, NULL), QSIM_E_FORMAT);
    uint8_t negative[] = {0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1};
    CHECK_INT(qsim_idx_parse(negative, sizeof(negative), &a, NULL), TEST_WIDE(QSIM_E_FORMAT));
}

int main(void) {
    test_npy_good();
    test_npy_order();
    test_npy_axes();
    test_npy_bad();
    test_npy_strict();
    test_npy_blanks();
    test_npy_shapes();
    test_npy_types();
    test_npy_begins();
    test_npy_missing();
    test_npy_arguments();
    test_array_reads();
    test_npy_write();
    test_npy_headers();
    test_idx();
    test_idx_types();
    return test_done();
}
