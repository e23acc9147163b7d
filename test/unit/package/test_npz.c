/* SPDX-License-Identifier: MIT */
/* .npz archives, made with libzip, so that stored and deflated members are the usual ones; packages
 * whose list of hashes is written line by line. */
#include "heap.h"

#include <stdbool.h>
#include <unistd.h>
#include <zip.h>

#include "base/base.h"

#include <qsim/data.h>
#include <qsim/model.h>
#include <qsim/package.h>

static uint8_t archive[1 << 20];
static size_t archive_size;

typedef struct part {
    const char *name;
    const void *data;
    size_t size;
    int method;
} part;

/* A .npy of `count` bytes that count upwards. */
static size_t make_npy(uint8_t *out, size_t count) {
    int64_t dims[] = {(int64_t)count};
    qsim_tensor t = {QSIM_UINT8, 1, dims, NULL, count};
    int n = qsim_npy_header(&t, (char *)out);
    for (size_t i = 0; i < count; i++)
        out[(size_t)n + i] = (uint8_t)i;
    return (size_t)n + count;
}

static int make_zip(const part *parts, size_t count) {
    char path[] = "npz-test-XXXXXX";
    int fd = mkstemp(path), zip_code;
    close(fd);
    zip_t *z = zip_open(path, ZIP_TRUNCATE, &zip_code);
    for (size_t i = 0; z && i < count; i++) {
        zip_source_t *s = zip_source_buffer(z, parts[i].data, parts[i].size, 0);
        zip_int64_t at = zip_file_add(z, parts[i].name, s, 0);
        zip_set_file_compression(z, (zip_uint64_t)at, parts[i].method, 0);
    }
    int good = z && zip_close(z) == 0;
    FILE *f = fopen(path, "rb");
    archive_size = f ? fread(archive, 1, sizeof(archive), f) : 0;
    if (f)
        fclose(f);
    unlink(path);
    return good;
}

static int open_archive(qsim_npz **z, qsim_error *e) {
    *z = NULL;
    return qsim_npz_open(NULL, archive, archive_size, z, e);
}

static uint8_t small[1024], large[70000], out[70000];

