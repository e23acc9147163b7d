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
    struct engine_floats *floats; /* NULL: outputs are as the model makes them */
} engine;

/* An option of verbs that execute models. */
#define OPTION_LEVEL                                                                               \
    { "level", "NAME", "graph optimization (all)", 0, "disable|basic|extended|all" }

/* QSIM_LEVEL_* of --level; DEFAULT where it is not given. */
int32_t level_option(const tool *t);

/* Loads and compiles a model and makes a run; prints errors. `e` may be closed either way. */
int engine_open(const tool *t, const char *file, engine *e);
/* The same, at --level, for a model in memory, which stays the caller's; `names`: its outputs. */
int engine_of_model(const tool *t, const char *file, const qsim_model *m, const char *const *names,
                    size_t count, engine *e);
/* From now on outputs that `m` makes as integers with a scale are floats. */
void engine_dequantize(engine *e, const qsim_model *m);
/* Executes the run; outputs are valid until the next execution. Ctrl-C cancels. */
int engine_execute(const tool *t, const char *file, engine *e, const qsim_tensor *inputs,
                   size_t count);
/* The same without printing: returns QSIM_OK or QSIM_E_*, CANCELLED after Ctrl-C. */
int engine_try(engine *e, const qsim_tensor *inputs, size_t count, qsim_error *error);
void engine_close(engine *e);

/* Element i of a tensor of floats or integers; NaN: types under 8 bits, 8-bit floats. */
double element(const qsim_tensor *t, size_t i);
/* The number of elements of a tensor. */
size_t elements(const qsim_tensor *t);
/* Does an output hold scores of classes? Its name says so, or its shape and numbers do. */
bool tensor_has_classes(const char *name, const qsim_tensor *y);

#endif
