/* SPDX-License-Identifier: MIT */
/*
 * Bounds of packages: the shortest archives, sizes at the limit and beyond it; what is packed and
 * what is not, by name.
 */
#include "heap.h"
#include "proto.h"

#include "base/base.h"

#include <qsim/qsim.h>

#include <stdbool.h>
#include <unistd.h>
#include <zip.h>

#define MODEL "package-bounds.onnx"
#define PATH  "package-bounds.zip"
#define FREE  ((uint64_t)64 << 20) /* bytes that any package may inflate to */

static int open_bytes(qsim_ctx *ctx, const uint8_t *data, size_t size, const char *part) {
    qsim_package *p = NULL;
    qsim_error e = {0};
    uint8_t *copy = exact_copy(data, size);
    const int code = qsim_package_open_memory(ctx, copy, size, "t", &p, &e);
    if (!strstr(e.message, part))
        CHECK_FAIL(e.message);
    CHECK((p != NULL) == (code == QSIM_OK));
    qsim_package_free(p);
    free(copy);
    return code;
}

static void check_short(void) {
    uint8_t data[23] = "PK\5\6";
    for (size_t n = 0; n <= 23; n++)
        CHECK_INT(open_bytes(NULL, data, n,
                             n < 4    ? "does not start as a zip archive"
                             : n < 22 ? "it is too short for a zip archive"
                             : n < 23 ? "the archive is empty"
                                      : "its end is cut off or followed"),
                  QSIM_E_FORMAT);
    for (int i = 0; i < 22; i++) { /* each byte of an end without entries */
        memcpy(data, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
        data[i] = 1;
        CHECK_INT(open_bytes(NULL, data, 22,
                             i < 4    ? "does not start as a zip archive"
                             : i < 10 ? "it is one part of several"
                             : i < 12 ? "it is one part of several"
                             : i < 20 ? "its directory is not where it should be"
                                      : "its end is cut off or followed"),
                  QSIM_E_FORMAT);
    }
}

static void put32(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static void save_model(void) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2]");
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(m, MODEL, NULL, NULL), QSIM_OK);
    qsim_model_free(m);
    qsim_builder_free(b);
}

/* A package of a small model and two files of zeros, deflated: 66 MiB. */
static uint8_t *make_large(size_t *size) {
    const size_t bytes = 33 << 20;
    void *zeros = calloc(1, bytes);
    qsim_packer *w = NULL;
    save_model();
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, MODEL, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "a", zeros, bytes, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "b", zeros, bytes, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, PATH, QSIM_PACK_DEFLATE, NULL), QSIM_OK);
    qsim_packer_free(w);
    free(zeros);
    FILE *f = fopen(PATH, "rb");
    uint8_t *data = calloc(1, 1 << 20);
    *size = f ? fread(data, 1, 1 << 20, f) : 0;
    CHECK(*size > 0 && fclose(f) == 0);
    unlink(PATH);
    unlink(MODEL);
    return data;
}

/* The directory may say that entries inflate to 64 MiB and `ratio` times the archive, no more. */
static void check_ratio(void) {
    size_t size = 0;
    uint8_t *data = make_large(&size), *local = NULL, *entry = NULL;
    const qsim_limits limits = {.struct_size = sizeof(limits), .ratio = 1};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .limits = &limits};
    qsim_package_entry at = {.struct_size = sizeof(at)};
    qsim_package *p = NULL;
    qsim_ctx *ctx = NULL;
    uint64_t others = 0;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    CHECK_INT(qsim_package_open_memory(NULL, data, size, "t", &p, NULL), QSIM_OK);
    for (int32_t i = 0; !qsim_package_get(p, i, &at); i++)
        others += at.stored || strcmp(at.name, "b") == 0 ? 0 : (uint64_t)at.bytes;
    qsim_package_free(p);
    for (size_t i = 0; i + 46 < size; i++) {
        if (memcmp(data + i, "PK\3\4", 4) == 0 && data[i + 26] == 1 && data[i + 30] == 'b')
            local = data + i;
        if (memcmp(data + i, "PK\1\2", 4) == 0 && data[i + 28] == 1 && data[i + 46] == 'b')
            entry = data + i;
    }
    CHECK(local && entry);
    for (int more = -1; local && entry && more <= 1; more++) {
        const uint64_t bytes = FREE + size - others + (uint64_t)(int64_t)more;
        put32(local + 22, bytes);
        put32(entry + 24, bytes);
        CHECK_INT(open_bytes(ctx, data, size, more > 0 ? "the limit 'ratio'" : ""),
                  more > 0 ? QSIM_E_LIMIT : QSIM_OK);
    }
    qsim_ctx_free(ctx);
    free(data);
}