static void test_good(size_t small_size, size_t large_size) {
    part parts[] = {{"x.npy", small, small_size, ZIP_CM_STORE},
                    {"y.npy", large, large_size, ZIP_CM_DEFLATE}};
    qsim_npz *z;
    qsim_error e;
    CHECK(make_zip(parts, 2));
    CHECK_INT(open_archive(&z, &e), QSIM_OK);
    CHECK_INT(qsim_npz_count(z), 2);
    CHECK_STR(qsim_npz_name(z, 1), "y");
    CHECK(qsim_npz_name(z, 2) == NULL);
    qsim_array a = {.struct_size = sizeof(a)};
    CHECK_INT(qsim_npz_array(z, 1, &a), QSIM_OK);
    CHECK(a.rank == 1 && a.dims[0] == 60000 && a.dtype == QSIM_UINT8);
    CHECK_INT(qsim_npz_array(z, 2, &a), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_array(z, -1, &a), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_array(z, 1, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_array(z, 1, &(qsim_array){.struct_size = 1}), QSIM_E_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        size_t n = i ? 60000 : 10;
        CHECK_INT(qsim_npz_read(z, i, out, n - 1, &e), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_npz_read(z, i, out, n, &e), QSIM_OK);
        for (size_t k = 0; k < n; k++)
            if (out[k] != (uint8_t)k) {
                CHECK_INT(out[k], (uint8_t)k);
                break;
            }
    }
    qsim_npz_free(z);
    /* A flipped bit in the stored data is noticed by its CRC; a cut archive is not opened. */
    for (size_t i = 0; i + 10 < archive_size; i++)
        if (memcmp(archive + i, "\0\1\2\3\4\5\6\7\10\11", 10) == 0) {
            archive[i + 3] ^= 1;
            break;
        }
    CHECK_INT(open_archive(&z, &e), QSIM_OK);
    CHECK_INT(qsim_npz_read(z, 0, out, 10, &e), QSIM_E_FORMAT);
    qsim_npz_free(z);
    for (size_t cut = archive_size - 1; cut > 0; cut -= cut < 200 ? 1 : 97) {
        int code = qsim_npz_open(NULL, archive, cut, &z, &e);
        if (code == QSIM_OK)
            qsim_npz_free(z);
        CHECK(code != QSIM_OK);
    }
}

static void test_bad(size_t small_size) {
    static const uint8_t text[] = "this is no array";
    static const struct {
        const char *name;
        int good_data, code;
    } cases[] = {{"x.txt", 1, QSIM_E_FORMAT},
                 {".npy", 1, QSIM_E_FORMAT},
                 {"x.npy", 0, QSIM_E_FORMAT},
                 {"../../x.npy", 1, QSIM_E_FORMAT},
                 {"/../x.npy", 1, QSIM_E_FORMAT},
                 {"a\\x.npy", 1, QSIM_E_FORMAT},
                 {"a/../../x.npy", 1, QSIM_E_FORMAT},
                 {"x\n.npy", 1, QSIM_E_FORMAT},
                 {"a/x.npy", 1, QSIM_OK},
                 {"/a/x.npy", 1, QSIM_OK},
                 {"onnx::Gemm_0.npy", 1, QSIM_OK},
                 {"input:0.npy", 1, QSIM_OK}};
    qsim_npz *z;
    qsim_error e;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        part p = {cases[i].name, cases[i].good_data ? small : text,
                  cases[i].good_data ? small_size : sizeof(text), ZIP_CM_DEFLATE};
        CHECK(make_zip(&p, 1));
        CHECK_INT(open_archive(&z, &e), cases[i].code);
        qsim_npz_free(z);
    }
    part short_by_one = {"x.npy", small, small_size - 1, ZIP_CM_STORE};
    CHECK(make_zip(&short_by_one, 1));
    CHECK_INT(open_archive(&z, &e), QSIM_E_FORMAT);
    /* libzip writes no two members of one name: the second is renamed in the bytes. */
    part twins[] = {{"x.npy", small, small_size, ZIP_CM_STORE},
                    {"z.npy", small, small_size, ZIP_CM_STORE}};
    CHECK(make_zip(twins, 2));
    for (size_t i = 0; i + 5 < archive_size; i++)
        if (memcmp(archive + i, "z.npy", 5) == 0)
            archive[i] = 'x';
    CHECK_INT(open_archive(&z, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, "two members") != NULL);
    archive_size = (size_t)snprintf((char *)archive, sizeof(archive), "PKno zip at all");
    CHECK_INT(open_archive(&z, &e), QSIM_E_FORMAT);
    CHECK_INT(qsim_npz_open(NULL, "", 0, &z, &e), QSIM_E_FORMAT);
    static const char none[22] = {'P', 'K', 5, 6}; /* an archive without members */
    CHECK_INT(qsim_npz_open(NULL, none, sizeof(none), &z, &e), QSIM_E_FORMAT);
    CHECK_STR(e.message, ".npz: the archive has no members");
}

/* ---- fields of the archive ---- */

/* Writes a field of an archive's only member to both of its headers. */
static void put_both(int local, uint32_t value, int bytes) {
    for (size_t i = 0; i + 46 <= archive_size; i++) {
        const int central = memcmp(archive + i, "PK\1\2", 4) == 0;
        if (!central && memcmp(archive + i, "PK\3\4", 4) != 0)
            continue;
        for (int k = 0; k < bytes; k++)
            archive[i + (size_t)(local + 2 * central + k)] = (uint8_t)(value >> 8 * k);
    }
}

static void test_fields(size_t small_size) {
    const uint32_t stored = (uint32_t)small_size;
    const struct {
        int method, at, bytes; /* at: in the local header */
        uint32_t value;
        int code;
        const char *text;
    } fields[] = {
        {ZIP_CM_STORE, 6, 2, 0, QSIM_OK, ""},
        {ZIP_CM_STORE, 6, 2, 1, QSIM_E_UNSUPPORTED, "is encrypted"},
        {ZIP_CM_STORE, 8, 2, 12, QSIM_E_UNSUPPORTED, "compression method 12"},
        {ZIP_CM_STORE, 22, 4, stored + 1, QSIM_E_FORMAT, "cannot hold"},
        {ZIP_CM_STORE, 22, 4, stored - 1, QSIM_E_FORMAT, "cannot hold"},
        {ZIP_CM_DEFLATE, 22, 4, 1032u << 20, QSIM_E_FORMAT, "cannot hold"},
        {ZIP_CM_DEFLATE, 22, 4, stored + 1, QSIM_E_FORMAT, "follow the"},
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
        const part p = {"x.npy", small, small_size, fields[i].method};
        qsim_npz *z;
        qsim_error e = {0};
        CHECK(make_zip(&p, 1));
        put_both(fields[i].at, fields[i].value, fields[i].bytes);
        CHECK_INT(open_archive(&z, &e), fields[i].code);
        if (fields[i].code && !strstr(e.message, fields[i].text))
            fprintf(stderr, "%s\n", e.message);
        CHECK(!fields[i].code || strstr(e.message, fields[i].text));
        qsim_npz_free(z);
    }
    for (int more = 0; more <= 1; more++) { /* the greatest ratio of deflate, and one byte more */
        const part p = {"x.npy", small, small_size, ZIP_CM_DEFLATE};
        qsim_npz *z;
        qsim_error e = {0};
        CHECK(make_zip(&p, 1));
        const uint32_t packed = archive[18] | (uint32_t)archive[19] << 8;
        put_both(22, 1032 * packed + 1031 + (uint32_t)more, 4);
        CHECK_INT(open_archive(&z, &e), QSIM_E_FORMAT);
        CHECK(strstr(e.message, more ? "cannot hold" : "follow the"));
    }
}

