/* SPDX-License-Identifier: MIT */
/* Reads and writes models and files: "-" is stdin or stdout, "P.zip:NAME" a packaged model. */
#include "common/tool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <qsim/data.h>
#include <qsim/package.h>

#include "common/system.h"

/* Refuses more bytes than a pipe may have, than --memory allows or than the machine has. */
static int check_stdin(const tool *t, size_t size) {
    qsim_limits limits = {.struct_size = sizeof(limits)};
    (void)qsim_ctx_limits(t->ctx, &limits);
    if (size > limits.stream)
        return tool_fail(t, QSIM_E_LIMIT,
                         "-: the limit 'stream' is %llu bytes: standard input has more",
                         (unsigned long long)limits.stream);
    if (limits.memory && size > limits.memory)
        return tool_fail(t, QSIM_E_NOMEM,
                         "-: the limit 'memory' is %llu bytes: standard input has more",
                         (unsigned long long)limits.memory);
    if ((double)size > system_memory())
        return tool_fail(t, QSIM_E_NOMEM,
                         "-: this machine has %.0f MB of memory: standard input has more",
                         system_memory() / 1e6);
    return EXIT_OK;
}

static int read_stdin(const tool *t, void **data, size_t *size) {
    text all = {0};
    char block[65536];
    size_t n;
    int code = EXIT_OK;
    while (!code && (n = fread(block, 1, sizeof(block), stdin)) > 0) {
        text_add(&all, block, n);
        code = check_stdin(t, all.size);
    }
    if (!code && ferror(stdin))
        code = tool_fail(t, QSIM_E_IO, "-: cannot read standard input");
    if (code) {
        text_free(&all);
        return code;
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

const char *tool_preprocess(const tool *t, bool *packaged) {
    const char *given = args_value(&t->args, "preprocess");
    *packaged = !given && t->state->preprocess;
    return given ? given : t->state->preprocess;
}

const char *tool_packaged_labels(const tool *t) {
    return t->state->labels;
}

/* Keeps a text of the package, unless an earlier package has one; notes a different one. */
static int keep_text(const tool *t, qsim_package *p, const char *path, int32_t role, char **kept) {
    int32_t index = qsim_package_find_role(p, role);
    const void *data;
    size_t size;
    qsim_error e;
    if (index < 0)
        return EXIT_OK;
    if (qsim_package_data(p, index, &data, &size, &e))
        return tool_error(t, path, &e);
    char *copy = tool_alloc(size + 1, 1);
    memcpy(copy, data, size);
    if (role == QSIM_ROLE_PREPROCESS)
        copy[strcspn(copy, "\r\n")] = 0;
    if (*kept && strcmp(*kept, copy) != 0)
        tool_warn(t, "%s: its %s differs from that of the first package, which is used", path,
                  qsim_role_name(role));
    if (*kept)
        free(copy);
    else
        *kept = copy;
    return EXIT_OK;
}

/* Lists the models of a package but `name` (NULL: the manifest's), as operands name them. */
static void list_others(const tool *t, const qsim_package *p, const char *path, const char *name) {
    qsim_package_entry e = {.struct_size = sizeof(e)};
    text *out = &t->state->other_models;
    const int32_t shown =
        name ? qsim_package_find(p, name) : qsim_package_find_role(p, QSIM_ROLE_MODEL);
    out->size = 0;
    for (int32_t i = 0; i < qsim_package_count(p); i++)
        if (i != shown && qsim_package_get(p, i, &e) == QSIM_OK && e.role == QSIM_ROLE_MODEL)
            text_printf(out, "%s%s:%s", out->size ? ", " : "", path, e.name);
}

/* Loads the model `name` (NULL: the manifest's) and closes the package. */
static int load_packaged(const tool *t, qsim_package *p, const char *path, const char *name,
                         int32_t flags, qsim_model **model) {
    qsim_load_options options = {.struct_size = sizeof(options), .flags = flags};
    qsim_error e;
    list_others(t, p, path, name);
    int code = qsim_package_model(p, name, &options, model, &e);
    if (code == QSIM_E_NOT_FOUND && !e.hint[0] && t->state->other_models.size)
        snprintf(e.hint, sizeof(e.hint), "there is %.160s", t->state->other_models.data);
    code = code ? tool_error(t, path, &e) : EXIT_OK;
    if (code == EXIT_OK)
        code = keep_text(t, p, path, QSIM_ROLE_PREPROCESS, &t->state->preprocess);
    if (code == EXIT_OK)
        code = keep_text(t, p, path, QSIM_ROLE_LABELS, &t->state->labels);
    qsim_package_free(p);
    if (code) {
        qsim_model_free(*model);
        *model = NULL;
    }
    return code;
}

static int open_package(const tool *t, const char *path, const char *name, int32_t flags,
                        qsim_model **model) {
    qsim_package *p;
    qsim_error e;
    if (qsim_package_open(t->ctx, path, flags & QSIM_LOAD_COPY, &p, &e))
        return tool_error(t, path, &e);
    return load_packaged(t, p, path, name, flags, model);
}

static int load_stdin(const tool *t, int32_t flags, qsim_model **model) {
    qsim_load_options options = {.struct_size = sizeof(options), .name = "(stdin)", .flags = flags};
    qsim_package *p;
    qsim_error e;
    size_t size = 0;
    if (t->state->model_bytes)
        return tool_usage(t, NULL, "standard input holds one model, not two");
    int code = read_stdin(t, &t->state->model_bytes, &size);
    const void *bytes = t->state->model_bytes;
    if (code)
        return code;
    if (qsim_package_sniff(bytes, size)) {
        if (qsim_package_open_memory(t->ctx, bytes, size, options.name, &p, &e))
            return tool_error(t, options.name, &e);
        return load_packaged(t, p, options.name, NULL, flags, model);
    }
    code = qsim_model_load_memory(t->ctx, bytes, size, &options, model, &e);
    return code ? tool_error(t, options.name, &e) : EXIT_OK;
}

bool tool_is_package(const tool *t, const char *path) {
    qsim_file *file;
    if (qsim_file_open(t->ctx, path, 0, &file, NULL))
        return false;
    bool yes = qsim_package_sniff(qsim_file_data(file), qsim_file_size(file));
    qsim_file_close(file);
    return yes;
}

/* Whether saving an output over 2 GB replaces or removes `file`: its data has one of ten names. */
static bool is_data_of(const char *output, const char *file) {
    bool same = false;
    for (int i = 0; i < 10 && !same; i++) {
        text data = {0};
        text_printf(&data, "%s.data%.*s", output, i ? 1 : 0, &"0123456789"[i]);
        same = system_same_file(data.data, file);
        text_free(&data);
    }
    return same;
}

/* Refuses to overwrite the model's external data, like the model itself. */
static int guard_external(const tool *t, const char *path, const qsim_model *m) {
    const char *slash = strrchr(path, '/'), *location;
    int code = EXIT_OK;
    for (int32_t i = 0; !code && (location = qsim_model_external_file(m, i)) != NULL; i++) {
        text file = {0};
        text_printf(&file, "%.*s%s", slash ? (int)(slash - path + 1) : 0, path, location);
        for (size_t k = 0; !code && k < t->args.given_count; k++) {
            const char *value = t->args.given[k].value;
            if (value && (system_same_file(value, file.data) || is_data_of(value, file.data)))
                (void)tool_refuses_input(t, value, file.data, &code);
        }
        text_free(&file);
    }
    return code;
}

int tool_list_model(const tool *t, const char *path, const qsim_model *model) {
    const int64_t nodes = qsim_model_node_count(model),
                  bytes = nodes < 0 ? 0 : qsim_model_bytes(model);
    if (nodes == QSIM_E_CANCELLED || bytes == QSIM_E_CANCELLED)
        return tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted", path);
    if (nodes >= 0 && bytes >= 0)
        return EXIT_OK;
    return tool_fail(t, QSIM_E_NOMEM, "%s: out of memory for a list of what is in it", path);
}

/* Refuses a folder in place of a model, with a hint at the file in it. */
static int refuse_folder(const tool *t, const char *path) {
    static const struct {
        const char *name, *hint;
    } known[] = {{"model.onnx", "the model in it is model.onnx"},
                 {"saved_model.pb", "a TensorFlow SavedModel: convert it to ONNX first: tf2onnx"},
                 {"pytorch_model.bin", "a PyTorch model: torch.onnx.export writes ONNX"},
                 {"model.safetensors", "weights without a graph: torch.onnx.export writes ONNX"}};
    qsim_error e = {.code = QSIM_E_IO};
    struct stat st;
    snprintf(e.message, sizeof(e.message), "is a directory");
    for (size_t i = 0; i < sizeof(known) / sizeof(*known) && !e.hint[0]; i++) {
        text file = {0};
        text_printf(&file, "%s/%s", path, known[i].name);
        if (stat(file.data, &st) == 0)
            snprintf(e.hint, sizeof(e.hint), "%s", known[i].hint);
        text_free(&file);
    }
    return tool_error(t, path, &e);
}

static int load_model(const tool *t, const char *path, int32_t flags, qsim_model **model) {
    qsim_load_options options = {.struct_size = sizeof(options), .flags = flags};
    qsim_error e;
    struct stat st;
    *model = NULL;
    tool_assume(t, NULL);
    if (strcmp(path, "-") == 0)
        return load_stdin(t, flags, model);
    const char *colon = strrchr(path, ':');
    if (stat(path, &st) != 0 && colon) {
        char *package = tool_copy(path);
        package[colon - path] = 0;
        if (tool_is_package(t, package)) {
            int code = open_package(t, package, colon + 1, flags, model);
            free(package);
            return code;
        }
        free(package);
    }
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return refuse_folder(t, path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        options.flags |= QSIM_LOAD_COPY;
    else if (tool_is_package(t, path))
        return open_package(t, path, NULL, flags, model);
    if (qsim_model_load(t->ctx, path, &options, model, &e)) {
        if (e.code == QSIM_E_UNSUPPORTED && !flags && args_option(t->args.verb, "inspect"))
            snprintf(e.hint, sizeof(e.hint),
                     "--inspect describes the model, --ops without a model lists what can be run");
        return tool_error(t, path, &e);
    }
    return guard_external(t, path, *model);
}

int tool_load_model(const tool *t, const char *path, int32_t flags, qsim_model **model) {
    qsim_ctx *before = tool_begin_work(t->ctx);
    int code = load_model(t, path, flags, model);
    if (code == EXIT_OK)
        code = tool_list_model(t, path, *model);
    tool_end_work(t->ctx, before);
    if (code != EXIT_OK) {
        qsim_model_free(*model);
        *model = NULL;
    }
    return code;
}