/* A model that is refused, for it has more values than the limit, is no success. */
static void check_refused(void) {
    size_t size = 0;
    uint8_t *data = make_large(&size);
    for (uint64_t most = 2; most >= 1; most--) {
        const qsim_limits limits = {.struct_size = sizeof(limits), .values = most};
        const qsim_ctx_options o = {.struct_size = sizeof(o), .limits = &limits};
        qsim_ctx *ctx = NULL;
        qsim_package *p = NULL;
        qsim_model *m = NULL;
        qsim_error e = {0};
        CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
        CHECK_INT(qsim_package_open_memory(ctx, data, size, "t", &p, &e), QSIM_OK);
        const int code = qsim_package_model(p, NULL, NULL, &m, &e);
        CHECK_INT(code, most == 2 ? QSIM_OK : QSIM_E_LIMIT);
        CHECK((m != NULL) == (most == 2) && (most == 2 || strstr(e.message, "'values'")));
        qsim_model_free(m);
        qsim_package_free(p);
        qsim_ctx_free(ctx);
    }
    free(data);
}

/* The first of several models is the package's. */
static void check_main(void) {
    static const char *const names[] = {"b.onnx", "a.onnx", "c.onnx"};
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    qsim_package_entry e = {.struct_size = sizeof(e)};
    save_model();
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    for (int i = 0; i < 3; i++)
        CHECK_INT(qsim_packer_model(w, MODEL, names[i], NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, PATH, 0, NULL), QSIM_OK);
    CHECK_INT(qsim_package_open(NULL, PATH, 0, &p, NULL), QSIM_OK);
    CHECK_INT(qsim_package_get(p, qsim_package_find_role(p, QSIM_ROLE_MODEL), &e), QSIM_OK);
    CHECK_STR(e.name, "b.onnx");
    qsim_package_free(p);
    qsim_packer_free(w);
    unlink(PATH);
    unlink(MODEL);
}

/* ---- the lists that each package has ---- */

static int open_lists(const char *manifest, size_t size, const char *sums, size_t sums_size,
                      const char *part) {
    const struct {
        const char *name, *data;
        size_t size;
    } parts[] = {
        {"m.onnx", "m", 1}, {"manifest.json", manifest, size}, {"SHA256SUMS", sums, sums_size}};
    int why;
    qsim_package *p = NULL;
    qsim_error e = {0};
    unlink(PATH);
    zip_t *z = zip_open(PATH, ZIP_CREATE, &why);
    for (int i = 0; z && i < 3; i++) {
        zip_source_t *s = zip_source_buffer(z, parts[i].data, parts[i].size, 0);
        const zip_int64_t at = zip_file_add(z, parts[i].name, s, 0);
        CHECK_INT(zip_set_file_compression(z, (zip_uint64_t)at, ZIP_CM_DEFLATE, 1), 0);
    }
    CHECK(z && zip_close(z) == 0);
    const int code = qsim_package_open(NULL, PATH, 0, &p, &e);
    if (!strstr(e.message, part))
        CHECK_FAIL(e.message);
    qsim_package_free(p);
    unlink(PATH);
    return code;
}

