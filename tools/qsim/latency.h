/* SPDX-License-Identifier: MIT */
/* Times of repeated runs and what is said of them. */
#ifndef QSIM_LATENCY_H
#define QSIM_LATENCY_H

#include <stddef.h>

typedef struct latency {
    double *ms;
    size_t count, room;
    double min, median, mean, deviation, p90, p99; /* by latency_summarize */
} latency;

void latency_add(latency *l, double ms);
/* Sorts the times. All results are 0 where there are none. */
void latency_summarize(latency *l);
/* Of the sorted times, between the two nearest; 0 where there are none. */
double latency_quantile(const latency *l, double q);
void latency_free(latency *l);
double latency_median(const double *ms, size_t count);

/* How many times as long `a` takes as `b`, and the half-width of a 95 % interval of that. */
typedef struct time_ratio {
    double value, margin; /* margin NaN: too few rounds to tell */
} time_ratio;

/*
 * Of times in the order in which they were taken, a[i] and b[i] in one round. The interval comes
 * from blocks of consecutive rounds, so that disturbances longer than a round are not taken for
 * many independent ones.
 */
time_ratio latency_ratio(const double *a, const double *b, size_t count);
/* The same the other way round. */
time_ratio latency_inverse(time_ratio r);
/* "1.83 ± 0.05 times faster than", "1.10 times slower than": of what takes 1/value of the time. */
const char *latency_verdict(time_ratio r, char words[64]);

#endif
