/* SPDX-License-Identifier: MIT */
/* Wrong arguments of each call on files, arrays, archives and packages: nothing but ARGUMENT. Then
 * what packages are read by, on either side of each bound: JSON, names, the zip's directory. */
#include "test.h"

#include "base/ctx.h"
#include "kernel/context.h"
#include "package/archive.h"

#include <qsim/qsim.h>

#include <unistd.h>

#define BYTES "abc"

static void files(void) {
    qsim_file *f = NULL;
    const qsim_bytes piece = {BYTES, 3};
    CHECK_INT(qsim_file_open(NULL, NULL, 0, &f, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_file_open(NULL, "f", 0, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_file_open(NULL, "f", 64, &f, NULL), QSIM_E_ARGUMENT);
    CHECK(qsim_file_data(NULL) == NULL && qsim_file_size(NULL) == 0);
    qsim_file_close(NULL);
    CHECK_INT(qsim_file_write(NULL, NULL, 0, &piece, 1, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_file_write(NULL, "f", 64, &piece, 1, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_file_write(NULL, "f", 0, NULL, 1, NULL), QSIM_E_ARGUMENT);
    CHECK(access("f", F_OK) != 0);
}

static void models(qsim_package *p) {
    qsim_model *m = NULL;
    const qsim_load_options none = {.struct_size = 0};
    CHECK_INT(qsim_model_load(NULL, NULL, NULL, &m, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_load(NULL, "m", NULL, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK(qsim_model_load(NULL, "m", &none, &m, NULL) < 0);
    CHECK_INT(qsim_model_load_memory(NULL, NULL, 3, NULL, &m, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_load_memory(NULL, BYTES, 3, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK(qsim_model_load_memory(NULL, NULL, 0, NULL, &m, NULL) < 0);
    CHECK(qsim_model_load_memory(NULL, BYTES, 3, &none, &m, NULL) < 0);
    CHECK_INT(qsim_package_model(NULL, NULL, NULL, &m, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_model(p, NULL, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK(qsim_package_model(p, NULL, &none, &m, NULL) < 0);
    CHECK(m == NULL);
}

static void arrays(void) {
    qsim_array a = {.struct_size = sizeof(a)}, small = {.struct_size = 1};
    qsim_npz *z = NULL;
    CHECK_INT(qsim_idx_parse(BYTES, 3, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_idx_parse(BYTES, 3, &small, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_idx_parse(NULL, 3, &a, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_open(NULL, NULL, 3, &z, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_open(NULL, BYTES, 3, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK(qsim_npz_open(NULL, NULL, 0, &z, NULL) < 0);
    CHECK(qsim_npz_count(NULL) == 0 && qsim_npz_name(NULL, 0) == NULL);
    CHECK_INT(qsim_npz_array(NULL, 0, &a), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_npz_read(NULL, 0, NULL, 0, NULL), QSIM_E_ARGUMENT);
}

static void packages(qsim_package *p) {
    qsim_package *out = NULL;
    qsim_package_entry e = {.struct_size = sizeof(e)};
    const void *data;
    size_t size;
    CHECK_INT(qsim_package_open(NULL, NULL, 0, &out, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_open(NULL, "p", 0, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_open(NULL, "p", 64, &out, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_open_memory(NULL, NULL, 3, NULL, &out, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_open_memory(NULL, BYTES, 3, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK(qsim_package_open_memory(NULL, NULL, 0, NULL, &out, NULL) < 0);
    CHECK_INT(qsim_package_get(NULL, 0, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_get(p, 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_get(p, -1, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_get(p, qsim_package_count(p), &e), QSIM_E_ARGUMENT);
    CHECK(qsim_package_count(NULL) == 0);
    CHECK(qsim_package_find(NULL, "a") < 0 && qsim_package_find(p, NULL) < 0);
    CHECK(qsim_package_find(p, "nowhere") < 0);
    CHECK(qsim_package_find_role(NULL, QSIM_ROLE_MODEL) < 0);
    CHECK(qsim_package_find_role(NULL, QSIM_ROLE_DATA) < 0);
    CHECK(qsim_package_find_role(p, 999) < 0);
    CHECK_INT(qsim_package_data(NULL, 0, &data, &size, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_data(p, 0, NULL, &size, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_data(p, 0, &data, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_data(p, -1, &data, &size, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_data(p, 999, &data, &size, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_unpack(NULL, "d", 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_unpack(p, NULL, 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_package_unpack(p, "d", 64, NULL), QSIM_E_ARGUMENT);
    CHECK(access("d", F_OK) != 0);
}

static void packers(qsim_packer *w) {
    CHECK_INT(qsim_packer_create(NULL, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_model(NULL, "m", NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_model(w, NULL, NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_add(NULL, QSIM_ROLE_DATA, "a", BYTES, 3, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "a", NULL, 3, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_add(w, -1, "a", BYTES, 3, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_add(w, 999, "a", BYTES, 3, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_option(NULL, "k", "v", NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_option(w, NULL, "v", NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_option(w, "k", NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_save(NULL, "p", 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_save(w, NULL, 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_packer_save(w, "p", 64, NULL), QSIM_E_ARGUMENT);
}

/* A package of one small model. */
static qsim_package *package(void) {
    const char *model = "package-calls.onnx", *path = "package-calls.zip";
    const qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_packer *w = NULL;
    qsim_package *p = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2]");
    qsim_builder_node(b, "", "Relu", "", "x", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(m, model, &replace, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    packers(w);
    CHECK_INT(qsim_packer_model(w, model, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, path, QSIM_PACK_REPLACE, NULL), QSIM_OK);
    CHECK_INT(qsim_package_open(NULL, path, 0, &p, NULL), QSIM_OK);
    qsim_packer_free(w);
    qsim_model_free(m);
    qsim_builder_free(b);
    unlink(path);
    return p;
}

static int open_limited(const char *path, uint64_t entries, uint64_t ratio, qsim_error *e) {
    const qsim_limits limits = {.struct_size = sizeof(limits), .entries = entries, .ratio = ratio};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .limits = &limits};
    qsim_ctx *ctx = NULL;
    qsim_package *p = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    const int code = qsim_package_open(ctx, path, 0, &p, e);
    qsim_package_free(p);
    qsim_ctx_free(ctx);
    return code;
}

/* A package at its context's limits opens, one beyond them is refused by their names. */
static void limits(const qsim_package *small) {
    static uint8_t zeros[33 << 20];
    const char *path = "package-limits.zip";
    const uint64_t count = (uint64_t)qsim_package_count(small);
    qsim_packer *w = NULL;
    qsim_error e;
    char text[64];
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, "package-calls.onnx", NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, path, QSIM_PACK_REPLACE, NULL), QSIM_OK);
    CHECK_INT(open_limited(path, count, 1, &e), QSIM_OK);
    CHECK_INT(open_limited(path, count - 1, 1, &e), QSIM_E_LIMIT);
    snprintf(text, sizeof(text), "'entries' is %d, %d are", (int)count - 1, (int)count);
    CHECK(strstr(e.message, text) != NULL);
    /* 66 MiB of zeros: 64 are always allowed, the rest by a ratio of more than 10. */
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "a", zeros, sizeof(zeros), NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "b", zeros, sizeof(zeros), NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, path, QSIM_PACK_REPLACE | QSIM_PACK_DEFLATE, NULL), QSIM_OK);
    CHECK_INT(open_limited(path, 0, 0, &e), QSIM_OK);
    CHECK_INT(open_limited(path, 0, 1, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "1 times") && strstr(e.message, "'ratio'"));
    qsim_packer_free(w);
    unlink(path);
    unlink("package-calls.onnx");
}

/* ---- JSON ---- */

static const char *const good_json[] = {
    "0",
    "-0",
    "9",
    "-9.0",
    "1.50",
    "10e5",
    "1E+05",
    "2e-7",
    "[]",
    "{}",
    "[ ]",
    "{ }",
    "true",
    "false",
    "null",
    "\"\"",
    " \t\n\r1 \t\n\r",
    "[1,2]",
    "[ 1 , [ ] ]",
    "{\"a\":1}",
    "{ \"a\" : [ { } ] , \"\" : null }",
    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u09aF\\uFfa0\"",
    "\" \177\xc3\xa9\"",
};
static const char *const bad_json[] = {
    "",
    " ",
    "-",
    "--1",
    "+1",
    "01",
    "-01",
    "00",
    ".5",
    "1.",
    "1.e5",
    "1e",
    "1e+",
    "1e-",
    "1e+-1",
    "1ee1",
    "1/",
    "1:",
    "/",
    ":",
    "1 2",
    "tru",
    "truE",
    "truer",
    "fals",
    "nul",
    "nulll",
    "[",
    "]",
    "[1",
    "[1,",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[1}",
    "{",
    "}",
    "{\"a\"",
    "{\"a\":",
    "{\"a\":1",
    "{\"a\":1,",
    "{\"a\":1,}",
    "{\"a\" 1}",
    "{a:1}",
    "{1:1}",
    "{\"a\":1]",
    "\"",
    "\"a",
    "\"\\",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u\"",
    "\"\\u123\"",
    "\"\\u123",
    "\"\\u12/4\"",
    "\"\\u12:4\"",
    "\"\\u12@4\"",
    "\"\\u12G4\"",
    "\"\\u12`4\"",
    "\"\\u12g4\"",
    "\"\x1f\"",
    "\"\n\"",
    "\v1",
    "1\f",
    "\"\xff\"",
    "\"a\"b",
};

static bool json_ok(const char *text) {
    const size_t size = strlen(text);
    uint8_t *copy = exact_copy(text, size);
    const bool ok = qs_json_fault(copy, size) == NULL;
    if (!ok && size > 1) /* no beginning of a text that is wrong is read beyond its end */
        qs_json_fault(copy + 1, size - 1);
    free(copy);
    return ok;
}

static void json(void) {
    char deep[256];
    for (size_t i = 0; i < QS_COUNT(good_json); i++)
        if (!json_ok(good_json[i]))
            CHECK_FAIL(good_json[i]);
    for (size_t i = 0; i < QS_COUNT(bad_json); i++)
        if (json_ok(bad_json[i]))
            CHECK_FAIL(bad_json[i]);
    for (size_t depth = 63; depth <= 65; depth++) { /* at most 64 */
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        deep[2 * depth] = 0;
        CHECK_INT(json_ok(deep), depth <= 64);
    }
    deep[0] = 0; /* depth ends with a bracket */
    strcat(deep, "[");
    for (int i = 0; i < 70; i++)
        strcat(deep, i ? ",{}" : "{}");
    strcat(deep, "]");
    CHECK(json_ok(deep));
    CHECK(qs_json_fault((const uint8_t *)"\"\\\0\"", 4) != NULL); /* a NUL escapes nothing */
}

static void manifest(void) {
    static const struct {
        const char *text, *fault; /* a part of what is wrong */
        int64_t schema;
    } cases[] = {
        {"{\"schema\":1,\"model\":\"m.onnx\"}", NULL, 1},
        {" { \"model\" : \"m.onnx\" , \"x\" : {\"schema\":2} , \"schema\" : 0 } ", NULL, 0},
        {"{\"schema\":999999999999999999,\"model\":\"m.onnx\"}", NULL, 999999999999999999},
        {"{\"schema\":1000000000000000000,\"model\":\"m.onnx\"}", "schema", 0},
        {"{\"schema\":-1,\"model\":\"m.onnx\"}", "schema", 0},
        {"{\"schema\":1.5,\"model\":\"m.onnx\"}", "schema", 0},
        {"{\"schema\":\"1\",\"model\":\"m.onnx\"}", "schema", 0},
        {"{\"schema\":[],\"model\":\"m.onnx\"}", "schema", 0},
        {"{\"schema\":0,\"schema\":0,\"model\":\"m.onnx\"}", "or two", 0},
        {"{\"schema\":1,\"model\":1}", "not a string", 0},
        {"{\"schema\":1,\"model\":\"m.onnx\",\"model\":\"m.onnx\"}", "or two", 0},
        {"{\"schema\":1}", "has no \"model\"", 0},
        {"{\"schema\":1,\"models\":\"m.onnx\",\"mode\":\"m.onnx\",\"nodel\":\"\"}", "no \"model\"",
         0},
        {"{\"model\":\"m.onnx\"}", "has no \"schema\"", 0},
        {"{}", "has no \"schema\"", 0},
        {"[\"schema\",1]", "not a JSON object", 0},
        {"{\"schema\":1,\"model\":\"m.onnx\"", "not well-formed", 0},
    };
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        const size_t size = strlen(cases[i].text);
        uint8_t *copy = exact_copy(cases[i].text, size);
        const uint8_t *model = NULL;
        size_t model_size = 0;
        int64_t schema = 0;
        const char *fault = qs_manifest_read(copy, size, &schema, &model, &model_size);
        if (cases[i].fault)
            CHECK(fault && strstr(fault, cases[i].fault));
        else
            CHECK(!fault && schema == cases[i].schema && model_size == 6 &&
                  memcmp(model, "m.onnx", 6) == 0);
        free(copy);
    }
}

/* ---- names of entries ---- */

static void names(void) {
    static const char *const good[] = {
        "a",    "a/b",  "A.b c/d-e_f", "con1",     "com", "com10", "coma", "com1a", "lpt",  "xcon",
        "icon", "nula", "conin",       "\xc3\xa9", " a",  ".a",    "a..b", "a/.b",  "comx",
    };
    static const char *const bad[] = {
        "",     "/",      "a/",   "/a",      "a//b",      ".",     "..",   "./a",
        "a/..", "a/../b", "a\\b", "a:b",     "a\x1f",     "a\177", "\xff", "a*",
        "a?",   "a\"",    "a<",   "a>",      "a|",        "a.",    "a ",   "a./b",
        "a /b", "con",    "CON",  "Con.txt", "con .x",    "a/prn", "aux",  "nul/a",
        "com0", "COM9.x", "lpt1", "conin$",  "CONOUT$.a",
    };
    static const struct {
        const char *a, *b;
        bool clash;
    } pairs[] = {
        {"a", "a", true},     {"a", "A", true},       {"Zz", "zZ", true}, {"a", "b", false},
        {"a", "ab", false},   {"a", "a/b", true},     {"A", "a/b", true}, {"a/b", "a/c", false},
        {"a/b", "a/B", true}, {"a/b", "a/b/c", true}, {"@", "`", false},  {"[", "{", false},
        {"a", "a.b", false},
    };
    char longest[1100];
    for (size_t i = 0; i < QS_COUNT(good); i++)
        if (qs_entry_name_fault(good[i]))
            CHECK_FAIL(good[i]);
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        char *name = exact_copy(bad[i], strlen(bad[i]) + 1);
        if (!qs_entry_name_fault(name))
            CHECK_FAIL(bad[i]);
        free(name);
    }
    for (size_t i = 0; i < QS_COUNT(pairs); i++) {
        CHECK_INT(qs_entry_names_clash(pairs[i].a, pairs[i].b), pairs[i].clash);
        CHECK_INT(qs_entry_names_clash(pairs[i].b, pairs[i].a), pairs[i].clash);
    }
    for (size_t n = 1023; n <= 1025; n++) { /* 1024 bytes, and 255 in each part */
        for (size_t i = 0; i < n; i++)
            longest[i] = i % 200 == 199 ? '/' : 'a';
        longest[n] = 0;
        CHECK_INT(qs_entry_name_fault(longest) == NULL, n <= 1024);
    }
    for (size_t n = 254; n <= 256; n++) {
        memset(longest, 'a', n);
        longest[n] = 0;
        CHECK_INT(qs_entry_name_fault(longest) == NULL, n <= 255);
        memcpy(longest + n, "/b", 3);
        CHECK_INT(qs_entry_name_fault(longest) == NULL, n <= 255);
    }
    CHECK_INT(qs_role_of_name("a.onnx"), QSIM_ROLE_MODEL);
    CHECK_INT(qs_role_of_name(".onnx"), QSIM_ROLE_DATA);
    CHECK_INT(qs_role_of_name("a.onnx1"), QSIM_ROLE_DATA);
    CHECK_INT(qs_role_of_name("labels.txt"), QSIM_ROLE_LABELS);
    for (int role = 0; role <= QSIM_ROLE_COUNT; role++)
        CHECK((qsim_role_name(role) != NULL) == (role < QSIM_ROLE_COUNT));
    CHECK(!qsim_role_name(-1) && !qs_name_of_role(-1) && !qs_name_of_role(QSIM_ROLE_COUNT));
}

/* ---- a zip's directory ---- */

/* Two entries, ab and c, of three stored bytes each. */
enum {
    LOCAL = 35,
    CENTRAL = LOCAL + 34,
    CENTRAL_1 = CENTRAL + 48,
    END = CENTRAL_1 + 47,
    ALL = END + 22
};

static void put(uint8_t *at, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

/* Fields from the flags on, which both headers have; crc is nobody's here. */
static void put_shared(uint8_t *at, uint32_t name) {
    put(at + 8, 0x12345678, 4);
    put(at + 12, 3, 4);
    put(at + 16, 3, 4);
    put(at + 20, name, 2);
}

static void make_archive(uint8_t data[ALL]) {
    static const char *const texts[] = {"abxyz", "cuvw"};
    memset(data, 0, ALL);
    for (int i = 0; i < 2; i++) {
        uint8_t *local = data + i * LOCAL, *central = data + (i ? CENTRAL_1 : CENTRAL);
        const size_t name = i ? 1 : 2;
        memcpy(local, "PK\3\4", 4);
        put_shared(local + 6, (uint32_t)name);
        memcpy(local + 30, texts[i], name + 3);
        memcpy(central, "PK\1\2", 4);
        put_shared(central + 8, (uint32_t)name);
        put(central + 42, i ? LOCAL : 0, 4);
        memcpy(central + 46, texts[i], name);
    }
    memcpy(data + END, "PK\5\6", 4);
    put(data + END + 8, 2, 2);
    put(data + END + 10, 2, 2);
    put(data + END + 12, END - CENTRAL, 4);
    put(data + END + 16, CENTRAL, 4);
}

/* Reads a directory from memory that ends with it. */
static int directory(const uint8_t *data, size_t size, qsim_error *e) {
    qsim_ctx *ctx = NULL;
    uint8_t *copy = exact_copy(data, size);
    CHECK_INT(qs_ctx_hold(NULL, &ctx, NULL), QSIM_OK);
    qsim_package p = {.ctx = ctx, .name = "p", .data = copy, .size = size};
    qs_arena_init(&p.arena, ctx);
    const int code = qs_zip_directory(&p, e);
    if (!code)
        CHECK(p.count == 2 && strcmp(p.members[1].name, "c") == 0 && p.members[1].packed >= copy &&
              p.members[1].packed < copy + size);
    qs_arena_free(&p.arena);
    qs_ctx_drop(ctx);
    free(copy);
    return code;
}

/* Fields of the second entry and of the end: where they are, and what comes of a value there. */
#define BOTH(field) LOCAL + 6 + (field), CENTRAL_1 + 8 + (field)
static const struct {
    int at, also, bytes; /* also: where the value goes, too; 0: nowhere */
    uint32_t value;
    int code;
} fields[] = {
    {BOTH(0), 2, 0x2, QSIM_OK}, /* flags */
    {BOTH(0), 2, 0x8, QSIM_OK},
    {BOTH(0), 2, 0x1, QSIM_E_UNSUPPORTED},
    {BOTH(0), 2, 0x20, QSIM_E_UNSUPPORTED},
    {BOTH(0), 2, 0x40, QSIM_E_UNSUPPORTED},
    {BOTH(0), 2, 0x2000, QSIM_E_UNSUPPORTED},
    {LOCAL + 6, 0, 2, 0x2, QSIM_E_FORMAT},
    {BOTH(2), 2, 8, QSIM_OK}, /* method */
    {BOTH(2), 2, 1, QSIM_E_UNSUPPORTED},
    {BOTH(2), 2, 9, QSIM_E_UNSUPPORTED},
    {LOCAL + 8, 0, 2, 8, QSIM_E_FORMAT},
    {BOTH(8), 4, 7, QSIM_OK}, /* crc, which is checked with the bytes */
    {LOCAL + 14, 0, 4, 0, QSIM_E_FORMAT},
    {LOCAL + 18, 0, 4, 0, QSIM_E_FORMAT}, /* packed */
    {BOTH(12), 4, 2, QSIM_E_FORMAT},
    {BOTH(12), 4, 4, QSIM_E_FORMAT},
    {BOTH(12), 4, UINT32_MAX, QSIM_E_LIMIT},
    {LOCAL + 22, 0, 4, 0, QSIM_E_FORMAT}, /* size */
    {BOTH(16), 4, 4, QSIM_E_FORMAT},
    {BOTH(16), 4, UINT32_MAX, QSIM_E_LIMIT},
    {LOCAL + 26, 0, 2, 0, QSIM_E_FORMAT}, /* name */
    {LOCAL + 26, 0, 2, 2, QSIM_E_FORMAT},
    {LOCAL + 30, 0, 1, 'd', QSIM_E_FORMAT},
    {LOCAL + 30, CENTRAL_1 + 46, 1, 0, QSIM_E_VALUE},
    {LOCAL + 30, CENTRAL_1 + 46, 1, '/', QSIM_E_VALUE},
    {LOCAL + 28, 0, 2, 1, QSIM_E_FORMAT}, /* extra */
    {CENTRAL_1 + 30, 0, 2, 1, QSIM_E_FORMAT},
    {CENTRAL_1 + 32, 0, 2, 1, QSIM_E_FORMAT}, /* comment */
    {CENTRAL + 32, 0, 2, 1, QSIM_E_FORMAT},
    {CENTRAL_1 + 34, 0, 2, 1, QSIM_E_UNSUPPORTED}, /* disk */
    {CENTRAL_1 + 40, 0, 2, 0120777, QSIM_OK},      /* a link's mode, of no system */
    {CENTRAL_1 + 42, 0, 4, LOCAL - 1, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, LOCAL + 1, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, 0, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, CENTRAL - 30, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, CENTRAL - 29, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, CENTRAL, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, CENTRAL + 1, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, ALL + 9, QSIM_E_FORMAT},
    {CENTRAL_1 + 42, 0, 4, UINT32_MAX, QSIM_E_LIMIT},
    {CENTRAL + 42, 0, 4, 1, QSIM_E_FORMAT},
    {LOCAL, 0, 1, 'p', QSIM_E_FORMAT}, /* signatures */
    {LOCAL + 3, 0, 1, 5, QSIM_E_FORMAT},
    {CENTRAL_1, 0, 1, 'p', QSIM_E_FORMAT},
    {CENTRAL_1 + 3, 0, 1, 3, QSIM_E_FORMAT},
    {END, 0, 1, 'p', QSIM_E_FORMAT},
    {END + 3, 0, 1, 5, QSIM_E_FORMAT},
    {END + 4, 0, 2, 1, QSIM_E_FORMAT}, /* disks */
    {END + 6, 0, 2, 1, QSIM_E_FORMAT},
    {END + 8, 0, 2, 1, QSIM_E_FORMAT}, /* entries */
    {END + 10, 0, 2, 1, QSIM_E_FORMAT},
    {END + 8, END + 10, 2, 0, QSIM_E_FORMAT},
    {END + 8, END + 10, 2, 1, QSIM_E_FORMAT},
    {END + 8, END + 10, 2, 3, QSIM_E_FORMAT},
    {END + 12, 0, 4, END - CENTRAL - 1, QSIM_E_FORMAT}, /* size and place of the directory */
    {END + 12, 0, 4, END - CENTRAL + 1, QSIM_E_FORMAT},
    {END + 16, 0, 4, CENTRAL - 1, QSIM_E_FORMAT},
    {END + 16, 0, 4, CENTRAL + 1, QSIM_E_FORMAT},
    {END + 16, 0, 4, END, QSIM_E_FORMAT},
    {END + 16, 0, 4, END + 1, QSIM_E_FORMAT},
    {END + 16, 0, 4, UINT32_MAX, QSIM_E_LIMIT},
    {END + 20, 0, 2, 1, QSIM_E_FORMAT},  /* comment */
    {CENTRAL + 46, 30, 1, 'C', QSIM_OK}, /* Cb */
};

static void directories(void) {
    uint8_t data[ALL];
    make_archive(data);
    CHECK_INT(directory(data, ALL, NULL), QSIM_OK);
    for (size_t n = 0; n < ALL; n++)
        CHECK_INT(directory(data, n, NULL), QSIM_E_FORMAT);
    qsim_error e = {0};
    data[0] = 'p';
    CHECK_INT(directory(data, ALL, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, "it does not start as a zip archive") != NULL);
    for (size_t i = 0; i < QS_COUNT(fields); i++) {
        make_archive(data);
        put(data + fields[i].at, fields[i].value, fields[i].bytes);
        if (fields[i].also)
            put(data + fields[i].also, fields[i].value, fields[i].bytes);
        const int code = directory(data, ALL, NULL);
        if (code != fields[i].code)
            fprintf(stderr, "case %zu\n", i);
        CHECK_INT(code, fields[i].code);
    }
    /* Modes of Unix: 0 is none; only regular files are read. */
    for (uint32_t type = 0; type < 16; type++) {
        make_archive(data);
        data[CENTRAL_1 + 5] = 3;
        put(data + CENTRAL_1 + 40, type << 12 | 0644, 2);
        CHECK_INT(directory(data, ALL, NULL), type == 0 || type == 8 ? QSIM_OK : QSIM_E_VALUE);
    }
    /* What deflate can make of three bytes: 1032 times as many. */
    for (uint32_t size = 4127; size <= 4128; size++) {
        make_archive(data);
        for (int i = 0; i < 2; i++) {
            put(data + (i ? CENTRAL_1 + 10 : LOCAL + 8), 8, 2);
            put(data + (i ? CENTRAL_1 + 24 : LOCAL + 22), size, 4);
        }
        CHECK_INT(directory(data, ALL, NULL), size / 1032 <= 3 ? QSIM_OK : QSIM_E_FORMAT);
    }
    /* Sizes behind the data: none of them in the local header, with the flag for it. */
    for (int zeros = 0; zeros < 8; zeros++)
        for (uint32_t flag = 0; flag <= 8; flag += 8) {
            make_archive(data);
            put(data + LOCAL + 6, flag, 2);
            put(data + CENTRAL_1 + 8, flag, 2);
            for (int i = 0; i < 3; i++)
                if (zeros >> i & 1)
                    put(data + LOCAL + 14 + 4 * i, 0, 4);
            CHECK_INT(directory(data, ALL, NULL),
                      zeros == 0 || (zeros == 7 && flag) ? QSIM_OK : QSIM_E_FORMAT);
        }
}

int main(void) {
    qsim_package *p = package();
    json();
    manifest();
    names();
    directories();
    limits(p);
    files();
    arrays();
    models(p);
    packages(p);
    qsim_package_free(p);
    return test_done();
}