/* The manifest has up to 16 MiB, the list of hashes up to 8. */
static void check_lists(void) {
    static const char head[] = "{\"schema\": 1, \"model\": \"m.onnx\"}";
    const size_t most = (size_t)16 << 20, sums_most = (size_t)8 << 20;
    char *text = malloc(most + 1);
    memset(text, ' ', most + 1);
    memcpy(text, head, sizeof(head) - 1);
    CHECK_INT(open_lists(text, most, "x\n", 2, "SHA256SUMS line 1 is not a hash and a name"),
              QSIM_E_FORMAT);
    CHECK_INT(open_lists(text, most + 1, "x\n", 2, "manifest.json has 16777217 bytes"),
              QSIM_E_LIMIT);
    text[sizeof(head)] = '\n';
    CHECK_INT(
        open_lists(head, sizeof(head) - 1, text, sums_most, "SHA256SUMS line 1 is not a hash"),
        QSIM_E_FORMAT);
    CHECK_INT(
        open_lists(head, sizeof(head) - 1, text, sums_most + 1, "SHA256SUMS has 8388609 bytes"),
        QSIM_E_LIMIT);
    free(text);
}

/* ---- what is packed ---- */

/* A model of one weight, which stands in a file of its own or not. */
static void save_weight(const char *path, int flags) {
    static const float w[1024] = {1};
    const qsim_save_options o = {.struct_size = sizeof(o), .flags = flags | QSIM_SAVE_REPLACE};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1024]");
    qsim_builder_constant_as(b, "w", "float[1024]", w);
    qsim_builder_node(b, "", "Add", "", "x,w", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(m, path, &o, NULL), QSIM_OK);
    qsim_model_free(m);
    qsim_builder_free(b);
}

/* Packs a model, under a name or NULL; *entry: what it is called there. */
static int pack(const char *path, const char *name, char entry[64], qsim_error *e) {
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    qsim_package_entry at = {.struct_size = sizeof(at)};
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    const int code = qsim_packer_model(w, path, name, e);
    if (!code) {
        CHECK_INT(qsim_packer_save(w, PATH, QSIM_PACK_REPLACE, NULL), QSIM_OK);
        CHECK_INT(qsim_package_open(NULL, PATH, 0, &p, NULL), QSIM_OK);
        CHECK_INT(qsim_package_get(p, qsim_package_find_role(p, QSIM_ROLE_MODEL), &at), QSIM_OK);
        snprintf(entry, 64, "%s", at.name ? at.name : "");
    }
    qsim_package_free(p);
    qsim_packer_free(w);
    return code;
}

/* The entry of a model ends in .onnx; in a folder it has no data outside of itself. */
static void check_entries(void) {
    static const struct {
        const char *name;
        bool outside;
        const char *entry; /* NULL: refused */
    } cases[] = {
        {NULL, false, "package-bounds.onnx"},
        {NULL, true, "package-bounds.onnx"},
        {"m", false, "m.onnx"},
        {"m.onnx", true, "m.onnx"},
        {"m.onnx.bak", false, "m.onnx.bak.onnx"},
        {"onnx", false, "onnx.onnx"},
        {".onnx", false, ".onnx.onnx"}, /* a name of nothing but an ending is none */
        {"a.onnx", false, "a.onnx"},
        {"folder/m", false, "folder/m.onnx"},
        {"folder/m", true, NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char entry[64] = "";
        qsim_error e = {0};
        save_weight(MODEL, cases[i].outside ? QSIM_SAVE_EXTERNAL : 0);
        CHECK_INT(pack(MODEL, cases[i].name, entry, &e), cases[i].entry ? QSIM_OK : QSIM_E_VALUE);
        if (cases[i].entry)
            CHECK_STR(entry, cases[i].entry);
        else
            CHECK_STR(e.message, "package: 'folder/m.onnx': a model with external data must not be "
                                 "in a folder");
        unlink(MODEL);
        unlink(MODEL ".data");
    }
    unlink(PATH);
}

/* Names of external data that differ in capitals alone clash, as those of other entries do. */
static void check_capitals(void) {
    static const char upper[] = "PACKAGE-bounds.onnx";
    qsim_packer *w = NULL;
    qsim_error e = {0};
    save_weight(MODEL, QSIM_SAVE_EXTERNAL);
    save_weight(upper, QSIM_SAVE_EXTERNAL);
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, MODEL, "a", NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, upper, "b", &e), QSIM_E_EXISTS);
    CHECK_STR(e.message,
              "package: 'PACKAGE-bounds.onnx.data' and 'package-bounds.onnx.data' cannot "
              "be in one folder");
    qsim_packer_free(w);
    unlink(MODEL);
    unlink(MODEL ".data");
    unlink(upper);
    unlink("PACKAGE-bounds.onnx.data");
}

