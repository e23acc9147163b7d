/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <qsim/package.h>

#include "common/class_names.h"
#include "common/columns.h"
#include "common/feed.h"
#include "verbs.h"

/* Adds the file that an option names, with a role. */
static int add_file(const tool *t, qsim_packer *w, const char *name, int32_t role) {
    const char *path = args_value(&t->args, name);
    void *data;
    size_t size;
    qsim_error e;
    if (!path)
        return EXIT_OK;
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    if (qsim_packer_add(w, role, NULL, data, size, &e))
        code = tool_error(t, path, &e);
    free(data);
    return code;
}

/* The classes of a model whose first output is a row of scores, [N,K] or [N,K,1,..]; else 0. */
static size_t classes_of(const qsim_model *m) {
    qsim_value_info y = {.struct_size = sizeof(y)};
    if (qsim_model_output(m, 0, &y) || y.rank < 2 || y.dims[1] < 2)
        return 0;
    for (int32_t i = 2; i < y.rank; i++)
        if (y.dims[i] != 1)
            return 0;
    return (size_t)y.dims[1];
}

/* A classifier and --labels must agree: qsim run would leave the names out without a word. */
static int check_labels(const tool *t) {
    class_names names = {0};
    int code = args_has(&t->args, "labels") ? class_names_read(t, &names) : EXIT_OK;
    for (size_t i = 0; names.bytes && i < t->args.operand_count && code == EXIT_OK; i++) {
        qsim_model *m = NULL;
        code = tool_load_model(t, t->args.operands[i], 0, &m);
        const size_t classes = code == EXIT_OK ? classes_of(m) : 0;
        if (classes > 0)
            code = class_names_check(t, &names, classes);
        qsim_model_free(m);
    }
    class_names_free(&names);
    return code;
}

/* Reads what the packages among the operands have beside their models, to add it again. */
static int read_packages(const tool *t) {
    int code = EXIT_OK;
    for (size_t i = 0; i < t->args.operand_count && code == EXIT_OK; i++) {
        const char *path = t->args.operands[i];
        qsim_model *m = NULL;
        if (!tool_is_package(t, path))
            continue;
        code = tool_load_model(t, path, 0, &m);
        if (code == EXIT_OK && t->state->other_models.size)
            tool_warn(t, "%s: only its first model is taken, not %s", path,
                      t->state->other_models.data);
        qsim_model_free(m);
    }
    return code;
}

static int add_labels(const tool *t, qsim_packer *w) {
    const char *packaged = tool_packaged_labels(t);
    qsim_error e;
    if (args_has(&t->args, "labels") || !packaged)
        return add_file(t, w, "labels", QSIM_ROLE_LABELS);
    return qsim_packer_add(w, QSIM_ROLE_LABELS, NULL, packaged, strlen(packaged), &e)
               ? tool_error(t, "labels of the package", &e)
               : EXIT_OK;
}

static int add_preprocess(const tool *t, qsim_packer *w) {
    bool packaged;
    const char *spec = tool_preprocess(t, &packaged);
    preprocess checked;
    text line = {0};
    qsim_error e;
    if (!spec)
        return EXIT_OK;
    if (!preprocess_parse(t, spec, &checked))
        return EXIT_USAGE;
    text_printf(&line, "%s\n", spec);
    int code = qsim_packer_add(w, QSIM_ROLE_PREPROCESS, NULL, line.data, line.size, &e);
    text_free(&line);
    return code ? tool_error(t, "--preprocess", &e) : EXIT_OK;
}

/* Adds options to the manifest: how the package was made. */
static int add_options(const tool *t, qsim_packer *w) {
    bool packaged;
    const char *note = args_value(&t->args, "note"), *spec = tool_preprocess(t, &packaged);
    qsim_error e;
    int code = note ? qsim_packer_option(w, "note", note, &e) : QSIM_OK;
    if (!code && spec)
        code = qsim_packer_option(w, "preprocess", spec, &e);
    if (!code)
        code = qsim_packer_option(w, "compression",
                                  args_has(&t->args, "compress") ? "deflate" : "none", &e);
    return code ? tool_error(t, NULL, &e) : EXIT_OK;
}

