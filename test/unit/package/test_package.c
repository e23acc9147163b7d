/* SPDX-License-Identifier: MIT */
/*
 * Packages: all written contents are read back; each rule of reading is broken alone in an archive
 * that keeps all others.
 */
#include "test.h"
#include "proto.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include "base/base.h"

#include <qsim/qsim.h>

static char folder[64];
static const float values[6] = {9, 9, 1, 2, 3, 9}; /* w is 1, 2, 3 at offset 8 */

static const char *in_folder(const char *name) {
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, 256, "%s/%s", folder, name);
    return p;
}

static void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        abort();
}

/* y = x + w; w lies in `location`, or inside where that is NULL. */
static void make_model(proto *model, const char *location) {
    const int64_t dims[] = {-1, 3};
    proto g = {0}, t = {0};
    model->size = 0;
    proto_node(&g, "Add", "add", "x", "w", "y");
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    if (location) {
        proto_external(&t, "location", location);
        proto_external(&t, "offset", "8");
        proto_external(&t, "length", "12");
        proto_int(&t, 14, 1);
    } else
        proto_bytes(&t, 9, values + 2, 12);
    proto_take(&g, 5, &t);
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 2);
    proto_model(model, &g);
    proto_free(&g);
    proto_free(&t);
}

static void check_weights(const qsim_model *m) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        if (qsim_model_value(m, i, &v) == QSIM_OK && strcmp(v.name, "w") == 0)
            break;
    CHECK(v.data && v.bytes == 12 && memcmp(v.data, values + 2, 12) == 0);
}

/* ---- legal ones ---- */

static void check_models(const char *path, int count) {
    const int32_t flags[] = {0, QSIM_LOAD_COPY};
    for (int i = 0; i < 2; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = flags[i]};
        qsim_package *p = NULL;
        qsim_model *m = NULL, *other = NULL, *derived = NULL;
        qsim_error e = {0};
        CHECK_INT(qsim_model_load(NULL, path, &o, &m, &e), QSIM_OK);
        CHECK_INT(qsim_model_optimize(m, QSIM_LEVEL_ALL, &derived, &e), QSIM_OK);
        qsim_model_free(m); /* the derived model keeps the package */
        check_weights(derived);
        qsim_model_free(derived);
        CHECK_INT(qsim_package_open(NULL, path, flags[i], &p, &e), QSIM_OK);
        CHECK_INT(qsim_package_model(p, "b.onnx", &o, &other, &e),
                  count > 1 ? QSIM_OK : QSIM_E_NOT_FOUND);
        CHECK_INT(qsim_package_model(p, "manifest.json", &o, &m, &e), QSIM_E_NOT_FOUND);
        qsim_package_free(p);
        if (other)
            check_weights(other);
        qsim_model_free(other);
    }
}

static void check_memory(const char *path) {
    qsim_file *f = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_file_open(NULL, path, 0, &f, &e), QSIM_OK);
    CHECK_INT(qsim_package_sniff(qsim_file_data(f), qsim_file_size(f)), 1);
    for (int i = 0; i < 2; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = i ? QSIM_LOAD_COPY : 0};
        qsim_model *m = NULL;
        CHECK_INT(qsim_model_load_memory(NULL, qsim_file_data(f), qsim_file_size(f), &o, &m, &e),
                  QSIM_OK);
        check_weights(m);
        qsim_model_free(m);
    }
    qsim_file_close(f);
}

static void check_entries(const char *path, bool stored) {
    qsim_package_entry x = {.struct_size = sizeof(x)};
    qsim_package *p = NULL;
    const void *data;
    size_t size;
    CHECK_INT(qsim_package_open(NULL, path, 0, &p, NULL), QSIM_OK);
    int32_t labels = qsim_package_find_role(p, QSIM_ROLE_LABELS);
    CHECK_INT(labels, qsim_package_find(p, "labels.txt"));
    CHECK_INT(qsim_package_get(p, labels, &x), QSIM_OK);
    CHECK_INT(x.bytes, 4);
    CHECK_INT(x.stored, stored);
    CHECK_INT(x.role, QSIM_ROLE_LABELS);
    CHECK_INT(strlen(x.sha256), 64);
    CHECK_INT(qsim_package_data(p, labels, &data, &size, NULL), QSIM_OK);
    CHECK(size == 4 && memcmp(data, "a\nb\n", 4) == 0);
    CHECK_INT(qsim_package_find_role(p, QSIM_ROLE_CALIBRATION), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_package_get(p, qsim_package_count(p), &x), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_data(p, -1, &data, &size, NULL), QSIM_E_ARGUMENT);
    for (int32_t i = 1; i < qsim_package_count(p); i++) { /* sorted */
        qsim_package_entry before = {.struct_size = sizeof(before)};
        qsim_package_get(p, i - 1, &before);
        qsim_package_get(p, i, &x);
        CHECK(strcmp(before.name, x.name) < 0);
    }
    qsim_package_free(p);
}

