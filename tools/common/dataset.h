/* SPDX-License-Identifier: MIT */
/*
 * A data set for a model, batch by batch, from --data SPEC, --limit, --skip, --batch and
 * --preprocess. SPEC is X.npy[,Y.npy], an .npz with x and y (or with the inputs' names), an IDX
 * pair or the folder of the four IDX files, tables X.csv[,Y.csv], a folder, a tree with one folder
 * for each class or a pattern of pictures, sounds and arrays, a folder of test_data_set_*, one
 * picture or sound, or random[:SEED].
 */
#ifndef TOOL_DATASET_H
#define TOOL_DATASET_H

#include "common/feed.h"
#include "common/unreadable.h"

typedef struct dataset dataset;

/*
 * The default of --batch. Activations of larger batches do not fit the L2 cache: small networks
 * take up to a third longer. It is the same on every machine, since results of dynamic quantization
 * depend on the batch.
 */
#define DATASET_BATCH 16

#define OPTION_DATA                                                                                \
    {"data", "SPEC",                                                                               \
     "data set: folder or pattern of pictures, X.npy[,Y.npy], .npz, IDX, .csv, random[:SEED]",     \
     'd', NULL},                                                                                   \
        {"limit", "N", "use at most N samples (in a folder: files)", 0, NULL},                     \
        {"skip", "N", "leave the first N samples out", 0, NULL},                                   \
        {"batch", "N", "samples per run (16)", 0, NULL}, OPTION_SKIP_UNREADABLE, OPTION_SHAPE, {   \
        "preprocess", "LIST", PREPROCESS_HELP, 0, NULL                                             \
    }

typedef struct batch {
    const qsim_tensor *inputs;
    size_t input_count;
    int64_t samples; /* number of valid samples; a fixed batch may be filled up with repetitions */
    const int64_t *labels; /* one per sample, or NULL */
    int64_t at;            /* place in the data of its first sample, or of its file */
} batch;

/* Opens the data set of --data. Prints errors. */
int dataset_open(const tool *t, const qsim_model *model, dataset **out);
/* The same for another SPEC; `fallback`: samples per run where neither model nor --batch tell. */
int dataset_open_spec(const tool *t, const char *spec, int64_t fallback, const qsim_model *model,
                      dataset **out);
/* The number of samples (files of a folder) that dataset_next gives, after --skip and --limit. */
int64_t dataset_samples(const dataset *d);
bool dataset_has_labels(const dataset *d);
/* Is each sample a file? */
bool dataset_is_files(const dataset *d);
/* The file of a batch; NULL: batches are not files. */
const char *dataset_file(const dataset *d, const batch *b);
/* Names a row of a batch for people: its file, or its number in the data, "sample 17". */
void dataset_name_row(const dataset *d, const batch *b, size_t row, text *out);
/* Folders of a tree that were numbered as classes by their order; 0: labels are the model's. */
size_t dataset_classes(const dataset *d);
/* Reads the next batch, valid until the next call; b->samples is 0 at the end. */
int dataset_next(dataset *d, batch *b);
/*
 * Puts the last batch into the types of another model's inputs where those are other floats; valid
 * until the next call. Other differences are left as they are.
 */
int dataset_retype(dataset *d, const qsim_model *model, batch *b);
void dataset_rewind(dataset *d);
/*
 * Holds samples back from dataset_next, for a verdict: those after --limit, `most` at most, else
 * one in five (at least two of eight). Returns their number; 0: there are too few samples.
 */
#define DATASET_HELD_OUT 128
int64_t dataset_hold_out(dataset *d, int64_t most);
/* Makes dataset_next give, from the start, only the samples held out, or only the others. */
void dataset_use_held(dataset *d, bool held);
/* The number in the data of a sample that is not held out, counted without those that are. */
int64_t dataset_number(const dataset *d, int64_t sample);
/* Names such a sample for people, one of `all` that were given: its file, or "sample 17". */
void dataset_name_sample(const dataset *d, int64_t sample, int64_t all, text *out);
void dataset_close(dataset *d);

#endif
