/* SPDX-License-Identifier: MIT */
/* A fixed team of threads that does one task at a time. */
#ifndef TRAIN_TEAM_H
#define TRAIN_TEAM_H

#include <stddef.h>

typedef struct train_team train_team;

typedef void (*team_fn)(void *arg, size_t worker);

/* The caller is worker 0; size - 1 threads are started. NULL if that fails. */
train_team *team_create(size_t size);
size_t team_size(const train_team *team);

/* Calls fn(arg, worker) once for every worker, all at the same time; returns when all are done. */
void team_run(train_team *team, team_fn fn, void *arg);

/* Ends the threads. NULL is allowed. */
void team_free(train_team *team);

#endif
