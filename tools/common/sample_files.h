/* SPDX-License-Identifier: MIT */
/* Files that hold samples: in folders, in a tree with one folder for each class, by a pattern. */
#ifndef TOOL_SAMPLE_FILES_H
#define TOOL_SAMPLE_FILES_H

#include "common/class_names.h"

typedef struct sample_files {
    char **files;    /* ended by NULL; `inputs` in turn for each sample */
    size_t groups;   /* samples */
    int64_t *labels; /* of a tree, else NULL */
    size_t classes;  /* folders of a tree that were numbered in their order, else 0 */
} sample_files;

/* By a name's end: pictures, sounds, .npy, .npz, .pb, .csv. */
bool sample_is_name(const char *name);
/* The same without arrays: one file is one sample. */
bool sample_is_single(const char *name);

/*
 * A folder: one sample for each test_data_set_* in it (or for the folder itself) with input_0.pb,
 * input_1.pb, ...; else every file that may hold samples is one, sorted by name (an .npz feeds
 * several inputs); else it is a tree, whose folders name classes: by the names in `names`, by
 * number, or in their order. What is skipped is counted and named.
 */
int sample_files_folder(const tool *t, const char *path, size_t inputs, const class_names *names,
                        sample_files *out);
/* A pattern with *, ? or [...]; an error where nothing matches. */
int sample_files_pattern(const tool *t, const char *pattern, size_t inputs, sample_files *out);
bool sample_is_pattern(const char *spec, size_t size);
/* The file itself. */
void sample_files_one(const char *path, size_t inputs, sample_files *out);
/*
 * "IMAGES,LABELS" of a folder with IDX files: the ones for training or for testing, or the only
 * ones; false: there are none. *out is the caller's.
 */
bool sample_files_idx(const char *path, bool training, char **out);
void sample_files_free(sample_files *s);

#endif
