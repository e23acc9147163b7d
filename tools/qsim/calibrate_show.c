/* SPDX-License-Identifier: MIT */
/* qsim calibrate --show: ranges and histograms of each tensor of a calibration. */
#include <math.h>
#include <stdlib.h>

#include "calibrating.h"
#include "common/columns.h"
#include "pages.h"

#define COLUMNS 24 /* of a histogram in the table */

/* Counts over COLUMNS equal parts from least to greatest value; false: no values. */
static bool merge_bins(const qsim_observer *o, double out[COLUMNS]) {
    uint64_t *bins = tool_alloc(4096, sizeof(*bins));
    double low, width;
    size_t count;
    bool seen = !qsim_observer_histogram(o, &low, &width, bins, 4096, &count) && count > 0;
    for (size_t k = 0; k < COLUMNS; k++)
        out[k] = 0;
    for (size_t i = 0; i < count && seen; i++)
        out[i * COLUMNS / count] += (double)bins[i];
    free(bins);
    return seen;
}

/* Draws the logarithm of each count as a block of one of eight heights. */
static void put_bars(const qsim_observer *o, text *out) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double counts[COLUMNS], most = 0;
    if (!merge_bins(o, counts))
        return;
    for (int k = 0; k < COLUMNS; k++)
        most = fmax(most, log(1 + counts[k]));
    for (int k = 0; k < COLUMNS; k++)
        text_puts(out, blocks[(int)ceil(most > 0 ? log(1 + counts[k]) / most * 8 : 0)]);
}

static void print_ranges(const qsim_calibration *c) {
    static const char *const heading[] = {"tensor",
                                          "values",
                                          "min",
                                          "max",
                                          "percentile 99.999",
                                          "mse",
                                          "entropy",
                                          "histogram (logarithms)"};
    table rows = {.columns = "lrrrrrrl"};
    for (size_t i = 0; i < 8; i++)
        table_cell(&rows, "%s", heading[i]);
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        const qsim_observer *o = qsim_calibration_observer(c, i);
        text bars = {0};
        table_cell(&rows, "%s", qsim_calibration_name(c, i));
        table_cell(&rows, "%llu", (unsigned long long)qsim_observer_count(o));
        table_cell(&rows, "%.6g", (double)qsim_observer_min(o));
        table_cell(&rows, "%.6g", (double)qsim_observer_max(o));
        for (int32_t m = QSIM_METHOD_PERCENTILE; m <= QSIM_METHOD_ENTROPY; m++) {
            float low, high;
            if (qsim_observer_range(o, m, 0, QSIM_UINT8, 0, &low, &high))
                table_cell(&rows, "-");
            else
                table_cell(&rows, "%.4g to %.4g", (double)low, (double)high);
        }
        put_bars(o, &bars);
        table_cell(&rows, "%s", bars.data ? bars.data : "");
        text_free(&bars);
    }
    table_print(&rows, stdout);
}

static void json_histogram(const qsim_observer *o, json *j) {
    uint64_t *bins = tool_alloc(4096, sizeof(*bins));
    double low, width;
    size_t count;
    if (!qsim_observer_histogram(o, &low, &width, bins, 4096, &count)) {
        json_line(j, "histogram");
        json_number(j, "low", low);
        json_number(j, "width", width);
        json_row(j, "counts");
        for (size_t i = 0; i < count; i++)
            json_int(j, NULL, (int64_t)bins[i]);
        json_end(j);
        json_end(j);
    }
    free(bins);
}

static void print_json(const tool *t, const qsim_calibration *c, const char *file) {
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", file);
    json_string(&j, "model", qsim_calibration_model(c));
    json_int(&j, "samples", qsim_calibration_samples(c));
    json_array(&j, "tensors");
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        const qsim_observer *o = qsim_calibration_observer(c, i);
        json_object(&j, NULL);
        json_string(&j, "name", qsim_calibration_name(c, i));
        json_int(&j, "values", (int64_t)qsim_observer_count(o));
        json_object(&j, "ranges");
        for (int32_t m = QSIM_METHOD_MINMAX; m <= QSIM_METHOD_ENTROPY; m++) {
            float low, high;
            if (qsim_observer_range(o, m, 0, QSIM_UINT8, 0, &low, &high))
                continue;
            json_row(&j, range_methods[m]);
            json_number(&j, NULL, (double)low);
            json_number(&j, NULL, (double)high);
            json_end(&j);
        }
        json_end(&j);
        json_histogram(o, &j);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    tool_print_json(t, &j);
}

int calibration_show(const tool *t, const char *file) {
    qsim_calibration *c = NULL;
    page p;
    int code = EXIT_OK;
    if (!page_open(t, &p, &code))
        return code;
    code = calibration_open(t, file, &c);
    if (code == EXIT_OK) {
        page_ranges(&p, "Activations and their ranges by minmax", c, QSIM_METHOD_MINMAX, 0, NULL,
                    200);
        if (!t->json || p.path) {
            page_report_begin(t, &p);
            printf("%s: %lld sample%s, %d tensors\n", tool_base_name(file),
                   (long long)qsim_calibration_samples(c), tool_plural(qsim_calibration_samples(c)),
                   qsim_calibration_count(c));
            print_ranges(c);
            page_report_end(t, &p);
        }
        if (t->json)
            print_json(t, c, file);
    }
    qsim_calibration_free(c);
    return page_close(t, &p, "qsim calibrate --show", code);
}
