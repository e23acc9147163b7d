/* SPDX-License-Identifier: MIT */
/*
 * The channels-last pass. The twin of a value (twins.h) is its channels-last form; Transposes
 * convert.
 */
#ifndef QS_LAYOUT_H
#define QS_LAYOUT_H

#include "pass/twins.h"

typedef struct qs_layout {
    qs_pass *p;
    qs_graph *g;
    qs_twins twins;
    qs_id *same; /* equal value to read in its place; itself if there is none */
    qs_uses uses;
} qs_layout;

/* The axis of the twin that is axis `axis` of the value. */
int32_t qs_layout_axis(int32_t axis, int32_t rank);
/* The axis of the value that is axis i of the twin. */
int32_t qs_layout_origin(int32_t i, int32_t rank);

/* Makes the node work on twins if it can; *done: it does (layout_propagate.c). */
int qs_layout_propagate(qs_layout *l, qs_id node, bool *done);
/* Slice, Pad, ReduceMean, Transpose (layout_axes.c). */
int qs_layout_axes(qs_layout *l, qs_id node, bool *done);
/* Flatten before a product with constant weights: permutes their rows (layout_flatten.c). */
int qs_layout_flatten(qs_layout *l, qs_id node, bool *done);
/* Reshape, Transpose, Reshape as channel shuffle (layout_shuffle.c). */
int qs_layout_shuffle(qs_layout *l, qs_id node, bool *done);
/* Reshape, Transpose, Reshape as space to depth or depth to space (layout_blocks.c). */
int qs_layout_blocks(qs_layout *l, qs_id node, bool *done);

/* Whether a reader needs the value channels-last, or quantizes it, probably for one that does. */
bool qs_layout_wants_last(const qs_graph *g, const qs_uses *uses, qs_id value);

#endif
