/* SPDX-License-Identifier: MIT */
/* Types and functions that the files of loading share. */
#ifndef QS_READER_H
#define QS_READER_H

#include "base/file.h"
#include "graph/model.h"
#include "onnx/onnx_fields.h"
#include "onnx/schema.h"
#include "onnx/wire.h"

/* A file of external data, or the bytes that the application's callback has returned for it. */
typedef struct qs_outside {
    const char *location;
    const uint8_t *data;
    size_t size;
    qs_map map; /* empty if the callback returned the bytes */
} qs_outside;

/* The bytes that a loaded model points into. */
struct qs_source {
    qs_map map;    /* empty if the caller keeps the bytes */
    qs_span bytes; /* the whole model */
    char *folder;  /* of the model; NULL: it is not in a file */
    qs_outside *outside;
    size_t outside_count, outside_capacity;
    void (*release)(void *owner); /* of the caller's bytes; may be NULL */
    void *owner;
};

/* An input or output of a local function, and the value that the call has for it. */
typedef struct qs_alias {
    qs_span text;
    qs_id value;      /* QS_NONE: left out */
    int32_t position; /* among the inputs and then the outputs of the function */
} qs_alias;

/* A node that calls a local function. */
typedef struct qs_call {
    const qs_node *node;
    qs_span body;
    qs_alias *aliases; /* sorted; of one name, inputs come first */
    size_t count;
} qs_call;

/*
 * A scope of names: of a branch, which also sees the names of outer scopes, or of a function, which
 * does not.
 */
typedef struct qs_scope {
    const char *prefix;
    const struct qs_scope *outer; /* NULL: the graph itself */
    int depth;
    const qs_call *call; /* NULL: a branch */
} qs_scope;

/* A value of a subgraph and its counterpart in the outer graph. */
typedef struct qs_captured {
    qs_id inner, outer;
} qs_captured;

/* A subgraph that is being read, and the graph around it. */
typedef struct qs_level {
    qs_subgraph *sub;
    qs_captured *pairs; /* sub->capture_count of them */
    size_t capacity;
    qs_graph *outer_graph;
    const qs_scope *outer_scope;
    struct qs_level *outer; /* NULL: the outer graph is the model's */
    int depth;
} qs_level;

/* A Where that makes an output of an If, and the If, for messages. */
typedef struct qs_if_choice {
    const qs_graph *graph; /* the graph of the node */
    qs_id node;
    const char *name;
    qs_span source;
} qs_if_choice;

typedef struct qs_reader {
    qsim_ctx *ctx;
    qsim_model *model; /* NULL while a file of one tensor is read */
    qs_graph *graph;
    qs_arena *arena;
    struct qs_source *source;
    const char *name;  /* the file, for messages */
    const qs_node *at; /* the node being read, for messages */
    qsim_error *error;
    qsim_external_fn external;
    void *external_user;
    char *text; /* a name with its NUL, for look-ups */
    size_t text_capacity;
    qs_id *ids; /* inputs and outputs of the node being read */
    size_t ids_capacity;
    const qs_scope *scope; /* NULL: of the graph */
    qs_level *level;       /* NULL: the model's graph */
    bool keep_ifs;         /* read If as a node with subgraphs */
    bool retry;            /* reading failed only because an If was read as a choice */
    size_t branches;       /* read so far */
    size_t nodes_before;   /* of subgraphs read so far */
    qs_if_choice *choices;
    size_t choice_count, choice_capacity;
    struct qs_functions *functions; /* sorted; NULL: none */
    bool inspect;
    bool collects; /* problems are collected in the model, and parts with problems left out */
} qs_reader;

/* The arguments of "%.*s" for a name from the file, which may be long. */
#define QS_SPAN_TEXT(span) ((span).size < 200 ? (int)(span).size : 200), (const char *)(span).data
/* Fails with "FILE: what (node 'NAME', OP)". */
int qs_read_fail(qs_reader *r, int code, const char *format, ...) QS_PRINTF(3, 4);
int qs_read_nomem(qs_reader *r);
/*
 * After a failure: moves the error to the model's problems and returns QSIM_OK, if problems are
 * collected.
 */
