/* SPDX-License-Identifier: MIT */
#ifndef QS_NO_MEMORY_H
#define QS_NO_MEMORY_H

#include "base/base.h"

/*
 * Returns `code`; of NOMEM names in `error` what was being done, unless a layer below has. The
 * quantizer's functions serve calibrations, recipes, searches and verdicts, and return NOMEM
 * without a message: calls of the interface end with this one.
 */
int qs_no_memory_in(const char *what, int code, qsim_error *error);

#endif
