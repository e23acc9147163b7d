/* SPDX-License-Identifier: MIT */
/*
 * Closes files without delay. When a file has lost its last name, closing it makes the system
 * release its pages, some 0.2 ms per MB, and nothing ends that early. A thread of its own does it
 * for a large file, so that a save which is cancelled returns at once.
 */
#ifndef QS_CLOSER_H
#define QS_CLOSER_H

#include "base/base.h"

/* Closes `fd`; below 0: does nothing. On the calling thread if the file is small or no thread
 * starts. */
void qs_close_apart(qsim_ctx *ctx, int fd);
/* Waits until the file of the last call is closed; before the context is freed. */
void qs_close_wait(qsim_ctx *ctx);

#endif
