/* SPDX-License-Identifier: MIT */
/*
 * Progress of long work on stderr: a bar with the remaining time on a terminal, plain lines
 * elsewhere, nothing in the first two seconds or with -q.
 */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include "common/tool.h"

typedef struct progress {
    const tool *t;
    bool silent, terminal, drawn;
    double start, last;
} progress;

void progress_begin(progress *p, const tool *t);
/* A qsim_progress_fn with the progress as user; not 0 after Ctrl-C. */
int32_t progress_step(void *p, const char *what, uint64_t done, uint64_t total);
void progress_end(progress *p);
/* Clears the bar, so that a message has a line of its own. */
void progress_clear(const tool *t);

#endif
