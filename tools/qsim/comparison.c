/* SPDX-License-Identifier: MIT */
/* Tables and JSON of qsim compare. */
#include "comparison.h"

#include <math.h>

#include "common/columns.h"

#define BAD_LAYER_DB 20.0 /* noise is a tenth of the signal: rounding alone seldom gets there */

size_t comparison_misses(const bounds *b, const qsim_metrics *m, miss found[4]) {
    const double sqnr = qsim_metrics_sqnr(m), cosine = qsim_metrics_cosine(m);
    size_t n = 0;
    if (!isnan(b->max_abs) && !(m->max_abs <= b->max_abs))
        found[n++] = (miss){"max abs", m->max_abs, b->max_abs};
    if (!isnan(b->min_sqnr) && !(sqnr >= b->min_sqnr))
        found[n++] = (miss){"SQNR", sqnr, b->min_sqnr};
    if (!isnan(b->min_cosine) && !(cosine >= b->min_cosine))
        found[n++] = (miss){"cosine", cosine, b->min_cosine};
    if (b->allclose && m->outside > 0)
        found[n++] = (miss){"the number of elements that are not close", (double)m->outside, 0};
    return n;
}

bool comparison_fails(const char *file, const tensor_pairs *outputs, const bounds *b) {
    bool bad = false;
    for (size_t i = 0; i < outputs->count; i++) {
        miss found[4];
        const size_t count = comparison_misses(b, &outputs->metrics[i], found);
        for (size_t k = 0; k < count; k++)
            fprintf(stderr, "qsim: %s: output '%.100s': %s is %g, the bound is %g\n", file,
                    outputs->a[i], found[k].what, found[k].value, found[k].bound);
        bad |= count > 0;
    }
    const double same = tensor_pairs_agreement(outputs, 0);
    if (!isnan(b->min_agreement) && !(same >= b->min_agreement)) {
        fprintf(stderr, "qsim: %s: top-1 agreement is %g %%, the bound is %g\n", file, same,
                b->min_agreement);
        bad = true;
    }
    return bad;
}

size_t comparison_first_bad(const comparison *c) {
    const bounds *b = &c->bounds;
    bool given = b->allclose || !isnan(b->max_abs) || !isnan(b->min_sqnr) || !isnan(b->min_cosine);
    for (size_t i = 0; i < c->layers.count; i++) {
        const qsim_metrics *m = &c->layers.metrics[i];
        miss found[4];
        if (given ? comparison_misses(b, m, found) > 0 : !(qsim_metrics_sqnr(m) >= BAD_LAYER_DB))
            return i;
    }
    return c->layers.count;
}

/* ---- the worst element ---- */

/* Coordinates of element `at`, with samples counted along the first axis; returns their number. */
static int32_t coordinates(const qsim_tensor *shape, uint64_t at, uint64_t out[QSIM_MAX_RANK]) {
    for (int32_t i = shape->rank; i-- > 1;) {
        uint64_t size = shape->dims[i] > 0 ? (uint64_t)shape->dims[i] : 1;
        out[i] = at % size;
        at /= size;
    }
    if (shape->rank > 0)
        out[0] = at;
    return shape->rank;
}

static void worst_cell(table *rows, const qsim_metrics *m, const qsim_tensor *shape) {
    uint64_t at[QSIM_MAX_RANK];
    text where = {0};
    if (m->max_abs == 0) {
        table_cell(rows, "-");
        return;
    }
    int32_t rank = coordinates(shape, m->worst, at);
    for (int32_t i = 0; i < rank; i++)
        text_printf(&where, "%s%llu", i ? "," : "", (unsigned long long)at[i]);
    table_cell(rows, "[%s] %.6g, %.6g", where.data ? where.data : "", table_number(m->worst_a),
               table_number(m->worst_b));
    text_free(&where);
}

static void json_worst(json *j, const qsim_metrics *m, const qsim_tensor *shape) {
    uint64_t at[QSIM_MAX_RANK];
    if (m->max_abs == 0) {
        json_null(j, "worst");
        return;
    }
    json_object(j, "worst");
    json_row(j, "index");
    int32_t rank = coordinates(shape, m->worst, at);
    for (int32_t i = 0; i < rank; i++)
        json_int(j, NULL, (int64_t)at[i]);
    json_end(j);
    json_number(j, "a", m->worst_a);
    json_number(j, "b", m->worst_b);
    json_end(j);
}

/* ---- pictures ---- */

