/* SPDX-License-Identifier: MIT */
/* Wrong arguments of each call on files, arrays, archives and packages: nothing but ARGUMENT. */
#include "test.h"

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

int main(void) {
    qsim_package *p = package();
    limits(p);
    files();
    arrays();
    models(p);
    packages(p);
    qsim_package_free(p);
    return test_done();
}
