/* SPDX-License-Identifier: MIT */
/* Types and functions that search methods share. */
#ifndef QS_SEARCH_H
#define QS_SEARCH_H

#include "ptq/judge.h"
#include "ptq/quantizer.h"
#include "ptq/recipe.h"

/* The best so far, to come back to. */
typedef struct qs_standing {
    qsim_recipe *recipe;
    double score, microseconds;
    qsim_judgement judgement;
    int64_t bytes;
    int32_t floats;
} qs_standing;

typedef struct qs_search {
    const qsim_model *prepared;
    const qsim_calibration *c;
    qsim_quantize_options base; /* of the candidates; its recipe is `recipe` */
    qsim_search_options options;
    qsim_recipe *recipe; /* of the next candidate */
    qsim_recipe *best_recipe;
    qs_judge judge; /* open if there are inputs */
    double best;    /* score of best_recipe, NaN: none was tried */
    /* Of best_recipe, for goals; the judgement only where there is a judge. */
    qsim_judgement judgement;
    int64_t bytes;
    double microseconds;
    bool quiet; /* candidates are not told of */
    /* What a candidate has to beat, too, for the caller to keep it; NULL: nothing. */
    const qs_standing *rival;
    int32_t floats; /* units that the recipe keeps in float */
    uint64_t end;   /* of the time that the caller gives, by qs_clock_ns; 0: none */
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
/* Chooses between corrected biases and those of the model (correction.c). */
int qs_search_correction(qs_search *s);
/* Makes the ladder of attempts (auto.c). */
int qs_search_auto(qs_search *s);

/*
 * Quantizes with the recipe and judges the candidate; `score` may be NULL. The recipe is kept if it
 * is the best so far. `what`: the attempt's line for the caller; NULL: not reported.
 */
int qs_search_try(qs_search *s, const char *what, double *score);
/* The same for a method of very many candidates: reported, but neither timed nor sized. */
int qs_search_step(qs_search *s, const char *what, double *score);
/* Reports the best so far, which no attempt was told of, as the last one. Returns CANCELLED. */
int qs_search_stop(qs_search *s, const char *what, double microseconds);
/* Makes the best recipe that of the next candidate. */
int qs_search_return(qs_search *s);
/* Copies the best so far. */
int qs_search_stand(const qs_search *s, qs_standing *out);
/* Goes on from there, as if nothing better had been found since; takes the recipe away. */
void qs_search_resume(qs_search *s, qs_standing *from);
/* Whether the best so far is better than that. */
bool qs_search_beats(const qs_search *s, const qs_standing *than);
/* Reports progress; CANCELLED if the caller says so. */
int qs_search_progress(qs_search *s, const char *what, size_t done, size_t total);
/* Whether the caller's time is up. */
bool qs_search_is_over(const qs_search *s);
/* Whether the best so far is within max_drop. */
bool qs_search_is_met(const qs_search *s);

/* Everything but the methods: options checked, model prepared, judge open. */
int qs_search_open(qs_search *s, const qsim_model *model, const qsim_calibration *c,
                   const qsim_quantize_options *base, const qsim_search_options *options,
                   qsim_error *error);
void qs_search_close(qs_search *s);

/* ---- tensors that get a scale (ranges.c) ---- */

/* Indices in the calibration, in `tensors` with room for all of them. */
int qs_search_tensors(qs_search *s, int32_t *tensors, size_t *count);
/* The entry of a tensor whose range that method finds. */
qsim_recipe_entry qs_search_method_entry(const qs_search *s, int32_t method, double percentile);
/* Bytes for a line that says what a candidate changes. */
#define QS_CHANGE 160
/* Writes "NAME: percentile 99.92", or for a NaN that the range is the one of the beginning. */
void qs_search_name_cut(const char *name, double percentile, char text[QS_CHANGE]);
/* Sets a tensor's entry in the recipe of the next candidate. */
int qs_search_set_range(qs_search *s, int32_t tensor, const qsim_recipe_entry *entry);

/* ---- units (precision.c) ---- */

typedef struct qs_unit {
    const char *name, *op_type, *takes, *tensor; /* tensor: what it makes */
    qs_kind kind;
    qsim_recipe_entry begun;  /* its entry in the recipe before; kind 0: none */
    qs_weight_form form;      /* of weights, as the options say */
    qsim_unit told;           /* texts are those above */
    const char **activations; /* that have a scale and that it reads or makes */
    size_t activation_count;
} qs_unit;

typedef struct qs_units {
    qs_arena arena; /* texts */
    qs_unit *items;
    size_t count;
} qs_units;

/* The units of the model that the recipe makes, in order of execution. */
int qs_units_find(qs_search *s, qs_units *u);
void qs_units_free(qs_search *s, qs_units *u);
/* Keeps a unit in float, or computes it in integers as the options say. */
int qs_unit_set(qs_search *s, const qs_unit *u, bool in_float);
/* Gives 16 bits to the activations that it reads and makes. */
int qs_unit_widen(qs_search *s, const qs_unit *u);
/*
 * loss_gained of all units beside a network of this loss, in float or, `wide`, in 16 bits; `total`
 * is what progress is told. Where it ends early: of *done units.
 */
int qs_units_gains(qs_search *s, qs_units *u, bool wide, double loss, size_t total, size_t *done);
/* What a float tensor is called where it has been through 8 bits; NULL: nothing (sensitivity.c). */
const char *qs_quantized_name(const qsim_model *m, const char *tensor, char *buffer, size_t size);
/* Judges what the recipe makes, without making it a candidate. */
int qs_units_judge(qs_search *s, qsim_judgement *out);
/* What the caller's costs say of the model that the recipe makes. */
int qs_units_cost(qs_search *s, double *microseconds);
/* Microseconds of all units. */
int qs_units_times(qs_search *s, qs_units *u);
/* The greatest gain first; marks those before the knee, and returns their number. */
size_t qs_units_sort(qs_unit *items, size_t count);

#endif
