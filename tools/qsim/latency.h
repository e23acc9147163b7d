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

#endif
