/* SPDX-License-Identifier: MIT */
/*
 * qsim/model.h - ONNX models: load, inspect, build, transform, save.
 *
 * A model is the content of an ONNX file: a graph of operators, weights and metadata. It is
 * immutable once it is loaded or built. Transformations (qsim/ptq.h, qsim_model_optimize) return a
 * new model that shares the weights. Names and weights that functions return live as long as the
 * model. Any number of threads may use one model at once.
 */
#ifndef QSIM_MODEL_H
#define QSIM_MODEL_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A model. */
typedef struct qsim_model qsim_model;

/* ---- load and save ------------------------------------------------------------------------ */

/*
 * The application's own source of external data files. `location` is the file's path as the model
 * spells it; the library has checked that it is a plain relative path. The function sets `*data`
 * and `*size` and returns 0; the bytes must outlive the model. After any other result loading fails
 * with QSIM_E_IO.
 */
typedef int (*qsim_external_fn)(void *user, const char *location, const void **data, size_t *size);

/*
 * Reads the file, and files with external data, into memory instead of mapping them: for files that
 * may change or shrink while in use.
 */
#define QSIM_LOAD_COPY 1
/* Accepts operators that the library does not know. Such a model can be inspected, but not run. */
#define QSIM_LOAD_INSPECT 2
/*
 * Accepts broken models, for qsim_model_check only. A tensor, node, input or output that cannot be
 * read is left out, and its problem is recorded. A file that is not ONNX still fails. Such a model
 * cannot be saved, transformed or run.
 */
#define QSIM_LOAD_CHECK 4

typedef struct qsim_load_options {
    size_t struct_size;        /* sizeof(qsim_load_options) */
    qsim_external_fn external; /* NULL: external data comes from files beside the model */
    void *external_user;
    const char *name; /* the model's name in error messages; NULL: its path, or "(memory)" */
    int32_t flags;    /* QSIM_LOAD_* */
    int32_t reserved;
} qsim_load_options;

/*
 * Loads the model of an ONNX file, or of a package (qsim/package.h) the model that its manifest
 * names. The file's first bytes tell which of both it is. The file is mapped into memory and its
 * weights are not copied, so it must not change while the model is used. `ctx` and `options` may be
 * NULL. External data files are opened relative to the model's folder and never outside of it; a
 * package's external data comes from the package alone.
 *
 * Supported are ir_version 1 to 13 and ai.onnx opsets 1 to 28. An initializer that is also listed
 * as an input is a constant. A call of one of the model's local functions is replaced by the nodes
 * of the function. Sparse initializers and attributes become tensors with all elements. Not
 * supported are tensors in segments, inputs that are no tensors, recursive functions, and the
 * domain "qsim", which is the library's own. Texts must be UTF-8 without NUL; doc strings may hold
 * any bytes.
 *
 * If the file declares the shape of a node's output and the node's operator implies another one,
 * the operator's shape counts and the context's log gets a warning. If the types differ, the model
 * is refused (DTYPE). Where the operator implies no shape, the declared one counts.
 *
 * Errors: IO; FORMAT (not ONNX, truncated); GRAPH (cycle, duplicate or undefined name); UNSUPPORTED
 * (operator, version, attribute, type: the message names node, operator and opset); DTYPE, SHAPE,
 * VALUE (a rule of an operator is broken); LIMIT (nesting, sizes); NOMEM.
 */
QSIM_API int qsim_model_load(qsim_ctx *ctx, const char *path, const qsim_load_options *options,
                             qsim_model **out, qsim_error *error);

/*
 * The same for the `size` bytes of a file at `data`. They must stay unchanged until the last object
 * made from the model is freed.
 */
QSIM_API int qsim_model_load_memory(qsim_ctx *ctx, const void *data, size_t size,
                                    const qsim_load_options *options, qsim_model **out,
                                    qsim_error *error);

/* Receives one problem that qsim_model_check finds; `error` is valid during the call. */
typedef void (*qsim_problem_fn)(void *user, const qsim_error *error);

