/* SPDX-License-Identifier: MIT */
/* Bounds of a package's directory: the shortest archives, and sizes at the limit and beyond it. */
#include "test.h"

#include <qsim/qsim.h>

#include <unistd.h>

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

int main(void) {
    check_main();
    check_short();
    check_refused();
    check_ratio();
    return test_done();
}
