/* SPDX-License-Identifier: MIT */
#include "latency.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

#define CLOSE 0.1 /* an interval within a tenth of 1 */

void latency_add(latency *l, double ms) {
    if (l->count == l->capacity) {
        l->capacity = l->capacity * 2 + 1024;
        l->ms = tool_grow(l->ms, l->capacity, sizeof(*l->ms));
    }
    l->ms[l->count++] = ms;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Interpolates between the two nearest of the sorted times. */
static double quantile(const double *sorted, size_t n, double q) {
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

bool latency_is_too_short(const latency *l, double clock_ms) {
    return l->median < 50 * clock_ms;
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

time_ratio latency_ratio(const double *a, const double *b, size_t count) {
    /* Student's t at 97.5 % for 1, 2, ... degrees of freedom. */
    static const double student[LATENCY_BLOCKS] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36,
                                                   2.31,  2.26, 2.23, 2.20, 2.18, 2.16, 2.14,
                                                   2.13,  2.12, 2.11, 2.10, 2.09, 2.09};
    double sum = 0, squares = 0, part[LATENCY_BLOCKS];
    size_t blocks = count / 3 < LATENCY_BLOCKS ? count / 3 : LATENCY_BLOCKS;
    double under = latency_median(b, count);
    time_ratio r = {under > 0 ? latency_median(a, count) / under : NAN, NAN};
    for (size_t i = 0; i < blocks; i++) {
        size_t first = count * i / blocks, n = count * (i + 1) / blocks - first;
        part[i] = latency_median(a + first, n) / latency_median(b + first, n);
        sum += part[i];
    }
    for (size_t i = 0; i < blocks; i++)
        squares += (part[i] - sum / (double)blocks) * (part[i] - sum / (double)blocks);
    if (blocks > 2)
        r.margin = student[blocks - 2] * sqrt(squares / (double)(blocks - 1) / (double)blocks);
    return r;
}

time_ratio latency_inverse(time_ratio r) {
    return (time_ratio){1 / r.value, r.margin / r.value / r.value};
}

bool latency_differs(time_ratio r) {
    return fabs(r.value - 1) > r.margin; /* false for NaN: unknown */
}

const char *latency_verdict(time_ratio r, const char *than, char words[LATENCY_WORDS]) {
    const bool slower = r.value < 1;
    if (isnan(r.margin) || r.margin >= r.value) {
        snprintf(words, LATENCY_WORDS, "%.2f times as fast as %.80s, from %s to be sure", r.value,
                 than, isnan(r.margin) ? "too few runs" : "runs too uneven");
    } else if (latency_differs(r)) {
        r = slower ? latency_inverse(r) : r;
        snprintf(words, LATENCY_WORDS, "%.2f \xc2\xb1 %.2f times %s than %.80s", r.value, r.margin,
                 slower ? "slower" : "faster", than);
    } else {
        const char *how = r.margin < CLOSE ? "as fast as" : "not clearly faster or slower than";
        snprintf(words, LATENCY_WORDS, "%s %.80s: %.3f \xc2\xb1 %.3f times", how, than, r.value,
                 r.margin);
    }
    return words;
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
