/* SPDX-License-Identifier: MIT */
/* Units of a sensitivity analysis, and their reports. */
#ifndef QSIM_UNIT_REPORT_H
#define QSIM_UNIT_REPORT_H

#include <qsim/ptq.h>

#include "common/tool.h"

typedef struct units {
    qsim_unit *items; /* texts are owned */
    size_t count;
    qsim_judgement plain;
} units;

/* A qsim_unit_fn: adds a unit. */
int32_t units_add(void *u, const qsim_unit *unit);
void units_free(units *u);

void units_print(const char *file, const units *u);
void units_json(const tool *t, const char *file, const units *u);
int units_csv(const tool *t, const char *path, const units *u);
/* Draws two bars per unit, as SVG. */
void units_draw(text *svg, const char *file, const units *u);
int units_svg(const tool *t, const char *path, const char *file, const units *u);

#endif
