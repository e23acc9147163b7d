/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/chart.h"
#include "common/class_names.h"
#include "common/columns.h"
#include "common/dataset.h"
#include "common/progress.h"
#include "engine.h"
#include "scores.h"
#include "verbs.h"

#define LABELLED "X.npy,Y.npy, an .npz with x and y or an IDX pair has labels"
#define FILES_LABELLED                                                                             \
    "labels.txt in the folder (lines NAME NUMBER), FOLDER,LABELS or one folder for each class"

/* ---- files ---- */

static void csv_field(text *out, const char *s) {
    if (!strpbrk(s, ",\"\r\n")) {
        text_puts(out, s);
        return;
    }
    text_puts(out, "\"");
    for (; *s; s++)
        text_printf(out, *s == '"' ? "\"\"" : "%c", *s);
    text_puts(out, "\"");
}

/* A row per actual class: its accuracy, then how often each class was predicted. */
static int write_csv(const tool *t, const char *path, const scores *s, const class_names *n) {
    text out = {0};
    char b[24];
    text_puts(&out, "class,samples,correct,accuracy_percent");
    for (size_t i = 0; i < s->classes; i++) {
        text_puts(&out, ",");
        text name = {0};
        text_printf(&name, "predicted %s", class_name(n, i, b));
        csv_field(&out, name.data);
        text_free(&name);
    }
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        double percent = scores_class(s, c, &samples, &right);
        text_puts(&out, "\n");
        csv_field(&out, class_name(n, c, b));
        text_printf(&out, ",%llu,%llu,", (unsigned long long)samples, (unsigned long long)right);
        if (!isnan(percent))
            text_printf(&out, "%.4f", percent);
        for (size_t i = 0; i < s->classes; i++)
            text_printf(&out, ",%llu", (unsigned long long)s->confusion[c * s->classes + i]);
    }
    text_puts(&out, "\n");
    int code = tool_write(t, path, out.data, out.size);
    text_free(&out);
    return code;
}

static int write_charts(const tool *t, const char *file, const scores *s, const class_names *n) {
    const char *matrix = args_value(&t->args, "svg"), *bars = args_value(&t->args, "svg-classes");
    text title = {0}, note = {0}, svg = {0};
    int code = EXIT_OK;
    text_printf(&title, "Confusion matrix: %s", tool_base_name(file));
    text_printf(&note, "%llu sample%s, top-1 %.2f %%", (unsigned long long)s->samples,
                tool_plural((int64_t)s->samples), scores_percent(s, s->top1));
    chart c = {(int)s->classes, n->items, title.data, note.data};
    if (matrix) {
        chart_confusion(&svg, &c, s->confusion);
        code = tool_write(t, matrix, svg.data, svg.size);
        svg.size = 0;
    }
    if (bars && code == EXIT_OK) {
        double *percent = tool_alloc(s->classes, sizeof(*percent));
        uint64_t samples, right;
        for (size_t i = 0; i < s->classes; i++)
            percent[i] = scores_class(s, i, &samples, &right);
        chart_series series = {"top-1 accuracy, %", percent};
        title.size = 0;
        text_printf(&title, "Accuracy per class: %s", tool_base_name(file));
        c.title = title.data;
        chart_bars(&svg, &c, &series, 1);
        code = tool_write(t, bars, svg.data, svg.size);
        free(percent);
    }
    text_free(&title);
    text_free(&note);
    text_free(&svg);
    return code;
}

/* ---- printing ---- */

/* Every cell; of more than 100 classes those that are not 0. */
static void json_confusion(json *j, const scores *s) {
    bool whole = s->classes <= 100;
    json_array(j, whole ? "confusion" : "confusion_cells");
    for (size_t c = 0; c < s->classes; c++) {
        if (whole)
            json_row(j, NULL);
        for (size_t i = 0; i < s->classes; i++) {
            int64_t n = (int64_t)s->confusion[c * s->classes + i];
            if (whole)
                json_int(j, NULL, n);
            else if (n > 0) {
                json_row(j, NULL);
                json_int(j, NULL, (int64_t)c);
                json_int(j, NULL, (int64_t)i);
                json_int(j, NULL, n);
                json_end(j);
            }
        }
        if (whole)
            json_end(j);
    }
    json_end(j);
    if (!whole)
        json_null(j, "confusion");
}

static void print_json(const tool *t, const char *file, const scores *s, const class_names *n) {
    json j = {0};
    char b[24];
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", file);
    json_int(&j, "samples", (int64_t)s->samples);
    json_bool(&j, "interrupted", s->interrupted);
    json_number(&j, "top1", scores_percent(s, s->top1));
    json_number(&j, "top5", scores_percent(s, s->top5));
    json_row(&j, "per_class");
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        json_number(&j, NULL, scores_class(s, c, &samples, &right));
    }
    json_end(&j);
    json_row(&j, "labels");
    for (size_t c = 0; c < s->classes; c++)
        json_string(&j, NULL, class_name(n, c, b));
    json_end(&j);
    json_confusion(&j, s);
    json_end(&j);
    tool_print_json(t, &j);
}

