/* SPDX-License-Identifier: MIT */
/*
 * What is read into memory and what is mapped: copies count for the context's memory, and do not
 * change with the file; maps do not count.
 */
#include "test.h"

#include <qsim/qsim.h>

#include <stdbool.h>
#include <unistd.h>

#define COUNT   300000 /* elements of the weight */
#define MODEL   "copies.onnx"
#define OUTSIDE "copies-outside.onnx"
#define DATA    OUTSIDE ".data"
#define PACKAGE "copies.zip"

static void make_files(void) {
    static float w[COUNT];
    static const int64_t dims[] = {COUNT};
    const qsim_tensor t = {QSIM_FLOAT, 1, dims, w, sizeof(w)};
    const qsim_save_options two = {.struct_size = sizeof(two),
                                   .flags = QSIM_SAVE_REPLACE | QSIM_SAVE_EXTERNAL};
    const qsim_save_options one = {.struct_size = sizeof(one), .flags = QSIM_SAVE_REPLACE};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_packer *p = NULL;
    for (int i = 0; i < COUNT; i++)
        w[i] = 1;
    unlink(DATA);
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[300000]");
    qsim_builder_constant(b, "w", &t);
    qsim_builder_node(b, "", "Add", "add", "x,w", "y");
    qsim_builder_output_as(b, "y", "float[300000]");
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(m, MODEL, &one, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(m, OUTSIDE, &two, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_create(NULL, &p, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(p, MODEL, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(p, PACKAGE, QSIM_PACK_REPLACE, NULL), QSIM_OK);
    qsim_packer_free(p);
    qsim_model_free(m);
    qsim_builder_free(b);
}

/* Into the elements at the end of the file. */
static void write_over(const char *path, int value) {
    FILE *f = fopen(path, "r+b");
    CHECK(f && fseek(f, -512, SEEK_END) == 0);
    for (int i = 0; f && i < 256; i++)
        fputc(value, f);
    CHECK(f && fclose(f) == 0);
}

/* Whether all elements of the weight are 1. */
static bool is_whole(const qsim_model *m) {
    static float w[COUNT];
    qsim_value_info v = {.struct_size = sizeof(v)};
    size_t ones = 0;
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        if (qsim_model_value(m, i, &v) == QSIM_OK && strcmp(v.name, "w") == 0)
            memcpy(w, v.data, sizeof(w)); /* not aligned in a file */
    for (size_t k = 0; k < COUNT; k++)
        ones += w[k] == 1;
    memset(w, 0, sizeof(w));
    return ones == COUNT;
}

/* Models: the data of either file that changes is not the model's, if that is a copy. */
static void check_models(qsim_ctx *ctx) {
    static const struct {
        const char *path, *changed;
    } files[] = {{MODEL, MODEL}, {OUTSIDE, DATA}, {PACKAGE, NULL}};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        for (int copy = 0; copy < 2; copy++) {
            const qsim_load_options o = {.struct_size = sizeof(o),
                                         .flags = copy ? QSIM_LOAD_COPY : 0};
            const uint64_t before = qsim_ctx_memory(ctx);
            qsim_model *m = NULL;
            CHECK_INT(qsim_model_load(ctx, files[i].path, &o, &m, NULL), QSIM_OK);
            CHECK((qsim_ctx_memory(ctx) - before >= COUNT * sizeof(float)) == copy);
            if (copy && files[i].changed)
                write_over(files[i].changed, 0);
            CHECK(is_whole(m));
            qsim_model_free(m);
        }
}

static void check_others(qsim_ctx *ctx) {
    make_files();
    for (int copy = 0; copy < 2; copy++) {
        const uint64_t before = qsim_ctx_memory(ctx);
        qsim_package *p = NULL;
        qsim_file *f = NULL;
        CHECK_INT(qsim_package_open(ctx, PACKAGE, copy ? QSIM_LOAD_COPY : 0, &p, NULL), QSIM_OK);
        CHECK((qsim_ctx_memory(ctx) - before >= COUNT * sizeof(float)) == copy);
        qsim_package_free(p);
        CHECK_INT(qsim_file_open(ctx, MODEL, copy ? QSIM_FILE_COPY : 0, &f, NULL), QSIM_OK);
        CHECK((qsim_ctx_memory(ctx) - before >= COUNT * sizeof(float)) == copy);
        const qsim_load_options o = {.struct_size = sizeof(o), .flags = copy ? QSIM_LOAD_COPY : 0};
        const uint64_t opened = qsim_ctx_memory(ctx);
        qsim_model *m = NULL;
        CHECK_INT(qsim_model_load_memory(ctx, qsim_file_data(f), qsim_file_size(f), &o, &m, NULL),
                  QSIM_OK);
        CHECK((qsim_ctx_memory(ctx) - opened >= COUNT * sizeof(float)) == copy);
        qsim_model_free(m);
        qsim_file_close(f);
        CHECK(qsim_ctx_memory(ctx) == before);
    }
}

int main(void) {
    const qsim_limits limits = {.struct_size = sizeof(limits), .memory = (uint64_t)1 << 30};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .limits = &limits, .threads = 1};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    make_files();
    check_models(ctx);
    check_others(ctx);
    qsim_ctx_free(ctx);
    unlink(MODEL);
    unlink(OUTSIDE);
    unlink(DATA);
    unlink(DATA "1");
    unlink(PACKAGE);
    return test_done();
}
