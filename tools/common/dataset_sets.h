/* SPDX-License-Identifier: MIT */
/* Internals of a data set: arrays cut into batches, or sets of one array per input. */
#ifndef TOOL_DATASET_SETS_H
#define TOOL_DATASET_SETS_H

#include "common/dataset.h"
#include "common/sample_files.h"

struct dataset {
    const tool *t;
    preprocess how;
    size_t inputs;
    slot *slots;
    source *sources;
    feed *feeds;
    qsim_tensor *tensors;
    feed *other_feeds; /* for dataset_retype */
    qsim_tensor *other_tensors;
    char *x_path, *y_path;
    int64_t *labels;
    int64_t label_count;
    bool sets;          /* each run takes one array per input, whole */
    sample_files files; /* files of the sets; none: they are made up */
    bool *skipped;      /* by set: could not be read; NULL: none is skipped so far */
    int64_t window;     /* of a sound's windows the next one, where the model takes one a run */
    bool given;         /* a set was read */
    uint64_t seed;      /* seed of made-up sets */
    int64_t first, end, at, step;
    int64_t batch;   /* samples per run without --batch */
    int64_t all;     /* end of the samples, without --limit */
    int64_t unit;    /* samples that stay together: the model's fixed batch, or 1 */
    int64_t period;  /* one in so many units is held out; 0: none between first and end */
    int64_t beyond;  /* end of the samples held out after `end`; 0: none */
    bool using_held; /* dataset_next gives the samples held out only */
};

/*
 * Does the first axis of all inputs count samples? Not if an input is a scalar, or first sizes
 * differ: then each run takes a whole set of inputs.
 */
bool dataset_shares_samples(const dataset *d);
/* Makes up data for input i; `first`: its first size, 0: the model's. */
void dataset_make_up(dataset *d, size_t i, uint64_t seed, int64_t first);
void dataset_close_sources(dataset *d);
/* Frees what dataset_retype has made. */
void dataset_close_other(dataset *d);
/*
 * Opens the files of `spec`: a folder or FOLDER,LABELS, a pattern, a picture, a sound, or an
 * archive that is one set. False: it is none of these.
 */
bool dataset_open_files(dataset *d, const char *spec, int *code);
/* Reads the next set; b->samples is 0 if it is skipped. */
int dataset_next_set(dataset *d, batch *b);
/* Reports that no set could be read, if that is so. */
int dataset_end_sets(const dataset *d);

#endif
