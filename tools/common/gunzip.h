/* SPDX-License-Identifier: MIT */
/* Gzipped files. */
#ifndef TOOL_GUNZIP_H
#define TOOL_GUNZIP_H

#include "common/tool.h"

/*
 * Inflates a gzip stream. Of an IDX file no more is inflated than its header asks for and one byte,
 * of anything else no more than 4 GB. `*out` is freed with free().
 */
int tool_gunzip(const tool *t, const char *path, const void *data, size_t size, void **out,
                size_t *out_size);

#endif
