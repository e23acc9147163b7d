/* SPDX-License-Identifier: MIT */
/* Types and functions that the files of loading share. */
#ifndef QS_READER_H
#define QS_READER_H

#include "base/file.h"
#include "graph/model.h"
#include "onnx/onnx_fields.h"
#include "onnx/schema.h"
#include "onnx/wire.h"

/* One file of external data, or the bytes that the application's callback gave for it. */
typedef struct qs_outside {
    const char *location;
    const uint8_t *data;
    size_t size;
    qs_map map; /* empty if it came from the callback */
} qs_outside;

/* The bytes that a loaded model points into. */
struct qs_source {
    qs_map map;    /* empty if the caller keeps the bytes */
    qs_span bytes; /* the whole model */
    char *folder;  /* of the model; NULL: no external files */
    qs_outside *outside;
    size_t outside_count, outside_capacity;
    void (*release)(void *owner); /* of bytes that are not in a map; may be NULL */
    void *owner;
};

/* A name of a local function's input or output, and the call's value for it. */
typedef struct qs_alias {
    qs_span text;
    qs_id value; /* QS_NONE: the call leaves it out */
} qs_alias;

/* A node that calls a local function. */
typedef struct qs_call {
    const qs_node *node;
    qs_span body;
    qs_alias *aliases;
    size_t count;
} qs_call;

/*
 * A scope of names: a branch's, before those of the scope around it, or a function's, which sees no
 * others.
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

/* The subgraph being read, and its outer graph. */
typedef struct qs_level {
    qs_subgraph *sub;
    qs_captured *pairs; /* sub->capture_count of them */
    size_t capacity;
    qs_graph *outer_graph;
    const qs_scope *outer_scope;
    struct qs_level *outer; /* NULL: that graph is the model's */
    int depth;
} qs_level;

/* A Where that stands for an output of an If, and the If as messages name it. */
typedef struct qs_if_choice {
    qs_id node;
    const char *name;
    qs_span source;
} qs_if_choice;

typedef struct qs_reader {
    qsim_ctx *ctx;
    qsim_model *model; /* NULL while a lone tensor is read */
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
    bool keep_ifs;         /* If stays a node with subgraphs */
    bool retry;            /* reading failed only because an If was read as a choice */
    size_t branches;       /* read so far */
    size_t nodes_before;   /* of subgraphs read so far */
    qs_if_choice *choices;
    size_t choice_count, choice_capacity;
    struct qs_functions *functions; /* sorted; NULL: none */
    bool inspect;
    bool passing; /* problems are collected in the model, parts that have them are left out */
} qs_reader;

/* Fails with "FILE: what (node 'NAME', OP)". */
int qs_read_fail(qs_reader *r, int code, const char *format, ...) QS_PRINTF(3, 4);
int qs_read_nomem(qs_reader *r);
/* After a failure: QSIM_OK, with the error kept in the model, where reading is to go on. */
int qs_read_pass(qs_reader *r, int code);
/*
 * Marks the tensor `text` as broken: its definition could not be read, so that its readers do not
 * report it as undefined.
 */
int qs_read_break(qs_reader *r, qs_span text);

/* A copy of a name in the arena; NULL when out of memory. */
const char *qs_read_text(qs_reader *r, qs_span text);
/* The same in scratch memory, until the next call. */
const char *qs_read_scratch(qs_reader *r, qs_span text);

/*
 * Reads a TensorProto. `what` and its name are for messages ("initializer", "W"). Nothing is
 * copied that can be used in place; nothing is allocated before the message is known to hold it.
 */
int qs_read_tensor(qs_reader *r, qs_span message, const char *what, const char *name,
                   qs_const *out);

/* The `bytes` bytes of a tensor whose data is outside. */
int qs_read_external(qs_reader *r, qs_span tensor, const char *what, const char *name, size_t bytes,
                     const void **out);
void qs_source_forget(const qsim_model *model);
void qs_source_free(qsim_model *model);

