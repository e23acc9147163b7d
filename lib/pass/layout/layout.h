/* SPDX-License-Identifier: MIT */
/*
 * The channels-last pass. A value gets at most one twin, a channels-last copy, made when a node
 * first needs it. If the value's producer writes the twin, the value itself is pending: a Transpose
 * makes it only if a node reads it in its own layout. So pairs of Transposes that cancel never
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
    qs_id *same;   /* value to use in place of this one */
    qs_uses uses;
} qs_layout;

bool qs_layout_is_pending(const qs_layout *l, qs_id v);
/* The channels-last twin of a value, made by a Transpose if need be; negative: error. */
qs_id qs_layout_last(qs_layout *l, qs_id v);
/* From now on the node writes output `index` channels-last. */
int qs_layout_emit(qs_layout *l, qs_id node, int32_t index);
/* The axis of the twin that axis `axis` of a tensor of this rank becomes. */
int32_t qs_layout_axis(int32_t axis, int32_t rank);
/* The axis of the original that axis i of the twin comes from. */
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

/*
 * The only reader of `value`, if `value` is no output and its reader is an `op_type`; else QS_NONE.
 */
qs_id qs_layout_reader(const qs_layout *l, qs_id value, const char *op_type);
/* Whether two sizes are the same, known or not. */
bool qs_layout_same(const qs_dim *a, const qs_dim *b);
/* Whether a reader takes the value channels-last, or quantizes it for one that does. */
bool qs_layout_wants_last(const qs_graph *g, const qs_uses *uses, qs_id value);

#endif
