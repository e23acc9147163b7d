/* SPDX-License-Identifier: MIT */
/* Reports the scores of qsim eval (eval_report.c). */
#ifndef QSIM_EVALUATING_H
#define QSIM_EVALUATING_H

#include "common/class_names.h"
#include "pages.h"
#include "scores.h"

/* One row per actual class: its accuracy, then how often each class was predicted. */
int eval_write_csv(const tool *t, const char *path, const scores *s, const class_names *n);
/* The charts of --svg and --svg-classes. */
int eval_write_charts(const tool *t, const char *file, const scores *s, const class_names *n);
void eval_draw_page(page *p, const char *file, const scores *s, const class_names *n,
                    const thumbs *worst);
void eval_print_json(const tool *t, const char *file, const scores *s, const class_names *n);
void eval_print_table(const char *file, const scores *s, const class_names *n);

#endif
