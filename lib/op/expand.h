/* SPDX-License-Identifier: MIT */
/*
 * Expansion of an operator into others: column `expand` of its row adds nodes that compute the
 * same, and names the values that replace the node's outputs. Calls after a failure do nothing.
 */
#ifndef QS_EXPAND_H
#define QS_EXPAND_H

#include "op/rules.h"

typedef struct qs_expand {
    qs_graph *graph;
    qs_id node_id;
    const qs_node *node;         /* a copy of the pointer is valid until nodes are added */
    bool standard;               /* add only operators of the imported opset, at least 13 */
    bool only_onnx;              /* with `standard`: no other operator is to be left */
    qs_id out[QS_BOUND_OUTPUTS]; /* value that replaces each output; none set: the node stays */
    bool changed;                /* the node itself has become another one */
    int code;                    /* the first failure */
    const char *model;
    qsim_error *error;
} qs_expand;

/* Whether a file keeps the node: its expansion takes operators of newer opsets than most files. */
static inline bool qs_expand_stays(const qs_expand *e) {
    return e->standard && !e->only_onnx;
}

/* Input `index` of the node, or QS_NONE if it is left out; its value, or NULL. */
qs_id qs_expand_in(const qs_expand *e, int32_t index);
const qs_value *qs_expand_value(const qs_expand *e, int32_t index);
/* The node as shape rules see it, valid until nodes are added. */
qs_infer qs_expand_view(const qs_expand *e);

/* Add a node of ai.onnx or com.microsoft; return the first of `outputs` consecutive output ids. */
qs_id qs_expand_many(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                     int32_t outputs);
qs_id qs_expand_ms(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                   int32_t outputs);
/* Adds a node of domain qsim; not with `standard`. */
qs_id qs_expand_own(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                    int32_t outputs);
/* Add a node of ai.onnx with one output and up to one, two or three inputs; QS_NONE ends them. */
qs_id qs_expand_one(qs_expand *e, const char *op_type, qs_id a);
qs_id qs_expand_two(qs_expand *e, const char *op_type, qs_id a, qs_id b);
qs_id qs_expand_add(qs_expand *e, const char *op_type, qs_id a, qs_id b, qs_id c);

/* Joins values along an axis. */
qs_id qs_expand_concat(qs_expand *e, const qs_id *in, int32_t count, int64_t axis);

/* Splits x along an axis into pieces of these sizes; ids are consecutive. */
qs_id qs_expand_split(qs_expand *e, qs_id x, int64_t axis, const int64_t *sizes, int32_t n);

/* Set an attribute of the node that produces a value. */
void qs_expand_int(qs_expand *e, qs_id made, const char *name, int64_t v);
void qs_expand_float(qs_expand *e, qs_id made, const char *name, float v);
void qs_expand_ints(qs_expand *e, qs_id made, const char *name, const int64_t *v, int32_t n);
void qs_expand_attr(qs_expand *e, qs_id made, const qs_attr *a);
/* Copies attribute `name` of the node, if present, to the new node as attribute `as`. */
void qs_expand_copy(qs_expand *e, qs_id made, const char *name, const char *as);

/* Add a constant: a number (float, double, 8 bits, int32, int64), or a list of int64. */
qs_id qs_expand_number(qs_expand *e, int32_t dtype, double v);
qs_id qs_expand_list(qs_expand *e, const int64_t *v, int32_t n);

/* The mean of x over axes. */
qs_id qs_expand_mean(qs_expand *e, qs_id x, const int64_t *axes, int32_t n, bool keep);

/* The operator of ai.onnx with the same name, inputs and attributes (expand/op_contributed.c). */
void qs_expand_contributed(qs_expand *e);
/* Weights in blocks, dequantized by ai.onnx, for files with operators of ONNX alone (blocks.c). */
void qs_expand_nbits(qs_expand *e);
void qs_expand_gather_blocks(qs_expand *e);

/* Sets the failure that memory is missing; returns QS_NONE. */
qs_id qs_expand_no_memory(qs_expand *e);

/* Add a Cast. */
qs_id qs_expand_cast(qs_expand *e, qs_id x, int32_t dtype);
/* Adds the node again, with this input cast to another type; returns its first output. */
qs_id qs_expand_as(qs_expand *e, int32_t index, int32_t dtype);

/* Add a Reshape (size 0 keeps an axis, -1 is the rest), or a Transpose. */
qs_id qs_expand_reshape(qs_expand *e, qs_id x, const int64_t *shape, int32_t n);
qs_id qs_expand_transpose(qs_expand *e, qs_id x, const int64_t *perm, int32_t n);

/*
 * Joins the tensors of a sequence, whose length the file tells, and `rest` along axis 0; with
 * `stacks` along a new axis in front of theirs (expand/op_sequence.c).
 */
qs_id qs_expand_sequence(qs_expand *e, qs_id sequence, qs_id rest, bool stacks);

/*
 * Applies the shape rule of ai.onnx's operator `op_type`, version 13 or its first, to a node that
 * has its attributes and whose first inputs are its inputs; in[i] replaces x->in[i] for `count` of
 * them.
 */
int qs_expand_infer(qs_infer *x, const char *op_type, const qs_value *in, int32_t count);

#endif
