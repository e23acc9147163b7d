/* SPDX-License-Identifier: MIT */
#include "pages.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_LAYERS 40
#define MOST_BINS   120

static void draw_values(page *p, const char *title, const chart_value *values, size_t count) {
    text svg = {0};
    if (count == 0)
        return;
    chart_values(&svg, title, values, count);
    page_chart(p, &svg);
    text_free(&svg);
}

void page_models(page *p, const page_model *models, size_t count) {
    if (!p->path)
        return;
    chart_value *values = tool_alloc(count, sizeof(*values));
    char(*texts)[32] = tool_alloc(count, sizeof(*texts));
    for (int times = 0; times < 2; times++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
            const double v = times ? models[i].ms : (double)models[i].bytes;
            if (!(v > 0))
                continue;
            (void)(times ? tool_time(v, texts[n]) : tool_bytes(v, texts[n]));
            values[n] = (chart_value){models[i].name, v, texts[n], i > 0};
            n++;
        }
        draw_values(p, times ? "Time of a run" : "Size of the file", values, n);
    }
    free(values);
    free(texts);
}

void page_layers(page *p, const qsim_verdict *v) {
    chart_value values[MOST_LAYERS];
    char texts[MOST_LAYERS][48];
    const char *names[MOST_LAYERS];
    size_t n = 0;
    if (!p->path || !v)
        return;
    for (int32_t i = 0; i < qsim_verdict_layer_count(v) && n < MOST_LAYERS; i++) {
        qsim_verdict_info l = {.struct_size = sizeof(l)};
        if (qsim_verdict_layer(v, i, &l))
            continue;
        names[n] = l.name;
        if (isfinite(l.before))
            snprintf(texts[n], sizeof(texts[n]), "%.1f dB (reads %.1f)", l.sqnr, l.before);
        else
            snprintf(texts[n], sizeof(texts[n]), "%.1f dB", l.sqnr);
        values[n] = (chart_value){names[n], l.sqnr, texts[n], l.sqnr < 20};
        n++;
    }
    page_heading(p, "SQNR behind each layer");
    draw_values(p, "In dB, layers that add most noise first; below 20 dB in orange", values, n);
}

/* ---- ranges ---- */

static void draw_range(page *p, const qsim_calibration *c, int32_t index, int32_t method,
                       double percentile) {
    const qsim_observer *o = qsim_calibration_observer(c, index);
    uint64_t all[4096], few[MOST_BINS] = {0};
    chart_bins h = {.counts = few};
    size_t count;
    float low, high;
    text title = {0}, svg = {0};
    if (qsim_observer_histogram(o, &h.low, &h.width, all, 4096, &count) || count == 0 ||
        qsim_observer_range(o, method, percentile, QSIM_UINT8, 0, &low, &high))
        return;
    const size_t each = (count + MOST_BINS - 1) / MOST_BINS;
    for (size_t i = 0; i < count; i++)
        few[i / each] += all[i];
    h.count = (count + each - 1) / each;
    h.width *= (double)each;
    h.range_low = (double)low;
    h.range_high = (double)high;
    text_printf(&title, "%s: values from %.6g to %.6g", qsim_calibration_name(c, index),
                (double)qsim_observer_min(o), (double)qsim_observer_max(o));
    chart_histogram(&svg, title.data, &h);
    page_half_chart(p, &svg);
    text_free(&svg);
    text_free(&title);
}

static int32_t find_tensor(const qsim_calibration *c, const char *name) {
    for (int32_t i = 0; i < qsim_calibration_count(c); i++)
        if (strcmp(qsim_calibration_name(c, i), name) == 0)
            return i;
    return -1;
}

void page_ranges(page *p, const char *heading, const qsim_calibration *c, int32_t method,
                 double percentile, const qsim_verdict *v, size_t most) {
    const int32_t count = qsim_calibration_count(c);
    size_t drawn = 0;
    if (!p->path || !c)
        return;
    bool *done = tool_alloc((size_t)count, sizeof(*done));
    page_heading(p, heading);
    page_note(p, "Bars are logarithms of counts. The upright lines are the ends of the range; what "
                 "lies beyond it, in orange, is cut off.");
    for (int32_t i = 0; i < qsim_verdict_layer_count(v) && drawn < most; i++) {
        qsim_verdict_info l = {.struct_size = sizeof(l)};
        const int32_t at = qsim_verdict_layer(v, i, &l) ? -1 : find_tensor(c, l.tensor);
        if (at < 0 || done[at])
            continue;
        done[at] = true;
        draw_range(p, c, at, method, percentile);
        drawn++;
    }
    for (int32_t i = 0; i < count && drawn < most; i++)
        if (!done[i]) {
            draw_range(p, c, i, method, percentile);
            drawn++;
        }
    free(done);
}