static qsim_packer *fill(int models) {
    qsim_packer *w = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_packer_create(NULL, &w, &e), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, in_folder("p.zip"), 0, &e), QSIM_E_STATE);
    CHECK_INT(qsim_packer_model(w, in_folder("a.onnx"), NULL, &e), QSIM_OK);
    if (models > 1)
        CHECK_INT(qsim_packer_model(w, in_folder("b.onnx"), NULL, &e), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_LABELS, NULL, "a\nb\n", 4, &e), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, "{\"top1\": 9e-1}", 14, &e), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "more/\xc3\xa4.txt", "", 0, &e), QSIM_OK);
    CHECK_INT(qsim_packer_option(w, "quote", "\"\\\n", &e), QSIM_OK);
    return w;
}

static void test_legal(const char *location_a, const char *location_b, int models) {
    proto model = {0};
    qsim_error e = {0};
    make_model(&model, location_a);
    write_file(in_folder("a.onnx"), model.data, model.size);
    make_model(&model, location_b);
    write_file(in_folder("b.onnx"), model.data, model.size);
    proto_free(&model);
    for (int32_t flags = 0; flags <= QSIM_PACK_DEFLATE; flags += QSIM_PACK_DEFLATE) {
        qsim_packer *w = fill(models);
        const char *path = in_folder("p.zip");
        for (int i = 0; i < 2; i++) /* a packer can be saved twice */
            CHECK_INT(qsim_packer_save(w, path, flags | QSIM_PACK_REPLACE, &e), QSIM_OK);
        CHECK_INT(qsim_packer_save(w, path, flags, &e), QSIM_E_EXISTS);
        qsim_packer_free(w);
        check_models(path, models);
        check_memory(path);
        check_entries(path, flags == 0);
        unlink(path);
    }
}

static void test_packer_refuses(void) {
    qsim_packer *w = fill(1);
    qsim_error e = {0};
    static const struct {
        int32_t role;
        const char *name, *text;
        int code;
    } bad[] = {
        {QSIM_ROLE_LABELS, NULL, "c", QSIM_E_EXISTS},
        {QSIM_ROLE_PREPROCESS, NULL, "", QSIM_E_FORMAT},
        {QSIM_ROLE_PREPROCESS, NULL, "\xff", QSIM_E_FORMAT},
        {QSIM_ROLE_CALIBRATION, NULL, "no", QSIM_E_FORMAT},
        {QSIM_ROLE_MANIFEST, NULL, "{}", QSIM_E_ARGUMENT},
        {QSIM_ROLE_DATA, NULL, "x", QSIM_E_ARGUMENT},
        {QSIM_ROLE_DATA, "labels.txt", "x", QSIM_E_VALUE},
        {QSIM_ROLE_DATA, "x.onnx", "x", QSIM_E_VALUE},
        {QSIM_ROLE_DATA, "../x", "x", QSIM_E_VALUE},
        {QSIM_ROLE_DATA, "A.ONNX", "x", QSIM_E_EXISTS},
        {QSIM_ROLE_DATA, "more", "x", QSIM_E_EXISTS},
        {QSIM_ROLE_DATA, "labels.txt/x", "x", QSIM_E_EXISTS},
        {QSIM_ROLE_DATA, "nul.txt", "x", QSIM_E_VALUE},
        {QSIM_ROLE_DATA, "com9.txt", "x", QSIM_E_VALUE},
        {QSIM_ROLE_DATA, "x.", "x", QSIM_E_VALUE},
    };
    for (size_t i = 0; i < QS_COUNT(bad); i++)
        CHECK_INT(
            qsim_packer_add(w, bad[i].role, bad[i].name, bad[i].text, strlen(bad[i].text), &e),
            bad[i].code);
    static const char *const reports[] = {"",    "{",     "[1,]",    "01", "\"\\x\"", "\"\\u00g0\"",
                                          "nul", "{} {}", "[\"\n\"]"};
    qsim_packer_free(w);
    CHECK_INT(qsim_packer_create(NULL, &w, &e), QSIM_OK);
    for (size_t i = 0; i < QS_COUNT(reports); i++)
        CHECK_INT(qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, reports[i], strlen(reports[i]), &e),
                  QSIM_E_FORMAT);
    CHECK_INT(qsim_packer_model(w, in_folder("none.onnx"), NULL, &e), QSIM_E_IO);
    CHECK_INT(qsim_packer_option(w, "k", "\xff", &e), QSIM_E_VALUE);
    qsim_packer_free(w);
}