int qs_read_collect(qs_reader *r, int code);
/*
 * Marks the tensor `text` as broken: its definition could not be read. Nodes that read it are not
 * reported.
 */
int qs_read_break(qs_reader *r, qs_span text);

/* A copy of a name in the arena; NULL when out of memory. */
const char *qs_read_text(qs_reader *r, qs_span text);
/* The same in scratch memory, until the next call. */
const char *qs_read_scratch(qs_reader *r, qs_span text);

/*
 * Reads a TensorProto. `what` and `name` are for messages: "initializer", "W". Data is copied only
 * if it cannot be used in place, and memory is allocated only after the message is known to have as
 * many bytes.
 */
int qs_read_tensor(qs_reader *r, qs_span message, const char *what, const char *name,
                   qs_const *out);

/* The same for a SparseTensorProto; `out` has all elements. Its parts must be inside the file. */
int qs_read_sparse(qs_reader *r, qs_span message, const char *what, const char *name,
                   qs_const *out);
/* Reads the sizes of axes that a message has in `field`, at most QSIM_MAX_RANK. */
int qs_read_dims(qs_reader *r, qs_span message, uint32_t field, const char *what, const char *name,
                 int64_t *dims, int32_t *rank);
/* Sets the number of elements and bytes of a constant with type and shape, within the limits. */
int qs_read_size(qs_reader *r, const char *what, const char *name, qs_const *c);

/* Finds the bytes of a tensor whose data is in another file; their number is `bytes`. */
int qs_read_external(qs_reader *r, qs_span tensor, const char *what, const char *name, size_t bytes,
                     const void **out);
void qs_source_release_pages(const qsim_model *model);
void qs_source_free(qsim_model *model);
/* Copies the names of files that were opened to another arena; false: out of memory. */
bool qs_source_keep(struct qs_source *s, qs_arena *arena);

/* Reads the model's graph. Several messages of one field are merged, as protobuf requires. */
int qs_read_graph(qs_reader *r, const qs_span *graphs, size_t count);
/* Reads a subgraph. */
int qs_read_inner_graph(qs_reader *r, qs_span graph);
/* Checks that every name that is read is defined. */
int qs_read_names(qs_reader *r);
/* Checks operators against the table, then sorts the nodes, then infers types and shapes. */
int qs_read_operators(qs_reader *r);
/* Checks one node against the table and infers its outputs; on failure they stay as they are. */
int qs_read_node_rules(qs_graph *g, qs_id id, const char *name, qsim_error *error);
/* Logs a warning for each value that has another shape than the file declares. */
void qs_read_warn(qs_graph *g, const char *name);
/* Reads an initializer. */
int qs_read_initializer(qs_reader *r, qs_span message);
int qs_read_sparse_initializer(qs_reader *r, qs_span message);
/* The name that `text` has in the present scope, in scratch memory. */
const char *qs_read_local(qs_reader *r, qs_span text);
/* Finds the value that `text` names in the present scope; QS_NONE: there is none yet. */
int qs_read_lookup(qs_reader *r, qs_span text, qs_id *out);
/*
 * Reads the subgraphs among a node's attributes (subgraph_read.c). *captured: the values of the
 * outer graph that they read, in the arena, which become inputs of the node.
 */
int qs_read_subgraphs(qs_reader *r, qs_node *head, int32_t own_inputs, qs_id **captured,
                      int32_t *count);
/* Finds the value of the outer graph that `text` names and captures it. */
int qs_read_captured(qs_reader *r, qs_span text, qs_id *out);
/* Adds the outputs of all nodes of a graph or function, before names are looked up. */
int qs_read_claim_names(qs_reader *r, qs_span graph, uint32_t node_field);
/* Checks operators against the table, then sorts the nodes. */
int qs_read_resolve(qs_reader *r);

