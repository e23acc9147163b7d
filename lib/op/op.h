/* SPDX-License-Identifier: MIT */
/*
 * Operators. One row of the table (operators.c) is all that the rest of the library knows of one:
 * which versions, which attributes, what its shapes are, how it is upgraded, packed and lowered to
 * steps. An operator family is one file; adding an operator touches that file and its row.
 *
 * Domains: "" is ai.onnx, "com.microsoft" contributed ones, "qsim" internal ones that only passes
 * make and that no file may contain.
 */
#ifndef QS_OP_H
#define QS_OP_H

#include "base/base.h"
#include "graph/graph.h"

/* Sets of data types, for the rules below. */
#define QS_T(dtype) (1u << (dtype))
#define QS_T_FLOAT  QS_T(QSIM_FLOAT)
#define QS_T_8BIT   (QS_T(QSIM_UINT8) | QS_T(QSIM_INT8))

typedef struct qs_attr_rule {
    const char *name;
    int16_t type;  /* QS_ATTR_* */
    int16_t since; /* first version that has it */
    int16_t until; /* last version that has it, 0: still there */
} qs_attr_rule;

/*
 * What an operator's rules see of a node, both at load (sizes may be -1) and when a run is planned
 * (every size known).
 */
typedef struct qs_infer {
    const qs_graph *graph;
    const qs_node *node;
    qs_id node_id;
    const qs_value *values; /* by id: the graph's own at load, a plan's when planning */
    const qs_value *in[64]; /* NULL: left out or beyond the count (only the first 64 are listed) */
    qs_value *out;          /* output_count of them: fill dtype, rank and dims */
    qs_dim (*dims)[QSIM_MAX_RANK]; /* room for the dims of each output */
    const char *model;             /* name for messages */
    qsim_error *error;
} qs_infer;

/*
 * Fails with "MODEL: what is wrong (node 'NAME', Operator: …)". Every rule goes through it, so that
 * messages name file, node, operator and value.
 */
int qs_infer_fail(const qs_infer *x, int code, const char *format, ...) QS_PRINTF(3, 4);

struct qs_pack;
struct qs_lower;

/* Numbers of inputs and outputs from version `since` of the opset on; max -1: any number. */
typedef struct qs_counts {
    int16_t since, min_in, max_in, max_out;
} qs_counts;

typedef struct qs_op {
    const char *domain, *name;
    int16_t since, until; /* versions of the domain's opset whose form of it is known */
    int16_t min_in, max_in, min_out, max_out; /* of the oldest version; max -1: any number */
    qs_counts later[2];                       /* what newer versions changed; since 0: nothing */
    int32_t attr_count;
    const qs_attr_rule *attrs;
    /* Checks types, shapes and attributes and gives the outputs' types and shapes. */
    int (*infer)(qs_infer *x);
    /* Rewrites the node in place from its version to `to`; NULL: nothing changes. */
    int (*upgrade)(qs_graph *g, qs_id node, int32_t to, qsim_error *error);
    /* Once a session: packed weights, tables. NULL: nothing to prepare. */
    int (*pack)(struct qs_pack *p);
    /* Once a combination of input shapes: emits steps. NULL: a pass must have replaced it. */
    int (*lower)(struct qs_lower *l);
} qs_op;

/* The row for (domain, name) at `version`, NULL if there is none; `*known` says if the name exists.
 */
const qs_op *qs_op_find(const char *domain, const char *name, int64_t version, bool *known);

/* Newest ai.onnx opset that loading accepts. */
int64_t qs_op_newest_opset(void);

/*
 * Looks up a node's row and checks counts, attribute names and types. On success node->op is set.
 */
int qs_op_resolve(qs_graph *g, qs_id node, const char *model, qsim_error *error);

/*
 * Runs one node's rules over `values` (by id: the graph's own, or a plan's with every size known).
 * `out` and `dims` have room for its outputs; out[i].dims points into dims[i].
 */
int qs_op_infer_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/* Runs the rules over the whole graph in order and stores dtypes and shapes in its values. */
int qs_op_infer_graph(qs_graph *g, const char *model, qsim_error *error);

/* Converts the graph to ai.onnx `opset` (>= its own). */
int qs_op_upgrade_graph(qs_graph *g, int64_t opset, const char *model, qsim_error *error);

/* Multiply-accumulates of a node from the shapes in its graph with symbolic sizes taken as 1; -1
 * unknown. */
int64_t qs_op_macs(const qs_graph *g, qs_id node);

#endif
