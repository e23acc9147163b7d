/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <qsim/data.h>

#include "common/folder.h"
#include "common/sample_files.h"
#include "common/system.h"
#include "common/unreadable.h"
#include "running.h"
#include "verbs.h"

/* ---- writing ---- */

static int write_npy(const tool *t, const char *path, const qsim_tensor *x, const char *name) {
    char header[QSIM_NPY_HEADER_MAX];
    int n = qsim_npy_header(x, header);
    qsim_error e;
    if (n < 0)
        return tool_fail(t, n, "%s: .npy has no type for output '%.100s', which is %s", path, name,
                         qsim_dtype_name(x->dtype));
    qsim_bytes pieces[] = {{header, (size_t)n}, {x->data, x->bytes}};
    if (strcmp(path, "-") == 0) {
        fwrite(header, 1, (size_t)n, stdout);
        fwrite(x->data, 1, x->bytes, stdout);
        return EXIT_OK;
    }
    int flags = t->force ? QSIM_FILE_REPLACE : 0;
    return tool_written(t, path, qsim_file_write(t->ctx, path, flags, pieces, 2, &e), &e);
}

static int write_pb(const tool *t, const char *path, const qsim_tensor *x, const char *name) {
    size_t need = 0;
    int code = qsim_proto_write(x, name, NULL, 0, &need);
    if (code)
        return tool_fail(t, code, "%s: cannot write output '%.100s'", path, name);
    void *buffer = tool_alloc(need, 1);
    code = qsim_proto_write(x, name, buffer, need, &need);
    code = code ? tool_fail(t, code, "%s: cannot write output '%.100s'", path, name)
                : tool_write(t, path, buffer, need);
    free(buffer);
    return code;
}

static bool wants_pb(const tool *t, const char *path) {
    const char *format = args_value(&t->args, "format");
    size_t n = strlen(path);
    if (format)
        return strcmp(format, "pb") == 0;
    return n > 3 && strcmp(path + n - 3, ".pb") == 0;
}

static int write_output(const tool *t, const engine *e, size_t i, const char *path) {
    const char *name = qsim_session_output_name(e->session, (int32_t)i);
    return wants_pb(t, path) ? write_pb(t, path, &e->outputs[i], name)
                             : write_npy(t, path, &e->outputs[i], name);
}

static void output_path(const tool *t, const char *dir, size_t i, text *path) {
    path->size = 0;
    text_printf(path, "%s/output_%zu.%s", dir, i, wants_pb(t, "") ? "pb" : "npy");
}

static int write_outputs(const tool *t, const engine *e) {
    const char *file = args_value(&t->args, "output");
    const char *dir = args_value(&t->args, "output-dir");
    text path = {0};
    int code = file ? write_output(t, e, 0, file) : EXIT_OK;
    if (file && !dir && e->output_count > 1 && code == EXIT_OK && !args_has(&t->args, "tensors"))
        tool_note(t, "%s: holds output '%.100s' alone, of %zu: --output-dir writes all", file,
                  qsim_session_output_name(e->session, 0), e->output_count);
    if (dir && code == EXIT_OK)
        code = folder_make(t, dir);
    for (size_t i = 0; dir && i < e->output_count && code == EXIT_OK; i++) {
        output_path(t, dir, i, &path);
        code = write_output(t, e, i, path.data);
    }
    text_free(&path);
    return code;
}

/* Checks for existing outputs before anything is computed. */
static bool may_write(const tool *t, const engine *e, int *code) {
    const char *file = args_value(&t->args, "output");
    const char *dir = args_value(&t->args, "output-dir");
    text path = {0};
    const char *dot = file ? strrchr(file, '.') : NULL;
    bool may = !file || tool_may_write(t, file, code);
    static const char *const others[] = {".csv", ".txt", ".json", ".png", ".npz", NULL};
    for (const char *const *other = others; may && dot && *other; other++)
        if (strcmp(dot, *other) == 0) {
            *code =
                tool_usage(t, "--output-dir writes all outputs, --json prints their ranges",
                           "%s: an output is written as .npy, or with --format pb as .pb", file);
            return false;
        }
    bool old = dir && folder_is(dir, strlen(dir)); /* else it is made later */
    for (size_t i = 0; old && may && i < e->output_count; i++) {
        output_path(t, dir, i, &path);
        may = tool_may_write(t, path.data, code);
    }
    text_free(&path);
    return may;
}

