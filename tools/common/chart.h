/* SPDX-License-Identifier: MIT */
/*
 * Charts of a classifier's results, as SVG text for qsim_file_write. Colours are safe for
 * colour-blind readers (one hue from light to dark; blue against orange), and every cell and bar
 * carries its number.
 */
#ifndef TOOL_CHART_H
#define TOOL_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

/* Settings of all charts. `labels` NULL: the class numbers; `note` NULL: none. */
typedef struct chart {
    int classes;
    const char *const *labels;
    const char *title;
    const char *note; /* a second, smaller line */
} chart;

/* Rows: actual class; columns: predicted class; counts[actual * classes + predicted]. */
void chart_confusion(text *svg, const chart *c, const uint64_t *counts);

/* after - before, cell by cell. */
void chart_difference(text *svg, const chart *c, const uint64_t *before, const uint64_t *after);

typedef struct chart_series {
    const char *name;
    const double *percent; /* one per class, 0 to 100; NaN: no data */
} chart_series;

/* Accuracy per class: one or two bars for each. */
void chart_bars(text *svg, const chart *c, const chart_series *series, int count);

typedef struct chart_value {
    const char *label;
    double value;
    const char *text; /* after the bar */
    bool marked;      /* drawn in another colour */
} chart_value;

/* One bar per value, from zero; values that are not finite have none. */
void chart_values(text *svg, const char *title, const chart_value *values, size_t count);

/* Bins of equal width, and the chosen range; bins outside of it have another colour. */
typedef struct chart_bins {
    double low, width;
    const uint64_t *counts;
    size_t count;
    double range_low, range_high;
} chart_bins;

/* Heights are logarithms of the counts. */
void chart_histogram(text *svg, const char *title, const chart_bins *bins);

#endif