/*
 * Calls `problem` with every problem of a model. Returns the number of problems or a negative code.
 * A model loaded with QSIM_LOAD_INSPECT may have unknown operators, broken rules of operators and
 * wrong declared shapes. One loaded with QSIM_LOAD_CHECK may also have what loading refuses
 * otherwise: names defined twice or nowhere, bad tensors, missing external data, cycles. Loading
 * with QSIM_LOAD_CHECK records up to 1000 problems and fails at the next one.
 */
QSIM_API int qsim_model_check(const qsim_model *model, qsim_problem_fn problem, void *user);

typedef struct qsim_save_options {
    size_t struct_size; /* sizeof(qsim_save_options) */
    int32_t flags;      /* QSIM_SAVE_* */
    int32_t reserved;
} qsim_save_options;

/* Replaces an existing file. Without this flag an existing file fails with QSIM_E_EXISTS. */
#define QSIM_SAVE_REPLACE 1
/*
 * Writes initializers of 1 KB and more to a second file beside the model, as ONNX's external data.
 * The second file's name is the path followed by ".data". If that file exists and QSIM_SAVE_REPLACE
 * is given, it is the first free name of ".data1" to ".data9"; once the new model is in place, the
 * other nine of these names are removed. So a model and its data are replaced together. A model of
 * over 2 GB, which does not fit into one ONNX file, is always saved in this way.
 */
#define QSIM_SAVE_EXTERNAL 2

/*
 * Writes the model to `path` as an ONNX file. `options` may be NULL. The bytes go to a temporary
 * file in the same folder, which is flushed and then renamed. Parts of the file that were read and
 * not changed are written byte for byte, with fields that the library does not know. External data
 * is written into the file, up to 2 GB. A model made by a transformation is saved without unused
 * constants and without constants among its inputs, and its ir_version is at least the one that
 * belongs to its opset.
 * Errors: IO, EXISTS, LIMIT (over 2 GB without initializers), NOMEM, STATE (loaded with
 * QSIM_LOAD_CHECK). On failure old files stay as they were. If the process is killed, a data file
 * that belongs to no model may remain until the model is saved again.
 */
QSIM_API int qsim_model_save(const qsim_model *model, const char *path,
                             const qsim_save_options *options, qsim_error *error);

/*
 * Writes the same bytes to `buffer`, which has `capacity` bytes. Sets `*need` to the size. If
 * `capacity` is smaller, nothing is written and the result is still QSIM_OK: call with capacity 0
 * to learn the size. Errors: LIMIT, NOMEM, STATE, ARGUMENT, CANCELLED.
 */
QSIM_API int qsim_model_save_memory(const qsim_model *model, void *buffer, size_t capacity,
                                    size_t *need, qsim_error *error);

/* Releases the caller's reference to the model. */
QSIM_API void qsim_model_free(qsim_model *model);

/* ---- inspect ------------------------------------------------------------------------------ */

/* Describes one tensor of the graph. */
typedef struct qsim_value_info {
    size_t struct_size; /* sizeof(qsim_value_info), set by the caller */
    const char *name;
    const int64_t *dims;          /* `rank` sizes, -1 where unknown */
    const char *const *dim_names; /* `rank` names of symbolic sizes; NULL: a number, or no name */
    const void *data;             /* the bytes of a constant, else NULL; may be unaligned */
    size_t bytes;                 /* of data */
    int32_t dtype;                /* QSIM_UNDEFINED if unknown */
    int32_t rank;                 /* -1 if unknown */
} qsim_value_info;

/* Describes one node. */
typedef struct qsim_node_info {
    size_t struct_size; /* sizeof(qsim_node_info), set by the caller */
    const char *name;   /* may be "" */
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    const char *const *inputs;  /* names of tensors; "" where an optional input is left out */
    const char *const *outputs; /* the same for outputs */
    int32_t input_count;
    int32_t output_count;
    int64_t macs; /* multiply-accumulates at batch 1; -1 if shapes are unknown */
    /*
     * What qsim_session_node_integer returns for a session with the model's own outputs. If the
     * model does not compile, or was loaded for inspection: 1 for operators on integers only.
     */
    int32_t integer;
    int32_t graphs; /* the number of graphs inside it: If has two, Loop and Scan one */
    /*
     * Bit i: input i < 64 is data or weights. Others are sizes, indices, bounds, masks, tables of
     * angles, scales or zero points. Of an unknown operator all bits are set.
     */
    uint64_t operands;
} qsim_node_info;

