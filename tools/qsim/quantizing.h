/* SPDX-License-Identifier: MIT */
/* The parts of qsim quantize. */
#ifndef QSIM_QUANTIZING_H
#define QSIM_QUANTIZING_H

#include <qsim/ptq.h>

#include "common/dataset.h"

typedef struct quantizing {
    const char *file, *output;
    qsim_model *model, *result;
    qsim_model *folded; /* of a dry run: the model with its constants computed */
    qsim_calibration *calibration;
    dataset *data; /* NULL with --calibration alone */
    qsim_quantize_options options;
    qsim_rule *rules;
    char **patterns;
    int32_t *schemes;    /* found by a search */
    double *percentiles; /* likewise; written where there was annealing */
    double search_score, float_score;
    bool interrupted; /* in a search: what it has found until then is written */
} quantizing;

/* Reads the options of the command line into q->options. */
int quantize_options(const tool *t, quantizing *q);
void quantize_options_free(quantizing *q);

/* Searches as --search says and puts what it finds into q->options. */
int quantize_search(const tool *t, quantizing *q);

/* How the result answers on the data, against the original. */
typedef struct quantize_check {
    uint64_t samples;
    double agreement, cosine, sqnr;
} quantize_check;

int quantize_measure(const tool *t, quantizing *q, quantize_check *c);
void quantize_print(const tool *t, quantizing *q, const quantize_check *c);
void quantize_print_json(const tool *t, quantizing *q, const quantize_check *c);
/* The layers as they would be quantized. */
int quantize_print_layers(const tool *t, quantizing *q);

#endif