/* Two models name their external data alike: 12 bytes of either are 1, 2, 3 and 0, 0, 0. */
static void test_clash(void) {
    proto model = {0};
    qsim_packer *w = NULL;
    qsim_error e = {0};
    CHECK_INT(mkdir(in_folder("other"), 0700), 0);
    make_model(&model, "w.bin");
    write_file(in_folder("a.onnx"), model.data, model.size);
    write_file(in_folder("other/b.onnx"), model.data, model.size);
    proto_free(&model);
    write_file(in_folder("other/w.bin"), (const float[6]){0}, sizeof(values));
    CHECK_INT(qsim_packer_create(NULL, &w, &e), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, in_folder("a.onnx"), NULL, &e), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, in_folder("a.onnx"), "another", &e), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "Another.ONNX", "x", 1, &e), QSIM_E_EXISTS);
    CHECK_INT(qsim_packer_model(w, in_folder("other/b.onnx"), NULL, &e), QSIM_E_EXISTS);
    CHECK_STR(e.message, "package: two models have different external data 'w.bin'");
    qsim_packer_free(w);
    unlink(in_folder("other/b.onnx"));
    unlink(in_folder("other/w.bin"));
    CHECK_INT(rmdir(in_folder("other")), 0);
}

/* ---- hostile ones: libzip writes them, with a manifest and hashes that fit ---- */

typedef struct part {
    const char *name, *data;
    size_t size;
    int method;
    uint32_t mode;
} part;

static uint8_t archive[1 << 18];
static size_t archive_size;

static void put_sum(char *sums, const char *name, const void *data, size_t size) {
    qs_sha256 h;
    char hex[65];
    qs_sha256_init(&h);
    qs_sha256_add(&h, data, size);
    qs_sha256_hex(&h, hex);
    sprintf(sums + strlen(sums), "%s  %s\n", hex, name);
}

static void make_zip(const part *parts, size_t count) {
    char path[] = "package-test-XXXXXX";
    int fd = mkstemp(path), zip_code;
    close(fd);
    zip_t *z = zip_open(path, ZIP_TRUNCATE, &zip_code);
    for (size_t i = 0; z && i < count; i++) {
        zip_source_t *s = zip_source_buffer(z, parts[i].data, parts[i].size, 0);
        zip_uint64_t at = (zip_uint64_t)zip_file_add(z, parts[i].name, s, 0);
        zip_set_file_compression(z, at, parts[i].method, 0);
        if (parts[i].mode)
            zip_file_set_external_attributes(z, at, 0, ZIP_OPSYS_UNIX, parts[i].mode << 16);
    }
    CHECK(z && zip_close(z) == 0);
    FILE *f = fopen(path, "rb");
    archive_size = f ? fread(archive, 1, sizeof(archive), f) : 0;
    if (f)
        fclose(f);
    unlink(path);
}

static const char good_manifest[] = "{\"model\": \"m.onnx\", \"schema\": 1, \"x\": [1.5e3, null]}";
static proto good_model;
static bool skip_sum; /* omits the extra entry from SHA256SUMS */

static void make_package(const char *manifest, const part *extra) {
    static char sums[4096];
    part parts[4] = {{"m.onnx", (const char *)good_model.data, good_model.size, ZIP_CM_STORE, 0},
                     {"manifest.json", manifest, strlen(manifest), ZIP_CM_STORE, 0}};
    size_t n = 2;
    sums[0] = 0;
    if (extra)
        parts[n++] = *extra;
    for (size_t i = 0; i < n; i++)
        if (i < 2 || !skip_sum)
            put_sum(sums, parts[i].name, parts[i].data, parts[i].size);
    parts[n++] = (part){"SHA256SUMS", sums, strlen(sums), ZIP_CM_STORE, 0};
    make_zip(parts, n);
}