/* Types of attributes: the numbers of ONNX's AttributeProto.AttributeType. */
#define QSIM_ATTR_FLOAT   1
#define QSIM_ATTR_INT     2
#define QSIM_ATTR_STRING  3
#define QSIM_ATTR_TENSOR  4
#define QSIM_ATTR_GRAPH   5 /* no value is given */
#define QSIM_ATTR_FLOATS  6
#define QSIM_ATTR_INTS    7
#define QSIM_ATTR_STRINGS 8
#define QSIM_ATTR_OTHER   9 /* types, lists of tensors or graphs: no value is given */

/* Describes one attribute that a node sets. Pointers to values of other types are NULL. */
typedef struct qsim_attr_info {
    size_t struct_size; /* sizeof(qsim_attr_info), set by the caller */
    const char *name;
    const int64_t *ints;       /* of INT and INTS */
    const float *floats;       /* of FLOAT and FLOATS */
    const qsim_bytes *strings; /* of STRING and STRINGS, without a NUL */
    qsim_tensor tensor;        /* of TENSOR; read only, its data may be unaligned */
    int32_t type;              /* QSIM_ATTR_* */
    int32_t count;             /* of ints, floats or strings; else 1 */
} qsim_attr_info;

/*
 * All functions below that take an index count from 0. Those that fill a struct fail with ARGUMENT
 * (index, struct_size), NOMEM or CANCELLED: what is not in the file is found at the first call. A
 * count is then a negative error code. Pointers that are returned live as long as the model.
 */

/* The inputs that a caller gives (initializers are not among them), and the outputs. */
QSIM_API int32_t qsim_model_input_count(const qsim_model *model);
QSIM_API int32_t qsim_model_output_count(const qsim_model *model);
QSIM_API int qsim_model_input(const qsim_model *model, int32_t index, qsim_value_info *info);
QSIM_API int qsim_model_output(const qsim_model *model, int32_t index, qsim_value_info *info);

/* All tensors that the graph names, in the order in which it names them first. */
QSIM_API int32_t qsim_model_value_count(const qsim_model *model);
QSIM_API int qsim_model_value(const qsim_model *model, int32_t index, qsim_value_info *info);

/* The nodes, in the order of execution. */
QSIM_API int32_t qsim_model_node_count(const qsim_model *model);
QSIM_API int qsim_model_node(const qsim_model *model, int32_t index, qsim_node_info *info);
/*
 * Attribute `index` of node `node`, in the order of the file. What a node leaves out is not listed,
 * whatever its default. Errors: also NOT_FOUND (after the last one).
 */
QSIM_API int qsim_model_attr(const qsim_model *model, int32_t node, int32_t index,
                             qsim_attr_info *info);

/* The opset version of `domain` ("" or NULL: ai.onnx) that the model imports; 0: not imported. */
QSIM_API int64_t qsim_model_opset(const qsim_model *model, const char *domain);
/* The ir_version of the loaded file, or the one that saving would write. */
QSIM_API int64_t qsim_model_ir_version(const qsim_model *model);
/* The bytes of the loaded file and its external data, or of what saving would write. */
QSIM_API int64_t qsim_model_bytes(const qsim_model *model);
/*
 * The path of external data file `index` that was opened, relative to the model's folder, as the
 * model spells it. NULL after the last one.
 */
QSIM_API const char *qsim_model_external_file(const qsim_model *model, int32_t index);
/* The number of elements of all constants that nodes read as weights, without scales and zero
 * points. */
QSIM_API int64_t qsim_model_parameters(const qsim_model *model);
/* The bytes of the same constants, as stored. */
QSIM_API int64_t qsim_model_parameter_bytes(const qsim_model *model);

