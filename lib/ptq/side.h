/* SPDX-License-Identifier: MIT */
/* One of several models that run on the same batches. */
#ifndef QS_SIDE_H
#define QS_SIDE_H

#include "base/base.h"

#include <qsim/session.h>

/* A session with a run, and its outputs for one batch. */
typedef struct qs_side {
    qsim_session *session;
    qsim_run *run;
    qsim_tensor *outputs;
    size_t count;
    qs_arena floats; /* of the last batch: tensors in other types of floats */
} qs_side;

/* The outputs are `names`, or those of the model if `count` is 0. */
int qs_side_open(const qsim_model *m, const char *const *names, size_t count, qs_side *s,
                 qsim_ctx *ctx, qsim_error *error);
void qs_side_close(qs_side *s, qsim_ctx *ctx);
/* Inputs of floats are converted to the model's own types of floats. */
int qs_side_execute(qs_side *s, const qsim_tensor *inputs, size_t count, qsim_error *error);
/*
 * Converts floats to another type of floats, in memory that the next batch frees. Other tensors,
 * and those without a valid shape, stay as they are.
 */
int qs_side_retype(qs_side *s, qsim_tensor *x, int32_t dtype, qsim_error *error);

#endif
