/* SPDX-License-Identifier: MIT */
/* Models and whole files by name, "-" being standard input. */
#include "common/tool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <qsim/data.h>

/* The model from standard input, which uses these bytes until the program ends. */
static void *model_bytes;

static int read_stdin(const tool *t, void **data, size_t *size) {
    text all = {0};
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof(block), stdin)) > 0)
        text_add(&all, block, n);
    if (ferror(stdin)) {
        text_free(&all);
        return tool_fail(t, QSIM_E_IO, "-: cannot read standard input");
    }
    *data = all.data ? all.data : tool_alloc(1, 1);
    *size = all.size;
    return EXIT_OK;
}

int tool_read_all(const tool *t, const char *path, void **data, size_t *size) {
    qsim_file *file;
    qsim_error e;
    if (strcmp(path, "-") == 0)
        return read_stdin(t, data, size);
    if (qsim_file_open(t->ctx, path, 0, &file, &e))
        return tool_error(t, path, &e);
    *size = qsim_file_size(file);
    *data = tool_alloc(*size, 1);
    if (*size > 0)
        memcpy(*data, qsim_file_data(file), *size);
    qsim_file_close(file);
    return EXIT_OK;
}

int tool_load_model(const tool *t, const char *path, int32_t flags, qsim_model **model) {
    qsim_load_options options = {.struct_size = sizeof(options), .flags = flags};
    qsim_error e;
    struct stat st;
    int code;
    if (strcmp(path, "-") != 0) {
        if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
            options.flags |= QSIM_LOAD_COPY;
        code = qsim_model_load(t->ctx, path, &options, model, &e);
        return code ? tool_error(t, path, &e) : EXIT_OK;
    }
    size_t size;
    if (model_bytes)
        return tool_usage(t, NULL, "standard input holds one model, not two");
    code = read_stdin(t, &model_bytes, &size);
    if (code)
        return code;
    options.name = "(stdin)";
    code = qsim_model_load_memory(t->ctx, model_bytes, size, &options, model, &e);
    return code ? tool_error(t, options.name, &e) : EXIT_OK;
}
