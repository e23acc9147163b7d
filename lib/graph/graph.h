/* SPDX-License-Identifier: MIT */
/*
 * The graph, the intermediate representation of a model: values, nodes and attributes with names,
 * types, shapes and edges. It has neither ONNX's format nor arithmetic. Values and nodes are in
 * arrays and refer to each other by ids; all memory is in the graph's arena and lives as long as
 * the graph.
 *
 * An id stays valid when nodes and values are added or removed: removing only marks. A pass is a
 * loop over `order`.
 */
#ifndef QS_GRAPH_H
#define QS_GRAPH_H

#include "base/base.h"

#include <qsim/model.h>

typedef int32_t qs_id;
#define QS_NONE (-1)

/* Bytes that another object owns, such as a message of the source file or a string attribute. */
typedef struct qs_span {
    const uint8_t *data;
    size_t size;
} qs_span;

/* One axis: a size, or -1 with an optional symbol. */
typedef struct qs_dim {
    int64_t size;
    const char *symbol;
} qs_dim;

/*
 * A constant: an initializer, or an attribute's tensor. `data` points into the file it was read
 * from wherever the encoding allows, and is then possibly not aligned to the element: read it with
 * memcpy, or through qs_graph_aligned.
 */
typedef struct qs_const {
    int32_t dtype;
    int32_t rank;
    const int64_t *dims;
    const void *data;
    size_t elements;
    size_t bytes;
    qs_span source; /* the message it was read from; empty if it was not read */
    bool external;  /* the model keeps its bytes in another file */
} qs_const;

struct qs_subgraph;

typedef struct qs_attr {
    const char *name;
    int32_t type;  /* QSIM_ATTR_*; of OTHER there is only the source */
    int32_t count; /* of a list */
    union {
        int64_t i;
        float f;
        qs_span s;
        const int64_t *ints;
        const float *floats;
        const qs_span *strings;
        const qs_const *tensor;
        struct qs_subgraph *graph; /* NULL: not read, in a model loaded for inspection */
    } u;
    qs_span source;
} qs_attr;

typedef struct qs_value {
    const char *name;
    const qs_dim *dims;   /* rank of them */
    const qs_const *data; /* a constant's bytes, else NULL */
    qs_span source;       /* its ValueInfo message, if the file has one */
    qs_id producer;       /* node, or QS_NONE: input or constant */
    int32_t dtype;        /* QSIM_UNDEFINED if unknown */
    int32_t rank;         /* -1 if unknown */
    bool is_input;        /* in `inputs` */
    bool is_output;       /* in `outputs` */
    bool declared;        /* the file states its type, which inference has to confirm */
    bool misdeclared;     /* the file states another shape than inference, whose shape counts */
    bool broken;          /* its definition could not be read (QSIM_LOAD_CHECK) */
    bool is_sequence;     /* a sequence of tensors that a Loop carries */
} qs_value;

/* Whether a value exists: a tensor whose node a pass has removed does not. */
static inline bool qs_value_exists(const qs_value *v) {
    return v->producer != QS_NONE || v->is_input || v->data;
}

struct qs_op;

typedef struct qs_node {
    const char *name; /* "" if it has none */
    const char *domain;
    const char *op_type;
    const struct qs_op *op; /* its row of the operator table; NULL if unknown */
    qs_attr *attrs;
    qs_id *inputs; /* QS_NONE: an optional input is left out */
    qs_id *outputs;
    int32_t attr_count, input_count, output_count;
    int32_t captured; /* number of its last inputs that are captured values */
    int32_t version;  /* version of its domain that the model imports */
    qs_span source;   /* its message, valid while `changed` is false */
    bool changed;     /* differs from `source` */
    bool removed;
} qs_node;

typedef struct qs_import {
    const char *domain;
    int64_t version;
} qs_import;

typedef struct qs_graph {
    qs_arena arena;
    const char *name;
    qs_value *values;
    qs_node *nodes;
    qs_id *inputs;  /* graph inputs without an initializer, in order */
    qs_id *outputs; /* may repeat a value */
    qs_id *order;   /* live nodes, every producer before its readers */
    qs_import *imports;
    size_t value_count, node_count, input_count, output_count, order_count, import_count;
    size_t value_capacity, node_capacity, input_capacity, output_capacity, order_capacity,
        import_capacity;
    struct qs_names *names;  /* value name -> id */
    struct qs_graph **owned; /* of subgraphs; freed with this graph */
    size_t owned_count, owned_capacity;
} qs_graph;

