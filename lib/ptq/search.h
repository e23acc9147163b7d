/* SPDX-License-Identifier: MIT */
/* What the methods of searching share. */
#ifndef QS_SEARCH_H
#define QS_SEARCH_H

#include "ptq/quantizer.h"
#include "ptq/recipe.h"

typedef struct qs_search {
    const qsim_model *prepared;
    const qsim_calibration *c;
    qsim_quantize_options base; /* of the candidates; its recipe is `recipe` */
    qsim_search_options options;
    qsim_recipe *recipe; /* of the next candidate; what was found when a method returns */
    double best;
    qsim_error *error;
} qs_search;

/* Chooses granularity and symmetry of weights layer by layer (greedy.c). */
int qs_search_greedy(qs_search *s);
/* Chooses percentiles of activations (anneal.c). */
int qs_search_anneal(qs_search *s);
/* Quantizes with the recipe and asks for the score. */
int qs_search_score(qs_search *s, double *score);
/* CANCELLED if the caller says so. */
int qs_search_progress(const qs_search *s, const char *what, size_t done, size_t total);

#endif
