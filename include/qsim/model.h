/* SPDX-License-Identifier: MIT */
/*
 * qsim/model.h - ONNX models: load, inspect, build, transform, save.
 *
 * A model is the content of an ONNX file: a graph of operators, weights and metadata. It is
 * immutable once loaded or finished; transformations (qsim/ptq.h, qsim_model_optimize) return a new
 * one that shares the weights. Names and weights that functions return live as long as the model.
 */
#ifndef QSIM_MODEL_H
#define QSIM_MODEL_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qsim_model qsim_model;

/* ---- load and save ------------------------------------------------------------------------ */

/*
 * Gives the bytes of an external data file. `location` is as the model spells it, checked to be a
 * plain relative path. Returns 0 and sets data and size; the bytes must outlive the model. Any
 * other result fails the loading with QSIM_E_IO.
 */
typedef int (*qsim_external_fn)(void *user, const char *location, const void **data, size_t *size);

/* Reads the file into memory instead of mapping it: for files that may shrink while in use. */
#define QSIM_LOAD_COPY 1
/* Accepts operators that the library does not know: to inspect the model, not to run it. */
#define QSIM_LOAD_INSPECT 2
/*
 * Accepts broken models, too, for qsim_model_check alone: a tensor, node, input or output that
 * cannot be read is left out and its problem kept. A file that is no ONNX still fails. Such a model
 * cannot be saved, transformed or run.
 */
#define QSIM_LOAD_CHECK 4

typedef struct qsim_load_options {
    size_t struct_size;        /* sizeof(qsim_load_options) */
    qsim_external_fn external; /* replaces opening files beside the model */
    void *external_user;
    const char *name; /* what error messages call the model; NULL: its path, or "(memory)" */
    int32_t flags;    /* QSIM_LOAD_* */
    int32_t reserved;
} qsim_load_options;

/*
 * Loads an ONNX model from a file, or the model that a package (qsim/package.h) names; the file's
 * bytes tell which it is. The file is mapped and weights are used in place. `ctx` may be NULL: the
 * model then gets a default context of its own. External data is opened relative to the model and
 * never outside its folder; a package's external data comes from the package alone.
 *
 * Supported are ir_version 1 to 13 and ai.onnx opsets 1 to 28. An initializer that is listed as an
 * input, too, is a constant. Calls of the model's local functions become the nodes of the function.
 * Refused by name: sparse initializers, tensors in segments, inputs that are no tensors, recursive
 * functions, graphs nested deeper than qsim_limits.nesting, and the domain "qsim", which is the
 * library's own. Texts are UTF-8 without NUL, but doc strings may hold any bytes. Errors: IO;
 * FORMAT (no ONNX, truncated); GRAPH (cycle, duplicate or undefined name); UNSUPPORTED (operator,
 * version, attribute, type: the message names node, operator and opset); DTYPE, SHAPE, VALUE (an
 * operator's rule is broken); LIMIT (nesting, sizes); NOMEM.
 *
 * A shape that the file declares for a node's output is taken where the node does not tell it. One
 * that the node contradicts is a warning in the context's log, and the node's holds; a declared
 * type that it contradicts is refused (DTYPE).
 */
QSIM_API int qsim_model_load(qsim_ctx *ctx, const char *path, const qsim_load_options *options,
                             qsim_model **out, qsim_error *error);

/* The same from memory, which must stay unchanged until the last object made from it is freed. */
QSIM_API int qsim_model_load_memory(qsim_ctx *ctx, const void *data, size_t size,
                                    const qsim_load_options *options, qsim_model **out,
                                    qsim_error *error);

/* Called with each problem that qsim_model_check finds; `error` is valid during the call. */
typedef void (*qsim_problem_fn)(void *user, const qsim_error *error);

/*
 * Reports every problem, not the first only, of a model loaded with QSIM_LOAD_INSPECT (operators
 * that are not known, rules that are broken, wrong declared shapes) or QSIM_LOAD_CHECK (also what
 * loading refuses: names defined twice or nowhere, bad tensors, external data that is missing,
 * cycles). Returns their number or a negative code. Loading keeps 1000 problems and gives up at the
 * next one.
 */
QSIM_API int qsim_model_check(const qsim_model *model, qsim_problem_fn problem, void *user);

typedef struct qsim_save_options {
    size_t struct_size; /* sizeof(qsim_save_options) */
    int32_t flags;      /* QSIM_SAVE_* */
    int32_t reserved;
} qsim_save_options;

