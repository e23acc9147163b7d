/* SPDX-License-Identifier: MIT */
/* Files of samples that --skip-unreadable leaves out: counted and named at the end. */
#ifndef TOOL_UNREADABLE_H
#define TOOL_UNREADABLE_H

#include "common/tool.h"

#define OPTION_SKIP_UNREADABLE                                                                     \
    {                                                                                              \
        "skip-unreadable", NULL, "leave out files that cannot be read, and name them at the end",  \
            0, NULL                                                                                \
    }

/*
 * Whether this is the error of a file that cannot be opened or decoded, and --skip-unreadable is
 * given. Then notes the file (once, however often it is read) and frees the error.
 */
bool unreadable_skip(const tool *t, const char *path, kept_error *error);
/* The error, with a hint at the option where it would help. Frees it; returns the exit code. */
int unreadable_refuse(const tool *t, bool several, kept_error *error);
/* Adds "skipped": [{"file", "reason"}] to the verb's finished JSON object. */
void unreadable_json(const tool *t, json *j);
/* Warns of the files that were skipped; forgets them. */
void unreadable_print(const tool *t);

#endif
