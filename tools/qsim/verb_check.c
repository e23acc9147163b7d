/* SPDX-License-Identifier: MIT */
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "modelinfo.h"
#include "not_finite.h"
#include "odd_scales.h"

typedef struct findings {
    const tool *tool;
    const char *file;
    json json;
    int code;                                      /* code of the first problem */
    char hint[sizeof(((qsim_error *)NULL)->hint)]; /* the latest */
} findings;

static void report(void *user, const qsim_error *e) {
    findings *f = user;
    if (f->code == 0)
        f->code = e->code;
    if (f->tool->json) {
        json_object(&f->json, NULL);
        json_int(&f->json, "code", e->code);
        json_string(&f->json, "name", qsim_error_name(e->code));
        json_string(&f->json, "message", e->message);
        if (e->hint[0])
            json_string(&f->json, "hint", e->hint);
        json_end(&f->json);
        return;
    }
    text line = {0};
    utf8_printable(&line, e->message, 380);
    printf("%s\n", line.data);
    text_free(&line);
    /* Problems of one kind share a hint, which is none of the lines that list problems. */
    if (e->hint[0] && strcmp(e->hint, f->hint) != 0 && !f->tool->quiet)
        fprintf(stderr, "hint: %s\n", e->hint);
    snprintf(f->hint, sizeof(f->hint), "%s", e->hint);
}

/* ---- valid, but hardly meant ---- */

/* Initializers that neither nodes nor outputs use; none if graphs in nodes may use them. */
static void note_unused(findings *f, const qsim_model *m, const name_index *readers) {
    name_index outputs = {0};
    name_index_outputs(m, &outputs);
    const int32_t count = model_has_graphs(m) ? 0 : qsim_model_value_count(m);
    for (int32_t i = 0; i < count; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(m, i, &v) || !v.data || name_index_find(readers, v.name) >= 0 ||
            name_index_find(&outputs, v.name) >= 0)
            continue;
        text line = {0};
        utf8_printable(&line, v.name, 200);
        if (f->tool->json)
            json_string(&f->json, NULL, v.name);
        else if (!f->tool->quiet)
            printf("note: no node reads the initializer '%s' (%zu bytes)\n", line.data, v.bytes);
        text_free(&line);
    }
    name_index_free(&outputs);
}

static void note_line(void *user, const char *line) {
    findings *f = user;
    text printable = {0};
    utf8_printable(&printable, line, 380);
    if (f->tool->json)
        json_string(&f->json, NULL, line);
    else if (!f->tool->quiet)
        printf("note: %s\n", printable.data);
    text_free(&printable);
}

static void note_not_finite(findings *f, const qsim_model *m, const name_index *readers) {
    qsim_value_info v;
    qsim_node_info n;
    int32_t from = 0;
    const char *what;
    while ((what = not_finite_next(m, readers, &from, &v, &n)) != NULL) {
        text line = {0};
        text_printf(&line, "node '%.100s' (%s): its initializer '%.100s' holds %s", n.name,
                    n.op_type, v.name, what);
        note_line(f, line.data);
        text_free(&line);
    }
}

static const char *plural(int64_t count) {
    return count == 1 ? "" : "s";
}

static void print_good(const char *file, const qsim_model *m) {
    int32_t nodes = qsim_model_node_count(m), inputs = qsim_model_input_count(m),
            outputs = qsim_model_output_count(m);
    char size[32];
    printf("%s: no problems: opset %lld, %d node%s, %lld parameters, %d input%s, %d output%s, %s\n",
           tool_base_name(file), (long long)qsim_model_opset(m, NULL), nodes, plural(nodes),
           (long long)qsim_model_parameters(m), inputs, plural(inputs), outputs, plural(outputs),
           tool_bytes((double)qsim_model_bytes(m), size));
}

/* Loads the model fully, which finds problems in branches and in local functions. */
static int load_in_earnest(const tool *t, const char *file, qsim_model **m) {
    if (strcmp(file, "-") == 0)
        return EXIT_OK;
    qsim_model_free(*m);
    return tool_load_model(t, file, 0, m);
}

/* Lists what is valid but hardly meant; scales only if there are no problems. */
static void note_all(findings *f, const qsim_model *m, bool scales) {
    name_index readers = {0};
    name_index_readers(m, &readers);
    json_row(&f->json, "unused");
    note_unused(f, m, &readers);
    json_end(&f->json);
    json_array(&f->json, "odd_scales");
    if (scales)
        odd_scales_find(m, note_line, f);
    json_end(&f->json);
    json_row(&f->json, "not_finite");
    note_not_finite(f, m, &readers);
    json_end(&f->json);
    name_index_free(&readers);
}

static int run(tool *t) {
    qsim_model *m;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    findings f = {.tool = t, .file = t->args.operands[0]};
    int code = tool_load_model(t, f.file, QSIM_LOAD_CHECK, &m);
    if (code)
        return code;
    json_object(&f.json, NULL);
    json_int(&f.json, "schema", 1);
    json_string(&f.json, "file", f.file);
    json_array(&f.json, "problems");
    int n = qsim_model_check(m, report, &f);
    json_end(&f.json);
    note_all(&f, m, n == 0);
    json_end(&f.json);
    if (n == 0)
        code = load_in_earnest(t, f.file, &m);
    if (n == 0 && !code && !t->json)
        print_good(f.file, m);
    qsim_model_free(m);
    if (n < 0) {
        text_free(&f.json.out);
        return tool_fail(t, n, "%s: the check failed: %s", f.file, qsim_error_text(n));
    }
    if (t->json && !code)
        tool_print_json(t, &f.json);
    else
        text_free(&f.json.out);
    if (code)
        return code;
    if (n > 0 && !t->json)
        fprintf(stderr, "qsim: %s: %d problem%s found\n", tool_base_name(f.file), n, plural(n));
    return n > 0 ? EXIT_DATA : EXIT_OK;
}

static const option options[] = {{NULL, NULL, NULL, 0, NULL}};

const verb verb_check = {
    "check", "MODEL", "validate a model and list every problem", options, run, true, "model.onnx"};
