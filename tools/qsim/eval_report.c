/* SPDX-License-Identifier: MIT */
/* Reports the scores of a classifier: tables, JSON, CSV, charts. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/chart.h"
#include "common/columns.h"
#include "evaluating.h"

/* ---- files ---- */

/* One row per actual class: its accuracy, then how often each class was predicted. */
int eval_write_csv(const tool *t, const char *path, const scores *s, const class_names *n) {
    text out = {0};
    char b[24];
    text_puts(&out, "class,samples,correct,accuracy_percent");
    for (size_t i = 0; i < s->classes; i++) {
        text_puts(&out, ",");
        text name = {0};
        text_printf(&name, "predicted %s", class_name(n, i, b));
        text_csv(&out, name.data);
        text_free(&name);
    }
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        double percent = scores_class(s, c, &samples, &right);
        text_puts(&out, "\n");
        text_csv(&out, class_name(n, c, b));
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

int eval_write_charts(const tool *t, const char *file, const scores *s, const class_names *n) {
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

void eval_draw_page(page *p, const char *file, const scores *s, const class_names *n,
                    const thumbs *worst) {
    text title = {0}, svg = {0};
    if (!p->path)
        return;
    text_printf(&title, "Confusion matrix: %s", tool_base_name(file));
    chart c = {(int)s->classes, n->items, title.data, NULL};
    if (s->classes <= 100) {
        double *percent = tool_alloc(s->classes, sizeof(*percent));
        uint64_t samples, right;
        for (size_t i = 0; i < s->classes; i++)
            percent[i] = scores_class(s, i, &samples, &right);
        chart_confusion(&svg, &c, s->confusion);
        page_chart(p, &svg);
        chart_series series = {"top-1 accuracy, %", percent};
        c.title = "Accuracy per class";
        chart_bars(&svg, &c, &series, 1);
        page_chart(p, &svg);
        free(percent);
    }
    page_thumbs(p, "Most certain of the wrong answers", worst);
    text_free(&title);
    text_free(&svg);
}

/* ---- printing ---- */

#define MOST_CELLS ((size_t)1 << 24) /* of a matrix in JSON: some 50 MB */

/*
 * "confusion" is a list of rows, confusion[actual][predicted], whatever the data: programs index
 * it. A million zeros for four pictures tell nothing, so where a model of more than 100 classes saw
 * fewer samples than classes, the row of a class without samples is empty (its per_class is null).
 * Beyond MOST_CELLS the list itself is empty and "confusion_cells" has the counts over 0.
 */
static void json_confusion(json *j, const scores *s) {
    assert(s->classes > 0);
    const bool sparse = s->classes > 100 && s->samples < s->classes;
    const size_t rows = sparse ? (size_t)s->samples : s->classes; /* that are not empty, at most */
    const bool whole = rows <= MOST_CELLS / s->classes;
    if (!whole)
        json_row(j, "confusion"), json_end(j);
    json_array(j, whole ? "confusion" : "confusion_cells");
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        scores_class(s, c, &samples, &right);
        if (whole)
            json_row(j, NULL);
        for (size_t i = 0; i < s->classes && (samples > 0 || !sparse); i++) {
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
}

void eval_print_json(const tool *t, const char *file, const scores *s, const class_names *n) {
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

void eval_print_table(const char *file, const scores *s, const class_names *n) {
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
