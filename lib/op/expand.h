/* SPDX-License-Identifier: MIT */
/*
 * Operators that are short for several others: column `expand` of a row adds nodes that compute the
 * same, and names the values that replace the node's outputs. Calls after a failure do nothing.
 */
#ifndef QS_EXPAND_H
#define QS_EXPAND_H

#include "op/rules.h"

typedef struct qs_expand {
    qs_graph *graph;
    qs_id node_id;
    const qs_node *node; /* valid until nodes are added */
    bool standard;       /* make only operators of the opset imported, 13 at least */
    qs_id
        out[QS_BOUND_OUTPUTS]; /* by output: the value that replaces it; none set: the node stays */
    int code;                  /* the first failure */
    const char *model;
    qsim_error *error;
} qs_expand;

/* Input `index` of the node; QS_NONE: left out. Its value: NULL. */
qs_id qs_expand_in(const qs_expand *e, int32_t index);
const qs_value *qs_expand_value(const qs_expand *e, int32_t index);

/* Output 0 of a new node of ai.onnx, or com.microsoft, with `outputs` outputs (ids ascending by 1).
 */
qs_id qs_expand_many(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                     int32_t outputs);
qs_id qs_expand_ms(qs_expand *e, const char *op_type, const qs_id *in, int32_t count,
                   int32_t outputs);
/* A node of domain qsim; not if only standard operators are made. */
qs_id qs_expand_own(qs_expand *e, const char *op_type, const qs_id *in, int32_t count);
/* The same with one output and one, two or three inputs; QS_NONE ends them. */
qs_id qs_expand_add(qs_expand *e, const char *op_type, qs_id a, qs_id b, qs_id c);

/* The pieces of x along an axis, each of the size given; ids ascending by 1. */
qs_id qs_expand_split(qs_expand *e, qs_id x, int64_t axis, const int64_t *sizes, int32_t n);

/* Attributes of the node that makes a value. */
void qs_expand_int(qs_expand *e, qs_id made, const char *name, int64_t v);
void qs_expand_float(qs_expand *e, qs_id made, const char *name, float v);
void qs_expand_ints(qs_expand *e, qs_id made, const char *name, const int64_t *v, int32_t n);
void qs_expand_attr(qs_expand *e, qs_id made, const qs_attr *a);
/* Attribute `name` of the node, if it has it, under a name of the new one. */
void qs_expand_copy(qs_expand *e, qs_id made, const char *name, const char *as);

/* Constants: a number of a type (float, double, 8 bits, int32, int64), and a list of int64. */
qs_id qs_expand_number(qs_expand *e, int32_t dtype, double v);
qs_id qs_expand_list(qs_expand *e, const int64_t *v, int32_t n);

/* Frequent pieces: a Reshape to sizes (0 keeps, -1 is the rest), a Transpose. */
qs_id qs_expand_reshape(qs_expand *e, qs_id x, const int64_t *shape, int32_t n);
qs_id qs_expand_transpose(qs_expand *e, qs_id x, const int64_t *perm, int32_t n);

/*
 * The rules of ai.onnx's operator `op_type` at its version 13 for a node that has its attributes
 * and begins with its inputs, or takes in[i] in place of x->in[i], `count` of them.
 */
int qs_expand_infer(qs_infer *x, const char *op_type, const qs_value *in, int32_t count);

#endif
