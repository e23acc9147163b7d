/* SPDX-License-Identifier: MIT */
/*
 * Calls without a context make one of their own, with the system's memory. The system refuses each
 * request in turn, the context's first: the call ends with QSIM_E_NOMEM and makes nothing.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "process_memory.h"
#include "test.h"

#include <qsim/qsim.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>
#include <zip.h>

#define RECIPE  "fault-default.qrecipe"
#define MODEL   "fault-default.onnx"
#define PACKAGE "fault-default.zip"
#define NPZ     "fault-default.npz"
#define QCAL    "fault-default.qcal"

static long at, count; /* the request to refuse, from 1, or 0; requests up to now */

static bool refuses(void) {
    return at && ++count == at;
}

/* In place of the system's, for the library too. */
int posix_memalign(void **p, size_t align, size_t size) {
    static int (*real)(void **, size_t, size_t);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "posix_memalign");
        memcpy(&real, &found, sizeof(real));
    }
    return refuses() ? ENOMEM : real(p, align, size);
}

void *aligned_alloc(size_t align, size_t size) {
    static void *(*real)(size_t, size_t);
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "aligned_alloc");
        memcpy(&real, &found, sizeof(real));
    }
    return refuses() ? NULL : real(align, size);
}

/* A call that makes an object, or leaves NULL. */
#define MAKES(name, type, release, call)                                                           \
    static int name(qsim_error *e) {                                                               \
        type *out = NULL;                                                                          \
        const int code = call;                                                                     \
        CHECK((out != NULL) == (code == QSIM_OK));                                                 \
        release(out);                                                                              \
        return code;                                                                               \
    }

MAKES(create_ctx, qsim_ctx, qsim_ctx_free, qsim_ctx_create(NULL, &out, e))
MAKES(create_builder, qsim_builder, qsim_builder_free, qsim_builder_create(NULL, 13, "g", &out, e))
MAKES(create_packer, qsim_packer, qsim_packer_free, qsim_packer_create(NULL, &out, e))
MAKES(create_recipe, qsim_recipe, qsim_recipe_free, qsim_recipe_create(NULL, &out, e))
MAKES(create_observer, qsim_observer, qsim_observer_free, qsim_observer_create(NULL, NULL, &out, e))
MAKES(load_model, qsim_model, qsim_model_free, qsim_model_load(NULL, MODEL, NULL, &out, e))
MAKES(load_packed, qsim_model, qsim_model_free, qsim_model_load(NULL, PACKAGE, NULL, &out, e))
MAKES(load_recipe, qsim_recipe, qsim_recipe_free, qsim_recipe_load(NULL, RECIPE, &out, e))
MAKES(load_calibration, qsim_calibration, qsim_calibration_free,
      qsim_calibration_load(NULL, QCAL, &out, e))
MAKES(open_package, qsim_package, qsim_package_free, qsim_package_open(NULL, PACKAGE, 0, &out, e))
MAKES(open_file, qsim_file, qsim_file_close, qsim_file_open(NULL, MODEL, QSIM_FILE_COPY, &out, e))

/* The same from memory. */
static qsim_file *model, *package, *npz, *qcal;

#define BYTES(file) qsim_file_data(file), qsim_file_size(file)

MAKES(read_model, qsim_model, qsim_model_free,
      qsim_model_load_memory(NULL, BYTES(model), NULL, &out, e))
MAKES(read_package, qsim_package, qsim_package_free,
      qsim_package_open_memory(NULL, BYTES(package), "p", &out, e))
MAKES(read_npz, qsim_npz, qsim_npz_free, qsim_npz_open(NULL, BYTES(npz), &out, e))
MAKES(read_recipe, qsim_recipe, qsim_recipe_free,
      qsim_recipe_load_memory(NULL, "qsim-recipe 1\n", 14, "r", &out, e))
MAKES(read_calibration, qsim_calibration, qsim_calibration_free,
      qsim_calibration_load_memory(NULL, BYTES(qcal), "c", &out, e))

static int write_file(qsim_error *e) {
    const qsim_bytes piece = {"qsim-recipe 1\n", 14};
    return qsim_file_write(NULL, RECIPE, QSIM_FILE_REPLACE, &piece, 1, e);
}