/* ---- tensors in place of outputs ---- */

static bool is_input(const qsim_model *m, const char *name) {
    for (int32_t i = 0; i < qsim_model_input_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_input(m, i, &v) == QSIM_OK && strcmp(v.name, name) == 0)
            return true;
    }
    return false;
}

/* Does the --tensors option at `index`, or any if it is negative, match a name? */
static bool matches(const tool *t, int index, const char *name) {
    const char *glob;
    for (size_t i = index < 0 ? 0 : (size_t)index;
         (glob = args_repeated(&t->args, "tensors", i)) != NULL &&
         (index < 0 || i == (size_t)index);
         i++)
        if (strcmp(glob, name) == 0 || system_matches(glob, name))
            return true;
    return false;
}

/* Lists what nodes make, in the order of first mention. */
static int list_tensors(const tool *t, const char *file, const qsim_model *m, const char ***names,
                        size_t *count) {
    const char *glob;
    for (int32_t i = 0; i < qsim_model_value_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(m, i, &v) || v.data || is_input(m, v.name) || !matches(t, -1, v.name))
            continue;
        *names = tool_grow(*names, *count + 1, sizeof(**names));
        (*names)[(*count)++] = v.name;
    }
    for (int k = 0; (glob = args_repeated(&t->args, "tensors", (size_t)k)) != NULL; k++) {
        size_t i = 0;
        while (i < *count && !matches(t, k, (*names)[i]))
            i++;
        if (i == *count)
            return tool_usage(t, "qsim info --tensors lists the names",
                              "%s: no node makes a tensor called '%s'", file, glob);
    }
    return EXIT_OK;
}

static int open_engine(const tool *t, const char *file, engine *e) {
    qsim_model *m = NULL;
    const char **names = NULL;
    size_t count = 0;
    memset(e, 0, sizeof(*e));
    if (!args_has(&t->args, "tensors"))
        return engine_open(t, file, e);
    if (args_has(&t->args, "top") || args_has(&t->args, "labels"))
        return tool_usage(t, NULL, "run: --top and --labels are for outputs, not for --tensors");
    int code = tool_load_model(t, file, 0, &m);
    if (code == EXIT_OK)
        code = list_tensors(t, file, m, &names, &count);
    if (code == EXIT_OK)
        code = engine_of_model(t, file, m, names, count, e);
    e->model = m;
    free(names);
    return code;
}

/* ---- inputs ---- */

/* Runs once, on `input`, or on the inputs of --input if it is NULL. */
static int execute(tool *t, engine *e, const char *input, run_report *report, json *j) {
    const char *file = t->args.operands[0];
    const char *shown = input ? input : args_value(&t->args, "input");
    inputs in;
    int code =
        input ? inputs_open_file(t, e->model, input, &in) : inputs_open(t, e->model, false, &in);
    if (input && (code || in.count == 0))
        return code;
    double start = tool_now();
    if (code == EXIT_OK)
        code = engine_execute(t, file, e, in.tensors, in.count);
    double ms = tool_now() - start;
    if (code == EXIT_OK)
        code = run_report_open(t, e, in.single, report);
    if (code == EXIT_OK)
        code = write_outputs(t, e);
    bool written = args_has(&t->args, "output") || args_has(&t->args, "output-dir");
    bool asked = (args_has(&t->args, "top") || args_has(&t->args, "tensors")) &&
                 args_value(&t->args, "output") == NULL;
    if (code == EXIT_OK && t->json)
        run_report_json(e, report, ms, j);
    else if (code == EXIT_OK && (!written || asked))
        run_report_print(t, shown ? shown : "", e, report);
    inputs_close(&in);
    return code;
}

