/* SPDX-License-Identifier: MIT */
/* What a model wants at its inputs, with the sizes that --shape gives to free axes. */
#ifndef TOOL_SLOT_H
#define TOOL_SLOT_H

#include <qsim/qsim.h>

#include "common/tool.h"

#define OPTION_SHAPE                                                                               \
    {                                                                                              \
        "shape", "[NAME=]DIMS", "sizes of an input with free axes: 1x3x32x320; once per input", 0, \
            NULL                                                                                   \
    }

typedef struct slot {
    const char *name;
    int32_t dtype, rank;
    int64_t dims[QSIM_MAX_RANK]; /* -1: any */
} slot;

/*
 * What an option NAME=VALUE gives to this slot; NULL: it is for another one. Where there is only
 * one slot the name may be left out.
 */
const char *slot_value(const char *given, const slot *s, bool only);
/* After made-up data of these sizes: remembers for the tool's messages that some were nobody's. */
void slot_made_up(const tool *t, const slot *s);
/* All inputs of a model; *slots is the caller's to free. Prints what is wrong. */
int slots_of_model(const tool *t, const qsim_model *model, slot **slots, size_t *count);

#endif