static int describe(qsim_error *e) {
    qsim_operator_info info = {.struct_size = sizeof(info)};
    const int code = qsim_operator(NULL, 0, &info);
    if (code) /* it has no place for a message */
        snprintf(e->message, sizeof(e->message), "operator");
    return code;
}

static const struct {
    const char *name;
    int (*call)(qsim_error *e);
} calls[] = {
    {"qsim_ctx_create", create_ctx},
    {"qsim_builder_create", create_builder},
    {"qsim_packer_create", create_packer},
    {"qsim_recipe_create", create_recipe},
    {"qsim_observer_create", create_observer},
    {"qsim_model_load", load_model},
    {"qsim_model_load of a package", load_packed},
    {"qsim_recipe_load", load_recipe},
    {"qsim_calibration_load", load_calibration},
    {"qsim_package_open", open_package},
    {"qsim_file_open", open_file},
    {"qsim_model_load_memory", read_model},
    {"qsim_package_open_memory", read_package},
    {"qsim_npz_open", read_npz},
    {"qsim_recipe_load_memory", read_recipe},
    {"qsim_calibration_load_memory", read_calibration},
    {"qsim_file_write", write_file},
    {"qsim_operator", describe},
};

/* Arrays whose names need memory again and again. */
static void make_npz(void) {
    const qsim_tensor empty = {.dtype = QSIM_FLOAT, .rank = 1, .dims = (const int64_t[]){0}};
    static char header[QSIM_NPY_HEADER_MAX];
    const int size = qsim_npy_header(&empty, header);
    zip_t *z = zip_open(NPZ, ZIP_CREATE | ZIP_TRUNCATE, NULL);
    for (int i = 0; z && size > 0 && i < 100; i++) {
        char name[256];
        snprintf(name, sizeof(name), "%0200d.npy", i);
        zip_file_add(z, name, zip_source_buffer(z, header, (zip_uint64_t)size, 0), 0);
    }
    CHECK(z && zip_close(z) == 0);
}

static void make_files(void) {
    static const int64_t dims[] = {4};
    float values[4] = {1, 2, 3, 4};
    const qsim_tensor x = {QSIM_FLOAT, 1, dims, values, sizeof(values)};
    const qsim_save_options save = {.struct_size = sizeof(save), .flags = QSIM_SAVE_REPLACE};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_calibration *c = NULL;
    qsim_packer *w = NULL;
    qsim_error e = {0};
    CHECK_INT(write_file(&e), QSIM_OK);
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[4]");
    qsim_builder_node(b, "", "Neg", "n", "x", "y");
    qsim_builder_output_as(b, "y", "float[4]");
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(m, MODEL, &save, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &x, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_save(c, QCAL, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, MODEL, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, PACKAGE, QSIM_PACK_REPLACE, NULL), QSIM_OK);
    qsim_packer_free(w);
    qsim_calibration_free(c);
    qsim_model_free(m);
    qsim_builder_free(b);
    make_npz();
    CHECK_INT(qsim_file_open(NULL, NPZ, 0, &npz, NULL), QSIM_OK);
    CHECK_INT(qsim_file_open(NULL, MODEL, 0, &model, NULL), QSIM_OK);
    CHECK_INT(qsim_file_open(NULL, PACKAGE, 0, &package, NULL), QSIM_OK);
    CHECK_INT(qsim_file_open(NULL, QCAL, 0, &qcal, NULL), QSIM_OK);
}

int main(void) {
#if defined(__clang__)
    if (SANITIZED)
        test_skip("clang's sanitizers have allocators of the program, not of a library");
#endif
    make_files();
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        for (long n = 1; n; n = count < n ? 0 : n + 1) {
            qsim_error e = {0};
            at = n, count = 0;
            const int code = calls[i].call(&e);
            at = 0;
            const int expected = count < n ? QSIM_OK : QSIM_E_NOMEM;
            if (code != expected || (code && !e.message[0]))
                fprintf(stderr, "%s, request %ld: %s\n", calls[i].name, n, e.message);
            CHECK_INT(code, expected);
            CHECK(!code || e.message[0]);
            CHECK(n > 1 || count == 1); /* the context's request was the first */
        }
    qsim_file_close(model);
    qsim_file_close(package);
    qsim_file_close(npz);
    qsim_file_close(qcal);
    unlink(RECIPE);
    unlink(MODEL);
    unlink(PACKAGE);
    unlink(NPZ);
    unlink(QCAL);
    return test_done();
}
