/* SPDX-License-Identifier: MIT */
/* The inputs of a model, with the sizes that --shape gives to free axes. */
#ifndef TOOL_SLOT_H
#define TOOL_SLOT_H

#include <qsim/qsim.h>

#include "common/tool.h"

#define OPTION_SHAPE                                                                               \
    {                                                                                              \
        "shape", "[NAME=]DIMS",                                                                    \
            "sizes of an input with free axes, 1x3x32x320, or of a free axis, "                    \
            "seq=128; repeatable",                                                                 \
            0, NULL                                                                                \
    }

typedef struct slot {
    const char *name;
    int32_t dtype, rank;
    int64_t dims[QSIM_MAX_RANK];     /* -1: any */
    const char *axes[QSIM_MAX_RANK]; /* names of free axes; NULL: none */
    double scale;                    /* of integers that stand for real numbers; 0: they do not */
    int64_t zero_point;
} slot;

/* float, double, float16, bfloat16 */
bool is_float(int32_t dtype);
/* Floats, or integers with a scale. */
bool slot_is_real(const slot *s);
/*
 * qsim_model_scale for one of the inputs or outputs; false: it has none, or there are so many that
 * looking at all nodes for each of them would take minutes.
 */
bool slot_find_scale(const qsim_model *m, const char *tensor, double *scale, int64_t *zero_point);
/* Gives a slot the type, scale and zero point of a model's input; false: there is no such input. */
bool slot_retype(const qsim_model *model, int32_t index, slot *s);
/*
 * The VALUE of an option NAME=VALUE if it is for this slot, else NULL. With only one slot NAME may
 * be left out.
 */
const char *slot_value(const char *given, const slot *s, bool only);
/* The axis of a sound's samples: the last one behind the first that is not 1; else the last. */
int32_t slot_sound_axis(const slot *s);
/* Gives free axes without a size the sizes that `from` has for their names. */
void slots_share(slot *slots, size_t count, const slot *from);
/*
 * Gives sizes to the free axes of data that is made up, but for axis 0, which counts samples, and
 * records them for messages: 1, or what the others tell (total_length of past_length and length).
 * `first`: the size that axis 0 will have.
 */
void slots_make_up(const tool *t, slot *slots, size_t count, int64_t first);
/* All inputs of a model; the caller frees *slots. Prints errors. */
int slots_of_model(const tool *t, const qsim_model *model, slot **slots, size_t *count);

#endif
