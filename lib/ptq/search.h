/* SPDX-License-Identifier: MIT */
/* What the two searches share. */
#ifndef QS_SEARCH_H
#define QS_SEARCH_H

#include "ptq/quantizer.h"

typedef struct qs_search {
    const qsim_model *prepared;
    const qsim_calibration *c;
    qsim_quantize_options base; /* of the candidates: schemes and percentiles are set for each */
    qsim_search_options options;
    int32_t *schemes;
    size_t layer_count;
    double *percentiles;
    double best;
    qsim_error *error;
} qs_search;

/* Chooses schemes layer by layer (greedy.c). */
int qs_search_greedy(qs_search *s);
/* Chooses percentiles (anneal.c). */
int qs_search_anneal(qs_search *s);
/* Quantizes with the schemes and percentiles given and asks for the score. */
int qs_search_score(qs_search *s, const double *percentiles, double *score);
/* CANCELLED if the caller says so. */
int qs_search_progress(const qs_search *s, const char *what, size_t done, size_t total);

#endif
