/* SPDX-License-Identifier: MIT */
/* Times of repeated runs and what is said of them. */
#ifndef QSIM_LATENCY_H
#define QSIM_LATENCY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct latency {
    double *ms;
    size_t count, room;
    double min, median, mean, deviation, p90, p99; /* by latency_summarize */
} latency;

void latency_add(latency *l, double ms);
/* Sorts the times. All results are 0 where there are none. */
void latency_summarize(latency *l);
/* A quantile of sorted times, interpolated between the two nearest; 0 if there are none. */
double latency_quantile(const latency *l, double q);
void latency_free(latency *l);
double latency_median(const double *ms, size_t count);

/* How many times as long `a` takes as `b`, and the half-width of a 95 % interval of that. */
typedef struct time_ratio {
    double value, margin; /* margin NaN: too few rounds to tell */
} time_ratio;

/*
 * Takes times in the order of measuring, a[i] and b[i] in one round. The interval comes from blocks
 * of consecutive rounds, so that a disturbance longer than a round does not count as many
 * independent ones.
 */
time_ratio latency_ratio(const double *a, const double *b, size_t count);
/* The same the other way round. */
time_ratio latency_inverse(time_ratio r);
/* Whether the interval leaves 1 out; false where nothing is known. */
bool latency_differs(time_ratio r);
/* "1.83 ± 0.05 times faster than A", "1.10 ± 0.02 times slower than A", or that it cannot be told:
 * of what takes 1/value of the time. */
#define LATENCY_WORDS 192
const char *latency_verdict(time_ratio r, const char *than, char words[LATENCY_WORDS]);

#endif