/* Does a tensor have the shape of pictures, [N,C,H,W] or [N,H,W,C] with C = 1 or 3? */
static bool is_picture(const qsim_tensor *x) {
    if (x->rank != 4)
        return false;
    const int64_t *d = x->dims;
    const bool first = (d[1] == 1 || d[1] == 3) && d[2] >= 8 && d[3] >= 8;
    const bool last = (d[3] == 1 || d[3] == 3) && d[1] >= 8 && d[2] >= 8;
    return first || last;
}

/* The greatest value of A's pictures, 1 or 255: what PSNR relates to. */
static double picture_peak(const qsim_metrics *m) {
    return m->signal > 4 * (double)m->count ? 255 : 1;
}

/* 10 log10(peak^2 / mean square error). */
static double picture_psnr(const qsim_metrics *m) {
    const double peak = picture_peak(m);
    return 10 * log10(peak * peak * (double)m->count / m->noise);
}

static void print_pictures(const comparison *c) {
    for (size_t i = 0; i < c->outputs.count; i++)
        if (is_picture(&c->engine[0].outputs[i]))
            printf("'%s' as pictures from 0 to %g: PSNR %.2f dB\n", c->outputs.a[i],
                   picture_peak(&c->outputs.metrics[i]),
                   table_number(picture_psnr(&c->outputs.metrics[i])));
}

/* ---- JSON ---- */

static void json_metrics(json *j, const tensor_pairs *pairs, const engine *e, size_t i) {
    const qsim_metrics *m = &pairs->metrics[i];
    json_object(j, NULL);
    json_string(j, "name", pairs->a[i]);
    json_number(j, "max_abs", m->max_abs);
    json_number(j, "max_rel", m->max_rel);
    json_number(j, "sqnr_db", qsim_metrics_sqnr(m));
    json_number(j, "cosine", qsim_metrics_cosine(m));
    json_number(j, "psnr_db", is_picture(&e->outputs[i]) ? picture_psnr(m) : (double)NAN);
    json_bool(j, "allclose", m->outside == 0);
    json_int(j, "elements", (int64_t)m->count);
    json_int(j, "outside", (int64_t)m->outside);
    json_int(j, "nan_both", (int64_t)m->nan_both);
    json_int(j, "nan_one", (int64_t)m->nan_one);
    json_worst(j, m, &e->outputs[i]);
    json_end(j);
}

static double bytes_of(const comparison *c, int k) {
    return (double)qsim_model_bytes(c->engine[k].model);
}

void comparison_print_json(const tool *t, const comparison *c) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    for (int k = 0; k < 2; k++) {
        json_object(&j, k ? "b" : "a");
        json_string(&j, "file", c->file[k]);
        json_int(&j, "bytes", qsim_model_bytes(c->engine[k].model));
        json_number(&j, "median_ms", c->time[k].median);
        json_end(&j);
    }
    json_string(&j, "data", c->data ? c->data : "random");
    json_int(&j, "samples", c->samples);
    json_number(&j, "size_ratio", bytes_of(c, 0) / bytes_of(c, 1));
    json_number(&j, "speed_ratio", c->speed.value);
    json_number(&j, "speed_margin", c->speed.margin);
    json_string(&j, "why_not_faster", c->why.size ? c->why.data : NULL);
    json_array(&j, "outputs");
    for (size_t i = 0; i < c->outputs.count; i++)
        json_metrics(&j, &c->outputs, &c->engine[0], i);
    json_end(&j);
    json_number(&j, "agreement", tensor_pairs_agreement(&c->outputs, 0));
    json_array(&j, "layers");
    for (size_t i = 0; i < c->layers.count; i++)
        json_metrics(&j, &c->layers, &c->layer_engine[0], i);
    json_end(&j);
    size_t bad = comparison_first_bad(c);
    json_string(&j, "first_bad_layer", bad < c->layers.count ? c->layers.a[bad] : NULL);
    json_end(&j);
    tool_print_json(t, &j);
}

/* ---- tables ---- */

