/* SPDX-License-Identifier: MIT */
/* Times of units from a file, so that a search is the same on every machine. */
#ifndef QSIM_COSTS_H
#define QSIM_COSTS_H

#include "common/tool.h"

typedef struct cost {
    char *unit;
    double float_us, us; /* NaN: missing */
} cost;

typedef struct costs {
    cost *items;
    size_t count;
    bool unknown; /* set when a search asks for a unit that the table lacks */
} costs;

/*
 * Reads a table that `qsim sensitivity` wrote: CSV with a heading that has the columns unit,
 * float_us and us, or JSON. Prints errors.
 */
int costs_read(const tool *t, const char *path, costs *c);
void costs_free(costs *c);
/* A qsim_cost_fn whose user data is a `costs`. */
void costs_say(void *user, const char *unit, double *in_float, double *in_integers);

#endif
