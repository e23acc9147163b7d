/* SPDX-License-Identifier: MIT */
/* Which tensors a sequence has, as far as the file tells. */
#ifndef QS_SEQUENCE_H
#define QS_SEQUENCE_H

#include "op/expand.h"

/* Most tensors in a sequence, and most insertions and removals that make one: each reader walks
 * over all of them. */
#define QS_LIST_MOST 512

/* A tensor in a sequence: a value, or a part of the value that SplitToSequence cuts. */
typedef struct qs_item {
    qs_id tensor;
    const qs_node *split; /* NULL: the value as a whole */
    int64_t begin, end;   /* part of the axis; end -1: parts whose sizes the model computes */
    int32_t axis;
    bool keeps_axis;
    const qs_value *like; /* a value of its type and shape, which it has not yet; else NULL */
} qs_item;

typedef struct qs_list {
    int32_t count;
    bool open;     /* the last one stands for any number of tensors of its shape, sizes unknown */
    bool fed;      /* it begins with what a subgraph is fed */
    qs_value made; /* `like` of an open list that is changed; its sizes */
    qs_dim dims[QSIM_MAX_RANK];
    qs_item at[QS_LIST_MOST + 1]; /* one more: those inserted into an open list come after it */
} qs_list;

extern const qs_op qs_op_sequence_construct, qs_op_sequence_insert, qs_op_sequence_erase,
    qs_op_split_to_sequence, qs_op_loop, qs_op_identity;

/* The rules' view of a node of the graph, for messages of x. */
qs_infer qs_list_view(const qs_infer *x, const qs_node *n);

/*
 * Reads input `index`, a position from 0 to bound; negative ones count from `length`. A position
 * that is left out is `bound`.
 */
int qs_list_position(const qs_infer *x, int32_t index, int64_t length, int64_t bound, int64_t *at);

/* Whether the tensors are all parts of size 1 of one tensor, in order. */
bool qs_list_slices(const qs_list *l);

/*
 * Whether the node changes slices of one tensor, all of those that there are, at a position that is
 * not in the file: they count as any number of slices then.
 */
bool qs_list_opens(const qs_infer *x, const qs_node *change, const qs_list *l);

/* Lists the tensors of a sequence. */
int qs_list_read(const qs_infer *x, qs_id sequence, qs_list *l);

/* The value that has the type and, as a whole, the shape of a tensor in a sequence. */
const qs_value *qs_list_like(const qs_graph *g, const qs_item *t);
/* Type and shape of a tensor in a sequence. */
qs_value qs_list_value(const qs_graph *g, const qs_item *t, qs_dim *dims);
/* What all tensors of a list have in common; *alike: their sizes may be the same. */
void qs_list_merge(const qs_graph *g, const qs_list *l, qs_value *like, qs_dim *dims, bool *alike);

#endif
