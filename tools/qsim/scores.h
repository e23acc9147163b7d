/* SPDX-License-Identifier: MIT */
/* Counts of a classifier's right and wrong answers. */
#ifndef QSIM_SCORES_H
#define QSIM_SCORES_H

#include "common/dataset.h"

typedef struct scores {
    size_t classes; /* 0 until the first batch */
    uint64_t samples, top1, top5;
    uint64_t *confusion; /* [actual * classes + predicted] */
    bool interrupted;    /* by Ctrl-C: counts are of the samples before it */
} scores;

/* Adds a batch of the data set: `output` has one row of class scores per sample. Prints errors. */
int scores_add(const tool *t, scores *s, const char *file, const dataset *d,
               const qsim_tensor *output, const batch *b);
void scores_free(scores *s);
/* The number of classes if an output has a row of scores for each sample, no other axis; else 0. */
size_t scores_count(const qsim_tensor *output, int64_t samples);
/* The number of classes that a model's first output scores; 0: it does not tell. */
size_t scores_classes(const qsim_model *m);
/*
 * Says which row of a batch has a label that is no class: "a.png has label 7, the model 2 classes";
 * false: none has. A negative label counts as none if not `all` rows have to have one.
 */
bool scores_odd_label(const dataset *d, const batch *b, size_t classes, bool all, text *out);
/* Percentage of class c that was classified right; NaN if it has no samples. */
double scores_class(const scores *s, size_t c, uint64_t *samples, uint64_t *right);
double scores_percent(const scores *s, uint64_t right);

/*
 * Standard error of a proportion of n samples, given and returned in percent: sqrt(p (1 - p) / n).
 */
double proportion_error(double percent, uint64_t n);

/* Answers of a model beside those of a reference, to the same samples. */
typedef struct pairing {
    uint64_t samples;
    uint64_t lost, won; /* samples that only the reference, or only the model gets right */
    uint64_t same;      /* equal answers, right or wrong */
} pairing;

void pairing_add(pairing *p, size_t label, size_t reference, size_t answer);
/* Points of top-1 that the model loses; exact, so that it may equal a bound. NaN: no samples. */
double pairing_drop(const pairing *p);
/* Its standard error: a difference of paired samples varies less than either of both. */
double pairing_error(const pairing *p);

/* Index of the largest value; the first of equals; NaN is never the largest. */
size_t largest(const qsim_tensor *output, size_t first, size_t count);

#endif
