/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/data.h>

#include "common/folder.h"
#include "common/columns.h"
#include "engine.h"
#include "inputs.h"
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
    return qsim_file_write(t->ctx, path, flags, pieces, 2, &e) ? tool_error(t, path, &e) : EXIT_OK;
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
    if (dir && code == EXIT_OK)
        code = folder_make(t, dir);
    for (size_t i = 0; dir && i < e->output_count && code == EXIT_OK; i++) {
        output_path(t, dir, i, &path);
        code = write_output(t, e, i, path.data);
    }
    text_free(&path);
    return code;
}

/* Existing outputs are noticed before anything is computed. */
static bool may_write(const tool *t, const qsim_model *m, int *code) {
    const char *file = args_value(&t->args, "output");
    const char *dir = args_value(&t->args, "output-dir");
    text path = {0};
    bool may = !file || tool_may_write(t, file, code);
    bool old = dir && folder_is(dir, strlen(dir)); /* else it is made, when there are outputs */
    for (size_t i = 0; old && may && i < (size_t)qsim_model_output_count(m); i++) {
        output_path(t, dir, i, &path);
        may = tool_may_write(t, path.data, code);
    }
    text_free(&path);
    return may;
}

/* ---- printing ---- */

typedef struct range {
    double low, high, mean;
} range;

static range find_range(const qsim_tensor *x) {
    size_t n = elements(x);
    range r = {NAN, NAN, NAN};
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double v = element(x, i);
        sum += v;
        if (!(r.low <= v))
            r.low = v;
        if (!(r.high >= v))
            r.high = v;
    }
    if (n > 0)
        r.mean = sum / (double)n;
    return r;
}

static void print_json(const tool *t, const char *file, const engine *e, double ms) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", file);
    json_number(&j, "ms", ms);
    json_array(&j, "outputs");
    for (size_t i = 0; i < e->output_count; i++) {
        const qsim_tensor *x = &e->outputs[i];
        range r = find_range(x);
        json_object(&j, NULL);
        json_string(&j, "name", qsim_session_output_name(e->session, (int32_t)i));
        json_string(&j, "dtype", qsim_dtype_name(x->dtype));
        json_row(&j, "shape");
        for (int32_t k = 0; k < x->rank; k++)
            json_int(&j, NULL, x->dims[k]);
        json_end(&j);
        json_number(&j, "min", r.low);
        json_number(&j, "max", r.high);
        json_number(&j, "mean", r.mean);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

static void print_table(const engine *e) {
    static const char *const heading[] = {"output", "type", "shape", "min", "max", "mean"};
    table rows = {.columns = "lllrrr"};
    char shape[256];
    for (size_t i = 0; i < 6; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < e->output_count; i++) {
        const qsim_tensor *x = &e->outputs[i];
        range r = find_range(x);
        table_cell(&rows, "%s", qsim_session_output_name(e->session, (int32_t)i));
        table_cell(&rows, "%s", qsim_dtype_name(x->dtype));
        table_cell(&rows, "%s", shape_text(x->dims, x->rank, shape));
        table_cell(&rows, "%.6g", table_number(r.low));
        table_cell(&rows, "%.6g", table_number(r.high));
        table_cell(&rows, "%.6g", table_number(r.mean));
    }
    table_print(&rows, stdout);
}

static int execute(tool *t, const char *file, engine *e) {
    inputs in;
    int code = inputs_open(t, e->model, false, &in);
    double start = tool_now();
    if (code == EXIT_OK)
        code = engine_execute(t, file, e, in.tensors, in.count);
    double ms = tool_now() - start;
    if (code == EXIT_OK)
        code = write_outputs(t, e);
    bool written = args_has(&t->args, "output") || args_has(&t->args, "output-dir");
    if (code == EXIT_OK && t->json)
        print_json(t, file, e, ms);
    else if (code == EXIT_OK && !written)
        print_table(e);
    inputs_close(&in);
    return code;
}

static int run(tool *t) {
    engine e = {0};
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    const char *file = t->args.operands[0];
    tool_catch_interrupt();
    int code = engine_open(t, file, &e);
    if (code == EXIT_OK && e.output_count == 0)
        code = tool_fail(t, QSIM_E_GRAPH, "%s: the model has no outputs", file);
    if (code == EXIT_OK && may_write(t, e.model, &code))
        code = execute(t, file, &e);
    engine_close(&e);
    return code;
}

static const option options[] = {
    OPTION_INPUT,
    OPTION_OUTPUT("write the first output alone; '-': stdout"),
    {"output-dir", "DIR", "write output_0.npy, output_1.npy, ... into DIR", 0, NULL},
    OPTION_LEVEL,
    {"format", "NAME", "file format of the outputs (npy)", 0, "npy|pb"},
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_run = {"run", "MODEL", "run a model once and write its outputs", options, run};