/* The number of metadata_props, and the key and value of each; NULL if out of range. */
QSIM_API int32_t qsim_model_metadata_count(const qsim_model *model);
QSIM_API const char *qsim_model_metadata_key(const qsim_model *model, int32_t index);
QSIM_API const char *qsim_model_metadata_value(const qsim_model *model, int32_t index);

/*
 * Writes the SHA-256 of graph and weights to `hex`, as 64 hexadecimal digits and a NUL. The
 * producer's name and the metadata are left out. Errors: ARGUMENT, NOMEM.
 */
QSIM_API int qsim_model_hash(const qsim_model *model, char hex[65]);

/* ---- operators ---------------------------------------------------------------------------- */

/* Describes an operator that the library supports. Texts are static. */
typedef struct qsim_operator_info {
    size_t struct_size; /* sizeof(qsim_operator_info), set by the caller */
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    /*
     * The quantized form: an operator's name or a few words, as docs/OPERATORS.md lists them. "":
     * there is none, the operator always runs in float.
     */
    const char *integer_form;
    const char *kernel; /* as in qsim_step_info; "": none, or the operator is replaced by others */
    /*
     * The element types of its main input in the newest version, as bits: 1 << QSIM_FLOAT for
     * float, …
     */
    uint32_t types;
    int32_t since, until;           /* the first and last opset version; until 0: no last one */
    int32_t min_inputs, max_inputs; /* over all versions; max_inputs -1: any number */
    int32_t reserved;
} qsim_operator_info;

/*
 * Describes operator `index`, from 0; operators are sorted by domain, then by name. An operator
 * whose versions differ much may be listed twice, with different versions. Any number of threads
 * may call this at once; `ctx` may be NULL. Errors: NOT_FOUND (after the last one), ARGUMENT (a
 * negative index, struct_size), NOMEM.
 */
QSIM_API int qsim_operator(qsim_ctx *ctx, int32_t index, qsim_operator_info *info);

/* ---- build -------------------------------------------------------------------------------- */

/*
 * Builds a model of y = x W + b, without a check after each call (see qsim_builder_finish):
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

/* A model under construction. One thread at a time. */
typedef struct qsim_builder qsim_builder;

/*
 * Starts a model that imports ai.onnx `opset`, 1 to 28. `ctx` may be NULL. `name` is the graph's
 * name. This will never need options: all other settings are calls on the builder. Errors:
 * ARGUMENT, UNSUPPORTED (opset), NOMEM.
 */
QSIM_API int qsim_builder_create(qsim_ctx *ctx, int32_t opset, const char *name, qsim_builder **out,
                                 qsim_error *error);

/*
 * The calls below copy all strings and arrays. If one of them fails (ARGUMENT, NOMEM, STATE, ...),
 * qsim_builder_finish fails with the same code, so a caller need not check each call.
 */

/* Imports version `version` of another operator domain. The domain "qsim" is refused. */
QSIM_API int qsim_builder_import(qsim_builder *b, const char *domain, int32_t version);

/*
 * Adds a graph input or output of element type `dtype` with `rank` sizes in `dims`. A size dims[i]
 * < 0 is symbolic and has the name dim_names[i]; `dim_names` may be NULL.
 */
QSIM_API int qsim_builder_input(qsim_builder *b, const char *name, int32_t dtype, int32_t rank,
                                const int64_t *dims, const char *const *dim_names);
QSIM_API int qsim_builder_output(qsim_builder *b, const char *name, int32_t dtype, int32_t rank,
                                 const int64_t *dims, const char *const *dim_names);

/*
 * The same with type and shape as text: "float[N,64]", "int8[]" (a scalar), "float" (unknown rank).
 * The type of an output may be NULL: the library infers it.
 */
QSIM_API int qsim_builder_input_as(qsim_builder *b, const char *name, const char *type);
QSIM_API int qsim_builder_output_as(qsim_builder *b, const char *name, const char *type);

