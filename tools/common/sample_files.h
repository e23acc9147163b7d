/* SPDX-License-Identifier: MIT */
/* Files of samples: in folders, in a tree with one folder per class, or matching a pattern. */
#ifndef TOOL_SAMPLE_FILES_H
#define TOOL_SAMPLE_FILES_H

#include "common/class_names.h"

typedef struct sample_files {
    char **files;    /* terminated by NULL; `inputs` files per sample */
    size_t groups;   /* number of samples */
    int64_t *labels; /* labels of a tree, else NULL */
    size_t classes;  /* folders of a tree that were numbered by their order, else 0 */
} sample_files;

/* Is this the name of samples: pictures, sounds, .npy, .npz, .pb, .csv? */
bool sample_is_name(const char *name);
/* Is this the name of an .npz? */
bool sample_is_archive(const char *name);
/* Pictures and sounds: one file is one sample. */
bool sample_is_single(const char *name);

/*
 * Lists a folder: one sample per test_data_set_* in it (or the folder itself) with input_0.pb,
 * input_1.pb, ...; else one per file that may be a sample, sorted by name (an .npz feeds several
 * inputs); else it is a tree, whose folders are classes: by `names`, by number, or by their order.
 * Skipped files are counted and named.
 */
int sample_files_folder(const tool *t, const char *path, size_t inputs, const class_names *names,
                        sample_files *out);
/* Lists the files that match a pattern with *, ? or [...]; none is an error. */
int sample_files_pattern(const tool *t, const char *pattern, size_t inputs, sample_files *out);
bool sample_is_pattern(const char *spec, size_t size);
/* Lists a single file. */
void sample_files_one(const char *path, size_t inputs, sample_files *out);
/*
 * "IMAGES,LABELS" of a folder with IDX files: those for training or for testing, or the only ones;
 * false: there are none. The caller frees *out.
 */
bool sample_files_idx(const char *path, bool training, char **out);
void sample_files_free(sample_files *s);

#endif
