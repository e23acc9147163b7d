/* SPDX-License-Identifier: MIT */
/* The output of qsim run: ranges of outputs, and the classes of the greatest scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/columns.h"
#include "common/slot.h"
#include "running.h"

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

/* ---- the greatest scores ---- */

/* The number of classes if a tensor is rows of class scores ([N,K] or [N,K,1,..]), else 0. */
static size_t classes_of(const qsim_tensor *x) {
    int64_t rest = 1;
    for (int32_t i = 2; i < x->rank; i++)
        rest *= x->dims[i];
    bool rows = x->rank >= 2 && x->dims[0] > 0 && x->dims[1] > 1 && rest == 1;
    return rows ? (size_t)x->dims[1] : 0;
}

/* The score that element i stands for. */
static double real_score(const qsim_tensor *x, const run_report *r, size_t i) {
    return (element(x, i) - (double)r->zero_point) * r->scale;
}

/* Are all scores of a row probabilities? */
static bool is_distribution(const qsim_tensor *x, const run_report *r, size_t first) {
    double sum = 0;
    for (size_t i = 0; i < r->classes; i++) {
        double p = real_score(x, r, first + i);
        if (!(p >= 0 && p <= 1))
            return false;
        sum += p;
    }
    return fabs(sum - 1) < 0.05; /* 8-bit outputs round */
}

static double score_of(const qsim_tensor *x, size_t i) {
    double v = element(x, i);
    return isnan(v) ? -INFINITY : v;
}

/* The classes with the k greatest scores, the first of equal ones first. */
static void find_top(const qsim_tensor *x, size_t first, size_t classes, size_t k, size_t *top) {
    size_t n = 0;
    for (size_t i = 0; i < classes; i++) {
        double v = score_of(x, first + i);
        size_t at = n;
        while (at > 0 && v > score_of(x, first + top[at - 1]))
            at--;
        if (at == k)
            continue;
        n += n < k;
        memmove(top + at + 1, top + at, (n - 1 - at) * sizeof(*top));
        top[at] = i;
    }
}

int run_report_open(const tool *t, const engine *e, bool single, run_report *r) {
    const qsim_tensor *x = e->output_count ? &e->outputs[0] : NULL;
    size_t classes = x ? classes_of(x) : 0;
    bool asked = args_has(&t->args, "top") || args_has(&t->args, "labels");
    int64_t top;
    char shape[256];
    if (!tool_int(t, "top", 1, INT32_MAX, 5, &top))
        return EXIT_USAGE;
    if (args_has(&t->args, "tensors"))
        classes = 0;
    r->classes = asked || single ? classes : 0;
    r->top = (size_t)top < classes ? (size_t)top : classes;
    r->scale = 1;
    r->zero_point = 0;
    if (r->classes) /* of a model without one both stay as they are */
        (void)slot_find_scale(e->model, qsim_session_output_name(e->session, 0), &r->scale,
                              &r->zero_point);
    if (asked && !classes && x)
        return tool_usage(t, "without --top and --labels the ranges of all outputs are printed",
                          "%s: output '%.100s', %s, is not a row of class scores",
                          t->args.operands[0], qsim_session_output_name(e->session, 0),
                          shape_text(x->dims, x->rank, shape));
    /*
     * A package's names are left out if their number is not that of the classes; names from
     * --labels are then an error.
     */
    return r->classes && (asked || r->names.count == classes)
               ? class_names_check(t, &r->names, classes)
               : EXIT_OK;
}

static void json_top(json *j, const qsim_tensor *x, const run_report *r) {
    size_t *top = tool_alloc(r->top, sizeof(*top));
    json_array(j, "top");
    for (size_t row = 0; row < (size_t)x->dims[0]; row++) {
        find_top(x, row * r->classes, r->classes, r->top, top);
        for (size_t k = 0; k < r->top; k++) {
            json_object(j, NULL);
            json_int(j, "row", (int64_t)row);
            json_int(j, "class", (int64_t)top[k]);
            if (r->names.count)
                json_string(j, "name", class_name(&r->names, top[k], NULL));
            json_number(j, "score", element(x, row * r->classes + top[k]));
            json_end(j);
        }
    }
    json_end(j);
    free(top);
}

static void print_top(const char *input, const qsim_tensor *x, const run_report *r) {
    size_t *top = tool_alloc(r->top, sizeof(*top));
    bool named = r->names.count > 0;
    for (size_t row = 0; row < (size_t)x->dims[0]; row++) {
        size_t first = row * r->classes;
        bool share = is_distribution(x, r, first);
        table rows = {.columns = named ? "lrlr" : "lrr"};
        table_cell(&rows, "%s", tool_base_name(input));
        table_cell(&rows, "class");
        if (named)
            table_cell(&rows, "name");
        table_cell(&rows, share ? "probability" : "score");
        find_top(x, first, r->classes, r->top, top);
        for (size_t k = 0; k < r->top; k++) {
            if (x->dims[0] > 1)
                table_cell(&rows, "row %zu: %zu", row, k + 1);
            else
                table_cell(&rows, "%zu", k + 1);
            table_cell(&rows, "%zu", top[k]);
            if (named)
                table_cell(&rows, "%s", class_name(&r->names, top[k], NULL));
            double score = real_score(x, r, first + top[k]);
            table_cell(&rows, share ? "%.2f %%" : "%.6g",
                       table_number(share ? 100 * score : score));
        }
        table_print(&rows, stdout);
    }
    free(top);
}

/* ---- one input ---- */

void run_report_json(const engine *e, const run_report *r, double ms, json *j) {
    json_number(j, "ms", ms);
    json_array(j, "outputs");
    for (size_t i = 0; i < e->output_count; i++) {
        const qsim_tensor *x = &e->outputs[i];
        range found = find_range(x);
        json_object(j, NULL);
        json_string(j, "name", qsim_session_output_name(e->session, (int32_t)i));
        json_string(j, "dtype", qsim_dtype_name(x->dtype));
        json_row(j, "shape");
        for (int32_t k = 0; k < x->rank; k++)
            json_int(j, NULL, x->dims[k]);
        json_end(j);
        json_number(j, "min", found.low);
        json_number(j, "max", found.high);
        json_number(j, "mean", found.mean);
        json_end(j);
    }
    json_end(j);
    if (r->classes)
        json_top(j, &e->outputs[0], r);
}

/* `files`: with the number of each file of --output-dir. */
static void print_ranges(const engine *e, bool files) {
    static const char *const heading[] = {"output", "type", "shape", "min", "max", "mean", "file"};
    table rows = {.columns = files ? "lllrrrl" : "lllrrr"};
    char shape[256];
    for (size_t i = 0; i < (files ? 7 : 6); i++)
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
        if (files)
            table_cell(&rows, "output_%zu", i);
    }
    table_print(&rows, stdout);
}

void run_report_print(const tool *t, const char *input, const engine *e, const run_report *r) {
    if (r->classes)
        print_top(input, &e->outputs[0], r);
    if (!r->classes || e->output_count > 1 || t->verbose)
        print_ranges(e, args_has(&t->args, "tensors") && args_has(&t->args, "output-dir"));
}
