/* SPDX-License-Identifier: MIT */
/* The parts of qsim auto. */
#ifndef QSIM_LADDERING_H
#define QSIM_LADDERING_H

#include "costs.h"
#include "pages.h"
#include "quantizing.h"
#include "trial.h"

/* One attempt, as reports list it. */
typedef struct rung {
    char *what;
    qsim_judgement judgement;
    int64_t bytes;
    double microseconds, seconds; /* of one sample; since the beginning */
    int32_t floats;
    bool kept, met;
} rung;

typedef struct ladder {
    const tool *tool;
    quantizing *q;
    samples seen, unseen; /* of the search; for the trial */
    rung *rungs;
    size_t count;
    double begun, max_drop, seconds;
    int32_t goal; /* QSIM_GOAL_* */
    int32_t bits; /* QSIM_BITS_* */
    costs costs;  /* of --latency */
    trial trial;
    bool on_unseen; /* the trial's samples are none of the search's */
    bool interrupted, over, met;
    int saved;          /* the code of the last save */
    const char *recipe; /* the file that the command repeats it from; NULL: options do */
    char *own_recipe;   /* OUTPUT.qrecipe, where no other was named */
    text command;
} ladder;

/* Reads --max-drop, --budget, --goal, --bits, --latency. */
int ladder_options(const tool *t, ladder *l);
/* Whether calibrating keeps what GPTQ needs. */
int32_t ladder_keeps_moments(const ladder *l);
/* All that a search is asked but whom it tells. */
void ladder_give(ladder *l, qsim_search_options *o);
/* A qsim_attempt_fn: lists it, prints it, and saves what is kept. */
int32_t ladder_add(void *l, const qsim_attempt *attempt);
void ladder_heading(const ladder *l);
/* Whether only a recipe says what was found. */
bool ladder_needs_recipe(const ladder *l);
/* The command that makes the model again, from what was found. */
void ladder_command(ladder *l);

void ladder_print(const ladder *l);
void ladder_json(const ladder *l, json *j);
/* --report FILE: Markdown, or JSON where the name ends in .json. */
int ladder_report(const ladder *l, const char *path);
/* Charts of what the attempts lose, take and weigh (ladder_page.c). */
void ladder_page(const ladder *l, page *p);
void ladder_free(ladder *l);

#endif
