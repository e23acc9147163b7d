/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a package: every readable entry is read, and its model loaded. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <qsim/qsim.h>

#include "fuzz.h"

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    qsim_package *p = NULL;
    qsim_model *m = NULL;
    (void)heap;
    if (fuzz_legal(qsim_package_open_memory(ctx, data, size, NULL, &p, NULL)) != QSIM_OK)
        return;
    for (int32_t i = 0; i < qsim_package_count(p); i++) {
        qsim_package_entry e = {.struct_size = sizeof(e)};
        const void *bytes;
        size_t n;
        if (qsim_package_get(p, i, &e) != QSIM_OK || qsim_package_find(p, e.name) != i)
            abort();
        int code = fuzz_legal(qsim_package_data(p, i, &bytes, &n, NULL));
        if (code == QSIM_OK && (n != e.bytes || (n > 0 && !bytes)))
            abort();
    }
    fuzz_legal(qsim_package_model(p, NULL, NULL, &m, NULL));
    qsim_package_free(p);
    qsim_model_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    return 0;
}

static int make_model(const char *path) {
    const int64_t dims[] = {1, 2};
    qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    int code = qsim_builder_create(NULL, 13, "g", &b, NULL);
    if (code == QSIM_OK) {
        qsim_builder_input(b, "x", QSIM_FLOAT, 2, dims, NULL);
        qsim_builder_node(b, "", "Relu", "r", "x", "y");
        qsim_builder_output(b, "y", QSIM_FLOAT, 2, dims, NULL);
        code = qsim_builder_finish(b, &m, NULL);
    }
    if (code == QSIM_OK)
        code = qsim_model_save(m, path, &replace, NULL);
    qsim_model_free(m);
    qsim_builder_free(b);
    return code;
}

static int make_package(const char *path, int32_t flags, size_t blank) {
    static const uint8_t zeros[300000];
    qsim_packer *w = NULL;
    int code = make_model(path);
    if (code == QSIM_OK)
        code = qsim_packer_create(NULL, &w, NULL);
    if (code == QSIM_OK)
        code = qsim_packer_model(w, path, "m", NULL);
    if (code == QSIM_OK)
        code = qsim_packer_add(w, QSIM_ROLE_LABELS, NULL, "a\nb\n", 4, NULL);
    if (code == QSIM_OK && blank > 0)
        code = qsim_packer_add(w, QSIM_ROLE_DATA, "z", zeros, blank, NULL);
    if (code == QSIM_OK)
        code = qsim_packer_save(w, path, flags | QSIM_PACK_REPLACE, NULL);
    qsim_packer_free(w);
    return code;
}

/* A stored and a deflated package, and one with a file that inflates to several blocks. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    char path[] = "fuzz-zip-XXXXXX";
    int fd = index < 3 ? mkstemp(path) : -1;
    size_t size = 0;
    qsim_file *f = NULL;
    if (fd < 0)
        return 0;
    close(fd);
    if (make_package(path, index ? QSIM_PACK_DEFLATE : 0, index == 2 ? 300000 : 0) != QSIM_OK ||
        qsim_file_open(NULL, path, QSIM_FILE_COPY, &f, NULL) != QSIM_OK)
        abort();
    size = qsim_file_size(f);
    if (size > capacity)
        abort();
    memcpy(buffer, qsim_file_data(f), size);
    qsim_file_close(f);
    unlink(path);
    return size;
}
