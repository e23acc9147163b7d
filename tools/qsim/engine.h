/* SPDX-License-Identifier: MIT */
/* A model ready to run, with memory for its outputs' views. */
#ifndef QSIM_ENGINE_H
#define QSIM_ENGINE_H

#include <qsim/session.h>

#include "common/tool.h"

typedef struct engine {
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
    qsim_tensor *outputs;
    size_t output_count;
} engine;

/* For verbs that execute models. */
#define OPTION_LEVEL                                                                               \
    { "level", "NAME", "graph optimization (all)", 0, "disable|basic|extended|all" }

/* QSIM_LEVEL_* of --level; DEFAULT where it is not given. */
int32_t level_option(const tool *t);

/* Loads, compiles and makes a run; prints what is wrong. `e` may be closed either way. */
int engine_open(const tool *t, const char *file, engine *e);
/* The same at --level for a model in memory, which stays the caller's; `names` are the outputs. */
int engine_of_model(const tool *t, const char *file, const qsim_model *m, const char *const *names,
                    size_t count, engine *e);
/* Executes; outputs stay valid until the next time. Ctrl-C cancels. */
int engine_execute(const tool *t, const char *file, engine *e, const qsim_tensor *inputs,
                   size_t count);
/* The same without saying what went wrong: a QSIM_E_* code, CANCELLED where it was interrupted. */
int engine_try(engine *e, const qsim_tensor *inputs, size_t count, qsim_error *error);
void engine_close(engine *e);

/* The element of a float, double or integer tensor. */
double element(const qsim_tensor *t, size_t i);
/* Elements of a tensor. */
size_t elements(const qsim_tensor *t);

#endif
