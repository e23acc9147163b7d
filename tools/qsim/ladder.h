/* SPDX-License-Identifier: MIT */
/* qsim auto: options, reports, and the ladder of attempts, each with more units in float. */
#ifndef QSIM_LADDER_H
#define QSIM_LADDER_H

#include "costs.h"
#include "pages.h"
#include "quantizing.h"
#include "trial.h"

/* An attempt as it is reported. */
typedef struct attempt {
    char *what;
    qsim_judgement judgement;
    int64_t bytes;
    double microseconds, seconds; /* per sample; since the start */
    int32_t floats;
    bool kept, met;
} attempt;

typedef struct ladder {
    const tool *tool;
    quantizing *q;
    samples seen, unseen; /* samples for the search; for the trial */
    attempt *attempts;
    size_t count;
    double begun, max_drop, seconds;
    double searching, reserve; /* when the search began; ms for the trial, once known */
    int32_t goal;              /* QSIM_GOAL_* */
    int32_t bits;              /* QSIM_BITS_* */
    int32_t mode;              /* QSIM_MODE_*, of what is kept */
    costs costs;               /* from --latency */
    trial trial;
    bool on_unseen;  /* the trial has samples of its own */
    bool kept_plain; /* what was found loses more there than plain quantization, which is kept */
    bool interrupted, over, met;
    int saved;          /* exit code of the last save */
    const char *recipe; /* recipe file in the command; NULL: options suffice */
    char *own_recipe;   /* OUTPUT.qrecipe, unless another is named */
    text command;
} ladder;

/* Reads --max-drop, --budget, --goal, --bits, --latency. */
int ladder_options(const tool *t, ladder *l);
/* The ms to leave for a trial, given those of the first attempt and the numbers of samples. */
double ladder_trial_ms(double first, size_t searched, size_t tried);
/* Whether the search has to end at this time, so that the trial ends within the budget. */
bool ladder_ends(const ladder *l, double now);
/* Does the calibration keep the moments that GPTQ needs? */
int32_t ladder_keeps_moments(const ladder *l);
/* Sets the options of the search, except its callbacks. */
void ladder_give(ladder *l, qsim_search_options *o);
extern const char *const ladder_goals[]; /* by QSIM_GOAL_* */
/* Writes a percentage, or "-" for NaN. */
void ladder_percent(char capacity[16], double x);
/* The table of all attempts with its heading (ladder_attempts.c). */
void ladder_table(const ladder *l, text *out);
/* A qsim_attempt_fn: records and prints an attempt, and saves its model if it is kept. */
int32_t ladder_add(void *l, const qsim_attempt *attempt);
void ladder_heading(const ladder *l);
/*
 * Makes the plain model, with the recipe *begun, and the one that was found, runs the trial on both
 * and keeps one (ladder_trial.c). *begun is taken if that is the plain one.
 */
int ladder_try(const tool *t, ladder *l, qsim_recipe **begun);
/* The trial of the model that is kept. */
const trial_result *ladder_result(const ladder *l);
/* Of losses: points of top-1 or of agreement; % of the relative error of other outputs. */
const char *ladder_unit(const ladder *l);
/* Does repeating the result need a recipe? */
bool ladder_needs_recipe(const ladder *l);
/* Writes the command that makes the model again. */
void ladder_command(ladder *l);

void ladder_print(const ladder *l);
void ladder_json(const ladder *l, json *j);
/* --report FILE: Markdown, or JSON where the name ends in .json. */
int ladder_report(const ladder *l, const char *path);
/* Charts of the attempts' loss, time and size (ladder_page.c). */
void ladder_page(const ladder *l, page *p);
void ladder_free(ladder *l);

#endif
