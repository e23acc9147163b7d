/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/chart.h"
#include "common/columns.h"
#include "common/dataset.h"
#include "common/progress.h"
#include "engine.h"
#include "scores.h"
#include "verbs.h"

#define LABELLED "X.npy,Y.npy, an .npz with x and y or an IDX pair has labels"

/* ---- class names ---- */

typedef struct names {
    char *bytes;
    const char **items; /* one per class, NULL without --labels */
} names;

/* One name a line, from --labels or the package. There must be one for every class. */
static int read_names(const tool *t, size_t classes, names *n) {
    const char *path = args_value(&t->args, "labels"), *packaged = tool_packaged_labels();
    void *data;
    size_t size, count = 0;
    memset(n, 0, sizeof(*n));
    if (!path && !packaged)
        return EXIT_OK;
    if (path) {
        int code = tool_read_all(t, path, &data, &size);
        if (code)
            return code;
        n->bytes = tool_grow(data, size + 1, 1);
        n->bytes[size] = 0;
    } else {
        n->bytes = tool_copy(packaged);
        path = "labels.txt of the package";
    }
    n->items = tool_alloc(classes, sizeof(*n->items));
    for (char *line = n->bytes; *line; count++) {
        size_t length = strcspn(line, "\r\n");
        char *next = line + length + strspn(line + length, "\r\n");
        line[length] = 0;
        if (count < classes)
            n->items[count] = line;
        line = next;
    }
    if (count != classes)
        return tool_fail(t, QSIM_E_VALUE, "%s: %zu names for %zu classes", path, count, classes);
    return EXIT_OK;
}

static const char *class_name(const names *n, size_t c, char buffer[24]) {
    if (n->items)
        return n->items[c];
    snprintf(buffer, 24, "%zu", c);
    return buffer;
}

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
static int write_csv(const tool *t, const char *path, const scores *s, const names *n) {
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

static int write_charts(const tool *t, const char *file, const scores *s, const names *n) {
    const char *matrix = args_value(&t->args, "svg"), *bars = args_value(&t->args, "svg-classes");
    text title = {0}, note = {0}, svg = {0};
    int code = EXIT_OK;
    text_printf(&title, "Confusion matrix: %s", tool_base_name(file));
    text_printf(&note, "%llu samples, top-1 %.2f %%", (unsigned long long)s->samples,
                scores_percent(s, s->top1));
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

static void print_json(const tool *t, const char *file, const scores *s, const names *n) {
    json j = {0};
    char b[24];
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", file);
    json_int(&j, "samples", (int64_t)s->samples);
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
    json_array(&j, "confusion");
    for (size_t c = 0; c < s->classes; c++) {
        json_row(&j, NULL);
        for (size_t i = 0; i < s->classes; i++)
            json_int(&j, NULL, (int64_t)s->confusion[c * s->classes + i]);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

static void print_table(const char *file, const scores *s, const names *n) {
    table rows = {.columns = "lrrr"};
    const char *const heading[] = {"class", "samples", "correct", "accuracy"};
    char b[24];
    printf("%s: %llu samples, top-1 %.2f %%, top-5 %.2f %%\n", tool_base_name(file),
           (unsigned long long)s->samples, scores_percent(s, s->top1), scores_percent(s, s->top5));
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
    names n;
    const char *csv = args_value(&t->args, "csv");
    int code = read_names(t, s->classes, &n);
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
    free(n.items);
    free(n.bytes);
    return code;
}

static int count(const tool *t, const char *file, engine *e, dataset *d, scores *s) {
    progress p;
    batch b;
    uint64_t total = (uint64_t)dataset_samples(d);
    int code;
    progress_begin(&p, t);
    for (;;) {
        code = dataset_next(d, &b);
        if (code || b.samples == 0)
            break;
        code = engine_execute(t, file, e, b.inputs, b.input_count);
        if (code == EXIT_OK)
            code = scores_add(t, s, file, &e->outputs[0], b.labels, b.samples);
        if (code)
            break;
        progress_step(&p, "evaluating", s->samples, total);
    }
    progress_end(&p);
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
        code = tool_usage(t, LABELLED, "%s: the data has no labels", args_value(&t->args, "data"));
    if (code == EXIT_OK)
        code = count(t, file, &e, d, &s);
    if (code == EXIT_OK)
        code = report(t, file, &s, bound);
    dataset_close(d);
    engine_close(&e);
    scores_free(&s);
    return code;
}

static const option options[] = {
    OPTION_DATA,
    OPTION_LEVEL,
    {"labels", "FILE", "class names, one a line", 0, NULL},
    {"csv", "FILE", "write per-class counts and the confusion matrix", 0, NULL},
    {"svg", "FILE", "draw the confusion matrix", 0, NULL},
    {"svg-classes", "FILE", "draw the accuracy per class", 0, NULL},
    {"min-top1", "P", "exit 3 if fewer than P percent are right", 0, NULL},
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_eval = {"eval", "MODEL --data SPEC",
                        "measure a classifier: top-1, top-5, per class, confusion", options, run};