/* Opening or reading it is refused with this text; unpacking leaves no file. */
static void refused(const char *text) {
    qsim_package *p = NULL;
    qsim_error e = {0};
    struct stat st;
    int code = qsim_package_open_memory(NULL, archive, archive_size, "P", &p, &e);
    if (!code)
        code = qsim_package_unpack(p, in_folder("out"), 0, &e);
    CHECK(code < 0 && code == e.code && code != QSIM_E_IO);
    if (!strstr(e.message, text)) {
        CHECK_STR(e.message, text);
    }
    CHECK(stat(in_folder("out"), &st) != 0);
    qsim_package_free(p);
}

static void accepted(void) {
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_load_memory(NULL, archive, archive_size, NULL, &m, &e), QSIM_OK);
    if (m)
        check_weights(m);
    else
        CHECK_STR(e.message, "");
    qsim_model_free(m);
}

static uint8_t *find(const char *magic, size_t nth) {
    for (size_t i = 0; i + 4 <= archive_size; i++)
        if (memcmp(archive + i, magic, 4) == 0 && nth-- == 0)
            return archive + i;
    abort();
}

/* Sets bytes of an entry, in its local header (`local` >= 0), the directory (`central` >= 0). */
static void patch(size_t nth, int local, int central, const void *bytes, size_t size) {
    if (local >= 0)
        memcpy(find("PK\3\4", nth) + local, bytes, size);
    if (central >= 0)
        memcpy(find("PK\1\2", nth) + central, bytes, size);
}

static void test_names(void) {
    static const struct {
        const char *name, *text;
    } bad[] = {{"../x", "\"..\""},     {"/x", "absolute"},       {"a/../../x", "\"..\""},
               {"c:x", "drive"},       {"a\\x", "backslash"},    {"a\nx", "control"},
               {"M.ONNX", "one file"}, {"m.onnx/x", "one file"}, {"Aux.txt", "device"},
               {"d/com1", "device"},   {"d/", "folder entry"},   {"x ", "blank"},
               {"x./y", "dot"},        {"a*b", "*<>?|"},         {"\x7f", "control"}};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        part extra = {bad[i].name, "text", bad[i].name[1] == '/' ? 0 : 4, ZIP_CM_STORE, 0};
        make_package(good_manifest, &extra);
        refused(bad[i].text);
    }
    static const char *const good[] = {"com", "d/console", "..x", "a b", "\xc3\xa4/\xe2\x82\xac",
                                       "nul1"};
    for (size_t i = 0; i < QS_COUNT(good); i++) {
        part extra = {good[i], "text", 4, ZIP_CM_STORE, 0};
        make_package(good_manifest, &extra);
        accepted();
    }
}

static void test_modes(void) {
    const uint32_t bad[] = {0120777, 0060600, 0020600, 0010600, 0140600, 0040755};
    part extra = {"x", "/etc/passwd", 11, ZIP_CM_STORE, 0100644};
    make_package(good_manifest, &extra);
    accepted();
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        extra.mode = bad[i];
        make_package(good_manifest, &extra);
        refused("is not a regular file");
    }
}

static void test_manifests(void) {
    static const struct {
        const char *manifest, *text;
    } bad[] = {{"", "JSON"},
               {"[]", "is not a JSON object"},
               {"{\"schema\": 1}", "no \"model\""},
               {"{\"model\": \"m.onnx\"}", "no \"schema\""},
               {"{\"schema\": 2, \"model\": \"m.onnx\"}", "schema 2"},
               {"{\"schema\": 9, \"model\": \"m.onnx\"}", "schema 9"},
               {"{\"schema\": 1.0, \"model\": \"m.onnx\"}", "\"schema\""},
               {"{\"schema\": 18446744073709551617, \"model\": \"m.onnx\"}", "\"schema\""},
               {"{\"schema\": 1, \"schema\": 1, \"model\": \"m.onnx\"}", "or two"},
               {"{\"schema\": 1, \"model\": 7}", "\"model\""},
               {"{\"schema\": 1, \"model\": \"n.onnx\"}", "not there"},
               {"{\"schema\": 1, \"model\": \"manifest.json\"}", "not there"},
               {"{\"schema\": 1, \"model\": \"m.onnx\"", "JSON"},
               {"{\"schema\": 1, \"model\": \"m.onnx\", }", "JSON"},
               {"\xff", "UTF-8"}};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        make_package(bad[i].manifest, NULL);
        refused(bad[i].text);
    }
    char deep[400] = "";
    memset(deep, '[', 200);
    make_package(deep, NULL);
    refused("JSON");
}

