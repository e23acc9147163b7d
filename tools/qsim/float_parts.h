/* SPDX-License-Identifier: MIT */
/* Weights that stay float, by operator. */
#ifndef QSIM_FLOAT_PARTS_H
#define QSIM_FLOAT_PARTS_H

#include "common/tool.h"

typedef struct float_part {
    const char *op_type; /* the model's own text */
    int nodes;
    int64_t bytes;
} float_part;

typedef struct float_parts {
    float_part *items; /* the most bytes first */
    size_t count;
    int nodes; /* nodes with weights: constants longer than 1 on two axes */
    int64_t bytes;
} float_parts;

/* Is this node left out? `name` is the node's name, or its output's where it has none. */
typedef bool (*float_parts_skip)(void *user, const char *name);

/*
 * Float weights of all nodes except those that `skip` (may be NULL) leaves out. Scales and biases
 * are not weights.
 */
void float_parts_find(const qsim_model *m, float_parts_skip skip, void *user, float_parts *out);
/* Writes "LSTM 2 (1.22 MB), Gemm 1 (20.0 KB)". */
void float_parts_text(const float_parts *f, text *out);
void float_parts_free(float_parts *f);

#endif