/* An archive of a model whose weight stands at a location, and of an entry with its bytes. */
static void make_outside(const char *model, const char *location, const char *entry) {
    static const float w[3] = {1, 2, 3};
    static const int64_t dims[] = {3};
    proto file = {0}, g = {0}, t = {0};
    char sums[512] = "", hex[65], manifest[128];
    int why;
    const int length =
        snprintf(manifest, sizeof(manifest), "{\"schema\": 1, \"model\": \"%s\"}", model);
    proto_int(&t, 1, 3);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_external(&t, "location", location);
    proto_int(&t, 14, 1);
    proto_take(&g, 5, &t);
    proto_node(&g, "Neg", NULL, "w", NULL, "y");
    proto_text(&g, 2, "g");
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&file, &g);
    const struct {
        const char *name;
        const void *data;
        size_t size;
    } parts[] = {{entry, w, sizeof(w)}, /* the data may come first */
                 {model, file.data, file.size},
                 {"manifest.json", manifest, (size_t)length},
                 {"SHA256SUMS", sums, 0}};
    unlink(PATH);
    zip_t *z = zip_open(PATH, ZIP_CREATE, &why);
    for (int i = 0; z && i < 4; i++) {
        const size_t size = i < 3 ? parts[i].size : strlen(sums);
        zip_file_add(z, parts[i].name, zip_source_buffer(z, parts[i].data, size, 0), 0);
        qs_sha256 h;
        qs_sha256_init(&h);
        qs_sha256_add(&h, parts[i].data, size);
        qs_sha256_hex(&h, hex);
        if (i < 3)
            snprintf(sums + strlen(sums), 100, "%s  %s\n", hex, parts[i].name);
    }
    CHECK(z && zip_close(z) == 0);
    proto_free(&file);
    proto_free(&g);
    proto_free(&t);
}

