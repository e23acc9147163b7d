/* SPDX-License-Identifier: MIT */
/* Times of repeated runs, their summary and their comparison. */
#ifndef QSIM_LATENCY_H
#define QSIM_LATENCY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct latency {
    double *ms;
    size_t count, capacity;
    double min, median, mean, deviation, p90, p99; /* set by latency_summarize */
} latency;

void latency_add(latency *l, double ms);
/* Sorts the times and sets the summary, 0 without times. */
void latency_summarize(latency *l);
/* A quantile of sorted times, interpolated between the two nearest; 0 if there are none. */
double latency_quantile(const latency *l, double q);
void latency_free(latency *l);
double latency_median(const double *ms, size_t count);
/* Does reading the clock, which takes `clock_ms`, make up 2 % of the median or more? */
bool latency_is_too_short(const latency *l, double clock_ms);

/* The ratio of a's time to b's, and the half-width of its 95 % interval. */
typedef struct time_ratio {
    double value, margin; /* margin NaN: too few rounds to tell */
} time_ratio;

#define LATENCY_BLOCKS 20 /* of rounds, where there are enough */
/*
 * Takes times in the order of measuring, a[i] and b[i] in one round. The interval comes from blocks
 * of consecutive rounds, so that a disturbance longer than a round does not count as many
 * independent ones.
 */
time_ratio latency_ratio(const double *a, const double *b, size_t count);
/* The ratio of b to a. */
time_ratio latency_inverse(time_ratio r);
/* Does the interval exclude 1? False where it is not known. */
bool latency_differs(time_ratio r);
/*
 * Writes "1.83 ± 0.05 times faster than A", "1.10 ± 0.02 times slower than A", or that the times
 * cannot be told apart, for a model that takes 1/value of A's time.
 */
#define LATENCY_WORDS 192
const char *latency_verdict(time_ratio r, const char *than, char words[LATENCY_WORDS]);

#endif