/* A number without axes; each bound of index and memory; bytes that were changed. */
static void test_reading(size_t small_size) {
    const float number = 2.5f;
    uint8_t scalar[QSIM_NPY_HEADER_MAX + sizeof(number)];
    const qsim_tensor t = {QSIM_FLOAT, 0, NULL, NULL, sizeof(number)};
    const int header = qsim_npy_header(&t, (char *)scalar);
    memcpy(scalar + header, &number, sizeof(number));
    const part parts[] = {{"a.npy", scalar, (size_t)header + sizeof(number), ZIP_CM_DEFLATE},
                          {"x.npy", small, small_size, ZIP_CM_STORE}};
    qsim_npz *z;
    qsim_error e;
    qsim_array a = {.struct_size = sizeof(a)}, old = {.struct_size = sizeof(a) - 1};
    float read = 0;
    CHECK(make_zip(parts, 2));
    CHECK_INT(open_archive(&z, &e), QSIM_OK);
    CHECK_INT(qsim_npz_read(z, 0, &read, sizeof(read), NULL), QSIM_OK);
    CHECK(read == number);
    for (int i = 0; i < 3; i++) {
        const size_t capacity = sizeof(read) - (i < 2);
        CHECK_INT(qsim_npz_read(z, 0, i ? NULL : &read, capacity, &e), QSIM_E_ARGUMENT);
        CHECK(strstr(e.message, "member 'a' does not fit") != NULL);
    }
    for (int i = -1; i <= 2; i++) {
        const bool is = i >= 0 && i < 2;
        CHECK((qsim_npz_name(z, i) != NULL) == is);
        CHECK_INT(qsim_npz_array(z, i, &a), is ? QSIM_OK : QSIM_E_ARGUMENT);
        CHECK_INT(qsim_npz_array(z, i, &old), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_npz_array(z, i, NULL), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_npz_read(z, i, out, sizeof(out), NULL), is ? QSIM_OK : QSIM_E_ARGUMENT);
    }
    qsim_npz_free(z);
    for (size_t i = 0; i + small_size < archive_size; i++)
        if (memcmp(archive + i, small, small_size) == 0)
            archive[i + small_size - 1] ^= 1;
    CHECK_INT(open_archive(&z, &e), QSIM_OK);
    CHECK_INT(qsim_npz_read(z, 1, out, sizeof(out), &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, "member 'x' is damaged") != NULL);
    qsim_npz_free(z);
    for (size_t count = 0; count < 3; count++) { /* a byte more than the directory says */
        uint8_t npy[QSIM_NPY_HEADER_MAX + 5] = {0};
        const size_t size = make_npy(npy, count) + 2;
        memmove(npy + 12, npy + 10, size - 12); /* version 2: no byte behind the header is read */
        memcpy(npy + 6, (const uint8_t[]){2, 0, (uint8_t)(size - count - 12), 0, 0, 0}, 6);
        const part more = {"x.npy", npy, size + 1, ZIP_CM_DEFLATE};
        CHECK(make_zip(&more, 1));
        put_both(22, (uint32_t)size, 4);
        CHECK_INT(open_archive(&z, &e), QSIM_OK);
        CHECK_INT(qsim_npz_read(z, 0, out, sizeof(out), &e), QSIM_E_FORMAT);
        CHECK(strstr(e.message, "member 'x' ") != NULL);
        qsim_npz_free(z);
    }
    for (size_t n = 0; n <= 4; n++) { /* no archive, in memory that ends with it */
        char *copy = exact_copy("PK\3\4", n);
        CHECK_INT(qsim_npz_open(NULL, copy, n, &z, NULL), QSIM_E_FORMAT);
        free(copy);
    }
}

