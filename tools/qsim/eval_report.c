/* SPDX-License-Identifier: MIT */
/* Reports the scores of a classifier: tables, JSON, CSV, charts. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/chart.h"
#include "evaluating.h"

/* ---- files ---- */

/* A class's accuracy, empty where it has no samples. */
static void csv_class(text *out, const scores *s, size_t c) {
    uint64_t samples, right;
    const double percent = scores_class(s, c, &samples, &right);
    text_printf(out, ",%llu,", (unsigned long long)right);
    if (!isnan(percent))
        text_printf(out, "%.4f", percent);
}

int eval_write_csv(const tool *t, const char *path, const evaluation *e) {
    const scores *s = &e->scores;
    const class_names *n = &e->names;
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
    if (e->against)
        text_puts(&out, ",against_correct,against_accuracy_percent");
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        scores_class(s, c, &samples, &right);
        text_puts(&out, "\n");
        text_csv(&out, class_name(n, c, b));
        text_printf(&out, ",%llu", (unsigned long long)samples);
        csv_class(&out, s, c);
        for (size_t i = 0; i < s->classes; i++)
            text_printf(&out, ",%llu", (unsigned long long)s->confusion[c * s->classes + i]);
        if (e->against)
            csv_class(&out, &e->reference, c);
    }
    text_puts(&out, "\n");
    int code = tool_write(t, path, out.data, out.size);
    text_free(&out);
    return code;
}

/* Bars of the accuracy per class, beside the reference's. */
static void draw_classes(text *svg, const chart *c, const evaluation *e) {
    const scores *const models[2] = {&e->scores, &e->reference};
    const int count = e->against ? 2 : 1;
    chart_series series[2] = {{"top-1 accuracy, %", NULL}, {NULL, NULL}};
    double *percent[2] = {NULL, NULL};
    for (int k = 0; k < count; k++) {
        uint64_t samples, right;
        percent[k] = tool_alloc(e->scores.classes, sizeof(**percent));
        for (size_t i = 0; i < e->scores.classes; i++)
            percent[k][i] = scores_class(models[k], i, &samples, &right);
        if (e->against)
            series[k].name = eval_name(e, k ? e->against : e->file);
        series[k].percent = percent[k];
    }
    chart_bars(svg, c, series, count);
    free(percent[0]);
    free(percent[1]);
}

int eval_write_charts(const tool *t, const evaluation *e) {
    const scores *s = &e->scores;
    const char *matrix = args_value(&t->args, "svg"), *bars = args_value(&t->args, "svg-classes");
    text title = {0}, note = {0}, svg = {0};
    int code = EXIT_OK;
    text_printf(&title, "Confusion matrix: %s", tool_base_name(e->file));
    text_printf(&note, "%llu sample%s, top-1 %.2f %%", (unsigned long long)s->samples,
                tool_plural((int64_t)s->samples), scores_percent(s, s->top1));
    chart c = {(int)s->classes, e->names.items, title.data, note.data};
    if (matrix) {
        chart_confusion(&svg, &c, s->confusion);
        code = tool_write(t, matrix, svg.data, svg.size);
        svg.size = 0;
    }
    if (bars && code == EXIT_OK) {
        title.size = 0;
        text_printf(&title, "Accuracy per class: %s", tool_base_name(e->file));
        c.title = title.data;
        draw_classes(&svg, &c, e);
        code = tool_write(t, bars, svg.data, svg.size);
    }
    text_free(&title);
    text_free(&note);
    text_free(&svg);
    return code;
}

void eval_draw_page(page *p, const evaluation *e) {
    const scores *s = &e->scores;
    text title = {0}, svg = {0};
    if (!p->path)
        return;
    text_printf(&title, "Confusion matrix: %s", tool_base_name(e->file));
    chart c = {(int)s->classes, e->names.items, title.data, NULL};
    if (s->classes <= 100) {
        chart_confusion(&svg, &c, s->confusion);
        page_chart(p, &svg);
        c.title = "Accuracy per class";
        draw_classes(&svg, &c, e);
        page_chart(p, &svg);
    }
    eval_draw_against(p, e);
    page_thumbs(p, "Most certain of the wrong answers", &e->wrong);
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

void eval_print_json(const tool *t, const evaluation *e) {
    const scores *s = &e->scores;
    const double top1 = scores_percent(s, s->top1), top5 = scores_percent(s, s->top5);
    json j = {0};
    char b[24];
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", e->file);
    json_int(&j, "samples", (int64_t)s->samples);
    json_bool(&j, "interrupted", s->interrupted);
    json_number(&j, "top1", top1);
    json_number(&j, "top1_standard_error", proportion_error(top1, s->samples));
    json_number(&j, "top5", top5);
    json_number(&j, "top5_standard_error", proportion_error(top5, s->samples));
    eval_json_against(&j, e);
    json_row(&j, "per_class");
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        json_number(&j, NULL, scores_class(s, c, &samples, &right));
    }
    json_end(&j);
    json_row(&j, "labels");
    for (size_t c = 0; c < s->classes; c++)
        json_string(&j, NULL, class_name(&e->names, c, b));
    json_end(&j);
    json_confusion(&j, s);
    json_end(&j);
    tool_print_json(t, &j);
}

/* Accuracy of the reference in a class, and what is lost of it. */
static void put_reference(table *rows, const evaluation *e, size_t c, double percent) {
    uint64_t samples, right;
    const double reference = scores_class(&e->reference, c, &samples, &right);
    if (isnan(percent)) {
        table_cell(rows, "no data");
        table_cell(rows, "-");
        return;
    }
    table_cell(rows, "%.2f %%", reference);
    table_cell(rows, "%.2f", reference - percent);
}

static void put_first_line(const evaluation *e) {
    const scores *s = &e->scores;
    text line = {0};
    if (e->against)
        eval_put_scores(s, &line);
    else
        text_printf(&line, "top-1 %.2f %%, top-5 %.2f %%", scores_percent(s, s->top1),
                    scores_percent(s, s->top5));
    printf("%s: %llu sample%s, %s\n", eval_name(e, e->file), (unsigned long long)s->samples,
           tool_plural((int64_t)s->samples), line.data);
    text_free(&line);
}

void eval_print_table(const evaluation *e) {
    const scores *s = &e->scores;
    table rows = {.columns = e->against ? "lrrrrr" : "lrrr"};
    const char *const heading[] = {"class", "samples", "correct", "accuracy"};
    char b[24];
    put_first_line(e);
    eval_print_against(e);
    if (s->classes > 100)
        return;
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    if (e->against) {
        table_cell(&rows, "against");
        table_cell(&rows, "lost");
    }
    for (size_t c = 0; c < s->classes; c++) {
        uint64_t samples, right;
        double percent = scores_class(s, c, &samples, &right);
        table_cell(&rows, "%s", class_name(&e->names, c, b));
        table_cell(&rows, "%llu", (unsigned long long)samples);
        table_cell(&rows, "%llu", (unsigned long long)right);
        table_cell(&rows, isnan(percent) ? "no data" : "%.2f %%", percent);
        if (e->against)
            put_reference(&rows, e, c, percent);
    }
    putchar('\n');
    table_print(&rows, stdout);
}