static void test_contents(void) {
    part extra = {"x", "text", 4, ZIP_CM_STORE, 0};
    make_package(good_manifest, &extra);
    accepted();
    skip_sum = true;
    make_package(good_manifest, &extra);
    skip_sum = false;
    refused("'x' is not listed");
    make_package(good_manifest, &extra);
    find("text", 0)[0] = 'T'; /* CRC and hash no longer match */
    refused("'x' is damaged");
    patch(2, 14, 16, "\x8a\x9f\x45\x0a", 4);
    refused("'x' is damaged");
    make_package(good_manifest, &extra);
    uint8_t *found = find("SHA2", 0) + 10; /* the first hash in SHA256SUMS is wrong */
    found[0] = found[0] == '0' ? '1' : '0';
    refused("damaged");
    make_zip(&extra, 1);
    refused("no manifest.json");
    part alone = {"manifest.json", good_manifest, sizeof(good_manifest) - 1, ZIP_CM_STORE, 0};
    make_zip(&alone, 1);
    refused("not there");
    part two[] = {alone, {"m.onnx", (const char *)good_model.data, good_model.size, 0, 0}};
    make_zip(two, 2);
    refused("no SHA256SUMS");
}

/* Hashes that are wrong although the CRC of everything is right. */
static void test_sums(void) {
    static char wrong[3][512];
    const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    const char *const text[] = {"another hash", "missing", "is not a hash and a name"};
    for (int i = 0; i < 3; i++)
        wrong[i][0] = 0;
    put_sum(wrong[0], "manifest.json", good_manifest, sizeof(good_manifest) - 1);
    strcpy(wrong[1], wrong[0]);
    strcpy(wrong[2], wrong[0]);
    sprintf(wrong[0] + strlen(wrong[0]), "%s  m.onnx\n", zeros);
    sprintf(wrong[1] + strlen(wrong[1]), "%s  q.onnx\n", zeros);
    sprintf(wrong[2] + strlen(wrong[2]), "%s m.onnx\n", zeros);
    for (int i = 0; i < 3; i++) {
        part parts[] = {
            {"m.onnx", (const char *)good_model.data, good_model.size, ZIP_CM_STORE, 0},
            {"manifest.json", good_manifest, sizeof(good_manifest) - 1, ZIP_CM_STORE, 0},
            {"SHA256SUMS", wrong[i], strlen(wrong[i]), ZIP_CM_DEFLATE, 0}};
        make_zip(parts, 3);
        refused(text[i]);
    }
}

static void test_structure(void) {
    part extra = {"x", "text", 4, ZIP_CM_STORE, 0};
    static const struct {
        int local, central;
        size_t size;
        const char *bytes, *text;
    } bad[] = {{6, 8, 2, "\1\0", "encrypted"},
               {6, 8, 2, "\x40\0", "encrypted"},
               {6, 8, 2, "\x20\0", "patch data"},
               {8, 10, 2, "\x0c\0", "method 12"},
               {8, 10, 2, "\x63\0", "method 99"},
               {8, -1, 2, "\x08\0", "another size, checksum or method"},
               {-1, 24, 4, "\5\0\0\0", "cannot have the size"},
               {22, -1, 4, "\5\0\0\0", "another size, checksum or method"},
               {14, -1, 4, "\5\0\0\0", "another size, checksum or method"},
               {30, -1, 1, "y", "another name"},
               {-1, 46, 1, "\0", "NUL"},
               {-1, 34, 2, "\1\0", "another disk"},
               {-1, 42, 4, "\0\0\0\0", "overlaps"},
               {-1, 42, 4, "\xff\xff\0\0", "not where"},
               {-1, 42, 4, "\xff\xff\xff\xff", "zip64"}};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        make_package(good_manifest, &extra);
        patch(2, bad[i].local, bad[i].central, bad[i].bytes, bad[i].size);
        refused(bad[i].text);
    }
    for (int at = 4; at <= 8; at += 2) { /* this disk, the directory's, how many entries are here */
        make_package(good_manifest, &extra);
        find("PK\5\6", 0)[at] = 1;
        refused("one part of several");
    }
    make_package(good_manifest, &extra);
    archive[archive_size++] = 0;
    refused("its end");
    for (size_t cut = archive_size - 2; cut > archive_size - 200; cut -= 7) {
        archive_size = cut;
        refused("P: ");
    }
}

