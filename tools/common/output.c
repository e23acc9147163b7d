/* SPDX-License-Identifier: MIT */
/* Checks, before any work, whether an output may be written, and saves models. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <qsim/data.h>

#include "common/folder.h"
#include "common/sample_files.h"
#include "common/system.h"

/* ---- an input is never replaced ---- */

/* Is the output the input itself, or a sample in the input folder? */
static bool covers(const char *input, const char *output) {
    if (!folder_is(input, strlen(input)))
        return system_same_file(input, output);
    const char *slash = strrchr(output, '/');
    char *parent = tool_copy(slash ? output : ".");
    if (slash)
        parent[slash == output ? 1 : slash - output] = 0;
    bool inside = system_same_file(parent, input) && sample_is_name(output);
    free(parent);
    return inside;
}

/* The same for an option's value: NAME=FILE, FILE,FILE or PACKAGE:MODEL. */
static bool names_output(const char *value, const char *output) {
    struct stat st;
    if (stat(value, &st) == 0)
        return covers(value, output);
    char *copy = tool_copy(value);
    bool found = false;
    for (size_t i = 0; copy[i] && !found; i++) {
        char c = copy[i];
        if (!strchr("=,:", c))
            continue;
        copy[i] = 0;
        found = covers(copy, output) || names_output(copy + i + 1, output);
        copy[i] = c;
    }
    free(copy);
    return found;
}

/* The input on the command line that this output would replace, or NULL. */
static const char *replaced_input(const tool *t, const char *output) {
    static const char *const options[] = {"data",   "input",  "calibration", "recipe",
                                          "config", "labels", "report",      "against"};
    const char *value;
    for (size_t i = 0; i < t->args.operand_count; i++)
        if (names_output(t->args.operands[i], output))
            return t->args.operands[i];
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        for (size_t k = 0; (value = args_repeated(&t->args, options[i], k)) != NULL; k++)
            if (names_output(value, output))
                return value;
    return NULL;
}

bool tool_refuses_input(const tool *t, const char *output, const char *input, int *code) {
    if (!input)
        return false;
    *code =
        tool_usage(t, "give the output a name of its own",
                   "%s: would replace an input (%s), which -f does not do either", output, input);
    return true;
}

/* ---- outputs ---- */

/* A file is made beside the output and then renamed, whether or not the output exists. */
static bool folder_takes_it(const tool *t, const char *path, const char *slash, int *code) {
    char *folder = tool_copy(slash ? path : ".");
    if (slash)
        folder[slash == path ? 1 : slash - path] = 0;
    const bool good = system_may_write_into(folder);
    if (!good)
        *code = tool_fail(t, QSIM_E_IO, "%s: cannot create a file in its folder: %s", path,
                          strerror(errno));
    free(folder);
    return good;
}

bool tool_may_write(const tool *t, const char *path, int *code) {
    struct stat st;
    if (strcmp(path, "-") == 0)
        return true;
    if (!path[0]) {
        *code = tool_usage(t, NULL, "the name of an output file is empty");
        return false;
    }
    const char *slash = strrchr(path, '/');
    if (slash && slash != path && !folder_is(path, (size_t)(slash - path))) {
        *code = tool_fail(t, QSIM_E_IO, "%s: the folder '%.*s' does not exist", path,
                          (int)(slash - path), path);
        return false;
    }
    if (stat(path, &st) != 0)
        return folder_takes_it(t, path, slash, code);
    if (S_ISDIR(st.st_mode)) {
        *code = tool_fail(t, QSIM_E_IO, "%s: is a directory", path);
        return false;
    }
    const char *input = replaced_input(t, path);
    if (tool_refuses_input(t, path, input, code))
        return false;
    if (t->force)
        return !S_ISREG(st.st_mode) || folder_takes_it(t, path, slash, code);
    qsim_error e = {.code = QSIM_E_EXISTS, .hint = "-f replaces it"};
    snprintf(e.message, sizeof(e.message), "the output exists");
    *code = tool_error(t, path, &e);
    return false;
}

int tool_write(const tool *t, const char *path, const void *data, size_t size) {
    qsim_error e;
    if (strcmp(path, "-") == 0)
        return fwrite(data, 1, size, stdout) == size ? EXIT_OK : EXIT_IO;
    qsim_bytes piece = {data, size};
    int flags = t->force ? QSIM_FILE_REPLACE : 0;
    return tool_written(t, path, qsim_file_write(t->ctx, path, flags, &piece, 1, &e), &e);
}

bool tool_may_write_model(const tool *t, const char *path, int *code) {
    static const struct {
        const char *suffix, *hint;
    } others[] = {
        {".zip", "qsim package makes a package of the ONNX file"},
        {".qcal", "qsim calibrate writes such files"},
        {".tflite", "the output is ONNX"},
        {".pt", "the output is ONNX"},
        {".pth", "the output is ONNX"},
        {".engine", "the output is ONNX"},
        {".npy", "qsim run writes arrays"},
    };
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof(others) / sizeof(*others); i++)
        if (strcmp(dot, others[i].suffix) == 0) {
            *code = tool_usage(t, others[i].hint, "%s: a model is written as ONNX, not as %s", path,
                               others[i].suffix);
            return false;
        }
    return tool_may_write(t, path, code);
}

static int save_model(const tool *t, const qsim_model *model, const char *path) {
    qsim_save_options options = {.struct_size = sizeof(options),
                                 .flags = t->force ? QSIM_SAVE_REPLACE : 0};
    qsim_error e;
    size_t size = 0;
    if (strcmp(path, "-") != 0)
        return tool_written(t, path, qsim_model_save(model, path, &options, &e), &e);
    if (qsim_model_save_memory(model, NULL, 0, &size, &e))
        return tool_error(t, path, &e);
    void *bytes = tool_alloc(size, 1);
    int code = qsim_model_save_memory(model, bytes, size, &size, &e)
                   ? tool_error(t, path, &e)
                   : tool_write(t, path, bytes, size);
    free(bytes);
    return code;
}

int tool_save_model(const tool *t, const qsim_model *model, const char *path) {
    qsim_ctx *before = tool_begin_work(t->ctx);
    const int code = save_model(t, model, path);
    tool_end_work(t->ctx, before);
    return code;
}