/* Replaces an existing file; without it an existing file gives QSIM_E_EXISTS. */
#define QSIM_SAVE_REPLACE 1
/*
 * Initializers of 1 KB and more go to a second file beside it, as ONNX's external data. Its name is
 * the path followed by ".data"; where that exists and QSIM_SAVE_REPLACE is given, ".data1" to
 * ".data9", the first that is free, and the other nine are removed once the model is in its place.
 * So a model and its data are replaced together. A model of over 2 GB, which no ONNX file holds, is
 * always saved so.
 */
#define QSIM_SAVE_EXTERNAL 2

/*
 * Writes the model to `path` as ONNX: to a temporary file in the same folder, flushed, renamed.
 * Parts that were read and not changed are written byte for byte, unknown fields included; external
 * data is brought inside, up to 2 GB. In a model made by a transformation unused constants are left
 * out, constants are no inputs, and ir_version is at least the one that came with its opset.
 * Errors: IO, EXISTS, LIMIT (over 2 GB without initializers), NOMEM. On failure old files stay as
 * they were. A process that is killed may leave the data of a new model beside an old one, or that
 * of an old model beside a new one, until the next time.
 */
QSIM_API int qsim_model_save(const qsim_model *model, const char *path,
                             const qsim_save_options *options, qsim_error *error);

/*
 * The same into memory. `*need` is set to the size; if `capacity` is smaller, nothing is written
 * and the result is still QSIM_OK: call with capacity 0 first. Errors: those of qsim_model_save but
 * for files.
 */
QSIM_API int qsim_model_save_memory(const qsim_model *model, void *buffer, size_t capacity,
                                    size_t *need, qsim_error *error);

/* Releases the caller's reference to the model. */
QSIM_API void qsim_model_free(qsim_model *model);

/* ---- inspect ------------------------------------------------------------------------------ */

/* Facts about one tensor of the graph. `struct_size` is set by the caller. */
typedef struct qsim_value_info {
    size_t struct_size;
    const char *name;
    const int64_t *dims;          /* rank sizes, -1 where unknown */
    const char *const *dim_names; /* rank symbols, NULL where a size is a number or unnamed */
    const void *data;             /* the bytes of a constant, else NULL; may be unaligned */
    size_t bytes;                 /* of data */
    int32_t dtype;                /* QSIM_UNDEFINED if unknown */
    int32_t rank;                 /* -1 if unknown */
} qsim_value_info;

/* Facts about one node. `struct_size` is set by the caller. */
typedef struct qsim_node_info {
    size_t struct_size;
    const char *name;   /* may be "" */
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    const char *const *inputs; /* names; "" where an optional input is left out */
    const char *const *outputs;
    int32_t input_count;
    int32_t output_count;
    int64_t macs; /* multiply-accumulates at batch 1, -1 if shapes are unknown */
    /*
     * The result of qsim_session_node_integer in a session with the model's own outputs, found by
     * the same passes. In a model that does not compile, or was loaded for inspection: 1 for
     * operators on integers alone.
     */
    int32_t integer;
    int32_t reserved;
} qsim_node_info;

/* The inputs a caller has to give (initializers excluded), and the outputs; errors as below. */
QSIM_API int32_t qsim_model_input_count(const qsim_model *model);
QSIM_API int32_t qsim_model_output_count(const qsim_model *model);
QSIM_API int qsim_model_input(const qsim_model *model, int32_t index, qsim_value_info *info);
QSIM_API int qsim_model_output(const qsim_model *model, int32_t index, qsim_value_info *info);

/*
 * All tensors that the graph names, in the order of first mention. Counts of tensors, nodes,
 * parameters and bytes are negative codes where there is no memory to make the list. Errors of the
 * functions that take an index: ARGUMENT (index, struct_size), NOMEM. Pointers that they return
 * live as long as the model.
 */
QSIM_API int32_t qsim_model_value_count(const qsim_model *model);
QSIM_API int qsim_model_value(const qsim_model *model, int32_t index, qsim_value_info *info);

/* Nodes in the order of execution. */
QSIM_API int32_t qsim_model_node_count(const qsim_model *model);
QSIM_API int qsim_model_node(const qsim_model *model, int32_t index, qsim_node_info *info);

/* Version of `domain` ("" or NULL: ai.onnx) that the model imports; 0 if it does not. */
QSIM_API int64_t qsim_model_opset(const qsim_model *model, const char *domain);
/* The file's ir_version, or the one that saving would write. */
QSIM_API int64_t qsim_model_ir_version(const qsim_model *model);
/* Bytes of the file that was loaded and of its external data, or that saving would write. */
QSIM_API int64_t qsim_model_bytes(const qsim_model *model);
/*
 * Files of external data that were opened, as the model spells them, by index from 0: relative to
 * its folder, while the model lives. NULL at the end.
 */
