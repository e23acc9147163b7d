/* SPDX-License-Identifier: MIT */
/* --io: models with integers in place of float inputs and outputs. */
#ifndef QSIM_IO_OPTION_H
#define QSIM_IO_OPTION_H

#include "common/text.h"
#include "common/tool.h"

#define OPTION_IO                                                                                  \
    {                                                                                              \
        "io", "NAME", "types of inputs and outputs of the written model (float)", 0,               \
            "float|integer|integer-inputs|integer-outputs"                                         \
    }

/* Replaces a quantized model as `how`, a value of --io or NULL, says; prints errors. */
int io_apply(const tool *t, const char *file, const char *how, qsim_model **m);
/* Appends the real number that integers of a tensor stand for; false: it has not one scale. */
bool io_text(const qsim_model *m, const char *tensor, text *out);
/* Lines of a report for inputs and outputs that are integers with a scale. */
void io_print(const qsim_model *m);
/* Members of a tensor's JSON object, if it has one scale. */
void io_json(json *j, const qsim_model *m, const char *tensor);

#endif
