/* SPDX-License-Identifier: MIT */
/*
 * Graph passes. Each is a loop over `order` and leaves a graph that can be executed, with `order`
 * and inferred shapes up to date, so each can be tested alone.
 */
#ifndef QS_PASS_H
#define QS_PASS_H

#include "graph/model.h"
#include "pass/eval.h"
#include "op/int8/qvalue.h"

typedef struct qs_pass {
    qsim_ctx *ctx;
    qs_graph *graph;
    const char *model;
    qsim_error *error;
    bool standard;    /* make only operators that ONNX files may contain */
    bool contributed; /* with `standard`: also operators of com.microsoft */
    bool only_onnx;   /* with `standard`: qs_pass_expand is to leave no other operators */
    bool literal;     /* leave quantize/dequantize pairs as they are written */
    int32_t level;    /* QSIM_LEVEL_*, set by the pipeline */
    /* For qs_pass_mark_integers; NULL: no marks are wanted. */
    const qs_graph *origin; /* the model's graph, of which `graph` is a copy */
    bool *integer;          /* by live node in origin's order */
    bool only_marks;        /* the pipeline stops after it */
    /* By graph output: set where the layout pass leaves it channels-last. May be NULL. */
    bool *channels_last;
    size_t fold_left; /* bytes that folding may still make; 0: not set yet */
} qs_pass;

/* ---- the pipeline (pipeline.c) ---- */

/* The purpose of a pipeline. */
typedef enum qs_purpose {
    QS_FOR_SESSION, /* to be executed */
    QS_FOR_FILE,    /* to be saved with operators of ONNX files */
    QS_FOR_PTQ,     /* to be calibrated and quantized: as QS_FOR_FILE, in floats throughout */
    /*
     * A graph that has been quantized: with `standard`, Q and DQ pairs become integer operators of
     * ONNX, unless `literal` keeps them.
     */
    QS_FOR_QUANTIZED,
    QS_PURPOSES
} qs_purpose;

/* Runs the passes of a purpose and a level; quantization takes QSIM_LEVEL_ALL. */
int qs_pipeline_run(qs_pass *p, qs_purpose purpose, int32_t level);

/* ---- passes ---- */

/* Constant nodes become constants (pass_simple.c). */
int qs_pass_constants(qs_pass *p);
/* A Sum of two operands becomes an Add, which other passes know (pass_simple.c). */
int qs_pass_sums(qs_pass *p);
/* Removes Identity, and Dropout whose mask is not read (pass_simple.c). */
int qs_pass_identities(qs_pass *p);
/*
 * Executes nodes whose inputs are all constants (pass_simple.c); QuantizeLinear and
 * DequantizeLinear only with these flags, since later passes and readers of files match them.
 */
#define QS_FOLD_QUANTIZE   1
#define QS_FOLD_DEQUANTIZE 2
int qs_pass_fold(qs_pass *p, int flags);
/* Sequences that a Loop carries become tensors and their slices (pass_loops.c). */
int qs_pass_loops(qs_pass *p);
/* Subgraphs make the sequences that they capture (pass_sequences.c). */
int qs_pass_sequences(qs_pass *p);
/* Operators that are short for several others become these (pass_expand.c). */
int qs_pass_expand(qs_pass *p);
/* Folds values that depend on known sizes alone (pass_shapes.c). */
int qs_pass_shapes(qs_pass *p);
/* For files: Where, as If becomes, chooses bytes in place of bools (pass_choices.c). */
int qs_pass_choices(qs_pass *p);
/* An If whose condition is constant becomes its branch (pass_branch.c). */
int qs_pass_branches(qs_pass *p, bool *changed);
/* Nodes that compute in float16 or bfloat16 compute in float (pass_half.c). */
int qs_pass_half(qs_pass *p);
bool qs_graph_has_half(const qs_graph *g);
/* Makes the tensors of these names the outputs of the graph (pass_simple.c). */
int qs_pass_outputs(qs_pass *p, const char *const *names, size_t count);
/* Makes 8-bit activations unsigned: docs/QUANTIZATION.md, section 10 (pass_u8.c). */
int qs_pass_u8(qs_pass *p);
/* Quantize/dequantize patterns become integer operators (pass_qdq.c). */
int qs_pass_qdq(qs_pass *p);
/*
 * A product of dynamic quantization and the scaling after it become one operator (pass_dynamic.c).
 */
int qs_pass_dynamic(qs_pass *p);
/*
 * Products of quantized tensors and constant weights whose results stay floats become integer ones,
 * whose sums are scaled (qdq_product.c).
 */
