/* SPDX-License-Identifier: MIT */
/* What this machine computes and reads at most, for each instruction set. */
#ifndef QSIM_MACHINE_LIMITS_H
#define QSIM_MACHINE_LIMITS_H

#include <qsim/profile.h>

#include "common/json.h"
#include "common/tool.h"

/* Ends a line: "; limits measured here: ..."; only the end of the line if nothing is known. */
void limits_end_line(const qsim_machine *m);
/* The object "machine". */
void limits_json(const qsim_machine *m, json *j);

/* A table, or the array "limits", of all instruction sets of this CPU: 0.3 s each. */
int limits_print_all(const tool *t);
int limits_json_all(const tool *t, json *j);

#endif
