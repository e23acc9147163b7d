/* SPDX-License-Identifier: MIT */
/* Folders. */
#ifndef TOOL_FOLDER_H
#define TOOL_FOLDER_H

#include "common/tool.h"

/* Reads a folder's entries except hidden ones, sorted, terminated by NULL. Prints errors. */
int folder_read(const tool *t, const char *path, char ***names, size_t *count);
void folder_free(char **names);
/* Returns "FOLDER/NAME", freed by the caller. */
char *folder_join(const char *folder, const char *name);
/* Makes the folder if it is not there. */
int folder_make(const tool *t, const char *path);
/* Do the first `size` bytes of a path name a folder? */
bool folder_is(const char *path, size_t size);

#endif