static void print_models(const comparison *c) {
    const char *const heading[] = {"", "model", "size", "median"};
    table rows = {.columns = "llrr"};
    char buffer[32], words[LATENCY_WORDS];
    for (size_t i = 0; i < 4; i++)
        table_cell(&rows, "%s", heading[i]);
    for (int k = 0; k < 2; k++) {
        table_cell(&rows, k ? "B" : "A");
        table_cell(&rows, "%s", tool_base_name(c->file[k]));
        table_cell(&rows, "%s", tool_bytes(bytes_of(c, k), buffer));
        table_cell(&rows, "%s", tool_time(c->time[k].median, buffer));
    }
    table_print(&rows, stdout);
    double size = bytes_of(c, 0) / bytes_of(c, 1);
    char sizes[48] = "as large as A";
    if (fabs(size - 1) >= 0.005)
        snprintf(sizes, sizeof(sizes), "%.2f times %s", size < 1 ? 1 / size : size,
                 size < 1 ? "larger" : "smaller");
    printf("B is %s and %s", sizes, latency_verdict(c->speed, "A", words));
    printf(" (%zu run%s of each in turns, batch %lld)\n", c->time[0].count,
           tool_plural((int64_t)c->time[0].count), (long long)c->rows);
    if (c->why.size)
        printf("INT8 is not faster here: %s\n", c->why.data);
    if (c->data)
        printf("data: %s, %lld sample%s\n\n", c->data, (long long)c->samples,
               tool_plural(c->samples));
    else
        printf(
            "data: made up (random, seed 0), %lld sample%s: --data gives figures of your own\n\n",
            (long long)c->samples, tool_plural(c->samples));
}

static void metrics_cells(table *rows, const tensor_pairs *pairs, const engine *e, size_t i) {
    const qsim_metrics *m = &pairs->metrics[i];
    table_cell(rows, "%s", pairs->a[i]);
    table_cell(rows, "%.6g", table_number(m->max_abs));
    table_cell(rows, m->max_rel > 1e6 ? "> 1e6" : "%.6g", table_number(m->max_rel));
    table_cell(rows, "%.2f dB", table_number(qsim_metrics_sqnr(m)));
    table_cell(rows, "%.6f", table_number(qsim_metrics_cosine(m)));
    if (m->outside)
        table_cell(rows, "no, %.3g %%", 100.0 * (double)m->outside / (double)m->count);
    else
        table_cell(rows, "yes");
    worst_cell(rows, m, &e->outputs[i]);
}

static void print_metrics(const tensor_pairs *pairs, const engine *e, const char *what,
                          size_t mark) {
    const char *const heading[] = {what,     "max abs",   "max rel",        "SQNR",
                                   "cosine", "all close", "worst: A's, B's"};
    table rows = {.columns = "lrrrrlll"};
    for (size_t i = 0; i < 7; i++)
        table_cell(&rows, "%s", heading[i]);
    table_cell(&rows, "%s", "");
    for (size_t i = 0; i < pairs->count; i++) {
        metrics_cells(&rows, pairs, e, i);
        table_cell(&rows, "%s", i == mark ? "<- the first bad one" : "");
    }
    table_print(&rows, stdout);
}

static void warn_of_nan(const tool *t, const comparison *c) {
    for (size_t i = 0; i < c->outputs.count; i++) {
        const qsim_metrics *m = &c->outputs.metrics[i];
        if (m->nan_both + m->nan_one > 0)
            tool_warn(t,
                      "output '%.100s': of %llu elements %llu are NaN in both models, which counts "
                      "as equal, and %llu in one of them",
                      c->outputs.a[i], (unsigned long long)m->count,
                      (unsigned long long)m->nan_both, (unsigned long long)m->nan_one);
    }
}

static void print_layers(const comparison *c) {
    size_t bad = comparison_first_bad(c);
    putchar('\n');
    if (c->layers.count == 0) {
        printf("no layer of A has a counterpart in B\n");
        return;
    }
    print_metrics(&c->layers, &c->layer_engine[0], "layer", bad);
    if (bad < c->layers.count)
        printf("first bad layer: %s, SQNR %.2f dB\n", c->layers.a[bad],
               qsim_metrics_sqnr(&c->layers.metrics[bad]));
    else
        printf("no bad layer among the %zu that both models have\n", c->layers.count);
}

void comparison_print(const tool *t, const comparison *c) {
    print_models(c);
    print_metrics(&c->outputs, &c->engine[0], "output", SIZE_MAX);
    print_pictures(c);
    if (tensor_has_classes(c->outputs.a[0], &c->engine[0].outputs[0]))
        printf("top-1 agreement %.2f %% of %llu row%s\n", tensor_pairs_agreement(&c->outputs, 0),
               (unsigned long long)c->outputs.metrics[0].rows,
               tool_plural((int64_t)c->outputs.metrics[0].rows));
    if (args_has(&t->args, "layers"))
        print_layers(c);
    warn_of_nan(t, c);
}