/* Locations are relative to the model's folder. What is in no entry is named. */
static void check_outside(void) {
    static char longest[2051];
    static const struct {
        const char *model, *location, *entry;
        int length; /* of the location, if other bytes follow it; 0: none do */
        bool found;
    } cases[] = {
        {"m.onnx", "w.bin", "w.bin", 0, true},        {"m.onnx", "other.bin", "w.bin", 0, false},
        {"m.onnx", "w.bin", "d/w.bin", 0, false},     {"m.onnx", "d/w.bin", "d/w.bin", 0, true},
        {"d/m.onnx", "w.bin", "d/w.bin", 0, true},    {"d/m.onnx", "w.bin", "w.bin", 0, false},
        {"d/m.onnx", "w.bin", "dw.bin", 0, false},    {"d/e/m.onnx", "w.bin", "d/e/w.bin", 0, true},
        {"d/e/m.onnx", "w.bin", "d/w.bin", 0, false}, {"m.onnx", "w", "w.bin", 2046, false},
        {"m.onnx", "w", "w.bin", 2047, false},        {"m.onnx", "w", "w.bin", 2048, false},
        {"d/m.onnx", "w", "w.bin", 2045, false},      {"d/m.onnx", "w", "w.bin", 2046, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char message[128];
        qsim_model *m = NULL;
        qsim_error e = {0};
        const int length = cases[i].length ? cases[i].length : (int)strlen(cases[i].location);
        memset(longest, 'w', sizeof(longest));
        memcpy(longest, cases[i].location, strlen(cases[i].location));
        longest[length] = 0;
        make_outside(cases[i].model, longest, cases[i].entry);
        CHECK_INT(qsim_model_load(NULL, PATH, NULL, &m, &e), cases[i].found ? QSIM_OK : QSIM_E_IO);
        snprintf(message, sizeof(message), "'w': external data '%.64s", longest);
        if (!cases[i].found && !strstr(e.message, message))
            CHECK_FAIL(e.message);
        qsim_model_free(m);
    }
    unlink(PATH);
}

/* Options of the manifest: texts, the last one of each name. */
static void check_options(void) {
    static const struct {
        const char *key, *value;
        int code;
    } options[] = {{"a", "first", QSIM_OK},     {"b", "kept", QSIM_OK},
                   {"\xff", "v", QSIM_E_VALUE}, {"c", "\xff", QSIM_E_VALUE},
                   {"a", "second", QSIM_OK},    {"", "", QSIM_OK}};
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    qsim_error e = {0};
    const void *data = NULL;
    size_t size = 0;
    save_weight(MODEL, 0);
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, PATH, QSIM_PACK_REPLACE, &e), QSIM_E_STATE);
    CHECK_STR(e.message, PATH ": a package needs a model");
    CHECK_INT(qsim_packer_model(w, MODEL, NULL, NULL), QSIM_OK);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        CHECK_INT(qsim_packer_option(w, options[i].key, options[i].value, &e), options[i].code);
        CHECK(!options[i].code || strstr(e.message, "is not UTF-8 text"));
    }
    CHECK_INT(qsim_packer_save(w, PATH, QSIM_PACK_REPLACE, NULL), QSIM_OK);
    CHECK_INT(qsim_package_open(NULL, PATH, 0, &p, NULL), QSIM_OK);
    CHECK_INT(qsim_package_data(p, qsim_package_find(p, "manifest.json"), &data, &size, NULL),
              QSIM_OK);
    char *text = calloc(1, size + 1);
    memcpy(text, data, size);
    CHECK(strstr(text, "\"options\": {\n    \"a\": \"second\",\n    \"b\": \"kept\",\n    \"\": "
                       "\"\"\n  }") != NULL);
    free(text);
    qsim_package_free(p);
    qsim_packer_free(w);
    unlink(MODEL);
    unlink(PATH);
}

/* ---- lack of memory ---- */

/* Packs the model and many entries, whose list and names need memory of their own, and opens. */
static int pack_many(qsim_ctx *ctx, const void *arg, qsim_error *e) {
    (void)arg;
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    char text[64] = "";
    int code = qsim_packer_create(ctx, &w, e);
    code = code ? code : qsim_packer_model(w, MODEL, NULL, NULL);
    for (int i = 0; i < 200 && !code; i++) {
        snprintf(text, sizeof(text), "a-name-that-takes-some-room-%020d", i);
        code = qsim_packer_add(w, QSIM_ROLE_DATA, text, text, sizeof(text), NULL);
        code = code ? code : qsim_packer_option(w, text, text, NULL);
    }
    code = code ? code : qsim_packer_save(w, PATH, QSIM_PACK_REPLACE, e);
    qsim_packer_free(w);
    code = code ? code : qsim_package_open(ctx, PATH, 0, &p, e);
    CHECK(code || qsim_package_count(p) == 203);
    qsim_package_free(p);
    return code;
}

static void check_memory(void) {
    save_weight(MODEL, 0);
    test_each_request(pack_many, NULL, 0);
    unlink(MODEL);
    unlink(PATH);
}

int main(void) {
    check_lists();
    check_entries();
    check_capitals();
    check_options();
    check_outside();
    check_main();
    check_short();
    check_refused();
    check_ratio();
    check_memory();
    return test_done();
}
