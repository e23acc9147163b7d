/* SPDX-License-Identifier: MIT */
/* Folders of inputs. */
#ifndef TOOL_FOLDER_H
#define TOOL_FOLDER_H

#include "common/tool.h"

/*
 * Lists the inputs that a folder holds, in groups of `inputs` files: one group for each
 * test_data_set_* below it (or for the folder itself) with input_0.pb, input_1.pb, …; else every
 * .npy, .npz and .pb file, sorted by name, is a group (an .npz feeds several inputs).
 */
int folder_list(const tool *t, const char *path, size_t inputs, char ***files, size_t *groups);
void folder_free(char **files);
/* Makes the folder if it is not there. */
int folder_make(const tool *t, const char *path);

/* Whether the first `size` bytes of a path name a folder. */
bool folder_is(const char *path, size_t size);

#endif
