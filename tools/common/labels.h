/* SPDX-License-Identifier: MIT */
/* Labels of a data set: one number per sample, from any array file. */
#ifndef TOOL_LABELS_H
#define TOOL_LABELS_H

#include "common/array_source.h"

/* Reads all labels; the caller frees *labels. Prints errors. */
int labels_read(const tool *t, const char *path, const char *member, int64_t **labels,
                int64_t *count);

#endif