static void test_bombs(void) {
    static char zeros[1 << 20];
    part extra = {"x", zeros, sizeof(zeros), ZIP_CM_DEFLATE, 0};
    make_package(good_manifest, &extra);
    accepted();
    patch(2, 22, 24, "\0\0\0\x08", 4); /* 128 MiB in a thousand bytes: deflate cannot */
    refused("cannot have the size");
    make_package(good_manifest, &extra);
    patch(2, 22, 24, "\xff\xff\x0f\0", 4);
    refused("larger than");
    make_package(good_manifest, &extra);
    patch(2, 22, 24, "\1\0\x10\0", 4);
    refused("smaller than");
    const size_t much = (size_t)80 << 20; /* in 80 KB */
    extra = (part){"x", calloc(much, 1), much, ZIP_CM_DEFLATE, 0};
    make_package(good_manifest, &extra);
    free((void *)(uintptr_t)extra.data);
    refused("100 times");
}

/* ---- memory ---- */

#if !defined(__SANITIZE_ADDRESS__) &&                                                              \
    !defined(__SANITIZE_THREAD__) /* they take memory of their own */
#define LARGE ((int64_t)48 << 20)

static void write_large(const char *path) {
    char type[32];
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    float *w = calloc(1, (size_t)LARGE);
    snprintf(type, sizeof(type), "float[%d]", (int)(LARGE / 4));
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", type);
    qsim_builder_constant_as(b, "w", type, w);
    qsim_builder_node(b, "", "Add", "", "x,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_model_save(m, path, NULL, NULL), QSIM_OK);
    qsim_model_free(m);
    free(w);
}

/* Bytes that the process may write to, as the system counts them. */
static long data_bytes(void) {
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmData: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

/* Packages of any size are written and read with less than 16 MiB, never whole in memory. */
static void test_memory(void) {
    struct rlimit old, small;
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    char model[128], zip[128];
    snprintf(model, sizeof(model), "%s", in_folder("large.onnx"));
    snprintf(zip, sizeof(zip), "%s", in_folder("large.zip"));
    write_large(model);
    const long now = data_bytes();
    CHECK_INT(getrlimit(RLIMIT_DATA, &old), 0);
    small = old;
    small.rlim_cur = (rlim_t)now + ((rlim_t)16 << 20);
    if (now > 0)
        CHECK_INT(setrlimit(RLIMIT_DATA, &small), 0);
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, model, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, zip, 0, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, zip, QSIM_PACK_REPLACE | QSIM_PACK_DEFLATE, NULL), QSIM_OK);
    qsim_packer_free(w);
    CHECK_INT(qsim_package_open(NULL, zip, 0, &p, NULL), QSIM_OK);
    qsim_package_free(p);
    CHECK_INT(setrlimit(RLIMIT_DATA, &old), 0);
    unlink(model);
    unlink(zip);
}
#endif

int main(void) {
    strcpy(folder, "qsim-package-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    make_model(&good_model, NULL);
    write_file(in_folder("w.bin"), values, sizeof(values));
    test_legal(NULL, NULL, 1);
    test_legal("w.bin", NULL, 2);
    test_legal("w.bin", "w.bin", 2); /* shared, stored once */
    test_packer_refuses();
    test_clash();
    test_names();
    test_modes();
    test_manifests();
    test_contents();
    test_sums();
    test_structure();
    test_bombs();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    test_memory();
#endif
    proto_free(&good_model);
    unlink(in_folder("a.onnx"));
    unlink(in_folder("b.onnx"));
    unlink(in_folder("w.bin"));
    CHECK_INT(rmdir(folder), 0);
    return test_done();
}
