/* SPDX-License-Identifier: MIT */
#ifndef QS_NO_MEMORY_H
#define QS_NO_MEMORY_H

#include "base/base.h"

/* Fails with NOMEM: the one message of the quantizer's many allocations. */
int qs_no_memory(qsim_error *error);
/*
 * Returns `code`. Names in that message what was being done, where functions of the quantizer
 * served something else.
 */
int qs_no_memory_in(const char *what, int code, qsim_error *error);

#endif