static int collect(const tool *t, qsim_packer *w) {
    qsim_error e;
    int code = EXIT_OK;
    for (size_t i = 0; i < t->args.operand_count && code == EXIT_OK; i++)
        if (qsim_packer_model(w, t->args.operands[i], NULL, &e))
            code = tool_error(t, t->args.operands[i], &e);
    if (code == EXIT_OK)
        code = add_file(t, w, "calibration", QSIM_ROLE_CALIBRATION);
    if (code == EXIT_OK)
        code = read_packages(t);
    if (code == EXIT_OK)
        code = check_labels(t);
    if (code == EXIT_OK)
        code = add_labels(t, w);
    if (code == EXIT_OK)
        code = add_file(t, w, "report", QSIM_ROLE_REPORT);
    if (code == EXIT_OK)
        code = add_preprocess(t, w);
    return code == EXIT_OK ? add_options(t, w) : code;
}

void print_package(const tool *t, const qsim_package *p, const char *path) {
    static const char *const heading[] = {"entry", "role", "bytes", "sha256"};
    qsim_package_entry e = {.struct_size = sizeof(e)};
    table rows = {.columns = "llrl"};
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", path);
    json_array(&j, "entries");
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    for (int32_t i = 0; i < qsim_package_count(p); i++) {
        qsim_package_get(p, i, &e);
        json_object(&j, NULL);
        json_string(&j, "name", e.name);
        json_string(&j, "role", qsim_role_name(e.role));
        json_int(&j, "bytes", (int64_t)e.bytes);
        json_string(&j, "sha256", e.sha256);
        json_end(&j);
        table_cell(&rows, "%s", e.name);
        table_cell(&rows, "%s", qsim_role_name(e.role));
        table_cell(&rows, "%llu", (unsigned long long)e.bytes);
        table_cell(&rows, "%.16s", e.sha256);
    }
    json_end(&j);
    json_end(&j);
    if (t->json)
        tool_print_json(t, &j);
    else {
        text_free(&j.out);
        table_print(&rows, stdout);
    }
    table_free(&rows);
}

static int list(const tool *t, const char *path) {
    qsim_package *p;
    qsim_error e;
    if (qsim_package_open(t->ctx, path, 0, &p, &e))
        return tool_error(t, path, &e);
    print_package(t, p, path);
    qsim_package_free(p);
    return EXIT_OK;
}

static int run(tool *t) {
    const char *output = args_value(&t->args, "output");
    qsim_packer *w;
    qsim_error e;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, SIZE_MAX))
        return EXIT_USAGE;
    if (args_has(&t->args, "list"))
        return t->args.operand_count == 1
                   ? list(t, t->args.operands[0])
                   : tool_usage(t, NULL, "package: --list takes one package");
    if (!output)
        return tool_usage(t, "-o names the package", "package: --output is missing");
    if (strcmp(output, "-") == 0)
        return tool_usage(t, NULL, "package: a package is a file, not standard output");
    if (!tool_may_write(t, output, &code))
        return code;
    if (qsim_packer_create(t->ctx, &w, &e))
        return tool_error(t, NULL, &e);
    tool_catch_interrupt(t->ctx); /* leaves no half-written file beside the old one */
    code = collect(t, w);
    if (code == EXIT_OK && tool_interrupted())
        code = tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted, not written", output);
    int32_t flags = (t->force ? QSIM_PACK_REPLACE : 0) |
                    (args_has(&t->args, "compress") ? QSIM_PACK_DEFLATE : 0);
    if (code == EXIT_OK)
        code = tool_written(t, output, qsim_packer_save(w, output, flags, &e), &e);
    qsim_packer_free(w);
    return code == EXIT_OK ? list(t, output) : code;
}

static const option options[] = {
    {"output", "FILE", "the package to write", 'o', NULL},
    {"calibration", "FILE", "add the calibration that the model was quantized with", 0, NULL},
    {"preprocess", "LIST", "how inputs are made; eval, run and the rest then do so", 0, NULL},
    {"labels", "FILE", "add the names of the classes, one a line", 0, NULL},
    {"report", "FILE", "add an evaluation report, JSON", 0, NULL},
    {"note", "TEXT", "add a line of text to the manifest", 0, NULL},
    {"list", NULL, "list what is in a package (the operand), with hashes", 0, NULL},
    {"compress", NULL, "compress the entries; loading takes more memory then", 0, NULL},
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_package = {"package",
                           "MODEL... -o P.zip | --list P.zip",
                           "pack models, labels and preprocessing into one file",
                           options,
                           run,
                           true,
                           "int8.onnx --preprocess imagenet --labels names.txt -o model.zip"};
