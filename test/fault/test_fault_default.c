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

#define RECIPE  "fault-default.qrecipe"
#define MODEL   "fault-default.onnx"
#define PACKAGE "fault-default.zip"
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

/* An object's: it is made, or NULL. */
#define MADE(type, release, call)                                                                  \
    {                                                                                              \
        type *out = NULL;                                                                          \
        const int code = call;                                                                     \
        CHECK((out != NULL) == (code == QSIM_OK));                                                 \
        release(out);                                                                              \
        return code;                                                                               \
    }

static int create_ctx(qsim_error *e) MADE(
    qsim_ctx, qsim_ctx_free,
    qsim_ctx_create(NULL, &out, e)) static int create_builder(qsim_error *e)
    MADE(qsim_builder, qsim_builder_free,
         qsim_builder_create(NULL, 13, "g", &out, e)) static int create_packer(qsim_error *e)
        MADE(qsim_packer, qsim_packer_free,
             qsim_packer_create(NULL, &out, e)) static int create_recipe(qsim_error *e)
            MADE(qsim_recipe, qsim_recipe_free,
                 qsim_recipe_create(NULL, &out, e)) static int create_observer(qsim_error *e)
                MADE(qsim_observer, qsim_observer_free,
                     qsim_observer_create(NULL, NULL, &out, e)) static int load_model(qsim_error *e)
                    MADE(qsim_model, qsim_model_free,
                         qsim_model_load(NULL, MODEL, NULL, &out,
                                         e)) static int load_packed(qsim_error *e)
                        MADE(qsim_model, qsim_model_free,
                             qsim_model_load(NULL, PACKAGE, NULL, &out,
                                             e)) static int load_recipe(qsim_error *e)
                            MADE(qsim_recipe, qsim_recipe_free,
                                 qsim_recipe_load(NULL, RECIPE, &out,
                                                  e)) static int load_calibration(qsim_error *e)
                                MADE(
                                    qsim_calibration, qsim_calibration_free,
                                    qsim_calibration_load(NULL, QCAL, &out,
                                                          e)) static int open_package(qsim_error *e)
                                    MADE(qsim_package, qsim_package_free,
                                         qsim_package_open(NULL, PACKAGE, 0, &out,
                                                           e)) static int open_file(qsim_error *e)
                                        MADE(qsim_file, qsim_file_close,
                                             qsim_file_open(NULL, MODEL, QSIM_FILE_COPY, &out, e))

    /* The same from memory. */
    static qsim_file *model,
    *package, *qcal;

static int read_model(qsim_error *e)
    MADE(qsim_model, qsim_model_free,
         qsim_model_load_memory(NULL, qsim_file_data(model), qsim_file_size(model), NULL, &out,
                                e)) static int read_package(qsim_error *e)
        MADE(qsim_package, qsim_package_free,
             qsim_package_open_memory(NULL, qsim_file_data(package), qsim_file_size(package), "p",
                                      &out, e)) static int read_npz(qsim_error *e)
            MADE(qsim_npz, qsim_npz_free,
                 qsim_npz_open(NULL, qsim_file_data(package), qsim_file_size(package), &out,
                               e)) static int read_recipe(qsim_error *e)
                MADE(qsim_recipe, qsim_recipe_free,
                     qsim_recipe_load_memory(NULL, "qsim-recipe 1\n", 14, "r", &out,
                                             e)) static int read_calibration(qsim_error *e)
                    MADE(qsim_calibration, qsim_calibration_free,
                         qsim_calibration_load_memory(NULL, qsim_file_data(qcal),
                                                      qsim_file_size(qcal), "c", &out, e))

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
    int code; /* that it ends with, with memory */
} calls[] = {
    {"qsim_ctx_create", create_ctx, QSIM_OK},
    {"qsim_builder_create", create_builder, QSIM_OK},
    {"qsim_packer_create", create_packer, QSIM_OK},
    {"qsim_recipe_create", create_recipe, QSIM_OK},
    {"qsim_observer_create", create_observer, QSIM_OK},
    {"qsim_model_load", load_model, QSIM_OK},
    {"qsim_model_load of a package", load_packed, QSIM_OK},
    {"qsim_recipe_load", load_recipe, QSIM_OK},
    {"qsim_calibration_load", load_calibration, QSIM_OK},
    {"qsim_package_open", open_package, QSIM_OK},
    {"qsim_file_open", open_file, QSIM_OK},
    {"qsim_model_load_memory", read_model, QSIM_OK},
    {"qsim_package_open_memory", read_package, QSIM_OK},
    {"qsim_npz_open", read_npz, QSIM_E_FORMAT}, /* its members are no arrays */
    {"qsim_recipe_load_memory", read_recipe, QSIM_OK},
    {"qsim_calibration_load_memory", read_calibration, QSIM_OK},
    {"qsim_file_write", write_file, QSIM_OK},
    {"qsim_operator", describe, QSIM_OK},
};

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
            const int expected = count < n ? calls[i].code : QSIM_E_NOMEM;
            if (code != expected || (code && !e.message[0]))
                fprintf(stderr, "%s, request %ld: %s\n", calls[i].name, n, e.message);
            CHECK_INT(code, expected);
            CHECK(!code || e.message[0]);
            CHECK(n > 1 || count == 1); /* the context's request was the first */
        }
    qsim_file_close(model);
    qsim_file_close(package);
    qsim_file_close(qcal);
    unlink(RECIPE);
    unlink(MODEL);
    unlink(PACKAGE);
    unlink(QCAL);
    return test_done();
}