/* Headers of each version, whose lengths have two bytes or four, also longer than 64 KiB. */
static void test_versions(void) {
    static const char dict[] = "{'descr':'|u1','fortran_order':False,'shape':(10,)}";
    static uint8_t file[70000];
    for (int version = 1; version <= 4; version++)
        for (size_t length = version == 1 ? 65535 : 65534; length <= 65537; length++) {
            const size_t start = version == 1 ? 10 : 12;
            qsim_npz *z;
            qsim_error e = {0};
            memset(file, ' ', sizeof(file));
            memcpy(file, "\x93NUMPY", 6);
            file[6] = (uint8_t)version;
            file[7] = 0;
            for (size_t k = 0; k + 8 < start; k++)
                file[8 + k] = (uint8_t)(length >> 8 * k);
            memcpy(file + start, dict, sizeof(dict) - 1);
            for (uint8_t i = 0; i < 10; i++)
                file[start + length + i] = i;
            const part p = {"x.npy", file, start + length + 10, ZIP_CM_DEFLATE};
            CHECK(make_zip(&p, 1));
            CHECK_INT(open_archive(&z, &e), version > 3                      ? QSIM_E_UNSUPPORTED
                                            : version == 1 && length > 65535 ? QSIM_E_FORMAT
                                            : length > 65536                 ? QSIM_E_FORMAT
                                                                             : QSIM_OK);
            if (z) {
                CHECK_INT(qsim_npz_read(z, 0, out, 10, &e), QSIM_OK);
                CHECK(memcmp(out, "\0\1\2\3\4\5\6\7\10\11", 10) == 0);
            }
            qsim_npz_free(z);
        }
}

/* Deflated bytes that are none: of the header, or behind it. */
static void test_damaged(size_t large_size) {
    const part p = {"y.npy", large, large_size, ZIP_CM_DEFLATE};
    qsim_npz *z;
    qsim_error e = {0};
    CHECK(make_zip(&p, 1));
    const size_t first = 30 + 5;
    uint8_t *copy = exact_copy(archive, archive_size);
    memset(archive + first, 0xff, 20);
    CHECK_INT(open_archive(&z, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, ".npz: member 'y' is damaged") != NULL);
    memcpy(archive, copy, archive_size);
    memset(archive + archive_size / 2, 0xff, 20);
    CHECK_INT(open_archive(&z, &e), QSIM_OK);
    CHECK_INT(qsim_npz_read(z, 0, out, sizeof(out), &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, ".npz: member 'y' ") != NULL);
    qsim_npz_free(z);
    free(copy);
}

/* ---- SHA256SUMS of a package ---- */

static void hash_of(const void *data, size_t size, char hex[65]) {
    qs_sha256 h;
    qs_sha256_init(&h);
    qs_sha256_add(&h, data, size);
    qs_sha256_hex(&h, hex);
}

static size_t make_model(uint8_t *bytes, size_t capacity) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    size_t size = 0;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2]");
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(m, bytes, capacity, &size, NULL), QSIM_OK);
    qsim_model_free(m);
    qsim_builder_free(b);
    return size;
}

/* The line of the model, with its hash or another, after the manifest's; NULL: it is accepted. */
static const struct {
    const char *line, *text;
    bool other;
} sums[] = {
    {"%s  m.onnx\n", NULL, false},
    {"%s *m.onnx\n", NULL, false},
    {"%s  m.onnx\n", "another hash", true},
    {"%s  q.onnx\n", "names an entry that is missing", false},
    {"%s  m.onn\n", "names an entry that is missing", false},
    {"%s  \n", "is not a hash and a name", false},
    {"%s m.onnx\n", "is not a hash and a name", false},
    {"%s -m.onnx\n", "is not a hash and a name", false},
    {"%s\t m.onnx\n", "is not a hash and a name", false},
    {"x%.63s  m.onnx\n", "is not a hash and a name", false},
    {"%.63sg  m.onnx\n", "is not a hash and a name", false},
    {"%.63s/  m.onnx\n", "is not a hash and a name", false},
    {"%.63s:  m.onnx\n", "is not a hash and a name", false},
    {"%.63s`  m.onnx\n", "is not a hash and a name", false},
    {"%.63sF  m.onnx\n", "is not a hash and a name", false},
    {"\n", "is not a hash and a name", false},
    {"%s  m.onnx", "is cut off", false},
    {"%1$s  m.onnx\n%1$s  m.onnx\n", "names an entry a second time", false},
    {"%1$s  m.onnx\n%1$s  SHA256SUMS\n", "a second time, or itself", false},
    {"", "entry 'm.onnx' is not listed", false},
};

