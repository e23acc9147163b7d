/* SPDX-License-Identifier: MIT */
/* --input [NAME=]FILE and --input [NAME=]random[:SEED], for the inputs of one model. */
#ifndef QSIM_INPUTS_H
#define QSIM_INPUTS_H

#include "common/feed.h"

#define OPTION_INPUT                                                                               \
    {"input", "[NAME=]FILE", ".npy, .npz, .pb, IDX or random[:SEED]; once per input", 'i', NULL},  \
        {"batch", "N", "batch size of made up inputs (1)", 0, NULL}, OPTION_SHAPE, {               \
        "preprocess", "LIST", "scale=A[/B],mean=M[:M..],std=S[:S..],layout=nchw|nhwc", 0, NULL     \
    }

typedef struct inputs {
    size_t count;
    source *sources;
    feed *feeds;
    preprocess how;
    qsim_tensor *tensors; /* what execute takes */
} inputs;

/* Reads all inputs. Those that --input does not name are made up if `invent`, else an error. */
int inputs_open(const tool *t, const qsim_model *model, bool invent, inputs *in);
void inputs_close(inputs *in);

#endif