/* The values, nodes and constants of a GraphProto; several merge. */
int qs_read_graph(qs_reader *r, const qs_span *graphs, size_t count);
/* The same of a subgraph. */
int qs_read_inner_graph(qs_reader *r, qs_span graph);
/* Checks that every name that is read is defined. */
int qs_read_names(qs_reader *r);
/* Checks operators against the table, then sorts the nodes, then infers types and shapes. */
int qs_read_operators(qs_reader *r);
/* The same of one node whose order is known; if it fails its outputs stay as they are. */
int qs_read_node_rules(qs_graph *g, qs_id id, const char *name, qsim_error *error);
/* One TensorProto of a graph. */
int qs_read_initializer(qs_reader *r, qs_span message);
/* The name that `text` has in the scope that defines it, in scratch memory. */
const char *qs_read_local(qs_reader *r, qs_span text);
/* The value that `text` names in this scope; QS_NONE if there is none yet. */
int qs_read_lookup(qs_reader *r, qs_span text, qs_id *out);
/*
 * Reads the subgraphs among the attributes of a node that is being read (subgraph_read.c). The
 * values of the outer graph that they read are listed in *captured, in the arena, for the node's
 * inputs.
 */
int qs_read_subgraphs(qs_reader *r, qs_node *head, int32_t own_inputs, qs_id **captured,
                      int32_t *count);
/* The value of the outer graph that `text` names; a capture. */
int qs_read_captured(qs_reader *r, qs_span text, qs_id *out);
/* Declares the outputs of a graph's or function's nodes before names are looked up. */
int qs_read_claim_names(qs_reader *r, qs_span graph, uint32_t node_field);
/* Checks operators against the table, then sorts the nodes. */
int qs_read_resolve(qs_reader *r);

/* Whether a node is an If (branches.c). */
bool qs_read_is_choice(const qs_node *n);
/* Reads an If node; afterwards, checks that its branches agree in size. */
int qs_read_if(qs_reader *r, qs_span message, const qs_node *head, size_t inputs, size_t outputs);
int qs_read_choices(qs_reader *r);
/* After inference failed: the rule that an If breaks, if one does, else what failed. */
int qs_read_choices_failed(qs_reader *r, int code, const qsim_error *why);
/* One NodeProto, appended to the graph. */
int qs_read_node(qs_reader *r, qs_span message);

/* A ValueInfoProto's type and shape. */
typedef struct qs_type {
    bool present;
    int32_t dtype, rank; /* UNDEFINED, -1: not stated or no tensor */
    qs_dim dims[QSIM_MAX_RANK];
    const char *other; /* "sequence", …: not a tensor */
} qs_type;
int qs_read_type(qs_reader *r, qs_span message, const char *value, qs_type *type);

/* Local functions (functions.c), before the graph is read; a recursive one is refused. */
int qs_read_functions(qs_reader *r, qs_span model);
void qs_free_functions(qs_reader *r);
/* The body of the function of this name, data NULL if there is none. */
qs_span qs_find_function(const qs_reader *r, qs_span domain, qs_span name);

/* A call as the nodes of the function's body (calls.c). */
int qs_read_call(qs_reader *r, qs_span message, const qs_node *head, qs_span body);
/*
 * The value that the enclosing calls give for a name; false: it is no input or output of a
 * function.
 */
bool qs_call_alias(const qs_scope *scope, qs_span text, qs_id *out);
/* The call whose function is being read; NULL: none is. */
const qs_call *qs_read_caller(const qs_reader *r);
/* Attribute `name` of the function as the call gives it, or by default; *out NULL: neither. */
int qs_call_attr(qs_reader *r, const qs_call *call, qs_span name, const qs_attr **out);
/* One AttributeProto. A reference that the call leaves out has type 0 afterwards. */
int qs_read_attr(qs_reader *r, qs_span message, qs_attr *a);
/* The value that `text` names, made if there is none yet; QS_NONE for "". */
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

/* The IR version that came with an opset of ai.onnx; at least the first that frees constants from
 * being inputs. */
int64_t qs_ir_of_opset(int64_t opset);

/* Appends to a list of kept fields; one that follows the last one directly extends it. */
int qs_keep_field(qsim_ctx *ctx, qs_span **kept, size_t *capacity, size_t *count, qs_span field);

#endif
