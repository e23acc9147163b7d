/* SPDX-License-Identifier: MIT */
/* Parts of HTML pages that several verbs share. Without --html these functions do nothing. */
#ifndef QSIM_PAGES_H
#define QSIM_PAGES_H

#include <qsim/verdict.h>

#include "common/chart.h"
#include "common/page.h"

/* A model in the charts of sizes and times. */
typedef struct page_model {
    const char *name;
    int64_t bytes; /* 0: not known */
    double ms;     /* 0 or NaN: not timed */
} page_model;

void page_models(page *p, const page_model *models, size_t count);
/* Draws the SQNR of each layer, those that add most noise first. */
void page_layers(page *p, const qsim_verdict *v);
#define RANGES_CHOSEN "Activations and the ranges chosen"

/*
 * Draws histograms of calibrated tensors with the ranges that the method chooses, `most` at most;
 * the tensors of the worst layers of `v` (may be NULL) come first.
 */
void page_ranges(page *p, const char *heading, const qsim_calibration *c, int32_t method,
                 double percentile, const qsim_verdict *v, size_t most);

/* ---- samples (thumbs.c) ---- */

#define THUMB_SIDE  96
#define MOST_THUMBS 12

/* A small picture of a sample; `badness` orders them. */
typedef struct thumb {
    double badness;
    int32_t width, height, channels;
    unsigned char *pixels;
    char caption[120];
} thumb;

typedef struct thumbs {
    bool wanted;
    thumb items[MOST_THUMBS]; /* the worst first */
    size_t count;
} thumbs;

/* Is a sample with this badness among the worst so far? */
bool thumbs_take(const thumbs *s, double badness);
/* Keeps sample `at` of a batch if it is a picture: [N,C,H,W] or [N,H,W,C] with C = 1 or 3. */
void thumbs_add(thumbs *s, const qsim_tensor *batch, size_t at, double badness,
                const char *caption);
void page_thumbs(page *p, const char *heading, const thumbs *s);
void thumbs_free(thumbs *s);

#endif
