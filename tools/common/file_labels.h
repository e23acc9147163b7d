/* SPDX-License-Identifier: MIT */
/* Labels of samples by the names of their files. */
#ifndef TOOL_FILE_LABELS_H
#define TOOL_FILE_LABELS_H

#include "common/sample_files.h"

/*
 * From lines "NAME CLASS", with a blank, tab or comma between them, of the file `path`, or of
 * labels.txt or labels.csv in the folder where there is one; CLASS is a number, or a name in
 * `names`. The first line may be a heading. s->labels stays NULL where there is no such file.
 */
int file_labels_read(const tool *t, const char *folder, const char *path, size_t inputs,
                     const class_names *names, sample_files *s);

#endif
