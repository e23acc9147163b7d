/* SPDX-License-Identifier: MIT */
/* Gzipped files. */
#ifndef TOOL_GUNZIP_H
#define TOOL_GUNZIP_H

#include "common/tool.h"

/*
 * Inflates a gzip stream: an IDX file up to one byte more than its header says, other files up to 4
 * GB. `*out` is freed with free().
 */
int tool_gunzip(const tool *t, const char *path, const void *data, size_t size, void **out,
                size_t *out_size);

#endif