/* Whether a node is an If (branches.c). */
bool qs_read_is_choice(const qs_node *n);
/* Reads an If as a choice; qs_read_choices checks later that its branches agree. */
int qs_read_if(qs_reader *r, qs_span message, const qs_node *head, size_t inputs, size_t outputs);
int qs_read_choices(qs_reader *r);
/* Called when inference has failed: reports the If that breaks a rule, if one does, else `why`. */
int qs_read_choices_failed(qs_reader *r, int code, const qsim_error *why);
/* Reads a NodeProto and adds the node to the graph. */
int qs_read_node(qs_reader *r, qs_span message);

/* Type and shape of a ValueInfoProto. */
typedef struct qs_type {
    bool present;
    int32_t dtype, rank; /* UNDEFINED, -1: not stated or no tensor */
    qs_dim dims[QSIM_MAX_RANK];
    const char *other; /* "sequence", …: not a tensor */
} qs_type;
int qs_read_type(qs_reader *r, qs_span message, const char *value, qs_type *type);

/* Lists the local functions, before the graph is read (functions.c). Recursive ones are refused. */
int qs_read_functions(qs_reader *r, qs_span model);
void qs_free_functions(qs_reader *r);
/* The FunctionProto of this name; data NULL: there is none. */
qs_span qs_find_function(const qs_reader *r, qs_span domain, qs_span name);

/* Reads a call of a function as the nodes of the function (calls.c). */
int qs_read_call(qs_reader *r, qs_span message, const qs_node *head, qs_span body);
/*
 * Finds the value that the call of a scope has for a name; false: it is no input or output of the
 * function.
 */
bool qs_call_alias(const qs_scope *scope, qs_span text, qs_id *out);
/* The call whose function is being read; NULL: none is. */
const qs_call *qs_read_caller(const qs_reader *r);
/* Finds attribute `name` of the function: that of the call, or the default; *out NULL: neither. */
int qs_call_attr(qs_reader *r, const qs_call *call, qs_span name, const qs_attr **out);
/* Reads an AttributeProto. A reference to an attribute that the call leaves out gets type 0. */
int qs_read_attr(qs_reader *r, qs_span message, qs_attr *a);
/* Finds the value that `text` names, or adds it; QS_NONE for "". */
int qs_read_value(qs_reader *r, qs_span text, qs_id *out);

/* Copies and checks the options of qsim_model_load. */
int qs_load_options(const qsim_load_options *options, qsim_load_options *own, qsim_error *error);
/*
 * The two ways to load, called by qsim_model_load in lib/package. The first takes `map` over, also
 * when it fails; external data is looked for beside `path` (NULL: nowhere). The second calls
 * `release` (may be NULL) when the last model that points into the bytes is gone, or when it fails.
 */
int qs_onnx_load_map(qsim_ctx *ctx, qs_map *map, const char *path, const qsim_load_options *options,
                     qsim_model **out, qsim_error *error);
int qs_onnx_load_bytes(qsim_ctx *ctx, qs_span bytes, const qsim_load_options *options,
                       void (*release)(void *), void *owner, qsim_model **out, qsim_error *error);

/* Names the format of a file that is no ONNX model; QSIM_OK if it may be one. */
int qs_sniff(qs_span file, const char *name, qsim_error *error);

/* The most operator sets that a model imports. */
#define QS_MOST_IMPORTS 1000
/* The IR version that came with an opset of ai.onnx; at least the first in which initializers need
 * not be inputs. */
int64_t qs_ir_of_opset(int64_t opset);

/*
 * Appends a field to a list of kept ones; if it follows the last one in memory, that is extended.
 */
int qs_keep_field(qsim_ctx *ctx, qs_span **kept, size_t *capacity, size_t *count, qs_span field);

#endif