static void print_table(const char *file, const scores *s, const class_names *n) {
    table rows = {.columns = "lrrr"};
    const char *const heading[] = {"class", "samples", "correct", "accuracy"};
    char b[24];
    printf("%s: %llu sample%s, top-1 %.2f %%, top-5 %.2f %%\n", tool_base_name(file),
           (unsigned long long)s->samples, tool_plural((int64_t)s->samples),
           scores_percent(s, s->top1), scores_percent(s, s->top5));
    if (s->classes > 100)
        return;
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        double percent = scores_class(s, c, &samples, &right);
        table_cell(&rows, "%s", class_name(n, c, b));
        table_cell(&rows, "%llu", (unsigned long long)samples);
        table_cell(&rows, "%llu", (unsigned long long)right);
        table_cell(&rows, isnan(percent) ? "no data" : "%.2f %%", percent);
    }
    putchar('\n');
    table_print(&rows, stdout);
}

static const char *const outputs[] = {"csv", "svg", "svg-classes"};

/* How many outputs want standard output for themselves. */
static int to_stdout(const tool *t) {
    int count = t->json;
    for (size_t i = 0; i < 3; i++)
        count +=
            args_has(&t->args, outputs[i]) && strcmp(args_value(&t->args, outputs[i]), "-") == 0;
    return count;
}

static int report(const tool *t, const char *file, const scores *s, double bound) {
    class_names n;
    const char *csv = args_value(&t->args, "csv");
    int code = class_names_read(t, &n);
    if (code == EXIT_OK)
        code = class_names_check(t, &n, s->classes);
    if (code == EXIT_OK && csv)
        code = write_csv(t, csv, s, &n);
    if (code == EXIT_OK)
        code = write_charts(t, file, s, &n);
    if (code == EXIT_OK) {
        if (t->json)
            print_json(t, file, s, &n);
        else if (to_stdout(t) == 0)
            print_table(file, s, &n);
        if (scores_percent(s, s->top1) < bound) {
            fprintf(stderr, "qsim: %s: top-1 %.4f %%, the gate is %g %%\n", file,
                    scores_percent(s, s->top1), bound);
            code = EXIT_GATE;
        }
    }
    class_names_free(&n);
    return code;
}

/* Classes that were numbered in the order of their folders must be all that the model has. */
static int check_folders(const tool *t, const char *file, const dataset *d, const scores *s) {
    size_t folders = dataset_classes(d);
    if (folders == 0 || folders == s->classes)
        return EXIT_OK;
    return tool_usage(t, "--labels FILE with the model's class names, or folders named by number",
                      "%s: %zu folder%s of classes, and %s has %zu classes",
                      args_value(&t->args, "data"), folders, folders == 1 ? "" : "s", file,
                      s->classes);
}

/* s->interrupted: the scores are of the samples until then. */
static int count(const tool *t, const char *file, engine *e, dataset *d, scores *s) {
    progress p;
    batch b;
    qsim_error error;
    uint64_t total = (uint64_t)dataset_samples(d);
    int code;
    progress_begin(&p, t);
    while ((code = dataset_next(d, &b)) == EXIT_OK && b.samples > 0) {
        int ran = engine_try(e, b.inputs, b.input_count, &error);
        s->interrupted = ran == QSIM_E_CANCELLED && s->samples > 0;
        if (s->interrupted)
            break;
        code = ran ? tool_error(t, file, &error)
                   : scores_add(t, s, file, &e->outputs[0], b.labels, b.samples);
        if (code == EXIT_OK)
            code = check_folders(t, file, d, s);
        if (code)
            break;
        progress_step(&p, "evaluating", s->samples, total);
    }
    progress_end(&p);
    if (s->interrupted)
        fprintf(stderr, "qsim: %s: interrupted; the figures are of %llu of %llu samples\n", file,
                (unsigned long long)s->samples, (unsigned long long)total);
    return code;
}

static int run(tool *t) {
    engine e = {0};
    dataset *d = NULL;
    scores s = {0};
    double bound;
    int code = EXIT_OK;
    if (!tool_operands(t, 1, 1) || !tool_number(t, "min-top1", 0, 100, 0, &bound))
        return EXIT_USAGE;
    if (to_stdout(t) > 1)
        return tool_usage(t, NULL, "eval: one thing at a time can go to standard output");
    if (!args_has(&t->args, "data"))
        return tool_usage(t, LABELLED, "eval: --data is missing");
    const char *file = t->args.operands[0];
    for (size_t i = 0; i < 3; i++)
        if (args_has(&t->args, outputs[i]) &&
            !tool_may_write(t, args_value(&t->args, outputs[i]), &code))
            return code;
    code = engine_open(t, file, &e);
    if (code == EXIT_OK)
        code = dataset_open(t, e.model, &d);
    if (code == EXIT_OK && !dataset_has_labels(d))
        code = tool_usage(t, dataset_is_files(d) ? FILES_LABELLED : LABELLED,
                          "%s: the data has no labels", args_value(&t->args, "data"));
    if (code == EXIT_OK)
        code = count(t, file, &e, d, &s);
    if (code == EXIT_OK)
        code = report(t, file, &s, bound);
    if (code == EXIT_OK && s.interrupted)
        code = EXIT_INTERRUPTED;
    dataset_close(d);
    engine_close(&e);
    scores_free(&s);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    OPTION_LEVEL,
    {"labels", "FILE", "class names, one a line; or NUMBER,NAME", 0, NULL},
    {"csv", "FILE", "write per-class counts and the confusion matrix", 0, NULL},
    {"svg", "FILE", "draw the confusion matrix", 0, NULL},
    {"svg-classes", "FILE", "draw the accuracy per class", 0, NULL},
    {"min-top1", "P", "exit 3 if fewer than P percent are right", 0, NULL},
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_eval = {"eval", "MODEL --data SPEC",
                        "measure a classifier: top-1, top-5, per class, confusion", options, run};
