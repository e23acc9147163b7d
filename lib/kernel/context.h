/* SPDX-License-Identifier: MIT */
/* The context of objects that compute: it has kernels. */
#ifndef QK_CONTEXT_H
#define QK_CONTEXT_H

#include "base/ctx.h"

/*
 * Takes one more hold on the context; NULL makes the default one, as qsim_ctx_create does without
 * options. qs_ctx_drop gives the hold back.
 */
int qs_ctx_hold(qsim_ctx *ctx, qsim_ctx **out, qsim_error *error);

#endif
