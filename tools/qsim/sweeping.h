/* SPDX-License-Identifier: MIT */
/* Every combination of weight schemes, range methods and percentiles, with its measurements. */
#ifndef QSIM_SWEEPING_H
#define QSIM_SWEEPING_H

#include "judging.h"
#include "pages.h"

/* A combination and its measurements. */
typedef struct attempt {
    const char *scheme, *method;
    int32_t weight_scheme, range_method; /* QSIM_WEIGHT_*, QSIM_METHOD_* */
    double percentile;                   /* NaN: another method */
    int32_t grade;
    double agreement, sqnr, cosine; /* of the worst output; agreement NaN: no class scores */
    double top1;                    /* NaN: no labels */
    double ms;                      /* the shortest of `runs` runs on a batch of `rows` */
    int64_t bytes;
} attempt;

typedef struct sweep {
    const char *file;
    int64_t float_bytes;
    double float_top1, float_ms;
    int64_t samples, held_out, rows;
    size_t runs; /* timed runs of each model, on a batch of `rows` */
    attempt *attempts;
    size_t count; /* listed combinations; after sweep_try those that were tried */
} sweep;

/* Calibrates and tries all combinations; after an interrupt, reported, the first of them. */
int sweep_try(const tool *t, sweep *s, const qsim_model *m, dataset *d);

/* Index of the attempt with the highest SQNR; `count`: none. */
size_t sweep_best(const sweep *s);
/* Writes the name of a combination: "channel mse", "tensor percentile 99.9". */
void attempt_name(const attempt *a, text *out);
/* Markdown, CSV, JSON, and bars of SQNR (sweep_report.c). */
void sweep_markdown(const sweep *s, text *out);
void sweep_csv(const sweep *s, text *out);
void sweep_json(const sweep *s, json *out);
void sweep_chart(const sweep *s, text *svg);

#endif
