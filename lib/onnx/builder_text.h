/* SPDX-License-Identifier: MIT */
/* A type as the short forms of the builder have it. */
#ifndef QS_BUILDER_TEXT_H
#define QS_BUILDER_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

typedef struct qs_text_type {
    int32_t dtype, rank; /* rank -1: unknown, there are no brackets */
    int64_t dims[QSIM_MAX_RANK];
    const char *names[QSIM_MAX_RANK]; /* in `text`; NULL for numbers */
    char text[512];
} qs_text_type;

/* Parses a type such as "float[N,64]", "int8[]" or "float"; false: it is none. */
bool qs_builder_type(const char *text, qs_text_type *t);

#endif
