/* SPDX-License-Identifier: MIT */
/* Results of qsim eval and their report (eval_report.c, eval_against.c). */
#ifndef QSIM_EVALUATING_H
#define QSIM_EVALUATING_H

#include "common/class_names.h"
#include "common/columns.h"
#include "pages.h"
#include "scores.h"

typedef struct evaluation {
    const char *file;
    scores scores;
    class_names names;
    thumbs wrong; /* the most certain of the wrong answers */
    /* With --against: */
    const char *against; /* the reference's file, or NULL */
    scores reference;    /* its scores */
    pairing pair;
    thumbs lost;     /* the wrong answers that the reference gets right */
    double max_drop; /* points of top-1 that may be lost; NaN: no bound */
} evaluation;

/* One row per actual class: its accuracy, then how often each class was predicted. */
int eval_write_csv(const tool *t, const char *path, const evaluation *e);
/* The charts of --svg and --svg-classes. */
int eval_write_charts(const tool *t, const evaluation *e);
void eval_draw_page(page *p, const evaluation *e);
void eval_print_json(const tool *t, const evaluation *e);
void eval_print_table(const evaluation *e);

/* ---- beside a reference (eval_against.c) ---- */

/* What --against adds to the report, to JSON and to the page; nothing without it. */
void eval_print_against(const evaluation *e);
void eval_json_against(json *j, const evaluation *e);
void eval_draw_against(page *p, const evaluation *e);
/* A scores' top-1 and top-5 with standard errors, for a report. */
void eval_put_scores(const scores *s, text *out);
/* The file's name without its folders, unless both models' files are called so. */
const char *eval_name(const evaluation *e, const char *file);
/* Whether more is lost than max_drop allows; then says so. */
bool eval_drops_too_much(const evaluation *e);

#endif
