/* SPDX-License-Identifier: MIT */
/* Contexts with a kernel table, for objects that compute. */
#ifndef QK_CONTEXT_H
#define QK_CONTEXT_H

#include "base/ctx.h"

/*
 * Takes a reference to the context; NULL creates the default one, as qsim_ctx_create does without
 * options. qs_ctx_drop releases the reference.
 */
int qs_ctx_hold(qsim_ctx *ctx, qsim_ctx **out, qsim_error *error);

#endif