int qs_pass_products(qs_pass *p);
/* Folds BatchNormalization into the convolution before it (pass_batchnorm.c). */
int qs_pass_batchnorm(qs_pass *p);
/* The same for int8 weights with a DequantizeLinear, whose scales change (pass_batchnorm.c). */
int qs_pass_rescale(qs_pass *p);
/* A constant added to a Conv, ConvTranspose or MatMul becomes its bias (pass_bias.c). */
int qs_pass_bias(qs_pass *p);
/* A Pad of zeros becomes padding of the convolution or average that reads it (pass_pads.c). */
int qs_pass_pads(qs_pass *p);
/* Folds alpha, beta and transA of a Gemm with constant weights (pass_gemm.c). */
int qs_pass_gemm(qs_pass *p);
/* Products with dequantized weights of 4 bits become MatMulNBits (pass_nbits.c). */
int qs_pass_nbits(qs_pass *p);
/* Convolutions and pools over three axes of space become ones over two (pass_depth.c). */
int qs_pass_depth(qs_pass *p);
/* Fills p->integer, before later passes replace more nodes (mark_integers.c). */
int qs_pass_mark_integers(qs_pass *p);
/* Curves written as several nodes become one (pass_curves.c). */
int qs_pass_curves(qs_pass *p);
/* Removes casts, transposes and reshapes that cancel or do nothing (pass_redundant.c). */
int qs_pass_redundant(qs_pass *p);
/* Element-wise nodes read what an Expand reads, if they broadcast it (pass_broadcast.c). */
int qs_pass_broadcast(qs_pass *p);
/* Merges a Slice of a Slice along other axes (pass_slice.c). */
int qs_pass_slices(qs_pass *p);
/* Slices that take every pixel of blocks, and their Concat, become space to depth (pass_slice.c).
 */
int qs_pass_phases(qs_pass *p);
/* Names unnamed values and makes the names of nodes unique, for saving (optimize.c). */
int qs_pass_names(qs_pass *p);
/* Attention written as transposes, products and a softmax becomes one node (pass_attention.c). */
int qs_pass_attention(qs_pass *p);
/* Fuses Relu and Clip into the operator before them (pass_fuse.c). */
int qs_pass_fuse(qs_pass *p);
/* Sums and products of two tables of one tensor, and tables of tables, become one (pass_table.c).
 */
int qs_pass_table(qs_pass *p);
/* Makes convolutions and pools channels-last; `propagate`: also nodes between them (pass_layout.c).
 */
int qs_pass_layout(qs_pass *p, bool propagate);

/*
 * After the layout pass: fuses tables and sums into the integer convolution or product that makes
 * their operand, sums and curves into the float convolution (pass_epilogue.c).
 */
int qs_pass_epilogue(qs_pass *p);

/* After the layout pass: Concat, channel shuffle and Split become one step (pass_shuffle.c). */
int qs_pass_shuffle(qs_pass *p);

/*
 * After both: convolutions write into the result of the Concat that is their only reader
 * (pass_concat.c).
 */
int qs_pass_concat(qs_pass *p);

/*
 * Reads the constant scale and zero point of a uint8 tensor; false if they are not constant
 * (pass_concat.c).
 */
bool qs_pass_q8(const qs_graph *g, qs_id scale, qs_id zero_point, qs_q8 *q);
/* Makes the table that requantizes bytes of `from` to `to`; false if it is the identity. */
bool qs_pass_rescaling(const qs_q8 *from, const qs_q8 *to, uint8_t *table);

/* ---- sizes that are the same, known or not (sizes.c) ---- */

typedef struct qs_sizes {
    const qs_value *values;
    qs_id *batch,
        *space; /* by value: the first value of the same batch size; of the same sizes of space */
} qs_sizes;

/* Needs `order` up to date and zeroed sizes, which the caller frees in any case. */
int qs_sizes_find(qs_pass *p, qs_sizes *s);
void qs_sizes_free(qs_pass *p, qs_sizes *s);
bool qs_sizes_same(const qs_sizes *s, qs_id a, qs_id b);

/* ---- helpers (pass.c) ---- */

int qs_pass_no_memory(const qs_pass *p);
/*
 * Makes a model from a copy of `model`'s graph that `work` rewrites as `how` says: what public
 * functions do that derive a model. Errors: ARGUMENT (model or out is NULL; the message names
 * `what`), STATE (loaded for inspection), those of `work`.
 */
int qs_pass_derive(const qsim_model *model, const char *what, int (*work)(qs_pass *p, int32_t how),
                   int32_t how, qsim_model **out, qsim_error *error);
/* Sorts, prunes and infers: the end of a pass that has changed the graph. */
int qs_pass_finish(qs_pass *p);
/*
 * Calls `rewrite` for each node in order, removed ones included, with the readers that values had
 * before the pass; then finishes the pass if a rewrite has set *changed.
 */
int qs_pass_nodes(qs_pass *p,
                  int (*rewrite)(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed));
