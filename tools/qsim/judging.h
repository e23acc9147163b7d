/* SPDX-License-Identifier: MIT */
/* Judges a quantized model: the library's verdict over a data set, bounds, and the report. */
#ifndef QSIM_JUDGING_H
#define QSIM_JUDGING_H

#include <qsim/verdict.h>

#include "common/dataset.h"

/* Options of verbs that judge the model they made. */
#define OPTION_JUDGE                                                                               \
    {"held-out", "N", "hold back at most N samples from calibration, for the verdict (128)", 0,    \
     NULL},                                                                                        \
        {"min-sqnr", "DB", "exit 3 if an output's SQNR is lower; the model is written", 0, NULL},  \
        {"min-cosine", "X", "exit 3 if an output's cosine is lower", 0, NULL}, {                   \
        "min-agreement", "P", "exit 3 if fewer than P percent of the classes agree", 0, NULL       \
    }

/* The relation of the samples to the calibration. */
enum { SAMPLES_HELD_OUT, SAMPLES_SEEN, SAMPLES_OTHERS };

/* Of all that judge by outputs. */
#define OPTION_NO_CLASSES                                                                          \
    {                                                                                              \
        "no-classes", NULL, "outputs are numbers (points, embeddings), not scores of classes", 0,  \
            NULL                                                                                   \
    }

typedef struct judging {
    const char *file, *output; /* name of the float model, and of the quantized one */
    const qsim_model *model, *result;
    const qsim_calibration *calibration; /* NULL: none */
    int32_t method;
    int samples; /* SAMPLES_* */
    bool made_up;
    bool no_classes; /* --no-classes */
    char *outlier; /* the warning of an outlier, with its number in the data; NULL: the verdict's */
    qsim_verdict *verdict; /* NULL: not judged */
} judging;

/* --held-out: holds samples back before calibration; false: a usage error. */
bool judge_hold_out(const tool *t, dataset *d, int64_t *held);
/* Does one of --min-… ask for a verdict? */
bool judge_has_bounds(const tool *t);
/* Runs both models on the samples that `d` gives from now on. */
int judge_all(const tool *t, judging *j, dataset *d);
/* Bounds of outputs; NaN: none. */
typedef struct judge_limits {
    double sqnr, cosine, agreement;
} judge_limits;

/* Reads --min-…, before any work; false: a usage error. */
bool judge_bounds_read(const tool *t, judge_limits *l);
/* EXIT_BOUND where a bound is missed, which it prints. */
int judge_bounds(const judging *j, const judge_limits *l);
void judge_close(judging *j);

/* The verdict's warning of that index, and its kind; NULL: there is none. */
const char *judge_warning(const judging *j, int32_t index, const char **kind);
/* The lines of a report: grade, outputs, worst layers; warnings go to stderr (judging_report.c). */
void judge_print(const tool *t, const judging *j);
/* "verdict": {...}; null without a verdict. */
void judge_json(const judging *j, const char *const *next, json *out);

#endif
