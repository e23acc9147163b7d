/* SPDX-License-Identifier: MIT */
/*
 * The channels-last pass. A value gets at most one twin, its channels-last form, made when a node
 * first needs it. If the value's producer writes the twin, the value itself is pending: a Transpose
 * makes it only if a node reads it in the model's layout. So pairs of Transposes that cancel never
 * arise.
 */
#ifndef QS_LAYOUT_H
#define QS_LAYOUT_H

#include "pass/pass.h"

typedef struct qs_layout {
    qs_pass *p;
    qs_graph *g;
    size_t count;  /* values when the pass began: only they have entries below */
    qs_id *twin;   /* channels-last, or QS_NONE */
    bool *pending; /* exists as its twin only */
    qs_id *same;   /* equal value to read in its place; itself if there is none */
    qs_uses uses;
} qs_layout;

bool qs_layout_is_pending(const qs_layout *l, qs_id v);
/* The twin of a value, made by a Transpose if there is none yet; negative: error. */
qs_id qs_layout_last(qs_layout *l, qs_id v);
/* Makes the node write output `index` channels-last: the value becomes pending. */
int qs_layout_emit(qs_layout *l, qs_id node, int32_t index);
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
