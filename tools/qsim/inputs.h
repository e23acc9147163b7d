/* SPDX-License-Identifier: MIT */
/* --input [NAME=]FILE, [NAME=]random[:SEED] and [NAME=]NUMBER, for the inputs of one model. */
#ifndef QSIM_INPUTS_H
#define QSIM_INPUTS_H

#include "common/dataset.h"

#define OPTION_INPUT(batch)                                                                        \
    {"input", "[NAME=]FILE",                                                                       \
     "picture, .wav, .npy, .npz, .pb, IDX, .csv, a number or random[:SEED]", 'i', NULL},           \
        {"batch", "N", batch, 0, NULL}, OPTION_SHAPE, {                                            \
        "preprocess", "LIST", PREPROCESS_HELP, 0, NULL                                             \
    }

/* Options of verbs that time one run: what it is fed with, other than by --input. */
#define OPTION_FIRST_BATCH                                                                         \
    {"data", "SPEC", "feed the first batch of a data set, as compare and eval read it", 'd',       \
     NULL},                                                                                        \
        {"skip", "N", "leave the first N samples of --data out", 0, NULL}, OPTION_SKIP_UNREADABLE

typedef struct inputs {
    size_t count;
    dataset *data; /* --data, whose tensors are fed; NULL: the others */
    source *sources;
    feed *feeds;
    preprocess how;
    bool single;          /* one of them is a picture or a sound */
    qsim_tensor *tensors; /* arguments of engine_execute */
} inputs;

/*
 * Reads all inputs: the first batch of --data, or those of --input; the rest is made up if
 * `invent`, else an error.
 */
int inputs_open(const tool *t, const qsim_model *model, bool invent, inputs *in);
/*
 * Reads the only input from this file, one of several, whatever --input says; in->count is 0 if it
 * is skipped.
 */
int inputs_open_file(const tool *t, const qsim_model *model, const char *file, inputs *in);
void inputs_close(inputs *in);

#endif
