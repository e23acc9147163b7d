/* SPDX-License-Identifier: MIT */
/* Families of graphs of growing size, for counting how work grows with them. */
#ifndef GROWTH_FAMILIES_H
#define GROWTH_FAMILIES_H

#include "proto.h"

typedef struct family {
    const char *name;
    /* Writes a model with about `n` of the family's elements. */
    void (*write)(proto *model, int n);
} family;

extern const family families[];
extern const int family_count;

#endif
