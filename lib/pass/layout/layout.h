/* SPDX-License-Identifier: MIT */
/*
 * The channels-last pass. Values are never moved back and forth: each has, once something needs it,
 * a twin with its channels last; a value whose maker writes the twin is `late`, and a Transpose
 * makes it only if somebody wants it as it was. So no pair of transposes ever has to cancel.
 */
#ifndef QS_LAYOUT_H
#define QS_LAYOUT_H

#include "pass/pass.h"

typedef struct qs_layout {
    qs_pass *p;
    qs_graph *g;
    size_t count; /* values when the pass began: only they have entries below */
    qs_id *twin;  /* channels-last, or QS_NONE */
    bool *late;   /* exists as its twin only */
    qs_id *same;  /* value to use in place of this one */
    qs_uses uses;
} qs_layout;

bool qs_layout_is_late(const qs_layout *l, qs_id v);
/* The channels-last twin of a value, made by a Transpose if need be; negative: error. */
qs_id qs_layout_last(qs_layout *l, qs_id v);
/* Output `index` of the node is from now on written channels-last. */
int qs_layout_emit(qs_layout *l, qs_id node, int32_t index);
/* Where axis `axis` of a tensor of this rank is in its twin. */
int32_t qs_layout_axis(int32_t axis, int32_t rank);
/* Axis of the original that axis i of the twin is. */
int32_t qs_layout_origin(int32_t i, int32_t rank);

/* Lets the node work on twins, if it can; *done says so (layout_spread.c). */
int qs_layout_spread(qs_layout *l, qs_id node, bool *done);
/* Slice, Pad, ReduceMean, Transpose (layout_axes.c). */
int qs_layout_axes(qs_layout *l, qs_id node, bool *done);
/* Flatten before a product with constant weights: permutes their rows (layout_flatten.c). */
int qs_layout_flatten(qs_layout *l, qs_id node, bool *done);
/* Reshape, Transpose, Reshape as channel shuffle (layout_shuffle.c). */
int qs_layout_shuffle(qs_layout *l, qs_id node, bool *done);

/* Reshape, Transpose, Reshape as space to depth or depth to space (layout_blocks.c). */
int qs_layout_blocks(qs_layout *l, qs_id node, bool *done);

/* The only reader of `value`, which is not given out; QS_NONE if there are others. */
qs_id qs_layout_reader(const qs_layout *l, qs_id value, const char *op_type);
/* Sizes that are the same, known or not. */
bool qs_layout_same(const qs_dim *a, const qs_dim *b);
/* Whether what reads it does so channels-last, or quantizes it for one that does. */
bool qs_layout_wants_last(const qs_graph *g, const qs_uses *uses, qs_id value);

#endif
