/* SPDX-License-Identifier: MIT */
/* Inside of a data set: arrays that are cut into batches, or sets of one array for each input. */
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
    char *x_path, *y_path;
    int64_t *labels;
    int64_t label_count;
    bool sets;          /* each run takes one array per input, whole */
    sample_files files; /* of the sets; none: they are made up */
    uint64_t seed;      /* of sets that are made up */
    int64_t first, end, at, step;
    int64_t all;     /* end of what there is, without --limit */
    int64_t unit;    /* samples that go together: the model's fixed batch, else 1 */
    int64_t period;  /* every so many units one is held out; 0: none between first and end */
    int64_t beyond;  /* end of those held out behind `end`; 0: none there */
    bool using_held; /* dataset_next gives those held out, and no others */
};

/* Made-up data for input i; `first`: its first size, 0: the model's. */
void dataset_make_up(dataset *d, size_t i, uint64_t seed, int64_t first);
void dataset_close_sources(dataset *d);
/* Files that `spec` names: a folder or FOLDER,LABELS, a pattern, a picture or a sound. False: it
 * names something else. */
bool dataset_open_files(dataset *d, const char *spec, int *code);
/* The next set. */
int dataset_next_set(dataset *d, batch *b);

#endif
