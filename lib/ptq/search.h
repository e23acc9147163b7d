/* SPDX-License-Identifier: MIT */
/* Types and functions that search methods share. */
#ifndef QS_SEARCH_H
#define QS_SEARCH_H

#include "ptq/judge.h"
#include "ptq/quantizer.h"
#include "ptq/recipe.h"

/* Standard errors by which a method as a whole has to be better. */
#define QS_SURE 2.0

/* The best candidate so far, saved to be restored. */
typedef struct qs_search_state {
    qsim_recipe *recipe;
    double score, microseconds;
    qsim_judgement judgement;
    int64_t bytes;
    int32_t floats, mode; /* mode: QSIM_MODE_* */
} qs_search_state;

typedef struct qs_search {
    const qsim_model *prepared;
    const qsim_calibration *c;
    qsim_quantize_options base; /* of the candidates; its recipe is `recipe` */
    const qsim_recipe *given;   /* the recipe that the search begins with; or NULL */
    qsim_search_options options;
    qsim_recipe *recipe; /* of the next candidate */
    qsim_recipe *best_recipe;
    qs_judge judge; /* open if there are inputs */
    double best;    /* score of best_recipe, NaN: none was tried */
    /* Of best_recipe, for goals; the judgement only where there is a judge. */
    qsim_judgement judgement;
    int64_t bytes;
    double microseconds;
    int32_t mode;
    bool met;   /* whether the candidate judged last meets max_drop */
    bool quiet; /* candidates are not reported */
    /*
     * > 0: a candidate is kept if its loss is lower by this many standard errors; 0: if it is lower
     * at all; < 0: unless the loss of the best so far is lower by -proof standard errors.
     */
    double proof;
    /* A candidate is reported as kept only if it is better than this one as well; NULL: none. */
    const qs_search_state *rival;
    int32_t floats; /* units that the recipe keeps in float */
    uint64_t end;   /* end of the caller's time, by qs_clock_ns; 0: none */
    qsim_error *error;
} qs_search;

/* Chooses granularity and symmetry of weights layer by layer (greedy.c). */
int qs_search_greedy(qs_search *s);
/* Chooses percentiles of activations (anneal.c). */
int qs_search_anneal(qs_search *s);
/* Chooses one method for all ranges (ranges.c). */
int qs_search_ranges(qs_search *s);
/* Rounds by GPTQ and corrects biases one after the other (refine.c). */
int qs_search_refine(qs_search *s);
/* Moves factors between layers, and from normalizations to layers (scaling.c). */
int qs_search_equalize(qs_search *s);
int qs_search_smooth(qs_search *s);
/* Keeps in float the few units that spoil the result (fallback.c). */
int qs_search_fallback(qs_search *s);
/* Chooses between corrected biases and those of the model (correction.c). */
int qs_search_correction(qs_search *s);
/* Tries methods and precisions one after the other (auto.c). */
int qs_search_auto(qs_search *s);

/*
 * Quantizes with the recipe and judges the candidate; `score` may be NULL. The recipe is kept if
 * the candidate is the best so far by the test of s->proof (qs_judge_is_sure). `what` describes the
 * attempt to the caller; NULL: it is not reported.
 */
int qs_search_try(qs_search *s, const char *what, double *score);
/*
 * The same for methods with very many candidates: time and size are not measured, and s->proof is
 * not used.
 */
int qs_search_step(qs_search *s, const char *what, double *score);
/*
 * Reports the best candidate so far, which has not been reported yet, as the last attempt. If its
 * model cannot be made, because the context is cancelled, restores the state `before` it. Returns
 * CANCELLED.
 */
int qs_search_stop(qs_search *s, qs_search_state *before, const char *what, double microseconds);
/* Returns to the best recipe and mode so far, for the next candidate. */
int qs_search_return(qs_search *s);
/* Begins again with the recipe that was given, in another mode, for the next candidate. */
int qs_search_restart(qs_search *s, int32_t mode);
/* Saves the best candidate so far, but not the losses of its samples. */
int qs_search_save(const qs_search *s, qs_search_state *out);
/* Makes a saved candidate the best again; from->recipe is moved. */
void qs_search_restore(qs_search *s, qs_search_state *from);
/* Whether the best candidate so far is better than a saved one. */
bool qs_search_is_better(const qs_search *s, const qs_search_state *than);
/*
 * Makes a quantizer of the prepared model's main graph with the settings of the search.
 * qs_search_end has to be called, also after an error.
 */
