/* SPDX-License-Identifier: MIT */
#ifndef QS_NO_MEMORY_H
#define QS_NO_MEMORY_H

#include "base/base.h"

/*
 * Returns `code`. If it is NOMEM and `error` has no message yet, the message says "WHAT: out of
 * memory". The quantizer's functions serve calibrations, recipes, searches and verdicts, and return
 * NOMEM without a message; public functions call this one before they return.
 */
int qs_no_memory_in(const char *what, int code, qsim_error *error);

#endif