/* A captured value: one of the outer graph that a subgraph reads. */
typedef struct qs_capture {
    qs_id inner;   /* its value in the subgraph */
    int32_t input; /* which input of the node it is */
} qs_capture;

/*
 * A graph inside a node: a branch of If, the body of Loop or Scan. Its inputs are first those that
 * the operator feeds, then captured values that are not constant. A node lists what its subgraphs
 * capture as inputs after the operator's own, so that order, uses and pruning see them.
 */
typedef struct qs_subgraph {
    qs_graph *graph; /* owned by the graph that the node is in */
    int32_t fed;     /* inputs that the operator feeds */
    int32_t watched; /* further outputs, after the operator's, for the observer of a run */
    qs_capture *captures;
    int32_t capture_count;
} qs_subgraph;

int qs_graph_create(qsim_ctx *ctx, qs_graph **out);
void qs_graph_free(qs_graph *graph);

/*
 * A copy in a context's memory that can be changed without touching the original. Names, dims,
 * attributes and constants are shared, not copied: the original (its model) must outlive the copy.
 * Subgraphs are copied. Errors: NOMEM, and those of a stop, without a message.
 */
int qs_graph_clone(const qs_graph *graph, qsim_ctx *ctx, qs_graph **out);

/* Hands `inner` over to `g`, also when this fails. */
int qs_graph_own(qs_graph *g, qs_graph *inner);

/*
 * Gives captured values, in all subgraphs, the names that they have in the outer graph, and others
 * a name that no value of another graph has.
 */
int qs_graph_name_inside(qs_graph *g);
/* Appends the values that a node's subgraphs capture to its inputs. */
int qs_graph_capture(qs_graph *g, qs_id node, const qs_id *values, int32_t count);
/* The subgraph that attribute `name` of a node is, or NULL. */
qs_subgraph *qs_node_subgraph(const qs_node *n, const char *name);
/* Whether any attribute is a subgraph. */
bool qs_node_has_subgraph(const qs_node *n);
/* Calls `visit` for every subgraph of the graph's nodes, in order, until it returns an error. Those
 * inside of subgraphs are left to it. */
typedef int (*qs_subgraph_fn)(void *user, qs_graph *g, qs_node *n, qs_subgraph *sub);
int qs_subgraphs_visit(qs_graph *g, qs_subgraph_fn visit, void *user);
/* Calls `visit` for the graph and all graphs inside of it, until it returns other than 0. */
typedef int (*qs_graph_fn)(void *user, qs_graph *g);
int qs_graphs_visit(qs_graph *g, qs_graph_fn visit, void *user);
/* Makes captured values that are constants of g, where n is, constants of the subgraph, or of a
 * copy of it. */
int qs_subgraph_bind(const qs_graph *g, const qs_node *n, const qs_subgraph *sub, qs_graph *inner);
/* Drops the constants that the subgraph does not read, and no longer captures them. */
int qs_subgraph_release(qs_node *n, qs_subgraph *sub);

/* Ids, or a negative QSIM_E_*. A name is copied; "" or NULL makes an unnamed value. */
qs_id qs_graph_add_value(qs_graph *g, const char *name);
qs_id qs_graph_add_const(qs_graph *g, const char *name, int32_t dtype, int32_t rank,
                         const int64_t *dims, const void *data, bool copy);
/* A name not used by any value yet, made from `base` and, if needed, a number. In the arena. */
const char *qs_graph_fresh_name(qs_graph *g, const char *base);
qs_id qs_graph_find(const qs_graph *g, const char *name); /* QS_NONE if absent */
/* Gives a value a name that no other has and that outlives the graph; its producer and readers are
 * not marked as changed. Errors: NOMEM. */
int qs_graph_rename(qs_graph *g, qs_id value, const char *name);

/* domain, op_type and name must outlive the graph or be copied with qs_arena_string by the caller.
 */
qs_id qs_graph_add_node(qs_graph *g, const char *domain, const char *op_type, const char *name,
                        const qs_id *inputs, int32_t input_count, const qs_id *outputs,
                        int32_t output_count);
/* Adds a node with the operator and attributes of `like`, which may be in another graph. */
qs_id qs_graph_add_like(qs_graph *g, const qs_node *like, const qs_id *inputs,
                        const qs_id *outputs);