QSIM_API const char *qsim_model_external_file(const qsim_model *model, int32_t index);
/* Elements of all constants that nodes read as weights (scales and zero points excluded). */
QSIM_API int64_t qsim_model_parameters(const qsim_model *model);
/* Bytes of the same constants, as stored. */
QSIM_API int64_t qsim_model_parameter_bytes(const qsim_model *model);

/* metadata_props: count, then key and value of each (NULL out of range). */
QSIM_API int32_t qsim_model_metadata_count(const qsim_model *model);
QSIM_API const char *qsim_model_metadata_key(const qsim_model *model, int32_t index);
QSIM_API const char *qsim_model_metadata_value(const qsim_model *model, int32_t index);

/*
 * SHA-256 over graph and weights, without names of the producer and metadata, in hexadecimal.
 * Errors: ARGUMENT, NOMEM.
 */
QSIM_API int qsim_model_hash(const qsim_model *model, char hex[65]);

/* ---- operators ---------------------------------------------------------------------------- */

/* An operator that models may have. `struct_size` is set by the caller; texts are static. */
typedef struct qsim_operator_info {
    size_t struct_size;
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    /*
     * The quantized form: the name of an operator or a few words, as docs/OPERATORS.md lists them;
     * "": there is none, the operator runs in float.
     */
    const char *integer_form;
    const char *kernel; /* as in qsim_step_info; "": it makes no step, or is made of others */
    /* Types of the first tensor of elements in the newest version: bit QSIM_FLOAT for float, … */
    uint32_t types;
    int32_t since, until;           /* versions of the domain's opset; until 0: no end */
    int32_t min_inputs, max_inputs; /* of all versions; max -1: any number */
    int32_t reserved;
} qsim_operator_info;

/*
 * Operator `index`, counted from 0, domain by domain and by name; one that has changed much may be
 * there twice, with other versions. Any number of threads. Errors: NOT_FOUND (after the last one),
 * ARGUMENT (a negative index, struct_size), NOMEM.
 */
QSIM_API int qsim_operator(qsim_ctx *ctx, int32_t index, qsim_operator_info *info);

/* ---- build -------------------------------------------------------------------------------- */

/*
 * A model in ten lines, y = x W + b:
 *
 *     qsim_builder *b;
 *     qsim_model *model;
 *     qsim_builder_create(NULL, 13, "linear", &b, &error);
 *     qsim_builder_input_as(b, "x", "float[N,64]");
 *     qsim_builder_constant_as(b, "W", "float[64,10]", weights);
 *     qsim_builder_constant_as(b, "b", "float[10]", bias);
 *     qsim_builder_node(b, "", "MatMul", "", "x,W", "xW");
 *     qsim_builder_node(b, "", "Add", "", "xW,b", "y");
 *     qsim_builder_output_as(b, "y", NULL);
 *     qsim_builder_finish(b, &model, &error);
 */

/* A model under construction; becomes a model with qsim_builder_finish. One thread at a time. */
typedef struct qsim_builder qsim_builder;

/*
 * Starts a model that imports ai.onnx `opset`, 1 to 28. `ctx` may be NULL. `name` names the graph.
 * Never needs options: all other settings are calls on the builder.
 * Errors: ARGUMENT, UNSUPPORTED (opset), NOMEM.
 */
QSIM_API int qsim_builder_create(qsim_ctx *ctx, int32_t opset, const char *name, qsim_builder **out,
                                 qsim_error *error);

/* Imports another operator domain; "qsim" is the library's own and refused. */
QSIM_API int qsim_builder_import(qsim_builder *b, const char *domain, int32_t version);

/*
 * Adds a graph input or output. dims[i] < 0 is a symbolic size named dim_names[i] (dim_names may be
 * NULL). All strings and arrays are copied.
 */
QSIM_API int qsim_builder_input(qsim_builder *b, const char *name, int32_t dtype, int32_t rank,
                                const int64_t *dims, const char *const *dim_names);
QSIM_API int qsim_builder_output(qsim_builder *b, const char *name, int32_t dtype, int32_t rank,
                                 const int64_t *dims, const char *const *dim_names);

/*
 * The same with the type as text: "float[N,64]", "int8[]" (a scalar), "float" (rank unknown).
 * An output's type may be NULL: it is inferred.
 */
