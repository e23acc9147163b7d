/* SPDX-License-Identifier: MIT */
/* Verbs that write a model which is made of another one: optimize, convert. */
#ifndef QSIM_DERIVING_H
#define QSIM_DERIVING_H

#include "common/json.h"
#include "common/tool.h"

typedef struct deriving {
    const char *verb;
    const char *key, *how; /* what JSON says of the work */
    const char *file, *output;
    qsim_model *model, *result;
} deriving;

/* Makes d->result of d->model. */
typedef int derive_fn(const tool *t, deriving *d, qsim_error *error);
/* Adds to the report: to JSON, or with j NULL lines of text. */
typedef void derive_report_fn(json *j, const deriving *d);

/* Runs a verb, which sets verb, key and how; `report` may be NULL. Returns the exit code. */
int derive_model(tool *t, deriving *d, derive_fn *work, derive_report_fn *report);

#endif
