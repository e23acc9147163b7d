/* SPDX-License-Identifier: MIT */
/* Values as horizontal bars, and histograms with a range. */
#include "common/chart.h"
#include "common/svg.h"

#include <math.h>
#include <stdio.h>

#define BAR   17.0
#define STEP  23.0
#define WIDTH 520.0

static double width_of(const char *label) {
    return fmin(svg_width(label, 12), 360);
}

/* Shortens a label to the space beside its bar. */
static void short_label(const char *label, char out[64]) {
    snprintf(out, 64, "%.58s", label);
}

void chart_values(text *svg, const char *title, const chart_value *values, size_t count) {
    double low = 0, high = 0, longest = 0, behind = 0;
    char label[64];
    for (size_t i = 0; i < count; i++) {
        const double v = isfinite(values[i].value) ? values[i].value : 0;
        low = fmin(low, v);
        high = fmax(high, v);
        short_label(values[i].label, label);
        longest = fmax(longest, width_of(label));
        behind = fmax(behind, svg_width(values[i].text, 11));
    }
    const double left = longest + 30, span = high - low > 0 ? high - low : 1;
    const double zero = left - low / span * WIDTH;
    svg_begin(svg, fmax(left + WIDTH + behind + 20, svg_width(title, 16) + 40),
              60 + STEP * (double)count, title);
    svg_text(svg, 20, 26, (svg_style){16, SVG_START, 0, svg_black}, title);
    svg_line(svg, zero, 42, zero, 50 + STEP * (double)count, svg_pale);
    for (size_t i = 0; i < count; i++) {
        const double v = isfinite(values[i].value) ? values[i].value : 0;
        const double y = 46 + STEP * (double)i, w = fabs(v) / span * WIDTH;
        short_label(values[i].label, label);
        svg_text(svg, left - 8, y + BAR * 0.72, (svg_style){12, SVG_END, 0, svg_black}, label);
        svg_rect(svg, v < 0 ? zero - w : zero, y, fmax(w, 0.5), BAR,
                 values[i].marked ? svg_orange : svg_blue, values[i].label);
        svg_text(svg, (v < 0 ? zero : zero + w) + 5, y + BAR * 0.72,
                 (svg_style){11, SVG_START, 0, svg_black}, values[i].text);
    }
    svg_end(svg);
}

void chart_histogram(text *svg, const char *title, const chart_bins *h) {
    const double height = 90, top = 44, left = 20;
    const double high = h->low + h->width * (double)h->count;
    const double from = fmin(h->low, h->range_low), to = fmax(high, h->range_high);
    const double span = to - from > 0 ? to - from : 1;
    double most = 0;
    char number[32];
    for (size_t i = 0; i < h->count; i++)
        most = fmax(most, log10(1 + (double)h->counts[i]));
    svg_begin(svg, WIDTH + 40, top + height + 26, title);
    svg_text(svg, left, 22, (svg_style){13, SVG_START, 0, svg_black}, title);
    for (size_t i = 0; i < h->count && most > 0; i++) {
        const double x = left + (h->low + h->width * (double)i - from) / span * WIDTH;
        const double tall = log10(1 + (double)h->counts[i]) / most * height;
        const double from_edge = h->low + h->width * (double)i, to_edge = from_edge + h->width;
        if (h->counts[i] > 0)
            svg_rect(svg, x, top + height - tall, fmax(h->width / span * WIDTH - 0.5, 0.5), tall,
                     to_edge <= h->range_low || from_edge >= h->range_high ? svg_orange : svg_blue,
                     NULL);
    }
    svg_line(svg, left, top + height, left + WIDTH, top + height, svg_gray);
    const double ends[2] = {h->range_low, h->range_high};
    for (int k = 0; k < 2; k++) {
        const double x = left + (ends[k] - from) / span * WIDTH;
        snprintf(number, sizeof(number), "%.4g", ends[k]);
        svg_line(svg, x, top - 8, x, top + height + 6, svg_black);
        svg_text(svg, x, top + height + 19, (svg_style){11, k ? SVG_END : SVG_START, 0, svg_black},
                 number);
    }
    svg_end(svg);
}