/* Adds a constant tensor. */
QSIM_API int qsim_builder_constant(qsim_builder *b, const char *name, const qsim_tensor *value);
/* The same with type and shape as text, "float[64,10]"; `data` holds all elements, row-major. */
QSIM_API int qsim_builder_constant_as(qsim_builder *b, const char *name, const char *type,
                                      const void *data);

/*
 * Adds a node with operator `op_type` of `domain` ("": ai.onnx) and the name `name` (may be "").
 * `inputs` and `outputs` are names of tensors, separated by commas: "x,w,b". An empty name leaves
 * an optional input out. The qsim_builder_attr_* calls add attributes to the node added last.
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
QSIM_API int qsim_builder_attr_strings(qsim_builder *b, const char *name, const char *const *values,
                                       size_t count);
QSIM_API int qsim_builder_attr_tensor(qsim_builder *b, const char *name, const qsim_tensor *value);

/* Adds an entry to the model's metadata_props, or replaces the one with this key. */
QSIM_API int qsim_builder_metadata(qsim_builder *b, const char *key, const char *value);

/*
 * Checks the model as qsim_model_load does and stores it in `*out`. Afterwards the builder is empty
 * and still has to be freed. Errors: the code of the first builder call that failed; those of
 * qsim_model_load.
 */
QSIM_API int qsim_builder_finish(qsim_builder *b, qsim_model **out, qsim_error *error);
/* Frees the builder, finished or not. The model that it made stays. */
QSIM_API void qsim_builder_free(qsim_builder *b);

/* ---- transform ---------------------------------------------------------------------------- */

/* Optimization levels: each does what the level before it does, and more. */
#define QSIM_LEVEL_DEFAULT  0 /* ALL */
#define QSIM_LEVEL_DISABLE  1 /* the graph as written; only what execution needs */
#define QSIM_LEVEL_BASIC    2 /* constants and BatchNormalization folded, identities removed */
#define QSIM_LEVEL_EXTENDED 3 /* operators fused */
#define QSIM_LEVEL_ALL      4 /* memory layouts chosen */

/*
 * Optimizes a model at `level` (QSIM_LEVEL_*) and stores the result, which has operators of ONNX
 * only, in `*out`:
 *
 *   DISABLE   nodes that no output depends on are left out
 *   BASIC     constants are folded; nodes that do nothing or undo one another are removed
 *             (Identity, Dropout, Cast, Transpose, Reshape, Squeeze, Unsqueeze), and
 *             BatchNormalization is folded into the Conv or ConvTranspose before it
 *   EXTENDED  a constant added after Conv or MatMul becomes a bias; quantize/dequantize pairs
 *             become QLinearConv, QLinearMatMul and those operators of com.microsoft that ONNX
 *             Runtime runs on CPUs (QLinearAdd, -Mul, -Concat, -AveragePool, -GlobalAveragePool)
 *   ALL       as EXTENDED; memory layouts, fused activations and packed weights exist inside of
 *             sessions only, because ONNX cannot express them
 *
 * Integer tensors are the same at every level. The float result of one operator, from the same
 * inputs, differs by at most 1e-5 of the largest value, because folding moves where rounding
 * happens; a network may magnify this as it magnifies the last bit of its input (text recognition
 * with an LSTM: to 2.5e-5). Inputs and outputs keep their names. Optimizing the result again
 * changes nothing. This will never need options: the level is the only choice. Errors: ARGUMENT,
 * STATE (loaded for inspection), NOMEM, and the errors of the model's operators.
 */
QSIM_API int qsim_model_optimize(const qsim_model *model, int32_t level, qsim_model **out,
                                 qsim_error *error);

/*
 * Converts a model to ai.onnx `opset` (at least its own; 13 to 28) and stores the result in `*out`.
 * This will never need options: the opset is the only choice. Errors: ARGUMENT, STATE (loaded for
 * inspection), UNSUPPORTED (a lower opset, a node without a newer form), NOMEM.
 */
QSIM_API int qsim_model_upgrade(const qsim_model *model, int32_t opset, qsim_model **out,
                                qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
