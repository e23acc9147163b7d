/* SPDX-License-Identifier: MIT */
/* .npy and IDX: files are made here byte by byte, after the formats' documents. */
#include "test.h"

#include <qsim/data.h>

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
    for (size_t cut = 0; cut < sizeof(images); cut++)
        CHECK_INT(qsim_idx_parse(images, cut, &a, NULL), QSIM_E_FORMAT);
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
    uint8_t negative[] = {0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1};
    CHECK_INT(qsim_idx_parse(negative, sizeof(negative), &a, NULL), QSIM_E_FORMAT);
}

int main(void) {
    test_npy_good();
    test_npy_order();
    test_npy_bad();
    test_npy_arguments();
    test_npy_write();
    test_idx();
    return test_done();
}
