/* SPDX-License-Identifier: MIT */
/* Labels of samples by file name. */
#ifndef TOOL_FILE_LABELS_H
#define TOOL_FILE_LABELS_H

#include "common/sample_files.h"

/*
 * Reads lines "NAME CLASS", separated by a blank, tab or comma, from `path`, or from labels.txt or
 * labels.csv in the folder; CLASS is a number, or one of `names`. The first line may be a heading.
 * s->labels stays NULL if there is no such file.
 */
int file_labels_read(const tool *t, const char *folder, const char *path, size_t inputs,
                     const class_names *names, sample_files *s);

#endif
