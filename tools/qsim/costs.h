/* SPDX-License-Identifier: MIT */
/* What units take, from a file: so that a search is the same on every machine. */
#ifndef QSIM_COSTS_H
#define QSIM_COSTS_H

#include "common/tool.h"

typedef struct cost {
    char *unit;
    double float_us, us; /* NaN: not said */
} cost;

typedef struct costs {
    cost *items;
    size_t count;
    bool unknown; /* a unit was asked for that the table does not have */
} costs;

/*
 * Reads a table as `qsim sensitivity` writes it: CSV with a heading that has the columns unit,
 * float_us and us, or JSON. Prints what is wrong.
 */
int costs_read(const tool *t, const char *path, costs *c);
void costs_free(costs *c);
/* A qsim_cost_fn over a costs. */
void costs_say(void *user, const char *unit, double *in_float, double *in_integers);

#endif