/* An unnamed value of the type and shape of `like`; negative: failed, error set. */
qs_id qs_pass_value(qs_pass *p, qs_id like);
/* An unnamed constant whose bytes are copied. */
qs_id qs_pass_const(qs_pass *p, int32_t dtype, int32_t rank, const int64_t *dims, const void *data);
/* The same of bytes in the graph's arena, which are not copied. */
qs_id qs_pass_placed_const(qs_pass *p, int32_t dtype, int32_t rank, const int64_t *dims,
                           const void *data);
/* The numbers of an int8 constant plus 128 as uint8, or the reverse (pass_u8.c). */
qs_id qs_pass_flip_const(qs_pass *p, const qs_const *c);
qs_id qs_pass_const_u8(qs_pass *p, int32_t dtype, uint8_t value);
/* A table of 256 bytes, as QTable and others take it. */
qs_id qs_pass_const_table(qs_pass *p, const uint8_t *table);
/* Adds a node and looks up its row. version 0: the one that the graph imports. */
qs_id qs_pass_node(qs_pass *p, const char *domain, const char *op_type, const char *name,
                   int32_t version, const qs_id *inputs, int32_t input_count, const qs_id *outputs,
                   int32_t output_count);
/* Adds a node of `like`'s operator and attributes in `domain`, its row not looked up yet. */
qs_id qs_pass_clone(qs_pass *p, qs_id like, const char *domain, const qs_id *inputs,
                    int32_t input_count, const qs_id *outputs, int32_t output_count);
/* Names a value after `base`: qs_pass_names names all that have no name, but not inside of nodes.
 */
int qs_pass_name(qs_pass *p, qs_id value, const char *base);
/* Makes value y the Cast of `from` to a type, and returns y or a negative code. */
qs_id qs_pass_cast(qs_pass *p, qs_id from, int32_t to, qs_id y);
int qs_pass_resolve(qs_pass *p, qs_id node);
/* Whether two values have the same sizes, all known. */
bool qs_pass_same_sizes(const qs_graph *g, qs_id a, qs_id b);
/*
 * Adds a Reshape of `from` (size 0: unchanged, -1: the remaining elements), and a Transpose of it.
 */
int qs_pass_reshape(qs_pass *p, qs_id from, const int64_t *shape, int32_t count, qs_id to);
int qs_pass_transpose(qs_pass *p, qs_id from, const int64_t *perm, int32_t count, qs_id to);
/* Makes `value` the node's output `index`. */
void qs_pass_set_output(qs_pass *p, qs_id node, int32_t index, qs_id value);
/* The value's producer if it is operator `op_type` of ai.onnx, else QS_NONE. */
qs_id qs_pass_producer(const qs_graph *g, qs_id value, const char *op_type);
/* The value's only reader if it is operator `op_type` of ai.onnx, else QS_NONE. */
qs_id qs_pass_reader(const qs_graph *g, const qs_uses *uses, qs_id value, const char *op_type);
/* Whether the node's inputs from `first` to before `end` are constants or left out. */
bool qs_node_is_constant(const qs_graph *g, const qs_node *n, int32_t first, int32_t end);
/*
 * Whether `c` has one float for each channel (axis 1) of values of that rank, or one for all
 * (pass_bias.c).
 */
bool qs_pass_is_per_channel(const qs_const *c, int32_t rank, int64_t channels);
/* An input that is a constant of floats; NULL: it is not. */
const qs_const *qs_node_floats(const qs_graph *g, const qs_node *n, int32_t index);
/* Whether an input is left out or a constant of zeros. */
bool qs_node_zero(const qs_graph *g, const qs_node *n, int32_t index);
/* Whether attribute perm has these `rank` axes. */
bool qs_node_perm_is(const qs_node *n, const int64_t *perm, int32_t rank);
/* Reads the permutation of a Transpose of that rank; false: it is none. */
bool qs_node_perm(const qs_node *n, int32_t rank, int64_t *perm);
/* The one element of a constant as a double; false if it is no constant of one element. */
bool qs_const_scalar(const qs_graph *g, qs_id value, double *out);
/* Element i of a constant of 4 bits, its sign bit not extended. */
uint8_t qs_const_code4(const qs_const *c, size_t i);
/*
 * Reads the elements of an int32 or int64 constant. Returns their number; -1: no such constant, or
 * more than `capacity`.
 */
int32_t qs_const_ints(const qs_const *c, int64_t *out, int32_t capacity);
/* A node's axes (attribute "axes" or constant input 1) of `rank` as a mask; 0: not known. */
uint32_t qs_node_axes(const qs_graph *g, const qs_node *n, int32_t rank);
/* Bounds of a Relu, or of a Clip with constant bounds; false for other nodes (pass_fuse.c). */
bool qs_node_bounds(const qs_graph *g, const qs_node *n, double *lo, double *hi);
/* Whether a ReduceMean is over all axes of space, and keeps them (qdq_simple.c). */
bool qs_is_global_mean(const qs_graph *g, const qs_node *n, bool *keep);

#endif
