/* SPDX-License-Identifier: MIT */
#include "latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

void latency_add(latency *l, double ms) {
    if (l->count == l->room) {
        l->room = l->room * 2 + 1024;
        l->ms = tool_grow(l->ms, l->room, sizeof(*l->ms));
    }
    l->ms[l->count++] = ms;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between the two nearest of the sorted times. */
static double quantile(const double *sorted, size_t n, double q) {
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

double latency_median(const double *ms, size_t count) {
    if (count == 0)
        return 0;
    double *copy = tool_alloc(count, sizeof(*copy));
    memcpy(copy, ms, count * sizeof(*copy));
    qsort(copy, count, sizeof(*copy), compare_doubles);
    double m = quantile(copy, count, 0.5);
    free(copy);
    return m;
}

void latency_summarize(latency *l) {
    double sum = 0, squares = 0;
    if (l->count == 0)
        return;
    for (size_t i = 0; i < l->count; i++)
        sum += l->ms[i];
    l->mean = sum / (double)l->count;
    for (size_t i = 0; i < l->count; i++)
        squares += (l->ms[i] - l->mean) * (l->ms[i] - l->mean);
    l->deviation = l->count > 1 ? sqrt(squares / (double)(l->count - 1)) : 0;
    qsort(l->ms, l->count, sizeof(*l->ms), compare_doubles);
    l->min = l->ms[0];
    l->median = quantile(l->ms, l->count, 0.5);
    l->p90 = quantile(l->ms, l->count, 0.9);
    l->p99 = quantile(l->ms, l->count, 0.99);
}

double latency_quantile(const latency *l, double q) {
    return l->count ? quantile(l->ms, l->count, q) : 0;
}

void latency_free(latency *l) {
    free(l->ms);
    memset(l, 0, sizeof(*l));
}