static int execute_each(tool *t, engine *e, const sample_files *files, run_report *report,
                        json *j) {
    int code = EXIT_OK;
    json_array(j, "inputs");
    for (size_t i = 0; i < files->groups && code == EXIT_OK; i++) {
        json_object(j, NULL);
        json_string(j, "input", files->files[i]); /* alone, if the file is skipped */
        code = execute(t, e, files->files[i], report, j);
        json_end(j);
    }
    json_end(j);
    return code;
}

/* Files of a folder or pattern in --input; none if it names one file or made-up data. */
static int find_files(const tool *t, const engine *e, sample_files *files) {
    const char *spec = args_value(&t->args, "input");
    struct stat st;
    memset(files, 0, sizeof(*files));
    if (!spec || qsim_model_input_count(e->model) != 1)
        return EXIT_OK;
    bool folder = folder_is(spec, strlen(spec));
    if (!folder && (stat(spec, &st) == 0 || !sample_is_pattern(spec, strlen(spec))))
        return EXIT_OK;
    if (args_has(&t->args, "output") || args_has(&t->args, "output-dir"))
        return tool_usage(t, "one file at a time has outputs to write",
                          "run: --output and --output-dir are for one input, '%s' names several",
                          spec);
    return folder ? sample_files_folder(t, spec, 1, NULL, files)
                  : sample_files_pattern(t, spec, 1, files);
}

static int run_all(tool *t, engine *e) {
    run_report report = {0};
    sample_files files;
    json j = {0};
    int code = find_files(t, e, &files);
    if (code == EXIT_OK)
        code = class_names_read(t, &report.names);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", t->args.operands[0]);
    if (code == EXIT_OK)
        code = files.groups ? execute_each(t, e, &files, &report, &j)
                            : execute(t, e, NULL, &report, &j);
    json_end(&j);
    if (code == EXIT_OK && t->json)
        tool_print_json(t, &j);
    else
        text_free(&j.out);
    class_names_free(&report.names);
    sample_files_free(&files);
    return code;
}

static int run(tool *t) {
    engine e = {0};
    const char *seed = args_value(&t->args, "seed");
    uint64_t number = 0;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    if (seed && !parse_uint64(seed, &number))
        return tool_usage(t, NULL, "--seed is '%s', not a whole number", seed);
    const char *file = t->args.operands[0];
    tool_catch_interrupt(t->ctx);
    int code = open_engine(t, file, &e);
    if (code == EXIT_OK && e.output_count == 0)
        code = tool_fail(t, QSIM_E_GRAPH, "%s: the model has no outputs", file);
    if (code == EXIT_OK)
        qsim_run_set_seed(e.run, number);
    if (code == EXIT_OK && may_write(t, &e, &code))
        code = run_all(t, &e);
    engine_close(&e);
    return code;
}

static const option options[] = {
    OPTION_INPUT("batch size of random inputs (1)"),
    OPTION_SKIP_UNREADABLE,
    OPTION_OUTPUT("write the first output alone; '-': stdout"),
    {"output-dir", "DIR", "write output_0.npy, output_1.npy, ... into DIR", 0, NULL},
    {"tensors", "GLOB", "write tensors inside the model instead of its outputs; repeatable", 0,
     NULL},
    OPTION_LEVEL,
    {"seed", "N", "seed of random numbers inside the model (0)", 0, NULL},
    {"top", "K", "print the K classes with the greatest scores (5, for pictures)", 0, NULL},
    {"labels", "FILE", "class names, one a line; or NUMBER,NAME", 0, NULL},
    {"format", "NAME", "file format of the outputs (npy)", 0, "npy|pb"},
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_run = {"run",
                       "MODEL",
                       "run a model once and write its outputs",
                       options,
                       run,
                       false,
                       "classifier.onnx -i cat.jpg --preprocess imagenet --top 5"};