int qs_search_begin(const qs_search *s, qs_quantizer *q);
void qs_search_end(qs_quantizer *q);
/* Reports progress; CANCELLED if the caller says so. */
int qs_search_progress(qs_search *s, const char *what, size_t done, size_t total);
/* Whether the caller's time is up. */
bool qs_search_is_over(const qs_search *s);
/* Whether the best candidate so far meets max_drop. */
bool qs_search_is_met(const qs_search *s);

/* Prepares a search: checks options, prepares the model, opens the judge. */
int qs_search_open(qs_search *s, const qsim_model *model, const qsim_calibration *c,
                   const qsim_quantize_options *base, const qsim_search_options *options,
                   qsim_error *error);
void qs_search_close(qs_search *s);

/* ---- tensors that get a scale (ranges.c) ---- */

/* Lists these tensors as indices in the calibration; `tensors` has room for all. */
int qs_search_tensors(qs_search *s, int32_t *tensors, size_t *count);
/* A recipe entry for a tensor whose range is found by this method. */
qsim_recipe_entry qs_search_method_entry(const qs_search *s, int32_t method, double percentile);
/* Bytes of a line that describes a candidate. */
#define QS_CHANGE 160
/* Writes "NAME: percentile 99.92", or for NaN that the range is the initial one. */
void qs_search_name_cut(const char *name, double percentile, char text[QS_CHANGE]);
/* Sets a tensor's entry in the recipe of the next candidate. */
int qs_search_set_range(qs_search *s, int32_t tensor, const qsim_recipe_entry *entry);

/* ---- units (precision.c) ---- */

typedef struct qs_unit {
    const char *name, *op_type, *takes, *tensor; /* tensor: its output */
    qs_kind kind;
    qsim_recipe_entry initial; /* its entry in the recipe before the search; kind 0: none */
    qs_weight_form form;       /* of weights, as the options say */
    qsim_unit result;          /* for the caller; its texts are those above */
    const char **activations;  /* those with a scale that it reads or makes */
    size_t activation_count;
} qs_unit;

typedef struct qs_units {
    qs_arena arena; /* texts */
    qs_unit *items;
    size_t count;
    int32_t floats; /* other units, which the recipe keeps in float */
} qs_units;

/* The units of the model that the recipe makes, in order of execution. */
int qs_units_find(qs_search *s, qs_units *u);
void qs_units_free(qs_search *s, qs_units *u);
/* Keeps a unit in float, or computes it in integers as the options say. */
int qs_unit_set(qs_search *s, const qs_unit *u, bool in_float);
/* Gives 16 bits to the activations that a unit reads and makes. */
int qs_unit_widen(qs_search *s, const qs_unit *u);
/*
 * Measures loss_gained of all units: how much lower than `loss` the loss is with only this unit in
 * float or, with `wide`, in 16 bits. `total` is the progress' total. If time is up, *done is the
 * number of units measured.
 */
int qs_units_gains(qs_search *s, qs_units *u, bool wide, double loss, size_t total, size_t *done);
/*
 * Measures loss_alone and agreement of the first `count` units: with one unit in 8 bits and all
 * others in float, as they are left afterwards. Units for which time is up keep NaN
 * (sensitivity.c).
 */
int qs_units_alone(qs_search *s, qs_units *u, size_t count);
/*
 * The name of a float tensor after quantization to 8 bits in the quantized model; NULL: there is
 * none (sensitivity.c).
 */
const char *qs_quantized_name(const qsim_model *m, const char *tensor, char *buffer, size_t size);
/* Judges the model that the recipe makes, without making it a candidate. */
int qs_units_judge(qs_search *s, qsim_judgement *out);
/* The time of the model that the recipe makes, by the caller's costs. */
int qs_units_cost(qs_search *s, double *microseconds);
/* Measures the microseconds of all units. */
int qs_units_times(qs_search *s, qs_units *u);
/* Sorts units by gain, the greatest first; marks those before the knee and returns their number. */
size_t qs_units_sort(qs_unit *items, size_t count);

#endif