QSIM_API int qsim_builder_input_as(qsim_builder *b, const char *name, const char *type);
QSIM_API int qsim_builder_output_as(qsim_builder *b, const char *name, const char *type);

/* Adds a constant; its bytes are copied. */
QSIM_API int qsim_builder_constant(qsim_builder *b, const char *name, const qsim_tensor *value);
/* The same with type and shape as text, "float[64,10]"; `data` holds as many bytes as that says. */
QSIM_API int qsim_builder_constant_as(qsim_builder *b, const char *name, const char *type,
                                      const void *data);

/*
 * Adds a node; attributes follow with qsim_builder_attr_*, which belong to the last node added.
 * `inputs` and `outputs` are comma-separated names ("x,w,b"; an empty name leaves an optional input
 * out).
 */
QSIM_API int qsim_builder_node(qsim_builder *b, const char *domain, const char *op_type,
                               const char *name, const char *inputs, const char *outputs);
QSIM_API int qsim_builder_attr_int(qsim_builder *b, const char *name, int64_t value);
QSIM_API int qsim_builder_attr_float(qsim_builder *b, const char *name, float value);
QSIM_API int qsim_builder_attr_string(qsim_builder *b, const char *name, const char *value);
QSIM_API int qsim_builder_attr_ints(qsim_builder *b, const char *name, const int64_t *values,
                                    size_t count);
QSIM_API int qsim_builder_attr_floats(qsim_builder *b, const char *name, const float *values,
                                      size_t count);
QSIM_API int qsim_builder_attr_tensor(qsim_builder *b, const char *name, const qsim_tensor *value);

/* Adds or replaces a metadata_props entry. */
QSIM_API int qsim_builder_metadata(qsim_builder *b, const char *key, const char *value);

/*
 * Checks the model as loading would and hands it out. A builder call that failed (out of memory,
 * bad argument) makes this fail with the same code, so callers need check only here. The builder
 * is empty afterwards and still has to be freed.
 */
QSIM_API int qsim_builder_finish(qsim_builder *b, qsim_model **out, qsim_error *error);
/* Frees the builder, finished or not; a model that it made is not touched. */
QSIM_API void qsim_builder_free(qsim_builder *b);

/* ---- transform ---------------------------------------------------------------------------- */

#define QSIM_LEVEL_DEFAULT  0 /* ALL */
#define QSIM_LEVEL_DISABLE  1 /* as written; only what execution needs */
#define QSIM_LEVEL_BASIC    2 /* constants and BatchNormalization folded, identities removed */
#define QSIM_LEVEL_EXTENDED 3 /* + operators fused */
#define QSIM_LEVEL_ALL      4 /* + layouts */

/*
 * The model as it is after optimizing, in operators that ONNX files may have:
 *
 *   DISABLE   nodes that no output depends on are left out
 *   BASIC     constants folded; nodes removed that do nothing, or undo one another (Identity,
 *             Dropout, Cast, Transpose, Reshape, Squeeze, Unsqueeze); BatchNormalization folded
 *             into the Conv or ConvTranspose before it
 *   EXTENDED  a constant added after Conv or MatMul becomes a bias; quantize/dequantize pairs
 *             become QLinearConv, QLinearMatMul and those operators of com.microsoft that ONNX
 *             Runtime runs on CPUs (QLinearAdd, -Mul, -Concat, -AveragePool, -GlobalAveragePool)
 *   ALL       the same: layouts, bounds of activations and packed weights, which ONNX cannot
 *             express, are made inside a session
 *
 * Integer tensors are the same at every level. Floats are within 1e-5 of the largest value,
 * operator by operator from the same inputs, since folding rounds at other places; a network may
 * magnify that as it does the last bit of its input (text recognition with an LSTM: to 2.5e-5).
 * Inputs and outputs keep their names. Optimizing again changes nothing. Never needs options: the
 * level is the only choice. Errors: ARGUMENT, STATE (loaded for inspection), NOMEM, and the errors
 * of the model's operators.
 */
QSIM_API int qsim_model_optimize(const qsim_model *model, int32_t level, qsim_model **out,
                                 qsim_error *error);

/*
 * A model converted to ai.onnx `opset` (at least its own; 13 to 28). Never needs options: the opset
 * is the only choice. Errors: ARGUMENT, STATE (loaded for inspection), UNSUPPORTED (a lower opset,
 * a node without newer form), NOMEM.
 */
QSIM_API int qsim_model_upgrade(const qsim_model *model, int32_t opset, qsim_model **out,
                                qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