static void test_sums(void) {
    static const char manifest[] = "{\"model\": \"m.onnx\", \"schema\": 1}";
    uint8_t model[512];
    char hash[65], right[65], text[512];
    const size_t size = make_model(model, sizeof(model));
    for (size_t i = 0; i < sizeof(sums) / sizeof(*sums); i++) {
        hash_of(manifest, sizeof(manifest) - 1, hash);
        hash_of(model, size - sums[i].other, right);
        int n = snprintf(text, sizeof(text), "%s  manifest.json\n", hash);
        n += snprintf(text + n, sizeof(text) - (size_t)n, sums[i].line, right);
        const part parts[] = {{"m.onnx", model, size, ZIP_CM_STORE},
                              {"manifest.json", manifest, sizeof(manifest) - 1, ZIP_CM_STORE},
                              {"SHA256SUMS", text, (size_t)n, ZIP_CM_DEFLATE}};
        qsim_package *p = NULL;
        qsim_model *m = NULL;
        qsim_error e = {0};
        CHECK(make_zip(parts, 3));
        int code = qsim_package_open_memory(NULL, archive, archive_size, "P", &p, &e);
        if (!code)
            code = qsim_package_model(p, NULL, NULL, &m, &e);
        CHECK_INT(code, sums[i].text ? QSIM_E_FORMAT : QSIM_OK);
        if (sums[i].text && !strstr(e.message, sums[i].text))
            CHECK_STR(e.message, sums[i].text);
        qsim_model_free(m);
        qsim_package_free(p);
    }
}

/* As many entries as there may be, with the two that a package has besides, and names of models. */
static void test_packer(void) {
    qsim_packer *w = NULL;
    qsim_error e = {0};
    char name[16];
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, ".onnx", "", 0, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "a.onnx", "", 0, NULL), QSIM_E_VALUE);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "labels.txt", "a", 1, NULL), QSIM_E_VALUE);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_LABELS, NULL, "", 0, NULL), QSIM_E_FORMAT);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_LABELS, NULL, "\xff", 1, NULL), QSIM_E_FORMAT);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, "{", 1, NULL), QSIM_E_FORMAT);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, "{}", 2, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, "{}", 2, NULL), QSIM_E_EXISTS);
    for (int role = -1; role <= QSIM_ROLE_COUNT; role++) { /* names where there are none to give */
        const bool is = role > QSIM_ROLE_MODEL && role < QSIM_ROLE_MANIFEST;
        CHECK_INT(qsim_packer_add(w, role, role == QSIM_ROLE_DATA ? NULL : "n", "a", 1, NULL),
                  QSIM_E_ARGUMENT);
        CHECK(is || role == QSIM_ROLE_DATA ||
              qsim_packer_add(w, role, NULL, "a", 1, NULL) == QSIM_E_ARGUMENT);
    }
    for (int i = 2; i < 4095; i++) {
        snprintf(name, sizeof(name), "e%d", i);
        CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, name, "", 0, &e),
                  i < 4094 ? QSIM_OK : QSIM_E_LIMIT);
    }
    CHECK(strstr(e.message, "more than 4096 entries") != NULL);
    qsim_packer_free(w);
}

static int open_many(qsim_ctx *ctx, const void *arg, qsim_error *e) {
    qsim_npz *z = NULL;
    (void)arg;
    const int code = qsim_npz_open(ctx, archive, archive_size, &z, e);
    CHECK((z != NULL) == !code);
    qsim_npz_free(z);
    return code;
}

/* So many members that their list and their names need memory of their own: each request fails. */
static void test_memory(void) {
    enum { MEMBERS = 400 };
    static char names[MEMBERS][64];
    static part parts[MEMBERS];
    const size_t size = make_npy(small, 1);
    for (int i = 0; i < MEMBERS; i++) {
        snprintf(names[i], sizeof(names[i]), "a-name-that-takes-some-room-%020d.npy", i);
        parts[i] = (part){names[i], small, size, ZIP_CM_STORE};
    }
    CHECK(make_zip(parts, MEMBERS));
    test_each_request(open_many, NULL, 0);
}

int main(void) {
    test_sums();
    test_packer();
    size_t small_size = make_npy(small, 10), large_size = make_npy(large, 60000);
    test_good(small_size, large_size);
    test_bad(small_size);
    test_fields(small_size);
    test_reading(small_size);
    test_versions();
    test_damaged(large_size);
    test_memory();
    return test_done();
}
