/* SPDX-License-Identifier: MIT */
/* Attributes of nodes as JSON. */
#ifndef QSIM_ATTRIBUTES_H
#define QSIM_ATTRIBUTES_H

#include "verbs.h"

/*
 * Writes the attributes that a node sets as object "attributes", by name: numbers, strings and
 * lists of these, type and shape of a tensor; null for graphs and other types.
 */
void attributes_json(json *j, const qsim_model *m, int32_t node);

#endif