/* Adds or replaces an attribute; marks the node as changed. */
int qs_node_set_attr(qs_graph *g, qs_id node, const qs_attr *attr);
int qs_node_set_int(qs_graph *g, qs_id node, const char *name, int64_t value);
int qs_node_set_float(qs_graph *g, qs_id node, const char *name, float value);
int qs_node_set_ints(qs_graph *g, qs_id node, const char *name, const int64_t *v, int32_t n);
void qs_node_drop_attr(qs_graph *g, qs_id node, const char *name);
void qs_node_set_input(qs_graph *g, qs_id node, int32_t index, qs_id value);
/* Makes room for `count` inputs; the new ones are QS_NONE. */
int qs_node_grow_inputs(qs_graph *g, qs_id node, int32_t count);
void qs_graph_remove_node(qs_graph *g, qs_id node);

/* Fails with "MODEL: what is wrong (node 'NAME', Operator)". */
int qs_node_fail(qsim_error *error, int code, const char *model, const qs_node *n,
                 const char *format, ...) QS_PRINTF(5, 6);

const qs_attr *qs_node_attr(const qs_node *n, const char *name); /* NULL if absent */
int64_t qs_node_int(const qs_node *n, const char *name, int64_t fallback);
float qs_node_float(const qs_node *n, const char *name, float fallback);
/* Whether a node has this operator, and is not removed; qs_node_is_onnx: an operator of ai.onnx. */
bool qs_node_is(const qs_node *n, const char *domain, const char *op_type);
bool qs_node_is_onnx(const qs_node *n, const char *op_type);
qs_id qs_node_input(const qs_node *n, int32_t index); /* QS_NONE: left out */
/* An input that is a constant; NULL: it is left out or computed. */
const qs_const *qs_node_const(const qs_graph *g, const qs_node *n, int32_t index);

/* The value that was this output stays marked as one until qs_graph_mark_outputs. */
void qs_graph_set_output(qs_graph *g, size_t index, qs_id value);
/* Marks the outputs, and no other value, as such: once for all that were set. */
void qs_graph_mark_outputs(qs_graph *g);
int qs_graph_push_output(qs_graph *g, qs_id value);
int qs_graph_push_input(qs_graph *g, qs_id value);
int qs_graph_set_import(qs_graph *g, const char *domain, int64_t version);
int64_t qs_graph_import(const qs_graph *g, const char *domain); /* 0 if absent */

/*
 * Fills `order`; nodes that the file already has in order keep it. QSIM_E_GRAPH for a cycle: the
 * message names a node on it. Iterative, linear.
 */
int qs_graph_sort(qs_graph *g, qsim_error *error);

/*
 * Readers of every value: nodes[start[v]] … nodes[start[v + 1] - 1] read v, one entry for each
 * input.
 */
typedef struct qs_uses {
    qs_id *start;
    qs_id *nodes;
    size_t values; /* values added later have no entries */
} qs_uses;
int qs_graph_uses(const qs_graph *g, qs_uses *uses);
void qs_uses_free(const qs_graph *g, qs_uses *uses);
/* The only reader of a value that is no output; QS_NONE: the value has not exactly one reader. */
qs_id qs_only_reader(const qs_graph *g, const qs_uses *uses, qs_id value);
/* The producer of a value that has only one reader; QS_NONE: there is no such producer. */
qs_id qs_only_producer(const qs_graph *g, const qs_uses *uses, qs_id value);

/* Removes nodes of which no output is read, also from `order`. */
int qs_graph_prune(qs_graph *g);

/* Whether two sizes are equal: known, or unknown with the same symbol. */
bool qs_dim_same(const qs_dim *a, const qs_dim *b);
/* Whether the bytes of a tensor of these sizes can be counted, unknown ones taken for 1. */
bool qs_shape_fits(int32_t dtype, int32_t rank, const qs_dim *dims);

/* Copies a value's sizes; a scalar and a value of unknown rank have none. */
void qs_value_dims(const qs_value *v, qs_dim *to);
int qs_value_set_shape(qs_graph *g, qs_id value, int32_t dtype, int32_t rank, const qs_dim *dims);
/* The constant's bytes aligned to the element; copies into the arena on first need. NULL: no
 * memory. */
const void *qs_graph_aligned(qs_graph *g, qs_id value);

#endif
